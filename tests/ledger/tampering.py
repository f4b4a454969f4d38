"""What somebody with a database tool could do to a ledger's file."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato._wire import canonical
from sfumato.ledger.log.hash_chain import GENESIS, link


def execute(path: Path, *statements: str) -> list[Any]:
    """Run statements in one transaction, and return the rows of the last."""
    rows: list[Any] = []
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            rows = connection.execute(statement).fetchall()
    return rows


def tamper(path: Path, *statements: str) -> None:
    """Change rows as somebody with a database tool would, leaving the schema as it was."""
    triggers = execute(path, "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    dropped = [f"DROP TRIGGER {name}" for name, _ in triggers]
    execute(path, *dropped, *statements, *(sql for _, sql in triggers))


def rewrite(path: Path, change: Callable[[int, dict[str, Any]], None]) -> None:
    """Forge the whole log: change bodies and hash the chain again, as a curator with the file could."""
    rows = execute(path, "SELECT position, kind, charge, body FROM event ORDER BY position")
    previous, statements = GENESIS, []
    for position, kind, charge, body in rows:
        content = json.loads(body)
        change(position, content)
        event = link(position, kind, charge, canonical(content), previous)
        previous = event.digest
        statements.append(
            f"UPDATE event SET body = '{event.body}', previous = '{event.previous}', "
            f"digest = '{event.digest}' WHERE position = {position}"
        )
    tamper(path, *statements)
