"""Messages of the aggregation, by which the two aggregators verify reports together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import final

from sfumato.federated.dap.collection_messages import BatchQuery
from sfumato.federated.dap.report_messages import ID_SIZE, ReportError, ReportShare
from sfumato.federated.dap.tls_syntax import MalformedMessage, Reader, opaque, uint

__all__ = [
    "AggregationJobContinueReq",
    "AggregationJobInitReq",
    "AggregationJobResp",
    "PingPong",
    "PingPongKind",
    "PrepareContinue",
    "PrepareInit",
    "PrepareResp",
    "PrepareStep",
]


class PingPongKind(IntEnum):
    """Which step of the verification a message belongs to.

    Examples
    --------
    >>> PingPongKind.FINISH.value
    2
    """

    INITIALIZE = 0
    CONTINUE = 1
    FINISH = 2


@final
@dataclass(frozen=True, slots=True)
class PingPong:
    """A step of the verification: the verifier message of the last round, the verifier share of the next.

    Examples
    --------
    >>> PingPong(PingPongKind.FINISH, message=b"ab").to_bytes().hex()
    '02000000026162'
    """

    kind: PingPongKind
    message: bytes = b""
    share: bytes = b""

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        message = b"" if self.kind == PingPongKind.INITIALIZE else opaque(self.message, 4)
        share = b"" if self.kind == PingPongKind.FINISH else opaque(self.share, 4)
        return uint(self.kind, 1) + message + share

    @staticmethod
    def read(reader: Reader) -> PingPong:
        """Read a step."""
        number = reader.uint(1)
        if number >= len(PingPongKind):
            raise MalformedMessage("a verification step has an unknown number")
        kind = PingPongKind(number)
        message = b"" if kind == PingPongKind.INITIALIZE else reader.opaque(4)
        return PingPong(kind, message, b"" if kind == PingPongKind.FINISH else reader.opaque(4))


@final
@dataclass(frozen=True, slots=True)
class PrepareInit:
    """The helper's share of a report, and the leader's first step.

    Examples
    --------
    >>> from sfumato.federated.dap.report_messages import HpkeCiphertext, ReportMetadata
    >>> share = ReportShare(ReportMetadata(bytes(16), 7), b"", HpkeCiphertext(1, b"e", b"p"))
    >>> len(PrepareInit(share, b"x").to_bytes())
    44
    """

    report_share: ReportShare
    payload: bytes

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return self.report_share.to_bytes() + opaque(self.payload, 4)

    @staticmethod
    def read(reader: Reader) -> PrepareInit:
        """Read a beginning."""
        return PrepareInit(ReportShare.read(reader), reader.opaque(4, minimum=1))


@final
@dataclass(frozen=True, slots=True)
class AggregationJobInitReq:
    """What begins an aggregation job.

    Examples
    --------
    >>> from sfumato.federated.dap.collection_messages import BatchMode
    >>> AggregationJobInitReq(b"", BatchQuery(BatchMode.TIME_INTERVAL), ()).to_bytes().hex()
    '00000000010000'
    """

    aggregation_parameter: bytes
    partial_batch_selector: BatchQuery
    inits: tuple[PrepareInit, ...]

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        head = opaque(self.aggregation_parameter, 4) + self.partial_batch_selector.to_bytes()
        return head + b"".join(one.to_bytes() for one in self.inits)

    @staticmethod
    def read(reader: Reader) -> AggregationJobInitReq:
        """Read a request."""
        return AggregationJobInitReq(
            reader.opaque(4), BatchQuery.read_partial(reader), reader.rest(PrepareInit.read)
        )


class PrepareStep(IntEnum):
    """What a helper answers for a report.

    Examples
    --------
    >>> PrepareStep(2).name
    'REJECT'
    """

    CONTINUE = 0
    FINISH = 1
    REJECT = 2


@final
@dataclass(frozen=True, slots=True)
class PrepareResp:
    """A helper's answer for one report.

    Examples
    --------
    >>> PrepareResp(bytes(16), PrepareStep.REJECT, error=ReportError.VDAF_PREP_ERROR).to_bytes()[16:].hex()
    '0206'
    """

    report_id: bytes
    step: PrepareStep
    payload: bytes = b""
    error: ReportError = ReportError.RESERVED

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        payload = opaque(self.payload, 4) if self.step == PrepareStep.CONTINUE else b""
        error = uint(self.error, 1) if self.step == PrepareStep.REJECT else b""
        return self.report_id + uint(self.step, 1) + payload + error

    @staticmethod
    def read(reader: Reader) -> PrepareResp:
        """Read an answer."""
        report_id, number = reader.fixed(ID_SIZE), reader.uint(1)
        if number >= len(PrepareStep):
            raise MalformedMessage("an answer has an unknown number")
        step = PrepareStep(number)
        payload = reader.opaque(4, minimum=1) if step == PrepareStep.CONTINUE else b""
        error = ReportError.read(reader) if step == PrepareStep.REJECT else ReportError.RESERVED
        return PrepareResp(report_id, step, payload, error)


@final
@dataclass(frozen=True, slots=True)
class AggregationJobResp:
    """A helper's answers for all reports of a job, in their order.

    Examples
    --------
    >>> AggregationJobResp(()).to_bytes()
    b''
    """

    answers: tuple[PrepareResp, ...]

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return b"".join(one.to_bytes() for one in self.answers)

    @staticmethod
    def read(reader: Reader) -> AggregationJobResp:
        """Read the answers."""
        return AggregationJobResp(reader.rest(PrepareResp.read))


@final
@dataclass(frozen=True, slots=True)
class PrepareContinue:
    """A later step of one report, for functions of more than one round.

    Examples
    --------
    >>> PrepareContinue(bytes(16), b"x").to_bytes()[16:].hex()
    '0000000178'
    """

    report_id: bytes
    payload: bytes

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return self.report_id + opaque(self.payload, 4)

    @staticmethod
    def read(reader: Reader) -> PrepareContinue:
        """Read a step."""
        return PrepareContinue(reader.fixed(ID_SIZE), reader.opaque(4, minimum=1))


@final
@dataclass(frozen=True, slots=True)
class AggregationJobContinueReq:
    """Later steps of a job; Prio3 has none.

    Examples
    --------
    >>> AggregationJobContinueReq(1, ()).to_bytes().hex()
    '0001'
    """

    step: int
    continues: tuple[PrepareContinue, ...]

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return uint(self.step, 2) + b"".join(one.to_bytes() for one in self.continues)

    @staticmethod
    def read(reader: Reader) -> AggregationJobContinueReq:
        """Read a request."""
        return AggregationJobContinueReq(reader.uint(2), reader.rest(PrepareContinue.read))
