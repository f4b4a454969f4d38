"""What a collector remembers across restarts: reports that wait, nonces that were seen, batches to release.

One SQLite database, whose transactions are durable when they return. The reports that wait lie in slots of
one size, as many as a batch has clients, each written in place at a position drawn by chance: the slots hold
the same bytes in whatever order they came. Nonces are stored apart from them, and nothing else of a client
is.

Reports that do not hide one another, as they are sealed for different keys of the analyst, wait in *lanes* of
as many slots each, so that every batch is of one lane. Nonces are one set for all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, final

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError, SfumatoError
from sfumato.local.device.base.record_layout import Records
from sfumato.local.shuffle.mixed_batch import random_order
from sfumato.numerics.randomness.source import RandomSource
from sfumato.server.store_file import opened_store, store_connection

__all__ = ["Report", "Store"]

_FORMAT: Final = 1
_WITH_LANES: Final = 2
"""The format of a store with more than one lane."""
_MAX_BYTES: Final = 900_000_000
_TAKEN: Final = b"\x01"
_FREE: Final = b"\x00"
_SLOTS: Final = (
    "SELECT count(*), min(number), max(number), total(substr(content, 1, 1) = ?) FROM slot "
    "WHERE typeof(content) = 'blob' AND length(content) = ?"
)
_TABLES: Final = (
    "CREATE TABLE collection (id BLOB NOT NULL, batches INTEGER NOT NULL)",
    "CREATE TABLE slot (number INTEGER PRIMARY KEY, content BLOB NOT NULL)",
    "CREATE TABLE nonce (value BLOB PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE batch (number INTEGER PRIMARY KEY, content BLOB NOT NULL)",
)
_LANES: Final = "CREATE TABLE lane (number INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE)"


class Report(NamedTuple):
    """What is stored of a client.

    Parameters
    ----------
    nonce : bytes
    records : bytes
        Sealed, at a shuffler.
    lane : bytes
        The name of those that share its batch.
    """

    nonce: bytes
    records: bytes
    lane: bytes = b""


@final
class Store:
    """The state of one collection's collector, in one file that one process has open.

    Its `progress` is how many batches were filled and how many reports wait, after the last transaction: two
    numbers of one moment, for other threads too.

    Parameters
    ----------
    path : Path
        Made if there is none.
    collection : bytes
        The collection's id, 32 bytes.
    size : int
        Clients of a batch.
    width : int
        Bytes of one client's records.
    mixed : callable
        Makes the content of a batch of its number and the records of its clients, one a row.
    source : RandomSource
        Of the positions that reports are put at.
    owner : str
        What the store is of, for messages.

    Raises
    ------
    ParameterError
        If the file is another collection's, is damaged, or another process has it open.
    """

    __slots__ = (
        "_batches", "_connection", "_free", "_lanes", "_mixed", "_owner", "_process", "_size", "_source",
        "_sure", "_width", "progress",
    )  # fmt: skip

    def __init__(
        self,
        path: Path,
        *,
        collection: bytes,
        size: int,
        width: int,
        mixed: Callable[[int, Records], bytes],
        source: RandomSource,
        owner: str = "shuffler",
    ) -> None:
        if size * width > _MAX_BYTES:
            rule = f"have at most {_MAX_BYTES} bytes of records"
            _check.refuse("a batch", rule, size * width, "make batches of fewer clients")
        self._size, self._width, self._mixed, self._source = size, width, mixed, source
        self._process, self._owner = os.getpid(), owner
        self._connection = store_connection(path)
        with opened_store(self._connection, path.name, owner):
            self._open(path, collection)

    def _open(self, path: Path, collection: bytes) -> None:
        self._connection.execute("BEGIN EXCLUSIVE")
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not version and tables == (0,):
            self._make(collection)
        self._connection.execute("COMMIT")
        known = self._connection.execute("SELECT id FROM collection").fetchone()
        own = (version or _FORMAT) in (_FORMAT, _WITH_LANES) and known == (collection,)
        whole = own and self._whole(lanes=version == _WITH_LANES)
        if not own:
            raise ParameterError(
                f"{path.name!r} must be the store of this collection, got another's; use another folder"
            )
        if not whole:
            raise ParameterError(
                f"{path.name!r} must be as a {self._owner} left it, got a damaged one; "
                "begin a new collection in another folder"
            )
        self._look()

    def _whole(self, *, lanes: bool) -> bool:
        """Return whether the file's pages, its tables and the numbers of what they hold are as they are made.

        Notes
        -----
        That a sealed record was altered in place is not seen here: its seal does not open.
        """
        ask = self._connection.execute
        made = ask("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY sql").fetchall()
        if made != [(table,) for table in sorted((*_TABLES, _LANES) if lanes else _TABLES)]:
            return False
        if ask("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            return False
        rows = ask("SELECT batches, typeof(batches) FROM collection").fetchall()
        if len(rows) != 1 or rows[0][1] != "integer" or rows[0][0] < 0:
            return False
        waits = "SELECT count(*) FROM batch WHERE number < 1 OR number > ? OR typeof(content) != 'blob'"
        strange: int = ask(waits, (rows[0][0],)).fetchone()[0]
        return not strange and (not lanes or self._lanes_whole()) and self._slots_whole(lanes=lanes)

    def _slots_whole(self, *, lanes: bool) -> bool:
        ask = self._connection.execute
        facts = ask(_SLOTS, (_TAKEN, 1 + self._width)).fetchone()
        free = ask("SELECT count(*) FROM slot WHERE substr(content, 1, 1) = ?", (_FREE,)).fetchone()[0]
        total = ask("SELECT count(*) FROM slot").fetchone()[0]
        slots = self._size * len(self._named(lanes=lanes))
        if (*facts[:3], free + facts[3], total) != (slots, 0, slots - 1, slots, slots):
            return False
        return all(self._vacant(slots // self._size))

    def _lanes_whole(self) -> bool:
        facts = self._connection.execute(
            "SELECT count(*), min(number), max(number), total(typeof(name) = 'blob' AND length(name) > 0) "
            "FROM lane"
        ).fetchone()
        count: int = facts[0]
        return bool(count) and facts == (count, 1, count, count)

    def _make(self, collection: bytes) -> None:
        for table in _TABLES:
            self._connection.execute(table)
        self._connection.execute("INSERT INTO collection VALUES (?, 0)", (collection,))
        self._make_slots(0)
        self._connection.execute(f"PRAGMA user_version = {_FORMAT}")

    def _make_slots(self, lane: int) -> None:
        empty = _FREE + bytes(self._width)
        rows = ((number, empty) for number in range(lane * self._size, (lane + 1) * self._size))
        self._connection.executemany("INSERT INTO slot VALUES (?, ?)", rows)

    def _named(self, *, lanes: bool) -> dict[bytes, int]:
        """Return the lanes by name: the first, which has none, and those of the table, from 1 on."""
        ask = "SELECT number, name FROM lane ORDER BY number"
        named = self._connection.execute(ask).fetchall() if lanes else []
        return {b"": 0} | {bytes(name): at for at, (_, name) in enumerate(named, 1)}

    def _vacant(self, lanes: int) -> list[list[int]]:
        """Return the free positions of each lane."""
        free = "SELECT number FROM slot WHERE substr(content, 1, 1) = ?"
        found: list[list[int]] = [[] for _ in range(lanes)]
        for (number,) in self._connection.execute(free, (_FREE,)):
            found[number // self._size].append(number)
        return found

    def _look(self) -> None:
        """Find the free positions, and put them in random order."""
        (self._batches,) = self._connection.execute("SELECT batches FROM collection").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        self._lanes = self._named(lanes=version == _WITH_LANES)
        vacant = [np.array(numbers, np.int64) for numbers in self._vacant(len(self._lanes))]
        self._free: list[list[int]] = [
            numbers[random_order(len(numbers), self._source)].tolist() for numbers in vacant
        ]
        self._sure = True
        self._tell()

    def _tell(self) -> None:
        waiting = sum(self._size - len(free) for free in self._free)
        self.progress = (self._batches, waiting)

    @property
    def batches(self) -> int:
        """How many batches were filled so far."""
        found: int = self._batches
        return found

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if not self._sure:
            # After a failure: on a failing disk, rolling back and looking fail too.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._look()
        self._sure = False
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._look()
            raise
        self._sure = True
        self._tell()

    def take(self, reports: Sequence[Report]) -> None:
        """Store reports: all of them are durable when this returns, those of known nonces left out.

        Whenever all slots of a lane are taken, a batch is made of them in the same transaction: it is
        released as a whole or not at all, and no report is in two.
        """
        if not reports:
            return
        if os.getpid() != self._process:  # whose lock a forked child does not have
            raise SfumatoError("the store must be in the process that opened it, got another; open it there")
        with self._transaction():
            # Something is always written: a group of known nonces waits for the disk as any other.
            self._connection.execute("UPDATE collection SET batches = ?", (self._batches,))
            for nonce, sealed, name in reports:
                new = self._connection.execute("INSERT OR IGNORE INTO nonce VALUES (?)", (nonce,)).rowcount
                if not new:
                    continue
                lane = self._lanes[name] if name in self._lanes else self._add_lane(name)
                held = (_TAKEN + sealed, self._free[lane].pop())
                self._connection.execute("UPDATE slot SET content = ? WHERE number = ?", held)
                if not self._free[lane]:
                    self._mix(lane)

    def _add_lane(self, name: bytes) -> int:
        """Make slots for reports that must be mixed apart from all that came before."""
        lane = len(self._lanes)
        if lane == 1:
            self._connection.execute(_LANES)
            self._connection.execute(f"PRAGMA user_version = {_WITH_LANES}")
        self._connection.execute("INSERT INTO lane VALUES (?, ?)", (lane, name))
        self._make_slots(lane)
        self._lanes[name] = lane
        self._free.append((lane * self._size + random_order(self._size, self._source)).tolist())
        return lane

    def _mix(self, lane: int) -> None:
        between = (lane * self._size, (lane + 1) * self._size)
        rows = self._connection.execute(
            "SELECT content FROM slot WHERE number >= ? AND number < ? ORDER BY number", between
        )
        held = np.frombuffer(b"".join(row[0] for row in rows), np.uint8).reshape(self._size, -1)
        if not (held[:, 0] == _TAKEN[0]).all():
            raise SfumatoError("the store must hold a whole batch to release one, got less; restore the file")
        self._batches += 1
        content = self._mixed(self._batches, held[:, 1:])
        self._connection.execute("INSERT INTO batch VALUES (?, ?)", (self._batches, content))
        self._connection.execute("UPDATE collection SET batches = ?", (self._batches,))
        emptied = (_FREE + bytes(self._width), *between)
        self._connection.execute("UPDATE slot SET content = ? WHERE number >= ? AND number < ?", emptied)
        self._free[lane] = (between[0] + random_order(self._size, self._source)).tolist()

    def ready(self) -> list[int]:
        """Return the numbers of batches that wait to be written out."""
        rows = self._connection.execute("SELECT number FROM batch ORDER BY number")
        return [number for (number,) in rows]

    def content(self, number: int) -> bytes:
        """Return a batch that waits to be written out."""
        (content,) = self._connection.execute(
            "SELECT content FROM batch WHERE number = ?", (number,)
        ).fetchone()
        return bytes(content)

    def written(self, number: int) -> None:
        """Forget a batch that was written out."""
        self._connection.execute("DELETE FROM batch WHERE number = ?", (number,))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
