"""How a store is opened: one SQLite database of durable transactions, for one process at a time."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from sfumato import _check
from sfumato._durable import sync_folder
from sfumato.errors import ParameterError

__all__ = ["opened_store", "refuse_folder", "store_connection", "whole_transaction"]

_PRAGMAS: Final = (
    "PRAGMA locking_mode = EXCLUSIVE",  # one process at a time, until it ends
    "PRAGMA journal_mode = TRUNCATE",  # what was overwritten does not stay in a journal
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",  # not in the system's folder, beyond our own
    "PRAGMA trusted_schema = OFF",
)


def store_connection(path: Path) -> sqlite3.Connection:
    """Return a connection to a store's file, which is made with its folder if there is none.

    Parameters
    ----------
    path : Path
        Its folder and itself are its owner's alone.

    Raises
    ------
    ParameterError
        If the folder cannot be written to.
    """
    try:
        missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        sync_folder(path.parent)
    except OSError as error:
        refuse_folder(path.parent, error)
    return sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=False)


@contextmanager
def opened_store(connection: sqlite3.Connection, name: str, owner: str, article: str = "a") -> Iterator[None]:
    """Set a connection up, and do what opens the store; close the connection if it fails.

    Parameters
    ----------
    connection : sqlite3.Connection
        As `store_connection` returned it.
    name, owner, article : str
        The file's, and whose store it is, for messages.

    Raises
    ------
    ParameterError
        If another process has the file open, or it is no store, or a damaged one.
    """
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        yield
    except sqlite3.Error as error:
        connection.close()
        if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
            raise ParameterError(
                f"{name!r} must be open in one {owner} only, got a second; stop the other"
            ) from error
        raise ParameterError(
            f"{name!r} must be {article} {owner}'s store, got {str(error)!r}; use another folder"
        ) from error
    except UnicodeDecodeError as error:  # of what SQLite says of a damaged schema
        connection.close()
        raise ParameterError(
            f"{name!r} must be as {article} {owner} left it, got a damaged one; use another folder"
        ) from error
    except BaseException:
        connection.close()
        raise


@contextmanager
def whole_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all that follows, durably, or nothing of it, while nobody else writes.

    Parameters
    ----------
    connection : sqlite3.Connection
        Of one thread at a time.
    """
    if connection.in_transaction:  # after a failure in which rolling back failed, too
        connection.execute("ROLLBACK")
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def refuse_folder(folder: Path, error: OSError) -> NoReturn:
    """Refuse a folder that could not be written to; the reason is the system's."""
    found = f"{str(folder)!r} is not: {(error.strerror or 'a failure').lower()}"
    _check.refuse_state("folder", "be one that can be written to", found, "choose another")
