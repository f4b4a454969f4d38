"""What an aggregator remembers across restarts: reports, jobs, sums of batches, and what was collected.

One SQLite database, whose transactions are durable when they return, for one process at a time.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from sfumato._wire import canonical
from sfumato.errors import ParameterError
from sfumato.federated.dap.collection_messages import CHECKSUM_SIZE, BatchMode, BatchQuery, Interval
from sfumato.federated.dap.preparation import Verified
from sfumato.federated.dap.report_messages import ReportError
from sfumato.federated.dap.task import DapTask
from sfumato.federated.dap.version import Role
from sfumato.server.store_file import opened_store, store_connection, whole_transaction

__all__ = ["AggregatorStore", "BatchTotal", "StatementResult"]

_FORMAT: Final = 1
_TABLES: Final = (
    "CREATE TABLE party (id BLOB NOT NULL)",
    # Every report that was ever taken; its content until it is counted or refused.
    "CREATE TABLE report (id BLOB PRIMARY KEY, time INTEGER NOT NULL, content BLOB, job BLOB) WITHOUT ROWID",
    "CREATE INDEX waiting ON report (time) WHERE content IS NOT NULL AND job IS NULL",
    "CREATE TABLE job (id BLOB PRIMARY KEY, request BLOB NOT NULL, response BLOB, batch BLOB) WITHOUT ROWID",
    """CREATE TABLE bucket (id BLOB PRIMARY KEY, share BLOB NOT NULL, reports INTEGER NOT NULL,
    checksum BLOB NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID""",
    # What takes no more reports: an interval, or a batch; held for whom.
    "CREATE TABLE collected (start INTEGER, end INTEGER, batch BLOB, holder BLOB NOT NULL)",
    "CREATE TABLE share (id BLOB PRIMARY KEY, request BLOB NOT NULL, response BLOB) WITHOUT ROWID",
    """CREATE TABLE collection (id BLOB PRIMARY KEY, request BLOB NOT NULL, state TEXT NOT NULL,
    share_id BLOB, share_request BLOB, draft BLOB, response BLOB, problem TEXT) WITHOUT ROWID""",
)


@final
@dataclass(frozen=True, slots=True)
class BatchTotal:
    """One aggregator's exact sum of a batch, and what both must agree on.

    Parameters
    ----------
    share : bytes
        Of the sum, without noise.
    reports : int
    checksum : bytes
        Of the reports' ids.
    interval : Interval
        Where their times lie.
    """

    share: bytes
    reports: int
    checksum: bytes
    interval: Interval


@final
@dataclass(frozen=True, slots=True)
class StatementResult:
    """What a statement found or did.

    Parameters
    ----------
    rows : list of tuple
        What it found.
    rowcount : int
        How many rows it changed.
    """

    rows: list[tuple[Any, ...]]
    rowcount: int

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        return self.rows[0] if self.rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return self.rows


@final
class AggregatorStore:
    """The database of one aggregator of one task.

    Parameters
    ----------
    folder : Path
        Its own; made if there is none.
    task : DapTask
    role : Role
        `Role.LEADER` or `Role.HELPER`.

    Raises
    ------
    ParameterError
        If the folder cannot be written to, another process has it, or it is another task's.
    """

    def __init__(self, folder: Path, task: DapTask, role: Role) -> None:
        self.task, self.role = task, role
        self._lock = threading.RLock()
        path = folder / f"{role.name.lower()}.db"
        self._connection = store_connection(path)
        with opened_store(self._connection, path.name, "aggregator", "an"):
            self._open(path.name)

    def _open(self, name: str) -> None:
        identity = hashlib.sha256(
            f"{self.role.name}:{canonical(self.task.specification())}".encode()
        ).digest()
        with self.transaction():
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if not version:
                for table in _TABLES:
                    self.execute(table)
                self.execute("INSERT INTO party VALUES (?)", (identity,))
                self.execute(f"PRAGMA user_version = {_FORMAT}")
            known = self.execute("SELECT id FROM party").fetchone()
        if (version or _FORMAT, known) != (_FORMAT, (identity,)):
            raise ParameterError(
                f"{name!r} must be the store of this task and role, got another's; use another folder"
            )

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> StatementResult:
        """Run one statement, and read all of its rows: no thread sees them change."""
        with self._lock:
            cursor = self._connection.execute(statement, values)
            return StatementResult(cursor.fetchall(), cursor.rowcount)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all that follows, durably, or nothing of it; one thread at a time."""
        with self._lock, whole_transaction(self._connection):
            yield

    def closed(self, time: int, batch: bytes | None) -> bool:
        """Report whether a report of a time, in a batch if the leader selects batches, comes too late."""
        if batch is not None:
            found = self.execute("SELECT 1 FROM collected WHERE batch = ?", (batch,))
        else:
            found = self.execute("SELECT 1 FROM collected WHERE start <= ? AND end > ?", (time, time))
        return found.fetchone() is not None

    def overlaps(self, selector: BatchQuery) -> bool:
        """Report whether some of a batch was collected."""
        if selector.interval is None:
            return self.closed(0, selector.batch_id or b"")
        inside = (selector.interval.end, selector.interval.start)
        return (
            self.execute("SELECT 1 FROM collected WHERE start < ? AND end > ?", inside).fetchone() is not None
        )

    def close_batch(self, selector: BatchQuery, holder: bytes) -> None:
        """Let no more reports into a batch."""
        interval = selector.interval
        limits = (None, None) if interval is None else (interval.start, interval.end)
        self.execute("INSERT INTO collected VALUES (?, ?, ?, ?)", (*limits, selector.batch_id, holder))

    def commit(self, verified: Verified, times: dict[bytes, int], batch: bytes | None) -> None:
        """Add accepted reports to their buckets; in a transaction."""
        rows = verified.verification.report_ids
        buckets: dict[bytes, list[int]] = {}
        for row in np.flatnonzero(verified.accepted):
            time = times[rows[row]]
            buckets.setdefault(time.to_bytes(8, "big") if batch is None else batch, []).append(int(row))
        for bucket, members in buckets.items():
            chosen = np.zeros(len(rows), np.bool_)
            chosen[members] = True
            self._add(bucket, verified, chosen, [times[rows[row]] for row in members])

    def _add(
        self, bucket: bytes, verified: Verified, chosen: np.ndarray[tuple[int], Any], times: list[int]
    ) -> None:
        prio3, rows = self.task.prio3, verified.verification.report_ids
        share = prio3.aggregate(verified.verification.state.output_shares, chosen)
        checksum = checksum_of([rows[row] for row in np.flatnonzero(chosen)])
        reports, first, last = int(chosen.sum()), min(times), max(times)
        found = self.execute(
            "SELECT share, reports, checksum, first, last FROM bucket WHERE id = ?", (bucket,)
        ).fetchone()
        if found is not None:
            share, reports = prio3.merged([share, bytes(found[0])]), reports + found[1]
            checksum = _xor(checksum, found[2])
            first, last = min(first, found[3]), max(last, found[4])
        values = (bucket, share, reports, checksum, first, last)
        self.execute("INSERT OR REPLACE INTO bucket VALUES (?, ?, ?, ?, ?, ?)", values)

    def total(self, selector: BatchQuery) -> BatchTotal:
        """Return the sum of a batch."""
        columns = "SELECT share, reports, checksum, first, last FROM bucket WHERE "
        if selector.interval is not None:
            inside = (selector.interval.start, selector.interval.end)
            rows = self.execute(columns + "first >= ? AND first < ?", inside).fetchall()
        else:
            rows = self.execute(columns + "id = ?", (selector.batch_id,)).fetchall()
        checksum = bytes(CHECKSUM_SIZE)
        for row in rows:
            checksum = _xor(checksum, row[2])
        first, last = min((row[3] for row in rows), default=0), max((row[4] for row in rows), default=0)
        share = self.task.prio3.merged([bytes(row[0]) for row in rows])
        return BatchTotal(share, sum(row[1] for row in rows), checksum, Interval(first, last + 1 - first))

    def noised(self, share: bytes) -> bytes:
        """Return a share of a sum with this aggregator's own noise, freshly drawn."""
        noise = self.task.noise
        return share if noise is None else noise.added(self.task.prio3, share)

    def remembered(self, report_id: bytes, time: int, batch: bytes | None) -> ReportError | None:
        """Remember a report for good, or return why it may not be counted; in a transaction."""
        if self.closed(time, batch):
            return ReportError.BATCH_COLLECTED
        new = self.execute(
            "INSERT OR IGNORE INTO report VALUES (?, ?, NULL, NULL)", (report_id, time)
        ).rowcount
        return None if new else ReportError.REPORT_REPLAYED

    @property
    def by_time(self) -> bool:
        """Whether batches are intervals of time."""
        return self.task.batch_mode == BatchMode.TIME_INTERVAL

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()


def checksum_of(report_ids: list[bytes]) -> bytes:
    """Return the checksum of reports: SHA-256 of each id, all combined by exclusive or."""
    found = bytes(CHECKSUM_SIZE)
    for report_id in report_ids:
        found = _xor(found, hashlib.sha256(report_id).digest())
    return found


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(CHECKSUM_SIZE, "big")
