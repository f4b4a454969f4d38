"""What SQLite and the operating system report, as one of the ledger's errors with its remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.failures import NOTHING_CHARGED

__all__ = ["explained", "may_have_committed"]

UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: ("be free", "a lock held by another process", "try again when it is done"),
    sqlite3.SQLITE_LOCKED: ("be free", "a lock held by this process", "try again when it is done"),
    sqlite3.SQLITE_READONLY: ("be writable", "a read-only file", "make the file and its folder writable"),
    sqlite3.SQLITE_FULL: ("find room to grow", "a full disk", "free some space and try again"),
    sqlite3.SQLITE_IOERR: ("be readable and writable", "an input or output error", "check the disk"),
    sqlite3.SQLITE_CANTOPEN: (
        "be in a folder where files can be made",
        "a file that cannot be opened",
        "check that the folder exists and is writable",
    ),
    sqlite3.SQLITE_PERM: ("be writable", "missing permission", "make the file and its folder writable"),
    sqlite3.SQLITE_AUTH: ("be writable", "missing permission", "make the file and its folder writable"),
    sqlite3.SQLITE_INTERRUPT: ("not be interrupted", "an interrupt", "try again"),
    sqlite3.SQLITE_PROTOCOL: ("be free", "a lock that cannot be had", "put it on a local disk"),
    sqlite3.SQLITE_NOLFS: ("be on a disk that holds large files", "one that does not", "move it"),
    # No code: the connection was closed.
    None: ("be open", "a closed one", "open it again"),
}

SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ
"""Part of the file is missing: damage, not a disk that fails."""

NO_ERRNO = "an operating system error"


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn errors of SQLite and the operating system into `LedgerUnavailable` or `LedgerCorrupt`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _of_sqlite(error, name) from error
    except UnicodeDecodeError as error:
        raise _damaged(name) from error
    except OSError as error:
        raise LedgerUnavailable(
            f"ledger must be readable and writable, got {error.strerror or NO_ERRNO} at {name}; "
            f"{NOTHING_CHARGED}; check the path, its permissions and the disk"
        ) from error


def may_have_committed(error: sqlite3.Error) -> bool:
    """Whether a commit that failed so may have happened.

    It happens when the journal is removed. A write that fails, for want of room or otherwise, comes before
    that, and a lock that is not free before every write; what else may fail, such as the sync of the folder,
    can come after.
    """
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code is None or (code & 0xFF == sqlite3.SQLITE_IOERR and code != sqlite3.SQLITE_IOERR_WRITE)


def _of_sqlite(error: sqlite3.Error, name: str) -> LedgerUnavailable | LedgerCorrupt:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    # The low byte is the error, the rest says more about it.
    primary = None if code is None else code & 0xFF
    undecodable = primary is None and isinstance(error, sqlite3.OperationalError)
    if code == SHORT_READ or undecodable or primary not in UNAVAILABLE:
        return _damaged(name)
    rule, got, remedy = UNAVAILABLE[primary]
    return LedgerUnavailable(f"ledger must {rule}, got {got} at {name}; {NOTHING_CHARGED}; {remedy}")


def _damaged(name: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"ledger must be undamaged, got a damaged or altered file at {name}; {NOTHING_CHARGED}; "
        "restore it from a backup and compare with the latest exported head"
    )
