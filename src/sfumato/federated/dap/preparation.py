"""An aggregator's half: report shares are opened, checked, and verified with the other aggregator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, final

import numpy as np

from sfumato.crypto.hpke_base import TAG
from sfumato.federated.dap.aggregation_messages import PingPong, PingPongKind
from sfumato.federated.dap.report_messages import (
    InputShareAad,
    PlaintextInputShare,
    ReportError,
    ReportMetadata,
    ReportShare,
)
from sfumato.federated.dap.sealing import HpkeKey
from sfumato.federated.dap.task import DapTask
from sfumato.federated.dap.tls_syntax import MalformedMessage, decoded
from sfumato.federated.dap.version import Role
from sfumato.federated.vdaf.report_batch import VerifyState

__all__ = ["ALLOWED_SKEW", "Preparation", "Verification", "Verified", "time_error"]

ALLOWED_SKEW: Final = 300
"""Seconds by which a client's clock may be ahead."""

_SEAL: Final = 6 + TAG  # no extensions, the payload's length, and the tag


def time_error(task: DapTask, metadata: ReportMetadata, now: float) -> ReportError | None:
    """Return what is wrong with a report's time, at a time in seconds since 1970.

    Examples
    --------
    >>> task = DapTask(
    ...     task_id=bytes(32), leader="http://a", helper="http://b", vdaf={"type": "Prio3Count"},
    ...     collector=HpkeKey(bytes(range(32))).config, min_batch_size=10, start=5, duration=10,
    ... )
    >>> [time_error(task, ReportMetadata(bytes(16), time), 3600 * 9.0) for time in (4, 9, 10, 15)]
    ... # doctest: +NORMALIZE_WHITESPACE
    [<ReportError.TASK_NOT_STARTED: 10>, None, <ReportError.REPORT_TOO_EARLY: 9>,
     <ReportError.REPORT_TOO_EARLY: 9>]
    """
    if metadata.time * task.time_precision > now + ALLOWED_SKEW:
        return ReportError.REPORT_TOO_EARLY
    if metadata.time < task.start:
        return ReportError.TASK_NOT_STARTED
    return ReportError.TASK_EXPIRED if metadata.time >= task.start + task.duration else None


@final
@dataclass(frozen=True, slots=True)
class Verification:
    """Some reports, of which this aggregator computed its side.

    Parameters
    ----------
    report_ids : tuple of bytes
        Of rows.
    state : VerifyState
        What is not sent.
    shares : numpy.ndarray
        Verifier shares.
    """

    report_ids: tuple[bytes, ...]
    state: VerifyState
    shares: np.ndarray[tuple[int, int], np.dtype[np.uint8]]


@final
@dataclass(frozen=True, slots=True)
class Verified:
    """Which reports both aggregators found valid, with this one's shares of what is summed.

    Parameters
    ----------
    verification : Verification
    messages : numpy.ndarray
        Verifier messages, by row.
    accepted : numpy.ndarray
        A flag for each row.
    """

    verification: Verification
    messages: np.ndarray[tuple[int, int], np.dtype[np.uint8]]
    accepted: np.ndarray[tuple[int], np.dtype[np.bool_]]


@final
@dataclass(frozen=True, slots=True)
class Preparation:
    """What one aggregator of a task does with report shares; no state, so that it can be done again.

    Parameters
    ----------
    task : DapTask
    role : Role
        `Role.LEADER` or `Role.HELPER`.
    key : HpkeKey
        The aggregator's.
    verify_key : bytes
        The aggregators' common secret, unknown to clients.
    """

    task: DapTask
    role: Role
    key: HpkeKey
    verify_key: bytes = field(repr=False)

    @property
    def sealed_size(self) -> int:
        """Bytes of a sealed input share of this aggregator."""
        return self.task.prio3.input_share_size(self.role - Role.LEADER) + _SEAL

    def opened(self, share: ReportShare, now: float) -> bytes | ReportError:
        """Return the input share of a report, or why it is not counted."""
        prio3, sealed = self.task.prio3, share.sealed
        if (wrong := time_error(self.task, share.metadata, now)) is not None:
            return wrong
        if share.metadata.extensions or len(share.public_share) != prio3.public_share_size:
            return ReportError.INVALID_MESSAGE
        aad = InputShareAad(self.task.task_id, share.metadata, share.public_share)
        known = sealed.config_id == self.key.id
        plain = self.key.opened_input_share(sealed, self.role, aad) if known else None
        if plain is None:
            return ReportError.HPKE_DECRYPT_ERROR if known else ReportError.HPKE_UNKNOWN_CONFIG_ID
        try:
            found = decoded(plain, PlaintextInputShare.read)
        except MalformedMessage:
            return ReportError.INVALID_MESSAGE
        if found.extensions or len(found.payload) != prio3.input_share_size(self.role - Role.LEADER):
            return ReportError.INVALID_MESSAGE
        return found.payload

    def begun(self, shares: Sequence[ReportShare], inputs: Mapping[bytes, bytes]) -> Verification:
        """Return this aggregator's side of the verification of those reports that were opened.

        A report is not sound whose public share is false for this aggregator. Prio3 alone lets an aggregator
        correct that; but then the other, who only has what the client said, would refuse what this one
        counts: a client could part them, and spoil a batch.
        """
        prio3, aggregator = self.task.prio3, self.role - Role.LEADER
        chosen = [share for share in shares if share.metadata.report_id in inputs]
        ids = tuple(share.metadata.report_id for share in chosen)
        public = _rows([share.public_share for share in chosen], prio3.public_share_size)
        state, messages = prio3.verify_init(
            self.verify_key,
            aggregator,
            _rows(ids, 16),
            public,
            _rows([inputs[one] for one in ids], prio3.input_share_size(aggregator)),
        )
        size = prio3.message_size  # of a part of the joint randomness, too
        own = messages[:, prio3.verifier_share_size - size :]
        said = public[:, aggregator * size : (aggregator + 1) * size]
        sound = state.sound & (own == said).all(axis=1)
        return Verification(ids, replace(state, sound=sound), messages)

    def answered(self, mine: Verification, payloads: Sequence[bytes]) -> Verified:
        """Return the helper's decision, which has the leader's first steps for the same rows."""
        prio3, count = self.task.prio3, len(mine.report_ids)
        theirs, sound = np.zeros_like(mine.shares), np.zeros(count, np.bool_)
        for row, payload in enumerate(payloads):
            step = _step(payload, PingPongKind.INITIALIZE)
            if step is not None and len(step.share) == prio3.verifier_share_size:
                theirs[row], sound[row] = np.frombuffer(step.share, np.uint8), True
        messages, passed = prio3.verifier_shares_to_message([theirs, mine.shares])
        _, agreed = prio3.verify_next(mine.state, messages)
        return Verified(mine, messages, agreed & passed & sound)

    def finished(self, mine: Verification, payloads: Mapping[bytes, bytes]) -> Verified:
        """Return the leader's decision, which has the helper's steps for those reports that it accepts."""
        prio3 = self.task.prio3
        messages = np.zeros((len(mine.report_ids), prio3.message_size), np.uint8)
        sound = np.zeros(len(mine.report_ids), np.bool_)
        for row, report_id in enumerate(mine.report_ids):
            step = _step(payloads.get(report_id, b""), PingPongKind.FINISH)
            if step is not None and len(step.message) == prio3.message_size:
                messages[row], sound[row] = np.frombuffer(step.message, np.uint8), True
        _, agreed = prio3.verify_next(mine.state, messages)
        return Verified(mine, messages, agreed & sound)


def _rows(parts: Sequence[bytes], size: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), size)


def _step(payload: bytes, kind: PingPongKind) -> PingPong | None:
    try:
        step = decoded(payload, PingPong.read)
    except MalformedMessage:
        return None
    return step if step.kind == kind else None
