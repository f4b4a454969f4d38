"""Which store a location names: memory, a file, or a schema on a PostgreSQL server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from sfumato import _check
from sfumato.errors import LedgerCorrupt
from sfumato.ledger.store.base import Store, WriteFirst
from sfumato.ledger.store.postgres import PostgresStore, is_address
from sfumato.ledger.store.sqlite import SQLiteStore, create_file, explained

__all__ = ["Location", "open_existing", "open_or_create"]

Location: TypeAlias = "str | os.PathLike[str]"


def open_or_create(
    location: Location | None, make_first: Callable[[], WriteFirst] | None, *, lock_timeout: float
) -> Store[Any]:
    """Open the ledger at a location, or make it there if there is none.

    Parameters
    ----------
    location : str or path-like or None
        A path, the address of a PostgreSQL database, or None for memory.
    make_first : callable or None
        Returns what writes the first rows; only called where there is no ledger yet. None: there must be one.
    lock_timeout : float
        Seconds to wait for other processes.
    """
    if make_first is None:
        if location is None:
            _check.refuse_state("head", "come with a ledger", "the ledger is in memory", "leave it out")
        return open_existing(location, read_only=False, lock_timeout=lock_timeout)
    if location is None:
        return SQLiteStore(None, write_first=make_first())
    if is_address(location):
        return PostgresStore(str(location), lock_timeout=lock_timeout, make_first=make_first)
    file = _absolute(location)
    if not _has_ledger(file):
        create_file(file, make_first())
    return SQLiteStore(file, lock_timeout=lock_timeout)


def open_existing(location: Location, *, read_only: bool, lock_timeout: float) -> Store[Any]:
    """Open the ledger at a location."""
    if is_address(location):
        return PostgresStore(str(location), read_only=read_only, lock_timeout=lock_timeout)
    return SQLiteStore(_absolute(location), read_only=read_only, lock_timeout=lock_timeout)


def _absolute(path: Location) -> Path:
    """Return the file that a path means now, whatever the working directory is later."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        text = ""
    if not text or "\0" in text:
        _check.refuse(
            "path",
            "be a path, a postgresql:// address, or None for a ledger in memory",
            path,
            "pass a name such as 'acs.ledger'",
        )
    return Path(os.path.realpath(text))


def _has_ledger(path: Path) -> bool:
    """Whether there is a file; a journal whose file is gone is damage: no new ledger is made there."""
    with explained(repr(str(path))):
        # A journal is made after its file, so it is looked for first.
        orphans = [path.with_name(path.name + end) for end in ("-journal", "-wal")]
        orphaned = any(os.path.lexists(orphan) for orphan in orphans)
        there = os.path.lexists(path)
    if orphaned and not there:
        raise LedgerCorrupt(
            f"ledger must be beside its journal, got a journal without its file at {str(path)!r}; restore "
            "the file from a backup, or remove the journal if the ledger is to be forgotten"
        )
    return there
