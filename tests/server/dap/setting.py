"""Tasks, aggregators in one process that speak by their HTTP interface, and real processes."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.errors import SourceError
from sfumato.federated.dap.collection_messages import (
    BatchMode,
    BatchQuery,
    CollectionJobReq,
    CollectionJobResp,
    Interval,
)
from sfumato.federated.dap.report_messages import Report
from sfumato.federated.dap.report_sharding import sharded_reports
from sfumato.federated.dap.task import base64url
from sfumato.federated.dap.tls_syntax import decoded
from sfumato.federated.dap.unsharding import CollectedBatch, collected_batch
from sfumato.federated.dap.version import Role
from sfumato.server.dap.helper import Helper
from sfumato.server.dap.http_front import DapFront
from sfumato.server.dap.leader import Leader
from sfumato.server.dap.leader_work import LeaderWork
from sfumato.server.dap.party import DapParty, new_parties
from sfumato.server.dap.upload_limits import UploadLimits
from tests.forks import Fork, server_fork
from tests.server.setting import IMPORTS

__all__ = ["HOUR", "NOW", "Pair", "asked", "parties", "process"]

NOW = 3600.0 * 100 + 7
HOUR = int(NOW) // 3600
RUNNER = asyncio.Runner()  # one for all: each has threads of its own
atexit.register(RUNNER.close)
Answer = tuple[int, dict[str, str], bytes]


def parties(minimum: int = 5, **parameters: Any) -> dict[Role, DapParty]:
    """Leader, helper and collector of a new task."""
    given = {"vdaf": {"type": "Prio3Count"}, "min_batch_size": minimum, **parameters}
    return new_parties(**given)


def asked(
    front: DapFront,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    media: str = "",
    token: str | None = None,
    headers: Sequence[tuple[bytes, bytes]] = (),
    client: str | None = None,
) -> Answer:
    """Send one request to an interface without a socket."""
    given = [(b"content-type", media.encode()), (b"content-length", str(len(body)).encode()), *headers]
    if token is not None:
        given.append((b"authorization", f"Bearer {token}".encode()))
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "headers": given}
    scope["client"] = None if client is None else (client, 1)
    RUNNER.run(front(scope, receive, send))
    found = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    return sent[0]["status"], found, sent[1]["body"]


class Pair:
    """A leader and its helper in this process, and a collector; `reachable` is whether the helper answers."""

    def __init__(self, folder: Path, made: dict[Role, DapParty], uploads: UploadLimits | None = None) -> None:
        self.uploads, self.folder, self.made, self.task = uploads, folder, made, made[Role.LEADER].task
        self.now, self.reachable, self.lose_answer = NOW, True, False
        self.said: list[str] = []
        self.open()

    def open(self) -> None:
        self.leader = Leader(self.made[Role.LEADER], self.folder / "leader", lambda: self.now, self.uploads)
        self.helper = Helper(self.made[Role.HELPER], self.folder / "helper", lambda: self.now)
        self.fronts = {
            Role.LEADER: DapFront(self.leader, 1 << 20, "", lambda: None, self.said.append),
            Role.HELPER: DapFront(self.helper, 1 << 20, "/dap", lambda: None, self.said.append),
        }
        self.work = LeaderWork(self.leader, self.ask)

    def close(self) -> None:
        self.leader.close()
        self.helper.close()

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        assert self.said == []

    def ask(self, method: str, path: str, body: bytes, media: str) -> tuple[int, bytes]:
        """What the leader asks its helper."""
        if not self.reachable:
            raise SourceError("no answer")
        token = self.made[Role.LEADER].sends
        status, _, answer = asked(
            self.fronts[Role.HELPER], method, f"/dap/{path}", body, media=media, token=token
        )
        if self.lose_answer:
            raise SourceError("the answer was lost")
        return status, answer

    def reports(self, values: Sequence[Any], time: int = HOUR) -> list[Report]:
        keys = (self.made[role].key.config for role in (Role.LEADER, Role.HELPER))
        return sharded_reports(self.task, values, time, *keys)

    def upload(self, reports: Sequence[Report]) -> bytes:
        """Upload, and return the statuses' bytes."""
        path = f"/tasks/{base64url(self.task.task_id)}/reports"
        body = b"".join(one.to_bytes() for one in reports)
        status, _, answer = asked(
            self.fronts[Role.LEADER], "POST", path, body, media="application/dap-upload-req"
        )
        assert status == 200, answer
        return answer

    def run(self) -> None:
        """Let the leader do all that there is to do."""
        while self.work.step():
            pass

    def collection(
        self,
        number: int,
        interval: Interval | None = None,
        *,
        method: str = "PUT",
        body: bytes | None = None,
    ) -> tuple[int, bytes]:
        path = f"/tasks/{base64url(self.task.task_id)}/collection_jobs/{base64url(bytes([number]) * 16)}"
        query = CollectionJobReq(BatchQuery(self.task.batch_mode, interval=interval)).to_bytes()
        given = (query if body is None else body) if method == "PUT" else b""
        media, token = "application/dap-collection-job-req", self.made[Role.COLLECTOR].sends
        status, _, answer = asked(self.fronts[Role.LEADER], method, path, given, media=media, token=token)
        return status, answer

    def collect(self, number: int, interval: Interval | None = None) -> CollectedBatch:
        """Ask for a batch, which must be there, and open it."""
        assert self.collection(number, interval)[0] in (200, 202)
        self.run()
        status, answer = self.collection(number, method="GET")
        assert status == 200, answer
        query = BatchQuery(self.task.batch_mode, interval=interval)
        response = decoded(answer, CollectionJobResp.read)
        return collected_batch(self.task, self.made[Role.COLLECTOR].key, query, response)


def by_leader(minimum: int = 5, **parameters: Any) -> dict[Role, DapParty]:
    """A task whose batches the leader selects."""
    return parties(minimum, batch_mode=BatchMode.LEADER_SELECTED, **parameters)


def moved(made: dict[Role, DapParty], **changes: Any) -> dict[Role, DapParty]:
    """The same parties with other parameters of the task."""
    task = replace(made[Role.LEADER].task, **changes)
    return {role: replace(party, task=task) for role, party in made.items()}


SERVE = """
import sys
from pathlib import Path
from sfumato.server.dap.party import DapParty
from sfumato.server.dap.running import serve_dap
serve_dap(DapParty.from_file(Path(sys.argv[1])), Path(sys.argv[2]), say=lambda line: print(line, flush=True))
"""


@contextmanager
def process(file: Path, folder: Path) -> Iterator[Fork]:
    """An aggregator's real process, ended by its own id."""
    with server_fork(SERVE, str(file), str(folder), imports=IMPORTS) as running:
        assert " at http" in running.line()
        yield running
