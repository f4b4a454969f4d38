"""The helper without the network: aggregation jobs, and shares of sums, each answered once and for all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from sfumato.federated.dap.aggregation_messages import (
    AggregationJobContinueReq,
    AggregationJobInitReq,
    AggregationJobResp,
    PingPong,
    PingPongKind,
    PrepareInit,
    PrepareResp,
    PrepareStep,
)
from sfumato.federated.dap.collection_messages import AggregateShare, AggregateShareReq
from sfumato.federated.dap.preparation import Preparation
from sfumato.federated.dap.problem_document import Problem, ProblemType
from sfumato.federated.dap.report_messages import ReportError
from sfumato.federated.dap.sealing import sealed_aggregate_share
from sfumato.federated.dap.tls_syntax import MalformedMessage, Reader, decoded
from sfumato.federated.dap.version import Role
from sfumato.server.dap.aggregator_store import AggregatorStore
from sfumato.server.dap.party import DapParty

__all__ = ["Helper", "read_request"]

_ASKED: Final = {
    "job": "SELECT request, response FROM job WHERE id = ?",
    "share": "SELECT request, response FROM share WHERE id = ?",
}


def read_request(data: bytes, read: Callable[[Reader], Any]) -> Any:
    """Return a request's message.

    Raises
    ------
    Problem
        If it is malformed.
    """
    try:
        return decoded(data, read)
    except MalformedMessage as error:
        raise Problem(ProblemType.INVALID_MESSAGE, str(error)) from None


@final
class Helper:
    """The helper of one task.

    Parameters
    ----------
    party : DapParty
        The helper's.
    folder : Path
        Where its store is.
    now : callable
        Returns seconds since 1970.

    Notes
    -----
    An answer is durable before it is given, and given again to the same request. A report's proof is verified
    once, as the privacy of Prio3 presumes, and it is counted once, whatever jobs it is in. A share of a sum
    leaves with this aggregator's own noise, of a batch with at least the task's minimum of reports, and of no
    report whose batch was collected before.
    """

    def __init__(self, party: DapParty, folder: Path, now: Callable[[], float]) -> None:
        self.party, self.task, self._now = party, party.task, now
        self._preparation = Preparation(party.task, Role.HELPER, party.key, party.verify_key or b"")
        self._store = AggregatorStore(folder, party.task, Role.HELPER)

    def put_job(self, job: bytes, body: bytes) -> bytes:
        """Answer the beginning of an aggregation job."""
        digest = hashlib.sha256(body).digest()
        with self._store.transaction():
            known = self._known("job", job, digest, ProblemType.INVALID_MESSAGE)
            if known is not None:
                return known
            request: AggregationJobInitReq = read_request(body, AggregationJobInitReq.read)
            ids = [one.report_share.metadata.report_id for one in request.inits]
            if request.partial_batch_selector.mode != self.task.batch_mode:
                raise Problem(ProblemType.INVALID_MESSAGE, "the task has another batch mode")
            if request.aggregation_parameter:
                raise Problem(ProblemType.INVALID_AGGREGATION_PARAMETER, "the function takes none")
            if not ids:  # whose answer would look as if there was none yet
                raise Problem(ProblemType.INVALID_MESSAGE, "the job has no report")
            if len(set(ids)) < len(ids):
                raise Problem(ProblemType.INVALID_MESSAGE, "a report is in the job twice")
            response = self._aggregated(request).to_bytes()
            self._store.execute("INSERT INTO job VALUES (?, ?, ?, NULL)", (job, digest, response))
        return response

    def _known(self, table: str, number: bytes, digest: bytes, deleted: ProblemType) -> bytes | None:
        found = self._store.execute(_ASKED[table], (number,)).fetchone()
        if found is None:
            return None
        if bytes(found[0]) != digest:
            raise Problem(ProblemType.INVALID_MESSAGE, "the same id came with another request")
        if found[1] is None:
            raise Problem(deleted, "it was deleted")
        return bytes(found[1])

    def _aggregated(self, request: AggregationJobInitReq) -> AggregationJobResp:
        batch, now = request.partial_batch_selector.batch_id, self._now()
        shares = [one.report_share for one in request.inits]
        inputs: dict[bytes, bytes] = {}
        errors: dict[bytes, ReportError] = {}
        for share in shares:
            opened = self._preparation.opened(share, now)
            if isinstance(opened, bytes):
                inputs[share.metadata.report_id] = opened
            else:
                errors[share.metadata.report_id] = opened
        mine = self._preparation.begun(shares, inputs)
        payloads = {one.report_share.metadata.report_id: one.payload for one in request.inits}
        verified = self._preparation.answered(mine, [payloads[one] for one in mine.report_ids])
        times = {share.metadata.report_id: share.metadata.time for share in shares}
        counted = verified.accepted.copy()
        for row, report_id in enumerate(mine.report_ids):
            error = self._store.remembered(report_id, times[report_id], batch)
            if error is None and not counted[row]:  # it is remembered too: a proof is verified once
                error = ReportError.VDAF_PREP_ERROR
            if error is not None:
                errors[report_id], counted[row] = error, False
        self._store.commit(replace(verified, accepted=counted), times, batch)
        steps = {
            mine.report_ids[row]: PingPong(PingPongKind.FINISH, bytes(verified.messages[row])).to_bytes()
            for row in np.flatnonzero(counted)
        }
        return AggregationJobResp(tuple(_answer(one, steps, errors) for one in request.inits))

    def get_job(self, job: bytes) -> bytes:
        """Return the answer to an aggregation job."""
        return self._stored("job", job, ProblemType.UNRECOGNIZED_AGGREGATION_JOB)

    def continue_job(self, job: bytes, body: bytes) -> bytes:
        """Refuse a further step: the functions known here have one round."""
        self.get_job(job)
        request: AggregationJobContinueReq = read_request(body, AggregationJobContinueReq.read)
        if request.step == 0:
            raise Problem(ProblemType.INVALID_MESSAGE, "the first step is not a continuation")
        raise Problem(ProblemType.STEP_MISMATCH, "the function has one round")

    def delete_job(self, job: bytes) -> None:
        """Forget an answer; reports stay counted, and their ids stay known."""
        self.get_job(job)
        with self._store.transaction():
            self._store.execute("UPDATE job SET response = NULL WHERE id = ?", (job,))

    def put_share(self, number: bytes, body: bytes) -> bytes:
        """Return this helper's share of a batch's sum, with its noise; the batch takes no report any more."""
        digest = hashlib.sha256(body).digest()
        with self._store.transaction():
            known = self._known("share", number, digest, ProblemType.BATCH_OVERLAP)
            if known is not None:
                return known
            request: AggregateShareReq = read_request(body, AggregateShareReq.read)
            selector = request.batch_selector
            if selector.mode != self.task.batch_mode:
                raise Problem(ProblemType.INVALID_MESSAGE, "the task has another batch mode")
            if not self.task.covers(selector):
                raise Problem(ProblemType.BATCH_INVALID, "the interval is empty, or ends after all times")
            if self._store.overlaps(selector):
                raise Problem(ProblemType.BATCH_OVERLAP, "some of the batch was collected")
            if request.aggregation_parameter:
                raise Problem(ProblemType.INVALID_MESSAGE, "the function takes no aggregation parameter")
            total = self._store.total(selector)
            if total.reports < self.task.min_batch_size:
                raise Problem(ProblemType.INVALID_BATCH_SIZE, "the batch has too few reports")
            if (request.report_count, request.checksum) != (total.reports, total.checksum):
                raise Problem(ProblemType.BATCH_MISMATCH, "the aggregators counted different reports")
            sealed = sealed_aggregate_share(self.task, Role.HELPER, selector, self._store.noised(total.share))
            response = AggregateShare(sealed).to_bytes()
            self._store.close_batch(selector, number)
            self._store.execute("INSERT INTO share VALUES (?, ?, ?)", (number, digest, response))
        return response

    def get_share(self, number: bytes) -> bytes:
        """Return a share that was asked for before."""
        return self._stored("share", number, None)

    def delete_share(self, number: bytes) -> None:
        """Forget a share; its batch stays collected."""
        self.get_share(number)
        with self._store.transaction():
            self._store.execute("UPDATE share SET response = NULL WHERE id = ?", (number,))

    def _stored(self, table: str, number: bytes, unknown: ProblemType | None) -> bytes:
        found = self._store.execute(_ASKED[table], (number,)).fetchone()
        if found is None or found[1] is None:
            raise Problem(404 if unknown is None else unknown, "nothing has this id")
        return bytes(found[1])

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()


def _answer(init: PrepareInit, steps: dict[bytes, bytes], errors: dict[bytes, ReportError]) -> PrepareResp:
    report_id = init.report_share.metadata.report_id
    if report_id in steps:
        return PrepareResp(report_id, PrepareStep.CONTINUE, steps[report_id])
    return PrepareResp(report_id, PrepareStep.REJECT, error=errors[report_id])
