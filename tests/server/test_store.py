"""A store that is damaged is refused in one sentence when it is opened, and never half read."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.server import Shuffler
from tests.golden.local.making import SHUFFLER, collection
from tests.golden.server import making

WHOLE = (Path(making.__file__).parent / "waiting.db").read_bytes()
PAGE = 4096
CHANGES = (
    "DROP TABLE slot",
    "DROP TABLE nonce",
    "DROP TABLE batch",
    "UPDATE slot SET content = 5",
    "UPDATE slot SET content = x''",
    "UPDATE slot SET content = x'02' || substr(content, 2)",
    "UPDATE slot SET content = x'01' || substr(content, 2)",
    "DELETE FROM slot",
    "DELETE FROM slot WHERE number = 1",
    "UPDATE slot SET number = 5 WHERE number = 1",
    "INSERT INTO slot SELECT 77, content FROM slot WHERE number = 0",
    "INSERT INTO slot VALUES (77, x'00')",
    "UPDATE collection SET batches = 'x'",
    "UPDATE collection SET batches = -1",
    "INSERT INTO collection SELECT * FROM collection",
    "INSERT INTO batch VALUES (2, x'00')",
    "INSERT INTO batch VALUES (1, 'text')",
    "CREATE TABLE more (name TEXT)",
)


def opens(folder: Path, content: bytes) -> None:
    """Open a store with some content, and take two reports more."""
    (folder / "waiting.db").write_bytes(content)
    with Shuffler(collection().device, SHUFFLER, folder) as shuffler:
        shuffler.take([making.envelope(client) for client in (7, 8)])


def test_a_store_with_other_tables_or_rows_is_refused(tmp_path: Path) -> None:
    for number, change in enumerate(CHANGES):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "changed"
        path.write_bytes(WHOLE)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as base:
            base.execute(change)
        with pytest.raises(ParameterError, match="must be as a shuffler left it, got a damaged one; begin"):
            opens(folder, path.read_bytes())


def damaged() -> Iterator[bytes]:
    """The store's bytes, some of them changed, a page emptied, or the end cut off."""
    draws = random.Random(1)
    for _ in range(60):
        content = bytearray(WHOLE)
        for _ in range(draws.choice([8, 200])):
            content[draws.randrange(len(content))] = draws.randrange(256)
        yield bytes(content)
    for start in range(0, len(WHOLE), PAGE):
        yield WHOLE[:start] + bytes(PAGE) + WHOLE[start + PAGE :]
        yield WHOLE[: start + PAGE // 2]


def test_damaged_bytes_raise_one_error(tmp_path: Path) -> None:
    refused = 0
    for number, content in enumerate(damaged()):
        folder = tmp_path / str(number)
        folder.mkdir()
        refused += 1
        with contextlib.suppress(ParameterError):
            opens(folder, content)
            refused -= 1  # what changed was in a sealed record, or in no use
    assert refused > 30
    opens(tmp_path, WHOLE)
