"""What an answer must not be written over: the rows, the public tables, and every ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from sfumato import _check
from sfumato.frames.sources import DatasetSource, FileSource, files_meant, open_source
from sfumato.ledger.store.postgres import is_address

__all__ = ["check_free", "file_of", "resolved"]

_BESIDE_LEDGER = ("", "-journal", "-wal", "-shm")
_BESIDE_DUCKDB = ("", ".wal")
_DATABASES = {b"SQLite format 3\x00": slice(0, 16), b"DUCK": slice(8, 12)}
_ELSEWHERE = "name another file"


def check_free(
    output: Path, *, sources: Mapping[str, str], ledger: Path | None, name: str = "output"
) -> None:
    """Refuse an output that is a file this program reads or keeps, under whatever name.

    Parameters
    ----------
    output : Path
        Where the answer shall go.
    sources : mapping of str to str
        The paths of all tables, private and public, as they were given; the address of a database is none.
    ledger : Path or None
        The ledger's file, which need not exist yet.
    name : str
        What the output is called.

    Raises
    ------
    ParameterError
        If it is such a file, or would be read as one of them, or is some other database.
    SourceError
        If a source cannot be opened.
    """
    target = resolved(output)
    sources = {name: path for name, path in sources.items() if not is_address(path)}
    if ledger is not None:
        for path in _with(resolved(ledger), _BESIDE_LEDGER):
            if _same(target, path) or _alike(target, path):
                _check.refuse(name, "not be the ledger or a file beside it", str(output), _ELSEWHERE)
    for path in _read_files(sources):
        if _same(target, path):
            _check.refuse(name, "not be a file that the query reads", str(output), _ELSEWHERE)
    for given in sources.values():
        folder, pattern = files_meant(Path(given))
        if folder is not None and _same(target.parent, folder) and target.match(pattern):
            _check.refuse(name, "not be read as a part of a table", str(output), "name another folder")
    if _is_database(target):
        _check.refuse(name, "not be a ledger or a database", str(output), _ELSEWHERE)


def file_of(ledger: str | None) -> Path | None:
    """Return the file that a ledger is in; None for one in memory or on a server.

    >>> file_of("acs.ledger"), file_of("postgresql://ada@host/budgets")
    (PosixPath('acs.ledger'), None)
    """
    return None if ledger is None or is_address(ledger) else Path(ledger)


def resolved(path: Path) -> Path:
    """Return the file behind all symbolic links, which need not exist."""
    return Path(os.path.realpath(path))


def _with(path: Path, ends: tuple[str, ...]) -> Iterator[Path]:
    return (path.with_name(path.name + end) for end in ends)


def _read_files(sources: Mapping[str, str]) -> Iterator[Path]:
    for source in (open_source(sources) if sources else {}).values():
        if isinstance(source, FileSource):
            for path in source.paths:
                yield from _with(path, _BESIDE_DUCKDB)
        elif isinstance(source, DatasetSource):
            yield from source.files


def _same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, which may not exist, or have two names."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False


def _alike(one: Path, other: Path) -> bool:
    """Return whether two files that do not exist yet might be one, where names are looked up without case."""
    return one.parent == other.parent and one.name.casefold() == other.name.casefold()


def _is_database(path: Path) -> bool:
    if not path.is_file():  # to open a pipe would be to wait for its writer
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(16)
    except OSError:
        return False
    return any(head[position] == magic for magic, position in _DATABASES.items())
