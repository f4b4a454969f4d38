"""Where a ledger lies: memory, a file, or a schema on a PostgreSQL server; and how it is opened there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from sfumato import _check
from sfumato.errors import LedgerCorrupt
from sfumato.ledger.failures import explained
from sfumato.ledger.store.base import Fill, Store
from sfumato.ledger.store.postgres import PostgresStore, is_address
from sfumato.ledger.store.sqlite import SQLiteStore, create_file

__all__ = ["Place", "made_store", "opened_store"]

Place: TypeAlias = "str | os.PathLike[str]"


def made_store(place: Place | None, fill: Callable[[], Fill], *, lock_timeout: float) -> Store[Any]:
    """Open the ledger at a place, or make it there if there is none.

    Parameters
    ----------
    place : str or path-like or None
        A path, the address of a PostgreSQL database, or None for memory.
    fill : callable
        Returns what writes the first rows; only called where there is no ledger yet.
    lock_timeout : float
        Seconds to wait for other processes.
    """
    if place is None:
        return SQLiteStore(None, fill=fill())
    if is_address(place):
        return PostgresStore(str(place), lock_timeout=lock_timeout, fill=fill)
    file = _absolute(place)
    if not _has_ledger(file):
        create_file(file, fill())
    return SQLiteStore(file, lock_timeout=lock_timeout)


def opened_store(place: Place, *, read_only: bool, lock_timeout: float) -> Store[Any]:
    """Open the ledger that is at a place."""
    if is_address(place):
        return PostgresStore(str(place), read_only=read_only, lock_timeout=lock_timeout)
    return SQLiteStore(_absolute(place), read_only=read_only, lock_timeout=lock_timeout)


def _absolute(path: Place) -> Path:
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
    """Whether there is a file; a journal whose file is gone is damage, not a place for a new ledger."""
    with explained(repr(str(path))):
        # A journal is made after its file, so it is looked for first.
        orphans = [path.with_name(path.name + end) for end in ("-journal", "-wal")]
        orphaned = any(os.path.lexists(orphan) for orphan in orphans)
        there = os.path.lexists(path)
    if orphaned and not there:
        raise LedgerCorrupt(
            f"ledger must lie beside its journal, got a journal without its file at {str(path)!r}; restore "
            "the file from a backup, or remove the journal if the ledger is to be forgotten"
        )
    return there
