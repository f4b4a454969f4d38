"""The store of a shuffler that released one batch and waits for two more clients."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from pathlib import Path

from sfumato.server import Shuffler
from sfumato.server.monitoring.counters import COUNTED, Counters
from tests.golden.local.making import SHUFFLER, collection

FIRST, LATER = range(3), range(3, 4)
NAMED = 12
"""Counters that had a name when the file was written."""


def envelope(client: int) -> bytes:
    """What a client sends; its secret is its number."""
    made = collection().device
    return made.envelope("abcdef"[client % 6], client.to_bytes(16, "big"))


def files() -> dict[str, bytes]:
    """All golden files, by name."""
    with tempfile.TemporaryDirectory() as folder:
        with Shuffler(collection().device, SHUFFLER, Path(folder)) as shuffler:
            shuffler.take([envelope(client) for client in (*FIRST, *LATER)])
            batch = shuffler.path(1).read_bytes()
        with Counters(Path(folder, "counters")) as counters:
            for number, name in enumerate(COUNTED[:NAMED]):
                counters.add(name, number + 1)
        return {
            "waiting.db": Path(folder, "waiting.db").read_bytes(),
            "batch-000001.mixed": batch,
            "counters": Path(folder, "counters").read_bytes(),
        }


def tables(path: Path) -> list[str]:
    """The tables of a store, as they were made."""
    with contextlib.closing(sqlite3.connect(path)) as base:
        return [
            row[0]
            for row in base.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        ]
