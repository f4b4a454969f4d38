"""Leader and helper: what is counted, once, and what leaves them, by way of their HTTP interfaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.federated.dap.aggregation_messages import (
    AggregationJobInitReq,
    AggregationJobResp,
    PingPong,
    PingPongKind,
)
from sfumato.federated.dap.collection_messages import AggregateShareReq, BatchMode, BatchQuery, Interval
from sfumato.federated.dap.problem_document import Problem, ProblemType
from sfumato.federated.dap.report_messages import (
    HpkeCiphertext,
    PlaintextInputShare,
    Report,
    ReportError,
    decoded_statuses,
)
from sfumato.federated.dap.report_messages import InputShareAad as Aad
from sfumato.federated.dap.sealing import sealed_input_share
from sfumato.federated.dap.task import base64url
from sfumato.federated.dap.tls_syntax import decoded
from sfumato.federated.dap.version import Role
from sfumato.server.dap.aggregator_store import AggregatorStore, checksum_of
from sfumato.server.dap.leader_work import LeaderWork
from tests.server.dap.setting import HOUR, NOW, Pair, by_leader, moved, parties

WHOLE = Interval(HOUR - 10, 20)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with Pair(tmp_path, parties()) as made:
        yield made


def errors(answer: bytes) -> list[ReportError]:
    return [one.error for one in decoded_statuses(answer)]


@pytest.mark.parametrize(
    ("vdaf", "values", "result"),
    [
        ({"type": "Prio3Count"}, [1, 0, 1, 1, 0], 3),
        ({"type": "Prio3Sum", "max_measurement": 100}, [100, 0, 7, 1, 2], 110),
        (
            {"type": "Prio3SumVec", "length": 2, "max_measurement": 3, "chunk_length": 2},
            [[1, 2], [3, 0], [0, 0], [1, 1], [2, 3]],
            [7, 6],
        ),
        ({"type": "Prio3Histogram", "length": 4, "chunk_length": 2}, [0, 3, 3, 1, 3], [1, 1, 0, 3]),
    ],
)
def test_a_batch_is_the_sum_of_its_reports(tmp_path: Path, vdaf: Any, values: Any, result: Any) -> None:
    with Pair(tmp_path, parties(vdaf=vdaf)) as pair:
        assert pair.upload(pair.reports(values[:2], HOUR - 1) + pair.reports(values[2:])) == b""
        found = pair.collect(1, WHOLE)
        assert (found.result, found.reports, found.interval) == (result, 5, Interval(HOUR - 1, 2))


def test_a_report_counts_once_however_often_it_comes(pair: Pair) -> None:
    reports = pair.reports([1, 1, 1, 0, 0])
    assert pair.upload(reports + reports[:2]) == b""
    pair.run()
    assert pair.upload(reports) == b""
    assert pair.collect(1, WHOLE).result == 3
    assert errors(pair.upload(reports[:1])) == [ReportError.REPORT_REPLAYED]  # its batch is collected


def test_a_batch_is_collected_once_and_answered_the_same(pair: Pair) -> None:
    pair.upload(pair.reports([1] * 5) + pair.reports([1] * 6, HOUR - 1))
    assert pair.collect(1, Interval(HOUR, 1)).result == 5
    first = pair.collection(1, method="GET")
    assert pair.collection(1, Interval(HOUR, 1)) == first
    status, problem = pair.collection(2, WHOLE)
    assert (status, b"batchOverlap" in problem) == (400, True)
    status, problem = pair.collection(1, WHOLE)
    assert (status, b"invalidMessage" in problem) == (400, True)
    assert pair.collect(3, Interval(HOUR - 1, 1)).result == 6
    assert pair.collection(1, method="DELETE") == (200, b"")
    assert pair.collection(1, method="GET")[0] == pair.collection(1, Interval(HOUR, 1))[0] == 404
    assert b"batchOverlap" in pair.collection(4, Interval(HOUR, 1))[1]


def test_two_jobs_for_one_batch_are_answered_once(pair: Pair) -> None:
    for number in (1, 2):
        assert pair.collection(number, WHOLE) == (202, b"")
    pair.upload(pair.reports([1] * 5))
    pair.run()
    status, problem = pair.collection(2, method="GET")
    assert (status, b"batchOverlap" in problem) == (400, True)
    assert pair.collect(1, WHOLE).result == 5


def test_nothing_leaves_below_the_minimum(pair: Pair) -> None:
    pair.upload(pair.reports([1] * 4))
    assert pair.collection(1, WHOLE) == (202, b"")
    pair.run()
    assert pair.collection(1, method="GET") == (202, b"")
    total = pair.leader.store.total(BatchQuery(BatchMode.TIME_INTERVAL, interval=WHOLE))
    assert total.reports == 4
    asked = AggregateShareReq(BatchQuery(BatchMode.TIME_INTERVAL, interval=WHOLE), b"", 4, total.checksum)
    answer = pair.ask("PUT", share_path(pair), asked.to_bytes(), "application/dap-aggregate-share-req")
    assert (answer[0], b"invalidBatchSize" in answer[1]) == (400, True)
    pair.upload(pair.reports([0]))
    assert pair.collect(1, WHOLE).result == 4


def share_path(pair: Pair, number: bytes = bytes(16)) -> str:
    return f"tasks/{base64url(pair.task.task_id)}/aggregate_shares/{base64url(number)}"


def test_the_leader_selects_batches_of_the_minimum(tmp_path: Path) -> None:
    with Pair(tmp_path, by_leader(4)) as pair:
        pair.upload(pair.reports([1, 1, 1, 1, 1, 0, 0, 0, 1]))
        found = [pair.collect(number).result for number in (1, 2)]
        assert sum(found) in (5, 6)
        assert pair.collection(3) == (202, b"")
        pair.upload(pair.reports([1, 1, 1]))
        assert sum(found) + pair.collect(3).result == 9


@pytest.mark.parametrize("lost", [True, False])
def test_a_helper_that_does_not_answer_is_asked_again(tmp_path: Path, lost: bool) -> None:
    made = parties(vdaf={"type": "Prio3Histogram", "length": 3, "chunk_length": 2})
    with Pair(tmp_path, made) as pair:
        pair.upload(pair.reports([0, 1, 1, 2, 2]))
        assert pair.collection(1, WHOLE) == (202, b"")
        for _ in range(2):  # in the job, then for the share
            pair.lose_answer, pair.reachable = lost, lost
            with pytest.raises(SourceError):
                pair.run()
            pair.lose_answer, pair.reachable = False, True
            pair.close()  # what was in memory is gone
            pair.open()
            while pair.work.step() and pair.leader.store.execute("SELECT 1 FROM job").fetchone():
                pass
        assert pair.collect(1, WHOLE).result == [1, 2, 2]


def test_the_noise_is_drawn_once_and_stored(tmp_path: Path) -> None:
    made = parties(vdaf={"type": "Prio3Sum", "max_measurement": 2**30}, epsilon=0.001)
    noise = made[Role.LEADER].task.noise
    assert noise is not None
    with Pair(tmp_path, made) as pair:
        pair.upload(pair.reports([500] * 5))
        first = pair.collect(1, WHOLE)
        assert pair.collect(1, WHOLE) == first
        # The exact sum has a probability below 1e-12, one further off than that, too.
        assert 0 < abs(first.result - 2500) < 50 * noise.stddev
        (stored,) = pair.helper._store.execute("SELECT id, response FROM share").rows
        status, answer = pair.ask("GET", share_path(pair, stored[0]), b"", "")
        assert (status, answer) == (200, stored[1])


def test_each_aggregator_adds_its_own_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = parties(vdaf={"type": "Prio3Sum", "max_measurement": 2**30}, epsilon=0.001)
    drawn: list[Role] = []
    exact = AggregatorStore.noised

    def noised(store: AggregatorStore, share: bytes) -> bytes:
        drawn.append(store.role)
        assert exact(store, share) != exact(store, share)
        return store.task.prio3.added(share, [10 ** len(drawn)])

    monkeypatch.setattr(AggregatorStore, "noised", noised)
    with Pair(tmp_path, made) as pair:
        pair.upload(pair.reports([1] * 5))
        assert pair.collect(1, WHOLE).result == 5 + 10 + 100
    assert drawn == [Role.LEADER, Role.HELPER]


def test_uploads_are_refused_one_by_one(pair: Pair) -> None:
    good = pair.reports([1] * 5)
    key, other = pair.made[Role.LEADER].key.config, pair.reports([1])[0]
    late = pair.reports([1], HOUR + 1)[0]
    unknown = replace(other, leader_share=replace(other.leader_share, config_id=9))
    short = replace(other, helper_share=HpkeCiphertext(1, bytes(32), b"x"))
    public = replace(other, public_share=b"x")
    pair.now = NOW - 310 + 3593 - 300 + 10  # the next hour is not yet within the clocks' difference
    answer = pair.upload([good[0], late, unknown, *good[1:], short, public])
    assert [(one.report_id, one.error.name) for one in decoded_statuses(answer)] == [
        (late.metadata.report_id, "REPORT_TOO_EARLY"),
        (other.metadata.report_id, "OUTDATED_CONFIG"),
        (other.metadata.report_id, "INVALID_MESSAGE"),
        (other.metadata.report_id, "INVALID_MESSAGE"),
    ]
    assert key.id == 1
    assert pair.collect(1, WHOLE).reports == 5


def test_reports_outside_of_the_task_are_dropped(tmp_path: Path) -> None:
    with Pair(tmp_path, parties(start=HOUR - 1, duration=2)) as pair:
        statuses = pair.upload([pair.reports([1], time)[0] for time in (HOUR - 2, HOUR - 1, HOUR)])
        assert errors(statuses) == [ReportError.REPORT_DROPPED]
        pair.now += 7200
        assert errors(pair.upload(pair.reports([1], HOUR + 1))) == [ReportError.REPORT_DROPPED]


def altered(pair: Pair, report: Report, role: Role, plain: bytes, aad: Aad | None = None) -> Report:
    """The report with another share sealed for an aggregator."""
    aad = Aad(pair.task.task_id, report.metadata, report.public_share) if aad is None else aad
    sealed = sealed_input_share(pair.made[role].key.config, role, aad, plain)
    if role == Role.LEADER:
        return replace(report, leader_share=sealed)
    return replace(report, helper_share=sealed)


def test_shares_that_prove_nothing_are_not_counted(pair: Pair) -> None:
    good, bad = pair.reports([1] * 5), pair.reports([1] * 8)
    foreign = Aad(bytes(32), bad[0].metadata, b"")
    size = [pair.task.prio3.input_share_size(aggregator) for aggregator in range(2)]
    wrong = [
        altered(pair, one, role, PlaintextInputShare((), bytes(size[role - 2])).to_bytes())
        for one, role in zip(bad[:2], (Role.LEADER, Role.HELPER), strict=True)
    ]
    wrong += [
        altered(pair, one, role, b"\xff" * (size[role - 2] + 6))
        for one, role in zip(bad[2:4], (Role.LEADER, Role.HELPER), strict=True)
    ]
    not_in_field = PlaintextInputShare((), b"\xff" * size[0]).to_bytes()
    wrong.append(altered(pair, bad[4], Role.LEADER, not_in_field))
    wrong.append(altered(pair, bad[0], Role.HELPER, bytes(size[1] + 6), foreign))
    wrong[-1] = replace(wrong[-1], metadata=bad[5].metadata)
    low_order = HpkeCiphertext(1, bytes(32), bytes(len(bad[6].leader_share.payload)))
    wrong.append(replace(bad[6], leader_share=low_order))
    low_order = HpkeCiphertext(1, bytes(32), bytes(len(bad[7].helper_share.payload)))
    wrong.append(replace(bad[7], helper_share=low_order))
    assert pair.upload(good[:2] + wrong + good[2:]) == b""
    found = pair.collect(1, WHOLE)
    assert (found.result, found.reports) == (5, 5)


def test_a_helper_that_lies_loses_its_reports_and_the_batch(tmp_path: Path) -> None:
    with Pair(tmp_path, parties(vdaf={"type": "Prio3Histogram", "length": 3, "chunk_length": 2})) as pair:

        def lying(method: str, path: str, body: bytes, media: str) -> tuple[int, bytes]:
            status, answer = pair.ask(method, path, body, media)
            if media.endswith("init-req"):
                first, *others = decoded(answer, AggregationJobResp.read).answers
                lie = replace(first, payload=first.payload[:-1] + bytes([first.payload[-1] ^ 1]))
                answer = AggregationJobResp((lie, *others)).to_bytes()
            return status, answer

        pair.work = LeaderWork(pair.leader, lying)
        pair.upload(pair.reports([0, 1, 2, 2, 2, 2]))
        pair.collection(1, WHOLE)
        pair.run()
        status, problem = pair.collection(1, method="GET")
        assert (status, b"batchMismatch" in problem) == (400, True)


@pytest.mark.parametrize(
    "kind", [ProblemType.BATCH_MISMATCH, ProblemType.BATCH_OVERLAP, ProblemType.INVALID_BATCH_SIZE]
)
def test_a_selected_batch_that_the_helper_refuses_for_good_is_not_chosen_again(
    tmp_path: Path, kind: ProblemType
) -> None:
    with Pair(tmp_path, by_leader(2)) as pair:
        refused: set[bytes | None] = set()

        def refusing(method: str, path: str, body: bytes, media: str) -> tuple[int, bytes]:
            if media.endswith("share-req"):
                batch = decoded(body, AggregateShareReq.read).batch_selector.batch_id
                if not refused or batch in refused:
                    refused.add(batch)
                    return 400, Problem(kind, "no").document(None)
            return pair.ask(method, path, body, media)

        pair.work = LeaderWork(pair.leader, refusing)
        pair.upload(pair.reports([0, 0]))
        pair.run()
        pair.upload(pair.reports([1, 1]))
        pair.run()
        assert pair.collection(1) == (202, b"")
        pair.run()
        status, problem = pair.collection(1, method="GET")
        assert (status, kind.value[0].encode() in problem) == (400, True)
        found = pair.collect(2)  # the other batch, and no third one
        assert found.result in (0, 2)
        assert (found.reports, len(refused)) == (2, 1)
        assert pair.collection(3) == (202, b"")


def test_a_selected_batch_that_is_refused_for_a_mistake_is_chosen_again(tmp_path: Path) -> None:
    with Pair(tmp_path, by_leader(2)) as pair:

        def unknown(method: str, path: str, body: bytes, media: str) -> tuple[int, bytes]:
            if media.endswith("share-req"):
                return 404, Problem(ProblemType.UNRECOGNIZED_TASK, "no").document(None)
            return pair.ask(method, path, body, media)

        pair.work = LeaderWork(pair.leader, unknown)
        pair.upload(pair.reports([1, 1]))
        pair.collection(1)
        pair.run()
        assert pair.collection(1, method="GET")[0] == 404
        pair.work = LeaderWork(pair.leader, pair.ask)  # the helper serves the task again
        assert pair.collect(2).result == 2


@pytest.mark.parametrize("answer", [b"", b"\x00" * 17, "reversed", "short"])
def test_a_job_with_another_answer_is_given_up(tmp_path: Path, answer: Any) -> None:
    with Pair(tmp_path, parties(2)) as pair:

        def other(method: str, path: str, body: bytes, media: str) -> tuple[int, bytes]:
            status, found = pair.ask(method, path, body, media)
            answers = decoded(found, AggregationJobResp.read).answers
            given = {"reversed": answers[::-1], "short": answers[:1]}.get(str(answer))
            return status, answer if given is None else AggregationJobResp(given).to_bytes()

        pair.work = LeaderWork(pair.leader, other)
        pair.upload(pair.reports([1, 1]))
        assert pair.work.step()
        if answer == b"":  # not yet answered
            with pytest.raises(SourceError, match="nothing yet"):
                pair.work.step()
            return
        pair.run()
        whole = BatchQuery(BatchMode.TIME_INTERVAL, interval=WHOLE)
        assert pair.leader.store.total(whole).reports == 0
        assert pair.helper._store.total(whole).reports == 2


def test_the_checksum_is_that_of_the_ids(pair: Pair) -> None:
    reports = pair.reports([1] * 3, HOUR) + pair.reports([1], HOUR - 1)
    pair.upload(reports)
    pair.run()
    whole = BatchQuery(BatchMode.TIME_INTERVAL, interval=WHOLE)
    for store in (pair.leader.store, pair.helper._store):
        assert store.total(whole).checksum == checksum_of([one.metadata.report_id for one in reports])
        ids = store.execute("SELECT id FROM bucket ORDER BY id").fetchall()
        assert [bytes(one) for (one,) in ids] == [time.to_bytes(8, "big") for time in (HOUR - 1, HOUR)]
    empty = BatchQuery(BatchMode.TIME_INTERVAL, interval=Interval(0, 1))
    found = pair.leader.store.total(empty)
    assert (found.checksum, found.interval, found.reports) == (bytes(32), Interval(0, 1), 0)


def test_the_helper_counts_a_report_once_over_jobs_and_none_after_collection(pair: Pair) -> None:
    reports = pair.reports([1] * 6)
    sent: list[tuple[str, bytes]] = []

    def noting(method: str, path: str, body: bytes, media: str) -> tuple[int, bytes]:
        sent.append((path, body))
        return pair.ask(method, path, body, media)

    pair.work = LeaderWork(pair.leader, noting)
    pair.upload(reports)
    pair.run()
    (path, body), media = sent[0], "application/dap-aggregation-job-init-req"
    again = pair.ask("PUT", path[:-4] + "AAAA"[:3] + "A", body, media)
    answers = decoded(again[1], AggregationJobResp.read).answers
    assert {one.error for one in answers} == {ReportError.REPORT_REPLAYED}
    request = decoded(body, AggregationJobInitReq.read)
    other = AggregationJobInitReq(b"", request.partial_batch_selector, request.inits[:1]).to_bytes()
    status, problem = pair.ask("PUT", path, other, media)
    assert (status, b"invalidMessage" in problem) == (400, True)
    twice = AggregationJobInitReq(b"", request.partial_batch_selector, request.inits[:1] * 2).to_bytes()
    assert b"twice" in pair.ask("PUT", path[:-4] + "BBBA", twice, media)[1]
    assert pair.collect(1, WHOLE).result == 6
    late = pair.ask("PUT", path[:-4] + "CCCA", body, media)
    answers = decoded(late[1], AggregationJobResp.read).answers
    assert {one.error for one in answers} == {ReportError.BATCH_COLLECTED}
    assert pair.ask("GET", path, b"", "")[0] == 200
    assert pair.ask("DELETE", path, b"", "") == (200, b"")
    assert pair.ask("GET", path, b"", "")[0] == 404


def test_a_store_is_its_owners_alone(tmp_path: Path) -> None:
    folder, task = tmp_path / "new" / "folder", parties()[Role.LEADER].task
    for _ in range(2):
        store = AggregatorStore(folder, task, Role.LEADER)
        assert store.execute("PRAGMA user_version").fetchone() == (1,)
        store.close()
    assert (folder.stat().st_mode & 0o777, (folder / "leader.db").stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_store_is_of_one_task_role_and_process(tmp_path: Path) -> None:
    made = parties()
    with Pair(tmp_path, made), pytest.raises(ParameterError, match="one aggregator only"):
        AggregatorStore(tmp_path / "leader", made[Role.LEADER].task, Role.LEADER)
    other = moved(made, min_batch_size=2)[Role.LEADER].task
    with pytest.raises(ParameterError, match="this task and role"):
        AggregatorStore(tmp_path / "leader", other, Role.LEADER)
    (tmp_path / "leader" / "leader.db").write_bytes(b"no database" * 100)
    with pytest.raises(ParameterError, match="an aggregator's store"):
        AggregatorStore(tmp_path / "leader", other, Role.LEADER)


def test_a_party_shows_no_secret() -> None:
    leader = parties()[Role.LEADER]
    shown = repr(leader)
    assert "leader" in shown
    assert str(leader.sends) not in shown
    assert repr(leader.verify_key) not in shown
    assert repr(leader.key.secret) not in shown


def test_the_helper_verifies_a_proof_once(pair: Pair) -> None:
    def forged(method: str, path: str, body: bytes, media: str) -> tuple[int, bytes]:
        request = decoded(body, AggregationJobInitReq.read)
        share = PingPong(PingPongKind.INITIALIZE, share=bytes(pair.task.prio3.verifier_share_size))
        inits = tuple(replace(one, payload=share.to_bytes()) for one in request.inits)
        tried = pair.ask(method, path[:-4] + "AAAA", replace(request, inits=inits).to_bytes(), media)
        errors_of.append([one.error for one in decoded(tried[1], AggregationJobResp.read).answers])
        answer = pair.ask(method, path, body, media)
        errors_of.append([one.error for one in decoded(answer[1], AggregationJobResp.read).answers])
        return answer

    errors_of: list[list[ReportError]] = []
    pair.work = LeaderWork(pair.leader, forged)
    pair.upload(pair.reports([1] * 2))
    pair.run()
    assert errors_of == [[ReportError.VDAF_PREP_ERROR] * 2, [ReportError.REPORT_REPLAYED] * 2]


def test_a_clock_that_is_set_back_loses_no_report(tmp_path: Path) -> None:
    with Pair(tmp_path, parties()) as pair:
        pair.upload(pair.reports([1] * 5))
        pair.lose_answer = True
        with pytest.raises(SourceError):  # the helper has counted the reports, the leader not yet
            pair.run()
        pair.lose_answer = False
        pair.close()
        pair.now -= 7200.0
        pair.open()
        pair.upload(pair.reports([1] * 2, HOUR - 2))
        found = pair.collect(1, WHOLE)
        assert (found.result, found.reports) == (7, 7)


@pytest.mark.parametrize("status", [200, 400])
def test_a_job_that_is_deleted_while_the_helper_is_asked_stays_deleted(tmp_path: Path, status: int) -> None:
    with Pair(tmp_path, parties(2)) as pair:

        def deleting(method: str, path: str, body: bytes, media: str) -> tuple[int, bytes]:
            if media.endswith("share-req"):
                assert pair.collection(1, method="DELETE")[0] == 200
                if status == 400:
                    return 400, Problem(ProblemType.BATCH_MISMATCH, "no").document(None)
            return pair.ask(method, path, body, media)

        pair.work = LeaderWork(pair.leader, deleting)
        pair.upload(pair.reports([1] * 2))
        pair.collection(1, WHOLE)
        pair.run()
        assert pair.collection(1, method="GET")[0] == 404
