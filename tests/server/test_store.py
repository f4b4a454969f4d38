"""A store that is damaged is refused in one sentence when it is opened, and never half read."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import random_source
from sfumato.server import Shuffler
from sfumato.server.store import Report, Store
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


LANES = (
    "DELETE FROM lane",
    "UPDATE lane SET number = 2",
    "UPDATE lane SET name = 5",
    "UPDATE lane SET name = x''",
    "INSERT INTO lane VALUES (2, x'01')",
    "DELETE FROM slot WHERE number >= 4",
    "UPDATE slot SET content = x'01' || substr(content, 2) WHERE number >= 4",
    "PRAGMA user_version = 1",
    "DROP TABLE lane",
)


def test_a_store_with_other_lanes_is_refused(tmp_path: Path) -> None:
    def store(path: Path, mixed: list[bytes]) -> Store:
        def batch(_number: int, clients: Records) -> bytes:
            mixed.append(clients[:, 0].tobytes())
            return b"mixed"

        source = random_source(1)
        return Store(path, collection=bytes(32), size=4, width=1, mixed=batch, source=source)

    reports = [Report(bytes([n]) * 16, bytes([n]), b"later" if n % 2 else b"") for n in range(6)]
    made = store(tmp_path / "whole", [])
    made.take(reports)
    made.close()
    for number, change in enumerate(LANES):
        path = tmp_path / str(number)
        path.write_bytes((tmp_path / "whole").read_bytes())
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as base:
            base.execute(change)
        with pytest.raises(ParameterError, match="must be as a shuffler left it, got a damaged one; begin"):
            store(path, [])
    mixed: list[bytes] = []
    again = store(tmp_path / "whole", mixed)
    assert again.progress == (0, 6)
    with pytest.raises(sqlite3.Error):  # a third lane of this transaction is undone with it
        again.take([Report(b"x" * 16, b"x", b"third"), Report(b"y" * 16, "no bytes", None)])  # type: ignore[arg-type]
    again.take([reports[0], Report(b"7" * 16, b"\x07", b"later"), Report(b"8" * 16, b"\x08")])
    assert [sorted(batch) for batch in mixed] == [[1, 3, 5, 7], [0, 2, 4, 8]]
    assert again.progress == (2, 0)
    again.close()


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
