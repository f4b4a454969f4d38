"""Tasks: what they may be, and that a document is read back or refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.federated.dap.collection_messages import (
    BatchMode,
    BatchQuery,
    CollectionJobResp,
    Interval,
)
from sfumato.federated.dap.hpke_config import HpkeConfig
from sfumato.federated.dap.preparation import time_error
from sfumato.federated.dap.report_messages import ReportError, ReportMetadata
from sfumato.federated.dap.sealing import HpkeKey, sealed_aggregate_share
from sfumato.federated.dap.task import LAST_TIME, DapTask, unbase64url
from sfumato.federated.dap.unsharding import collected_batch
from sfumato.federated.dap.version import Role

KEY = HpkeKey(bytes(range(32)), 7)
COUNT = {"type": "Prio3Count"}
# The canonical points of orders 1, 2, 4, 8 and 8 (cr.yp.to/ecdh.html), and one with its top bit set.
SMALL_ORDER = tuple(
    map(
        bytes.fromhex,
        (
            "00" * 32,
            "01" + "00" * 31,
            "ec" + "ff" * 30 + "7f",
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
            "00" * 31 + "80",
        ),
    )
)


def made(**changes: Any) -> DapTask:
    given: dict[str, Any] = {
        "task_id": bytes(range(32)),
        "leader": "http://127.0.0.1:8421",
        "helper": "https://helper.example/dap/",
        "vdaf": COUNT,
        "collector": KEY.config,
        "min_batch_size": 10,
    }
    return DapTask(**{**given, **changes})


def test_a_task_comes_back_from_its_document() -> None:
    sizes = {"length": 4, "chunk_length": 2}
    for task in (
        made(),
        made(vdaf={"type": "Prio3Histogram", **sizes}, epsilon=0.5, delta=1e-6, start=7, duration=9),
        made(batch_mode=BatchMode.LEADER_SELECTED, time_precision=60),
    ):
        document = json.loads(json.dumps(task.specification()))
        assert DapTask.from_specification(document) == task
        assert document["draft"] == "dap-16"


def test_the_function_is_bound_to_the_task() -> None:
    assert made().prio3.context == b"dap-16" + bytes(range(32))
    assert made(vdaf={"type": "Prio3Sum", "max_measurement": 9}).prio3.circuit.encode([9]) is not None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"task_id": b"short"}, "task_id must be 32 bytes"),
        ({"leader": "ftp://a"}, "leader must be an http"),
        ({"leader": "http://"}, "leader must be an http"),
        ({"helper": "http://a?x=1"}, "helper must be an http"),
        ({"helper": "http://user@a"}, "helper must be an http"),
        ({"helper": "http://a:port"}, "helper must be an http"),
        ({"vdaf": {"type": "Prio2"}}, "vdaf must have a type"),
        ({"vdaf": {**COUNT, "length": 2}}, "vdaf must have the parameters"),
        ({"vdaf": {"type": "Prio3Sum"}}, "vdaf must have the parameters"),
        ({"min_batch_size": 1}, "min_batch_size must be"),
        ({"batch_mode": 1}, "batch_mode must be"),
        ({"time_precision": 0}, "time_precision must be"),
        ({"duration": 0}, "duration must be"),
        ({"start": 1}, "be below 2"),
        ({"delta": 1e-6}, "delta must come with epsilon"),
        ({"epsilon": 0.0}, "epsilon must"),
        ({"collector": HpkeConfig(1, bytes(32), kem=0x10)}, "X25519 key for AES"),
        ({"collector": HpkeConfig(1, bytes(31))}, "X25519 key for AES"),
        ({"collector": replace(KEY.config, aead=3)}, "X25519 key for AES"),
        *(({"collector": HpkeConfig(1, point)}, "no point of small order") for point in SMALL_ORDER),
    ],
)
def test_parameters_have_rules(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        made(**changes)


def test_documents_of_another_kind_are_refused() -> None:
    whole = made().specification()
    for changes, why in (
        ({"draft": "dap-15"}, "draft must be 'dap-16'"),
        ({"more": 1}, "have the fields"),
        ({"task_id": "x"}, "task_id must be 32 bytes"),
        ({"batch_mode": "all"}, "a key, an id and a batch mode"),
        ({"collector": {"id": 1}}, "a key, an id and a batch mode"),
        ({"collector": {"id": 1, "public_key": "zz"}}, "a key, an id and a batch mode"),
    ):
        with pytest.raises(ParameterError, match=why):
            DapTask.from_specification({**whole, **changes})


def test_what_queries_a_task_covers() -> None:
    by_time, by_leader = made(), made(batch_mode=BatchMode.LEADER_SELECTED)
    mode = BatchMode.TIME_INTERVAL
    for interval, covered in (
        (Interval(0, 1), True),
        (Interval(LAST_TIME - 1, 1), True),
        (Interval(LAST_TIME, 1), False),
        (Interval(5, 0), False),
    ):
        assert by_time.covers(BatchQuery(mode, interval=interval)) == covered
        assert not by_leader.covers(BatchQuery(mode, interval=interval))
    assert by_leader.covers(BatchQuery(BatchMode.LEADER_SELECTED))


def test_times_that_a_report_may_have() -> None:
    task = made(time_precision=10, start=100, duration=5)
    found = [time_error(task, ReportMetadata(bytes(16), time), 1500.0) for time in (99, 100, 104, 105)]
    assert found == [ReportError.TASK_NOT_STARTED, None, None, ReportError.TASK_EXPIRED]
    for now, wrong in ((740.0, None), (739.9, ReportError.REPORT_TOO_EARLY)):
        assert time_error(task, ReportMetadata(bytes(16), 104), now) == wrong


def test_ids_in_urls_have_one_form() -> None:
    assert unbase64url("AAECAw", 4) == bytes(range(4))
    for text in ("AAECAw==", "AAECAx", "AAECA", "AAEC+w", "", "AAECAé"):
        assert unbase64url(text, 4) is None


def test_a_result_is_opened_for_its_batch_alone() -> None:
    task, mode = made(min_batch_size=3), BatchMode.TIME_INTERVAL
    query = BatchQuery(mode, interval=Interval(5, 2))
    prio3 = task.prio3
    shares = [prio3.added(bytes(8), [number]) for number in (4, -6)]
    leader, helper = (
        sealed_aggregate_share(task, role, query, share)
        for role, share in zip((Role.LEADER, Role.HELPER), shares, strict=True)
    )
    answer = CollectionJobResp(BatchQuery(mode), 3, Interval(5, 1), leader, helper)
    found = collected_batch(task, KEY, query, answer)
    assert (found.result, found.reports, found.interval) == (-2, 3, Interval(5, 1))
    other = BatchQuery(mode, interval=Interval(5, 3))
    foreign = BatchQuery(BatchMode.LEADER_SELECTED, batch_id=bytes(32))
    short = sealed_aggregate_share(task, Role.HELPER, query, bytes(7))
    for asked, given in (
        (other, answer),
        (query, replace(answer, report_count=2)),
        (
            query,
            replace(answer, partial_batch_selector=foreign),
        ),
        (query, replace(answer, leader_share=helper, helper_share=leader)),
        (query, replace(answer, helper_share=short)),
    ):
        with pytest.raises(SourceError):
            collected_batch(task, KEY, asked, given)
    with pytest.raises(SourceError):
        collected_batch(task, HpkeKey(bytes(32), 7), query, answer)
