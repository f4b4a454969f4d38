"""Clients and collectors: who sends reports, and who asks for sums."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, final

from sfumato import _check
from sfumato.errors import SourceError
from sfumato.federated.dap.collection_messages import (
    BatchMode,
    BatchQuery,
    CollectionJobReq,
    CollectionJobResp,
    Interval,
)
from sfumato.federated.dap.hpke_config import HpkeConfig, decoded_configs
from sfumato.federated.dap.problem_document import problem_in
from sfumato.federated.dap.report_messages import ID_SIZE, ReportUploadStatus, decoded_statuses
from sfumato.federated.dap.report_sharding import sharded_reports
from sfumato.federated.dap.task import DapTask, base64url
from sfumato.federated.dap.tls_syntax import MalformedMessage, decoded
from sfumato.federated.dap.unsharding import CollectedBatch, collected_batch
from sfumato.federated.dap.version import Role
from sfumato.server.dap.http_peer import HttpPeer
from sfumato.server.dap.party import DapParty

__all__ = ["DapUploader", "collect_batch", "job_of"]

_BYTES: Final = 1 << 19
_POLLS: Final = (0.05, 1.0)


@final
class DapUploader:
    """Sends reports of one task: a client, or for trials many of them.

    Parameters
    ----------
    task : DapTask
    now : callable, optional
        Returns seconds since 1970.

    Raises
    ------
    SourceError
        If an aggregator does not publish a key that is usable.

    Examples
    --------
    The aggregators' keys are fetched first, so that both must be running:

    >>> from sfumato.server.dap.party import new_parties
    >>> parties = new_parties(vdaf={"type": "Prio3Count"}, min_batch_size=10, helper="http://127.0.0.1:1")
    >>> DapUploader(parties[Role.LEADER].task)
    Traceback (most recent call last):
    ...
    sfumato.errors.SourceError: http://127.0.0.1:1 must answer, got ConnectionRefusedError; is ...

    A client then calls ``uploader.send([1])``.
    """

    def __init__(self, task: DapTask, now: Callable[[], float] = time.time) -> None:
        self._task, self._now = task, now
        with HttpPeer(task.helper) as helper:
            self._helper_key = _key(helper)
        self._leader = HttpPeer(task.leader)
        try:
            self._leader_key = _key(self._leader)
        except BaseException:
            self._leader.close()
            raise

    def send(self, measurements: Sequence[Any]) -> list[ReportUploadStatus]:
        """Send a report of each measurement, and return the statuses of those that the leader refuses.

        Parameters
        ----------
        measurements : sequence
            What the task's function measures.

        Returns
        -------
        list of ReportUploadStatus

        Raises
        ------
        ParameterError
            If a measurement is out of range; nothing was sent.
        SourceError
            If the leader does not answer; what it took is not known then.
        """
        now = int(self._now()) // self._task.time_precision
        reports = sharded_reports(self._task, measurements, now, self._leader_key, self._helper_key)
        encoded = [one.to_bytes() for one in reports]
        refused: list[ReportUploadStatus] = []
        while encoded:
            count, size = 0, 0
            while count < len(encoded) and (not count or size + len(encoded[count]) <= _BYTES):
                size += len(encoded[count])
                count += 1
            body, encoded = b"".join(encoded[:count]), encoded[count:]
            path = f"tasks/{base64url(self._task.task_id)}/reports"
            answer = _asked(self._leader, "POST", path, body, "application/dap-upload-req")
            refused += _read(self._leader, partial(decoded_statuses, answer))
        return refused

    def close(self) -> None:
        """Close the connection."""
        self._leader.close()

    def __enter__(self) -> DapUploader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def collect_batch(
    party: DapParty, interval: Interval | None = None, *, seconds: float = 60.0, job: bytes | None = None
) -> CollectedBatch:
    """Ask the leader for a batch, wait for it, and open it.

    Parameters
    ----------
    party : DapParty
        The collector's.
    interval : Interval, optional
        In units of the task's time precision; for tasks with batches by time.
    seconds : float, optional
        How long to wait until the batch has enough reports.
    job : bytes, optional
        16 bytes; the same job is answered the same. By default the job of an interval is always the same
        one, so that asking again is harmless, and that of a batch which the leader selects is new.

    Returns
    -------
    CollectedBatch

    Raises
    ------
    SourceError
        If the batch is refused, or is not there in time: the job goes on, and can be asked for again.

    Examples
    --------
    >>> from sfumato.server.dap.party import new_parties
    >>> parties = new_parties(vdaf={"type": "Prio3Count"}, min_batch_size=10)
    >>> collect_batch(parties[Role.LEADER])
    Traceback (most recent call last):
    ...
    sfumato.errors.ParameterError: party must be a collector, got 'leader'; use the collector's file
    """
    task = party.task
    if party.role != Role.COLLECTOR:
        _check.refuse("party", "be a collector", party.role.name.lower(), "use the collector's file")
    if (interval is None) == (task.batch_mode == BatchMode.TIME_INTERVAL):
        needed = "be given" if interval is None else "be left out"
        _check.refuse_state("interval", needed, f"batches are {task.batch_mode.name.lower()}", "see the task")
    query = BatchQuery(task.batch_mode, interval=interval)
    number = job_of(party, query) if job is None else job
    path = f"tasks/{base64url(task.task_id)}/collection_jobs/{base64url(number)}"
    end, pause = time.monotonic() + _check.positive("seconds", seconds), _POLLS[0]
    with HttpPeer(task.leader, party.sends) as peer:
        request = CollectionJobReq(query).to_bytes()
        body = _asked(peer, "PUT", path, request, "application/dap-collection-job-req")
        while not body:
            if time.monotonic() > end:
                raise SourceError(
                    f"the batch must have {task.min_batch_size} reports, got fewer in {seconds:g} seconds; "
                    f"ask later for the same job, {base64url(number)}"
                )
            time.sleep(pause)
            pause = min(2 * pause, _POLLS[1])
            body = _asked(peer, "GET", path)
        answer = _read(peer, lambda: decoded(body, CollectionJobResp.read))
    return collected_batch(task, party.key, query, answer)


def job_of(party: DapParty, query: BatchQuery) -> bytes:
    """Return the id of the job in which a collector asks for a batch: for an interval always the same."""
    if query.interval is None:
        return os.urandom(ID_SIZE)
    named = b"sfumato dap collection job 1" + party.task.task_id + query.to_bytes()
    return hmac.digest(party.key.secret, named, hashlib.sha256)[:ID_SIZE]


def _key(peer: HttpPeer) -> HpkeConfig:
    configs = _read(peer, lambda: decoded_configs(_asked(peer, "GET", "hpke_config")))
    usable = [one for one in configs if one.usable]
    if not usable:
        raise SourceError(f"{peer.url} must publish a key for X25519, got others; ask its operator")
    found: HpkeConfig = usable[0]
    return found


def _asked(peer: HttpPeer, method: str, path: str, body: bytes | None = None, media: str = "") -> bytes:
    status, answer = peer.ask(method, path, body, media)
    if status in (429, 503):
        raise SourceError(
            f"{peer.url} must have room for the request, got status {status}: it takes no more now; try later"
        )
    if not 200 <= status < 300:
        problem = problem_in(status, answer)
        raise SourceError(
            f"{peer.url} must take the request, got {problem.detail}; see the task and the token"
        )
    return answer


def _read(peer: HttpPeer, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except MalformedMessage as error:
        raise SourceError(f"{peer.url} must speak DAP, got another answer ({error}); check the URL") from None
