"""Messages of the collection: which batch is meant, and the two sealed shares of its sum."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, final

from sfumato.federated.dap.report_messages import TASK_ID_SIZE, HpkeCiphertext
from sfumato.federated.dap.tls_syntax import MalformedMessage, Reader, decoded, opaque, uint

__all__ = [
    "CHECKSUM_SIZE",
    "AggregateShare",
    "AggregateShareAad",
    "AggregateShareReq",
    "BatchMode",
    "BatchQuery",
    "CollectionJobReq",
    "CollectionJobResp",
    "Interval",
]

CHECKSUM_SIZE: Final = 32
"""Bytes of a batch's checksum."""


class BatchMode(IntEnum):
    """How reports are put into batches.

    Examples
    --------
    >>> BatchMode(1).name
    'TIME_INTERVAL'
    """

    TIME_INTERVAL = 1
    LEADER_SELECTED = 2


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time, without its end, in units of the task's time precision.

    Examples
    --------
    >>> Interval(7, 2).end
    9
    """

    start: int
    duration: int

    @property
    def end(self) -> int:
        """The first time after it."""
        return self.start + self.duration

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return uint(self.start, 8) + uint(self.duration, 8)

    @staticmethod
    def read(reader: Reader) -> Interval:
        """Read an interval, which must end within 64 bits."""
        interval = Interval(reader.uint(8), reader.uint(8))
        if interval.end >= 1 << 64:
            raise MalformedMessage("an interval ends after all times")
        return interval


@final
@dataclass(frozen=True, slots=True)
class BatchQuery:
    """Which batch is meant: a query, a batch selector or a partial batch selector, by which part is given.

    Parameters
    ----------
    mode : BatchMode
        The task's.
    interval : Interval, optional
        In the mode of time intervals, for queries and batch selectors.
    batch_id : bytes, optional
        In the mode of leader-selected batches, for both selectors.

    Examples
    --------
    >>> BatchQuery(BatchMode.LEADER_SELECTED).to_bytes().hex()
    '020000'
    """

    mode: BatchMode
    interval: Interval | None = None
    batch_id: bytes | None = None

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        config = b"" if self.interval is None else self.interval.to_bytes()
        return uint(self.mode, 1) + opaque(config if self.batch_id is None else self.batch_id, 2)

    @staticmethod
    def read_query(reader: Reader) -> BatchQuery:
        """Read a collector's query: an interval, or nothing."""
        return _read(reader, interval=True, batch=False)

    @staticmethod
    def read_partial(reader: Reader) -> BatchQuery:
        """Read a partial batch selector: nothing, or a batch id."""
        return _read(reader, interval=False, batch=True)

    @staticmethod
    def read_selector(reader: Reader) -> BatchQuery:
        """Read a batch selector: an interval, or a batch id."""
        return _read(reader, interval=True, batch=True)


def _read(reader: Reader, *, interval: bool, batch: bool) -> BatchQuery:
    number, config = reader.uint(1), reader.opaque(2)
    if number not in (BatchMode.TIME_INTERVAL, BatchMode.LEADER_SELECTED):
        raise MalformedMessage("a batch mode has an unknown number")
    mode = BatchMode(number)
    if mode == BatchMode.TIME_INTERVAL and interval:
        return BatchQuery(mode, interval=decoded(config, Interval.read))
    if mode == BatchMode.LEADER_SELECTED and batch:
        return BatchQuery(mode, batch_id=decoded(config, lambda part: part.fixed(TASK_ID_SIZE)))
    if config:
        raise MalformedMessage("bytes follow the message's end")
    return BatchQuery(mode)


@final
@dataclass(frozen=True, slots=True)
class CollectionJobReq:
    """What a collector asks for.

    Examples
    --------
    >>> CollectionJobReq(BatchQuery(BatchMode.LEADER_SELECTED)).to_bytes().hex()
    '02000000000000'
    """

    query: BatchQuery
    aggregation_parameter: bytes = b""

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return self.query.to_bytes() + opaque(self.aggregation_parameter, 4)

    @staticmethod
    def read(reader: Reader) -> CollectionJobReq:
        """Read a request."""
        return CollectionJobReq(BatchQuery.read_query(reader), reader.opaque(4))


@final
@dataclass(frozen=True, slots=True)
class CollectionJobResp:
    """A batch's sum in two sealed shares, and how many reports it is of.

    Examples
    --------
    >>> sealed = HpkeCiphertext(1, b"e", b"p")
    >>> answer = CollectionJobResp(BatchQuery(BatchMode.TIME_INTERVAL), 9, Interval(7, 1), sealed, sealed)
    >>> decoded(answer.to_bytes(), CollectionJobResp.read) == answer
    True
    """

    partial_batch_selector: BatchQuery
    report_count: int
    interval: Interval
    leader_share: HpkeCiphertext
    helper_share: HpkeCiphertext

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        head = self.partial_batch_selector.to_bytes() + uint(self.report_count, 8) + self.interval.to_bytes()
        return head + self.leader_share.to_bytes() + self.helper_share.to_bytes()

    @staticmethod
    def read(reader: Reader) -> CollectionJobResp:
        """Read a result."""
        return CollectionJobResp(
            BatchQuery.read_partial(reader),
            reader.uint(8),
            Interval.read(reader),
            HpkeCiphertext.read(reader),
            HpkeCiphertext.read(reader),
        )


@final
@dataclass(frozen=True, slots=True)
class AggregateShareReq:
    """What a leader asks its helper for, with what must agree.

    Examples
    --------
    >>> request = AggregateShareReq(BatchQuery(BatchMode.TIME_INTERVAL, Interval(7, 1)), b"", 9, bytes(32))
    >>> len(request.to_bytes())
    63
    """

    batch_selector: BatchQuery
    aggregation_parameter: bytes
    report_count: int
    checksum: bytes

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        head = self.batch_selector.to_bytes() + opaque(self.aggregation_parameter, 4)
        return head + uint(self.report_count, 8) + self.checksum

    @staticmethod
    def read(reader: Reader) -> AggregateShareReq:
        """Read a request."""
        selector = BatchQuery.read_selector(reader)
        return AggregateShareReq(selector, reader.opaque(4), reader.uint(8), reader.fixed(CHECKSUM_SIZE))


@final
@dataclass(frozen=True, slots=True)
class AggregateShare:
    """A helper's sealed share of a batch's sum.

    Examples
    --------
    >>> len(AggregateShare(HpkeCiphertext(1, b"e", b"p")).to_bytes())
    9
    """

    sealed: HpkeCiphertext

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return self.sealed.to_bytes()

    @staticmethod
    def read(reader: Reader) -> AggregateShare:
        """Read a share."""
        return AggregateShare(HpkeCiphertext.read(reader))


@final
@dataclass(frozen=True, slots=True)
class AggregateShareAad:
    """What a sealed share of a sum is bound to.

    Examples
    --------
    >>> len(AggregateShareAad(bytes(32), b"", BatchQuery(BatchMode.TIME_INTERVAL)).to_bytes())
    39
    """

    task_id: bytes
    aggregation_parameter: bytes
    batch_selector: BatchQuery

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return self.task_id + opaque(self.aggregation_parameter, 4) + self.batch_selector.to_bytes()

    @staticmethod
    def read(reader: Reader) -> AggregateShareAad:
        """Read the data."""
        return AggregateShareAad(
            reader.fixed(TASK_ID_SIZE), reader.opaque(4), BatchQuery.read_selector(reader)
        )
