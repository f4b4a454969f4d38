"""What a leader does with its helper: aggregation jobs, and the helper's shares of sums."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, final

import numpy as np

from sfumato.errors import SourceError
from sfumato.federated.dap.aggregation_messages import (
    AggregationJobInitReq,
    AggregationJobResp,
    PingPong,
    PingPongKind,
    PrepareInit,
    PrepareResp,
    PrepareStep,
)
from sfumato.federated.dap.collection_messages import (
    AggregateShare,
    AggregateShareReq,
    BatchMode,
    BatchQuery,
    CollectionJobReq,
    CollectionJobResp,
)
from sfumato.federated.dap.preparation import Verification
from sfumato.federated.dap.problem_document import Problem, ProblemType, problem_in
from sfumato.federated.dap.report_messages import ID_SIZE, TASK_ID_SIZE, Report, ReportShare
from sfumato.federated.dap.sealing import sealed_aggregate_share
from sfumato.federated.dap.task import base64url
from sfumato.federated.dap.tls_syntax import MalformedMessage, Reader, decoded
from sfumato.federated.dap.version import Role
from sfumato.server.dap.leader import Leader

__all__ = ["JOB_BYTES", "AskHelper", "LeaderWork"]

AskHelper: TypeAlias = Callable[[str, str, bytes, str], tuple[int, bytes]]
"""Sends a method, a path below the helper's URL, a body and its media type; returns a status and a body."""

JOB_BYTES: Final = 1 << 19
"""Bytes of an aggregation job's request, unless one report has more."""

_JOB_REPORTS: Final = 256
_WAITING: Final = """SELECT id, length(content) FROM report WHERE content IS NOT NULL AND job IS NULL
    ORDER BY time LIMIT ?"""
_OPEN: Final = """SELECT id, reports FROM bucket
    WHERE reports < ? AND id NOT IN (SELECT batch FROM collected) LIMIT 1"""
_WHOLE: Final = """SELECT id FROM bucket
    WHERE reports >= ? AND id NOT IN (SELECT batch FROM collected) ORDER BY last LIMIT 1"""
_DONE: Final = """UPDATE collection SET state = 'done', draft = NULL, response = ?
    WHERE id = ? AND state != 'deleted'"""
_FAIL: Final = """UPDATE collection SET state = 'failed', draft = NULL, problem = ?
    WHERE id = ? AND state != 'deleted'"""
_LASTING: Final = (
    ProblemType.BATCH_MISMATCH,
    ProblemType.BATCH_OVERLAP,
    ProblemType.INVALID_BATCH_SIZE,
)
_FREEZE: Final = """UPDATE collection SET state = 'asked', share_id = ?, share_request = ?, draft = ?
    WHERE id = ?"""


@final
class LeaderWork:
    """The leader's side of what it does with its helper, a step at a time, in one thread.

    Parameters
    ----------
    leader : Leader
    ask : callable
        Asks the helper; raises `SourceError` where it does not answer.

    Notes
    -----
    Each step is written down before the helper is asked, and sent again unchanged after a failure: the
    helper answers the same. A batch takes no more reports from the moment that its collection is written
    down; this aggregator's noise is drawn and stored in the same transaction.
    """

    def __init__(self, leader: Leader, ask: AskHelper) -> None:
        self._leader, self._store, self._task, self._ask = leader, leader.store, leader.task, ask
        self._begun: dict[bytes, Verification] = {}

    def step(self) -> bool:
        """Do one thing, and report whether there was one to do.

        Raises
        ------
        SourceError
            If the helper did not answer; the step is done again next time.
        """
        job = self._store.execute("SELECT id, request, batch FROM job LIMIT 1").fetchone()
        if job is not None:
            return self._run_job(bytes(job[0]), bytes(job[1]), None if job[2] is None else bytes(job[2]))
        columns = "SELECT id, share_id, share_request, draft FROM collection WHERE state = 'asked' LIMIT 1"
        asked = self._store.execute(columns).fetchone()
        if asked is not None:
            return self._ask_share(bytes(asked[0]), bytes(asked[1]), bytes(asked[2]), bytes(asked[3]))
        return self._new_job() or self._begin_collection()

    def _new_job(self) -> bool:
        batch, most = self._open_batch()
        reports = self._waiting(most)
        if not reports:
            return False
        mine, inits = self._begin(reports, batch)
        job = os.urandom(ID_SIZE)
        accepted = set(mine.report_ids)
        with self._store.transaction():
            for report in reports:
                report_id = report.metadata.report_id
                if report_id in accepted:
                    self._store.execute("UPDATE report SET job = ? WHERE id = ?", (job, report_id))
                else:
                    self._store.execute("UPDATE report SET content = NULL WHERE id = ?", (report_id,))
            if inits:
                selector = BatchQuery(self._task.batch_mode, batch_id=batch)
                request = AggregationJobInitReq(b"", selector, tuple(inits)).to_bytes()
                self._store.execute("INSERT INTO job VALUES (?, ?, NULL, ?)", (job, request, batch))
        with self._store.transaction():  # not in the one above, which can fail to the last
            self._leader.uploads.leave(len(reports))
        self._begun[job] = mine
        return True

    def _waiting(self, most: int) -> list[Report]:
        """Return the oldest reports that wait, as many as one job may have."""
        sizes = self._store.execute(_WAITING, (most,)).fetchall()
        ends = np.cumsum([size for _, size in sizes])
        chosen = sizes[: max(1, int((ends <= JOB_BYTES).sum()))]
        contents = (self._store.execute("SELECT content FROM report WHERE id = ?", row[:1]) for row in chosen)
        return [decoded(bytes(found.rows[0][0]), Report.read) for found in contents]

    def _open_batch(self) -> tuple[bytes | None, int]:
        """Return the batch of the next job, if the leader selects batches, and for how many reports."""
        if self._store.by_time:
            return None, _JOB_REPORTS
        target = self._task.min_batch_size
        found = self._store.execute(_OPEN, (target,)).fetchone()
        if found is None:
            return os.urandom(TASK_ID_SIZE), min(target, _JOB_REPORTS)
        return bytes(found[0]), min(target - found[1], _JOB_REPORTS)

    def _begin(
        self, reports: Sequence[Report], batch: bytes | None
    ) -> tuple[Verification, list[PrepareInit]]:
        preparation = self._leader.preparation
        shares = [ReportShare(one.metadata, one.public_share, one.leader_share) for one in reports]
        inputs: dict[bytes, bytes] = {}
        for share in shares:
            late = batch is None and self._store.closed(share.metadata.time, None)
            # A report's time was compared with the clock when it came, which may have been set back since.
            opened = None if late else preparation.opened(share, math.inf)
            if isinstance(opened, bytes):
                inputs[share.metadata.report_id] = opened
        mine = preparation.begun(shares, inputs)
        sound = {mine.report_ids[row] for row in np.flatnonzero(mine.state.sound)}
        if len(sound) < len(mine.report_ids):
            mine = preparation.begun(shares, {one: inputs[one] for one in sound})
        messages = {
            report_id: PingPong(PingPongKind.INITIALIZE, share=bytes(mine.shares[row])).to_bytes()
            for row, report_id in enumerate(mine.report_ids)
        }
        chosen = [one for one in reports if one.metadata.report_id in messages]
        theirs = [ReportShare(one.metadata, one.public_share, one.helper_share) for one in chosen]
        return mine, [PrepareInit(one, messages[one.metadata.report_id]) for one in theirs]

    def _run_job(self, job: bytes, request: bytes, batch: bytes | None) -> bool:
        path = f"aggregation_jobs/{base64url(job)}"
        body = self._asked("PUT", path, request, "aggregation-job-init-req")
        answers = None if isinstance(body, Problem) else _read(body, AggregationJobResp.read)
        sent: AggregationJobInitReq = decoded(request, AggregationJobInitReq.read)
        shares = [one.report_share.metadata for one in sent.inits]
        times = {one.report_id: one.time for one in shares}
        if not isinstance(answers, AggregationJobResp) or not _fits(answers.answers, list(times)):
            self._end_job(job)  # its reports are lost: the helper breaks the protocol
            return True
        mine = self._begun.pop(job, None) or self._again(job, batch)
        going = (one for one in answers.answers if one.step == PrepareStep.CONTINUE)
        payloads = {one.report_id: one.payload for one in going}
        verified = self._leader.preparation.finished(mine, payloads)
        with self._store.transaction():
            self._store.commit(verified, times, batch)
            self._forget(job)
        return True

    def _again(self, job: bytes, batch: bytes | None) -> Verification:
        """Compute again what was in memory before the process was killed."""
        rows = self._store.execute("SELECT content FROM report WHERE job = ?", (job,)).fetchall()
        return self._begin([decoded(bytes(content), Report.read) for (content,) in rows], batch)[0]

    def _end_job(self, job: bytes) -> None:
        self._begun.pop(job, None)
        with self._store.transaction():
            self._forget(job)

    def _forget(self, job: bytes) -> None:
        self._store.execute("UPDATE report SET content = NULL, job = NULL WHERE job = ?", (job,))
        self._store.execute("DELETE FROM job WHERE id = ?", (job,))

    def _begin_collection(self) -> bool:
        rows = self._store.execute("SELECT id, request FROM collection WHERE state = 'waiting'").fetchall()
        return any(
            self._frozen(bytes(job), decoded(bytes(body), CollectionJobReq.read)) for job, body in rows
        )

    def _frozen(self, job: bytes, request: CollectionJobReq) -> bool:
        """Close a batch that is whole, and write down this aggregator's share of its sum."""
        with self._store.transaction():
            selector = self._selected(request)
            if selector is None:
                return False
            if self._store.overlaps(selector):
                self._fail(job, ProblemType.BATCH_OVERLAP)
                return True
            total = self._store.total(selector)
            if total.reports < self._task.min_batch_size:
                return False
            share = self._store.noised(total.share)
            mine = sealed_aggregate_share(self._task, Role.LEADER, selector, share)
            partial = BatchQuery(selector.mode, batch_id=selector.batch_id)
            # The helper's share takes the place of the second copy of ours.
            draft = CollectionJobResp(partial, total.reports, total.interval, mine, mine).to_bytes()
            asked = AggregateShareReq(selector, b"", total.reports, total.checksum).to_bytes()
            self._store.close_batch(selector, job)
            self._store.execute(_FREEZE, (os.urandom(ID_SIZE), asked, draft, job))
        return True

    def _selected(self, request: CollectionJobReq) -> BatchQuery | None:
        """Return the batch of a query, or None as long as there is none."""
        interval = request.query.interval
        if interval is not None:
            waiting = "SELECT 1 FROM report WHERE content IS NOT NULL AND time >= ? AND time < ? LIMIT 1"
            missing = self._store.execute(waiting, (interval.start, interval.end)).fetchone()
            return None if missing else request.query
        found = self._store.execute(_WHOLE, (self._task.min_batch_size,)).fetchone()
        return None if found is None else BatchQuery(BatchMode.LEADER_SELECTED, batch_id=bytes(found[0]))

    def _fail(self, job: bytes, kind: ProblemType) -> None:
        """Give a collection up, and open its batch again unless the helper would refuse it each time.

        An interval is opened again in any case: the collector may ask for a longer one, or a shorter one.
        """
        if self._store.by_time or kind not in _LASTING:
            self._store.execute("DELETE FROM collected WHERE holder = ?", (job,))
        self._store.execute(_FAIL, (kind.name, job))

    def _ask_share(self, job: bytes, share_id: bytes, request: bytes, draft: bytes) -> bool:
        path = f"aggregate_shares/{base64url(share_id)}"
        body = self._asked("PUT", path, request, "aggregate-share-req")
        share = body if isinstance(body, Problem) else _read(body, AggregateShare.read)
        with self._store.transaction():
            if isinstance(share, AggregateShare):
                mine = decoded(draft, CollectionJobResp.read)
                answer = replace(mine, helper_share=share.sealed)
                self._store.execute(_DONE, (answer.to_bytes(), job))
            else:
                kind = share.kind if isinstance(share, Problem) else None
                self._fail(job, kind if isinstance(kind, ProblemType) else ProblemType.BATCH_MISMATCH)
        return True

    def _asked(self, method: str, path: str, body: bytes, media: str) -> bytes | Problem:
        """Return the helper's answer, or what it refuses for good."""
        where = f"tasks/{base64url(self._task.task_id)}/{path}"
        status, answer = self._ask(method, where, body, f"application/dap-{media}")
        if 200 <= status < 300:
            if not answer:  # the helper is still at it
                raise SourceError("the helper must answer, got nothing yet; it is asked again")
            return answer
        problem = problem_in(status, answer)
        if isinstance(problem.kind, ProblemType):
            return problem
        raise SourceError(f"the helper must answer, got status {status}; ask its operator")


def _read(data: bytes, read: Callable[[Reader], object]) -> object:
    try:
        return decoded(data, read)
    except MalformedMessage:
        return None


def _fits(answers: Sequence[PrepareResp], report_ids: Sequence[bytes]) -> bool:
    """Whether each report has an answer, in order, that a function of one round can have."""
    same = [one.report_id for one in answers] == list(report_ids)
    return same and all(one.step != PrepareStep.FINISH for one in answers)
