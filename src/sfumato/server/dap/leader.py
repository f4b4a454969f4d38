"""The leader without the network: it takes reports and answers collectors; `LeaderWork` asks the helper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, final

from sfumato.crypto.hpke_base import TAG
from sfumato.federated.dap.collection_messages import BatchMode, CollectionJobReq
from sfumato.federated.dap.preparation import Preparation, time_error
from sfumato.federated.dap.problem_document import Problem, ProblemType
from sfumato.federated.dap.report_messages import (
    Report,
    ReportError,
    ReportUploadStatus,
    decoded_reports,
)
from sfumato.federated.dap.tls_syntax import MalformedMessage
from sfumato.federated.dap.version import Role
from sfumato.server.dap.aggregator_store import AggregatorStore
from sfumato.server.dap.helper import read_request
from sfumato.server.dap.party import DapParty
from sfumato.server.dap.upload_limits import UploadCounts, UploadLimits

__all__ = ["Leader"]

_SEAL: Final = 6 + TAG
_POINT: Final = 32


@final
class Leader:
    """The leader of one task: uploads and collection jobs.

    Parameters
    ----------
    party : DapParty
        The leader's.
    folder : Path
        Where its store is.
    now : callable
        Returns seconds since 1970.
    uploads : UploadLimits, optional
        What is taken at most.

    Notes
    -----
    A report that is not refused is durable when `upload` returns. A collection job is durable when
    `put_collection` returns, and its result is stored before it is given, and given again.
    """

    def __init__(
        self, party: DapParty, folder: Path, now: Callable[[], float], uploads: UploadLimits | None = None
    ) -> None:
        self.party, self.task, self.now = party, party.task, now
        self.preparation = Preparation(party.task, Role.LEADER, party.key, party.verify_key or b"")
        self.store = AggregatorStore(folder, party.task, Role.LEADER)
        self.uploads = UploadCounts(uploads or UploadLimits(), self.store)

    def upload(self, network: bytes, body: bytes) -> bytes:
        """Take reports that came from a network, and return the statuses of those that are refused.

        A report with an id that was taken before is not taken again, and not refused either.
        """
        try:
            reports = decoded_reports(body)
        except MalformedMessage as error:
            raise Problem(ProblemType.INVALID_MESSAGE, str(error)) from None
        self._refuse_extensions(reports)
        now, statuses = self.now(), []
        with self.store.transaction():
            self.uploads.admit(network, len(reports), now)
            for report in reports:
                wrong = self._taken(report, now)
                if wrong is not None:
                    statuses.append(ReportUploadStatus(report.metadata.report_id, wrong))
        return b"".join(one.to_bytes() for one in statuses)

    def _refuse_extensions(self, reports: Sequence[Report]) -> None:
        if any(report.metadata.extensions for report in reports):
            raise Problem(ProblemType.UNSUPPORTED_EXTENSION, "no extension is known here")

    def _taken(self, report: Report, now: float) -> ReportError | None:
        metadata, prio3 = report.metadata, self.task.prio3
        if (wrong := time_error(self.task, metadata, now)) is not None:
            return wrong if wrong == ReportError.REPORT_TOO_EARLY else ReportError.REPORT_DROPPED
        if report.leader_share.config_id != self.party.key.id:
            return ReportError.OUTDATED_CONFIG
        shares = enumerate((report.leader_share, report.helper_share))
        if len(report.public_share) != prio3.public_share_size or any(
            (len(share.enc), len(share.payload)) != (_POINT, prio3.input_share_size(aggregator) + _SEAL)
            for aggregator, share in shares
        ):
            return ReportError.INVALID_MESSAGE
        if self.task.batch_mode == BatchMode.TIME_INTERVAL and self.store.closed(metadata.time, None):
            return ReportError.REPORT_REPLAYED
        if self.uploads.full:
            known = self.store.execute("SELECT 1 FROM report WHERE id = ?", (metadata.report_id,)).fetchone()
            return None if known else ReportError.REPORT_DROPPED
        values = (metadata.report_id, metadata.time, report.to_bytes())
        new = self.store.execute("INSERT OR IGNORE INTO report VALUES (?, ?, ?, NULL)", values).rowcount
        self.uploads.remember(new)
        return None

    def put_collection(self, job: bytes, body: bytes) -> bytes:
        """Begin a collection job, and return its result, or nothing as long as there is none."""
        with self.store.transaction():
            found = self.store.execute("SELECT request FROM collection WHERE id = ?", (job,)).fetchone()
            if found is None:
                request: CollectionJobReq = read_request(body, CollectionJobReq.read)
                self._check_collection(request)
                self.store.execute(
                    "INSERT INTO collection (id, request, state) VALUES (?, ?, 'waiting')", (job, body)
                )
            elif bytes(found[0]) != body:
                raise Problem(ProblemType.INVALID_MESSAGE, "the same id came with another request")
        return self.get_collection(job)

    def _check_collection(self, request: CollectionJobReq) -> None:
        query = request.query
        if query.mode != self.task.batch_mode:
            raise Problem(ProblemType.INVALID_MESSAGE, "the task has another batch mode")
        if request.aggregation_parameter:
            raise Problem(ProblemType.INVALID_AGGREGATION_PARAMETER, "the function takes none")
        if not self.task.covers(query):
            raise Problem(ProblemType.BATCH_INVALID, "the interval is empty, or ends after all times")
        if query.interval is not None and self.store.overlaps(query):
            raise Problem(ProblemType.BATCH_OVERLAP, "some of the batch was collected")

    def get_collection(self, job: bytes) -> bytes:
        """Return a collection job's result, or nothing as long as there is none."""
        columns = "SELECT state, response, problem FROM collection WHERE id = ?"
        found = self.store.execute(columns, (job,)).fetchone()
        if found is None or found[0] == "deleted":
            raise Problem(404, "no collection job has this id")
        state, response, problem = found
        if state == "failed":
            raise Problem(ProblemType[problem], "the collection job failed")
        return bytes(response) if state == "done" else b""

    def delete_collection(self, job: bytes) -> None:
        """Forget a collection job; what was collected stays so."""
        self.get_collection(job)
        with self.store.transaction():
            self.store.execute(
                "UPDATE collection SET state = 'deleted', draft = NULL, response = NULL WHERE id = ?", (job,)
            )

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()
