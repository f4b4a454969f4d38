"""The tables of a ledger's file, and how an opened file is known to be one."""

from __future__ import annotations

import sqlite3

from sfumato.errors import LedgerCorrupt, LedgerUnavailable

__all__ = ["APART", "FORMAT", "PLAIN", "check_schema", "mark_format", "write_schema"]

PLAIN = 1
"""Format of a ledger with one budget for all: the one that every version of sfumato reads."""

APART = 2
"""Format of a ledger that keeps accounts of analysts or periods, which an older version would overdraw."""

FORMAT = APART
"""The latest format known, in the file's header; a file of a later one is refused."""

APPLICATION = 0x53464C47
"""Marks an SQLite file as a ledger ("SFLG")."""

STATEMENTS = {
    # AUTOINCREMENT keeps the highest position ever used beside the table: a row cut off the end shows.
    "event": """CREATE TABLE event (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL CHECK (typeof(kind) = 'text'),
        charge INTEGER CHECK (typeof(charge) IN ('integer', 'null')),
        body TEXT NOT NULL CHECK (typeof(body) = 'text'),
        previous TEXT NOT NULL CHECK (typeof(previous) = 'text'),
        digest TEXT NOT NULL CHECK (typeof(digest) = 'text')
    )""",
    # A charge is recorded once and committed once.
    "event_of_charge": "CREATE UNIQUE INDEX event_of_charge ON event (kind, charge) WHERE charge IS NOT NULL",
    "release": """CREATE TABLE release (
        charge INTEGER PRIMARY KEY,
        request TEXT NOT NULL CHECK (typeof(request) = 'text'),
        version INTEGER NOT NULL CHECK (typeof(version) = 'integer'),
        payload BLOB NOT NULL CHECK (typeof(payload) = 'blob')
    )""",
    "release_of_request": "CREATE INDEX release_of_request ON release (request, version, charge)",
    "secret": """CREATE TABLE secret (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        key BLOB NOT NULL CHECK (typeof(key) = 'blob')
    )""",
    # An insert that replaces would delete without firing a trigger: only the next position is let in.
    "event_appended": """CREATE TRIGGER event_appended BEFORE INSERT ON event
        WHEN NEW.position <> (SELECT coalesce(max(position), 0) + 1 FROM event)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END""",
    "release_appended": """CREATE TRIGGER release_appended BEFORE INSERT ON release
        WHEN EXISTS (SELECT 1 FROM release WHERE charge = NEW.charge)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END""",
    "secret_appended": """CREATE TRIGGER secret_appended BEFORE INSERT ON secret
        WHEN EXISTS (SELECT 1 FROM secret)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END""",
} | {
    f"{table}_{action}_refused": f"""CREATE TRIGGER {table}_{action}_refused BEFORE {action} ON {table}
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END"""
    for table in ("event", "release", "secret")
    for action in ("update", "delete")
}


def write_schema(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty database, inside the caller's transaction."""
    for statement in STATEMENTS.values():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    mark_format(connection, PLAIN)


def mark_format(connection: sqlite3.Connection, version: int) -> None:
    """Raise the format to ``version``, inside the caller's transaction; never lowers it."""
    (marked,) = connection.execute("PRAGMA user_version").fetchone()
    if version > marked:
        connection.execute(f"PRAGMA user_version = {version:d}")


def check_schema(connection: sqlite3.Connection, name: str) -> None:
    """Refuse a database that is not a ledger, is one of a later version, or lost a table or a trigger.

    Raises
    ------
    LedgerCorrupt
        Not a ledger, or its schema was altered.
    LedgerUnavailable
        A ledger of a later version.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise LedgerCorrupt(f"ledger must be a file that sfumato made, got {name}; give another path")
    if version > FORMAT:
        raise LedgerUnavailable(
            f"ledger must have a format up to {FORMAT}, got {version} in {name}; upgrade sfumato to open it"
        )
    stored = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    kept = {name: _words(sql) for name, sql in stored}
    if version < PLAIN or kept != {name: _words(sql) for name, sql in STATEMENTS.items()}:
        raise LedgerCorrupt(
            f"ledger must have the tables and triggers it was made with, got an altered {name}; "
            "restore the file from a backup"
        )


def _words(statement: object) -> list[str]:
    """Return a statement without its layout."""
    return str(statement).split()
