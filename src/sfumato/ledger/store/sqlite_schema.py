"""The tables of a ledger's file, and how an opened file is known to be one."""

from __future__ import annotations

import sqlite3

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.store.base import SCHEMA_VERSION

__all__ = ["check_schema", "write_schema"]

APPLICATION = 0x53464C47
"""Marks an SQLite file as a ledger ("SFLG")."""

STATEMENTS = {
    # AUTOINCREMENT stores the highest position ever used beside the table: a row cut off the end is noticed.
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
        dataset_version INTEGER NOT NULL CHECK (typeof(dataset_version) = 'integer'),
        payload BLOB NOT NULL CHECK (typeof(payload) = 'blob')
    )""",
    "release_of_request": "CREATE INDEX release_of_request ON release (request, dataset_version, charge)",
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
    # Steps [first, last] of one run, each claimed once, before its noise is drawn. A row grows at its end; a
    # step with a digest of what it will compute has a row of its own.
    "claim": """CREATE TABLE claim (
        run INTEGER NOT NULL CHECK (typeof(run) = 'integer'),
        first INTEGER NOT NULL CHECK (typeof(first) = 'integer'),
        last INTEGER NOT NULL CHECK (typeof(last) = 'integer' AND last >= first),
        digest TEXT NOT NULL CHECK (typeof(digest) = 'text' AND (digest = '' OR first = last)),
        PRIMARY KEY (run, first)
    )""",
    "claim_appended": """CREATE TRIGGER claim_appended BEFORE INSERT ON claim
        WHEN NEW.first <> (SELECT coalesce(max(last), -1) + 1 FROM claim WHERE run = NEW.run)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END""",
    "claim_grown": """CREATE TRIGGER claim_grown BEFORE UPDATE ON claim
        WHEN NEW.run <> OLD.run OR NEW.first <> OLD.first OR NEW.last < OLD.last OR NEW.digest <> OLD.digest
            OR EXISTS (SELECT 1 FROM claim WHERE run = OLD.run AND first > OLD.first)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END""",
    "claim_delete_refused": """CREATE TRIGGER claim_delete_refused BEFORE delete ON claim
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
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")


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
    if version > SCHEMA_VERSION:
        raise LedgerUnavailable(
            f"ledger must have a format up to {SCHEMA_VERSION}, got {version} in {name}; upgrade sfumato "
            "to open it"
        )
    stored = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    found = {name: _words(sql) for name, sql in stored}
    if version < 1 or found != {name: _words(sql) for name, sql in STATEMENTS.items()}:
        raise LedgerCorrupt(
            f"ledger must have the tables and triggers it was made with, got an altered {name}; "
            "restore the file from a backup"
        )


def _words(statement: object) -> list[str]:
    """Return a statement without its layout."""
    return str(statement).split()
