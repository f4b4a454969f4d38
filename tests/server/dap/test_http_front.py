"""Requests that are wrong in form, in authority, or on purpose: a problem document, and never a fault."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.federated.dap.aggregation_messages import AggregationJobContinueReq
from sfumato.federated.dap.collection_messages import (
    AggregateShareReq,
    BatchMode,
    BatchQuery,
    CollectionJobReq,
    Interval,
)
from sfumato.federated.dap.hpke_config import decoded_configs
from sfumato.federated.dap.report_messages import Extension, Report, ReportMetadata
from sfumato.federated.dap.task import base64url
from sfumato.federated.dap.version import Role
from sfumato.server.dap.http_front import DapFront
from sfumato.server.dap.leader_work import LeaderWork
from tests.cases import cases
from tests.server.dap.setting import HOUR, Pair, asked, by_leader, parties
from tests.server.setting import memory_folder

ID = base64url(bytes(range(16)))
PREFIX = "urn:ietf:params:ppm:dap:error:"
JOB, CONTINUE = "application/dap-aggregation-job-init-req", "application/dap-aggregation-job-continue-req"
SHARE, COLLECTION = "application/dap-aggregate-share-req", "application/dap-collection-job-req"
UPLOAD = "application/dap-upload-req"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with Pair(tmp_path_factory.mktemp("dap"), parties()) as made:
        yield made


def path(pair: Pair, rest: str, role: Role) -> str:
    return ("/dap" if role == Role.HELPER else "") + f"/tasks/{base64url(pair.task.task_id)}/{rest}"


def problem(pair: Pair, role: Role, method: str, rest: str, body: bytes = b"", **how: Any) -> tuple[int, str]:
    """Return the status and the type of a request's problem document."""
    how.setdefault("token", pair.made[Role.LEADER if role == Role.HELPER else Role.COLLECTOR].sends)
    status, headers, answer = asked(pair.fronts[role], method, path(pair, rest, role), body, **how)
    assert headers["content-type"] == "application/problem+json"
    document = json.loads(answer)
    assert document["status"] == status
    assert document["taskid"] == base64url(pair.task.task_id)
    return status, document["type"].removeprefix(PREFIX)


def test_keys_are_published(pair: Pair) -> None:
    for role, where in ((Role.LEADER, "/hpke_config"), (Role.HELPER, "/dap/hpke_config")):
        status, headers, body = asked(pair.fronts[role], "GET", where)
        assert (status, headers["content-type"]) == (200, "application/dap-hpke-config-list")
        assert headers["cache-control"] == "max-age=86400"
        assert decoded_configs(body) == (pair.made[role].key.config,)
        assert asked(pair.fronts[role], "POST", where)[0] == 405


def test_paths_and_methods_that_are_not_there(pair: Pair) -> None:
    for where in ("/", "/tasks", "/tasks/x", "/tasks/x/reports/y/z", "/hpke_config/x", "/dapper/hpke_config"):
        for role in (Role.LEADER, Role.HELPER):
            assert asked(pair.fronts[role], "GET", where)[0] == 404
    assert problem(pair, Role.LEADER, "GET", "reports") == (405, "about:blank")
    assert problem(pair, Role.HELPER, "PATCH", f"aggregate_shares/{ID}") == (405, "about:blank")
    for role, rest in ((Role.LEADER, f"aggregation_jobs/{ID}"), (Role.HELPER, "reports")):
        assert problem(pair, role, "PUT", rest) == (404, "about:blank")


def test_foreign_tasks_and_ids(pair: Pair) -> None:
    for task in (base64url(bytes(32)), "x", "%00", base64url(pair.task.task_id) + "="):
        status, _, body = asked(pair.fronts[Role.LEADER], "POST", f"/tasks/{task}/reports")
        assert (status, json.loads(body)["type"]) == (404, PREFIX + "unrecognizedTask")
    for rest in ("aggregation_jobs/x", f"aggregate_shares/{ID}A", "aggregate_shares/"):
        assert problem(pair, Role.HELPER, "PUT", rest, media=JOB)[0] == 404
    assert problem(pair, Role.HELPER, "GET", f"aggregation_jobs/{ID}") == (404, "unrecognizedAggregationJob")
    assert problem(pair, Role.HELPER, "DELETE", f"aggregate_shares/{ID}") == (404, "about:blank")
    assert problem(pair, Role.LEADER, "GET", f"collection_jobs/{ID}") == (404, "about:blank")


def test_without_the_right_token_nothing_is_answered(pair: Pair) -> None:
    tokens = [None, "", "x", "é", pair.made[Role.COLLECTOR].sends]
    for token in tokens:
        for method, media in (("PUT", JOB), ("GET", ""), ("DELETE", ""), ("POST", CONTINUE)):
            found = problem(pair, Role.HELPER, method, f"aggregation_jobs/{ID}", media=media, token=token)
            assert found == (401, "about:blank")
    token = pair.made[Role.LEADER].sends
    assert problem(pair, Role.LEADER, "PUT", f"collection_jobs/{ID}", media=COLLECTION, token=token)[0] == 401


def test_bodies_of_another_kind_or_size(pair: Pair) -> None:
    assert problem(pair, Role.LEADER, "POST", "reports", media="text/plain") == (415, "about:blank")
    assert problem(pair, Role.LEADER, "POST", "reports", bytes((1 << 20) + 1), media=UPLOAD)[0] == 413
    assert problem(pair, Role.HELPER, "PUT", f"aggregation_jobs/{ID}", b"", media=SHARE)[0] == 415
    status, _, body = asked(
        pair.fronts[Role.LEADER], "POST", path(pair, "reports", Role.LEADER), b"", media=UPLOAD + "; x=1"
    )
    assert (status, body) == (200, b"")


@cases(
    ("length", "size", "status"),
    [
        (b"100", 100, 400),
        (b"101", 0, 413),
        (None, 100, 400),
        (None, 101, 413),
        (b"9" * 5000, 0, 413),
        (b"\xb2", 100, 400),  # a digit to some, and no number: what comes is bounded all the same
        (b"\xb2", 101, 413),
        (b"-5", 101, 413),
    ],
)
def test_the_largest_body_is_taken(pair: Pair, length: bytes | None, size: int, status: int) -> None:
    front, sent = DapFront(pair.leader, 100, "", lambda: None, print), []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"\xff" * size}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"Content-Type", UPLOAD.encode())]
    headers += [] if length is None else [(b"Content-Length", length)]
    scope = {"type": "http", "method": "POST", "path": path(pair, "reports", Role.LEADER)}
    asyncio.run(front({**scope, "headers": headers}, receive, send))
    assert sent[0]["status"] == status
    assert ((b"connection", b"close") in sent[0]["headers"]) == (status == 413)


def test_a_body_without_a_length_is_bounded_too(pair: Pair) -> None:
    read, sent = 0, []

    async def receive() -> Any:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": bytes(1 << 18), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path(pair, "reports", Role.LEADER)}
    headers = [(b"content-type", UPLOAD.encode())]
    asyncio.run(pair.fronts[Role.LEADER]({**scope, "headers": headers}, receive, send))
    assert (sent[0]["status"], read) == (413, 5)

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    sent.clear()
    asyncio.run(pair.fronts[Role.LEADER]({**scope, "headers": headers}, gone, send))
    assert sent == []


def test_requests_that_the_task_does_not_have(pair: Pair) -> None:
    by_time, by_id = BatchMode.TIME_INTERVAL, BatchMode.LEADER_SELECTED
    hour = BatchQuery(by_time, interval=Interval(HOUR, 1))
    empty, far = (BatchQuery(by_time, interval=one) for one in (Interval(HOUR, 0), Interval(1 << 63, 5)))
    cases: list[tuple[Role, str, str, bytes, str, str]] = []
    for query, parameter, kind in (
        (BatchQuery(by_id), b"", "invalidMessage"),
        (empty, b"", "batchInvalid"),
        (far, b"", "batchInvalid"),
        (hour, b"x", "invalidAggregationParameter"),
    ):
        body = CollectionJobReq(query, parameter).to_bytes()
        cases.append((Role.LEADER, "PUT", f"collection_jobs/{ID}", body, COLLECTION, kind))
    for query, parameter, kind in (
        (BatchQuery(by_id, batch_id=bytes(32)), b"", "invalidMessage"),
        (empty, b"", "batchInvalid"),
        (far, b"", "batchInvalid"),
        (hour, b"x", "invalidMessage"),
        (hour, b"", "invalidBatchSize"),
    ):
        body = AggregateShareReq(query, parameter, 0, bytes(32)).to_bytes()
        cases.append((Role.HELPER, "PUT", f"aggregate_shares/{ID}", body, SHARE, kind))
    time, batch = b"\x01\x00\x00", b"\x02\x00\x20" + bytes(32)
    for body, kind in (
        (bytes(4) + batch, "invalidMessage"),
        (b"\x00\x00\x00\x01x" + time, "invalidAggregation"),
    ):
        cases.append((Role.HELPER, "PUT", f"aggregation_jobs/{ID}", body, JOB, kind))
    for role, method, rest, body, media, kind in cases:
        status, found = problem(pair, role, method, rest, body, media=media)
        assert status == 400
        assert found.startswith(kind), (found, kind)


def test_a_later_step_is_refused(pair: Pair) -> None:
    body, where = AggregationJobContinueReq(1, ()).to_bytes(), f"aggregation_jobs/{ID}"
    assert problem(pair, Role.HELPER, "POST", where, body, media=CONTINUE)[1] == "unrecognizedAggregationJob"
    pair.upload(pair.reports([1]))
    pair.run()
    ((number,),) = pair.helper._store.execute("SELECT id FROM job").rows
    where = f"aggregation_jobs/{base64url(number)}"
    for step, kind in ((0, "invalidMessage"), (1, "stepMismatch"), (7, "stepMismatch")):
        body = AggregationJobContinueReq(step, ()).to_bytes()
        assert problem(pair, Role.HELPER, "POST", where, body, media=CONTINUE) == (400, kind)


def test_extensions_are_refused(pair: Pair) -> None:
    report = pair.reports([1])[0]
    extended = Report(
        ReportMetadata(report.metadata.report_id, HOUR, (Extension(23, b"x"),)),
        report.public_share,
        report.leader_share,
        report.helper_share,
    )
    found = problem(pair, Role.LEADER, "POST", "reports", extended.to_bytes(), media=UPLOAD)
    assert found == (400, "unsupportedExtension")


def noted(pair: Pair) -> list[tuple[Role, str, str, bytes, str]]:
    """Requests as they come in a whole run."""
    sent: list[tuple[Role, str, str, bytes, str]] = []

    def noting(method: str, where: str, body: bytes, media: str) -> tuple[int, bytes]:
        sent.append((Role.HELPER, method, where.split("/", 2)[2], body, media))
        return pair.ask(method, where, body, media)

    pair.work = LeaderWork(pair.leader, noting)
    reports = pair.reports([1, 0, 1, 1, 0])
    pair.upload(reports)
    interval = Interval(HOUR, 1) if pair.task.batch_mode == BatchMode.TIME_INTERVAL else None
    pair.collect(1, interval)
    query = CollectionJobReq(BatchQuery(pair.task.batch_mode, interval=interval)).to_bytes()
    sent.append((Role.LEADER, "POST", "reports", b"".join(one.to_bytes() for one in reports), UPLOAD))
    sent.append((Role.LEADER, "PUT", f"collection_jobs/{ID}", query, COLLECTION))
    return sent


def shoot(folder: Path, rounds: int, seed: int) -> int:
    """Send mutated bytes, and return how many were refused; a fault would be raised here."""
    chance, refused = random.Random(seed), 0
    for make in (parties, by_leader):
        with Pair(folder / make.__name__, make()) as pair:
            requests = noted(pair)
            tokens = {Role.LEADER: pair.made[Role.COLLECTOR].sends, Role.HELPER: pair.made[Role.LEADER].sends}
            for number in range(rounds):
                role, method, rest, body, media = requests[number % len(requests)]
                rest = rest if "/" not in rest else rest[:-22] + base64url(chance.randbytes(16))
                where = path(pair, rest, role)
                mutated = mutation(body, chance)
                status, headers, answer = asked(
                    pair.fronts[role], method, where, mutated, media=media, token=tokens[role]
                )
                assert status in (200, 202, 400), (status, answer)
                refused += status == 400
                assert (status == 400) == (headers.get("content-type") == "application/problem+json")
            pair.run()
            total = pair.collection(1, method="GET")
            assert total[0] == 200
    return refused


def mutation(body: bytes, chance: random.Random) -> bytes:
    data = bytearray(body)
    kind = chance.randrange(4)
    if kind == 0:
        return bytes(data[: chance.randrange(len(data))])
    if kind == 1:
        at = chance.randrange(len(data))
        return bytes(data[:at] + chance.randbytes(chance.randrange(1, 9)) + data[at:])
    for _ in range(chance.randrange(1, 5)):
        data[chance.randrange(len(data))] = chance.choice((0, 255, chance.randrange(256)))
    return bytes(data)


def test_mutated_requests_are_refused() -> None:
    with memory_folder() as folder:
        assert shoot(folder, 120, 22) > 60


@pytest.mark.exhaustive
def test_ten_thousand_mutated_requests_are_refused() -> None:
    with memory_folder() as folder:
        assert shoot(folder, 5000, 23) > 2000


def test_a_fault_is_said_without_what_was_asked(pair: Pair) -> None:
    said: list[str] = []
    front = DapFront(pair.leader, 1 << 20, "", lambda: None, said.append)

    async def broken() -> Any:
        raise OSError("disk")

    async def send(_: Any) -> None:
        raise AssertionError

    scope = {"type": "http", "method": "POST", "path": path(pair, "reports", Role.LEADER)}
    with pytest.raises(OSError, match="disk"):
        asyncio.run(front({**scope, "headers": [(b"content-type", UPLOAD.encode())]}, broken, send))
    assert said == ["a request failed by a fault of this program or machine (OSError)"]
    asyncio.run(front({"type": "lifespan"}, broken, send))
