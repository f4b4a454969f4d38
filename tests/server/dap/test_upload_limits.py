"""What a leader stores of uploads at most, by way of its HTTP interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.federated.dap.report_messages import Report, ReportError, decoded_statuses
from sfumato.federated.dap.task import base64url
from sfumato.federated.dap.version import Role
from sfumato.server.dap import upload_limits
from sfumato.server.dap.dap_client import DapUploader
from sfumato.server.dap.http_peer import HttpPeer
from sfumato.server.dap.upload_limits import UploadLimits
from tests.server.dap.setting import Answer, Pair, asked, parties


@contextmanager
def limited(folder: Path, made: Any = None, **limits: int) -> Iterator[Pair]:
    with Pair(folder, parties(2) if made is None else made, UploadLimits(**limits)) as pair:
        yield pair


def sent(pair: Pair, reports: list[Report], client: str | None = "192.0.2.1") -> Answer:
    path = f"/tasks/{base64url(pair.task.task_id)}/reports"
    body, media = b"".join(one.to_bytes() for one in reports), "application/dap-upload-req"
    return asked(pair.fronts[Role.LEADER], "POST", path, body, media=media, client=client)


def stored(pair: Pair) -> int:
    return int(pair.leader.store.execute("SELECT count(*) FROM report").rows[0][0])


def refused(answer: Answer, status: int) -> int:
    """Check a problem document, and return after how many seconds to come again."""
    found, headers, body = answer
    document = json.loads(body)
    assert (found, document["status"], document["type"]) == (status, status, "about:blank")
    assert headers["content-type"] == "application/problem+json"
    return int(headers["retry-after"])


def test_an_address_sends_so_many_reports_an_hour(tmp_path: Path) -> None:
    with limited(tmp_path, address=3) as pair:
        pair.now += 50
        begun = pair.now
        assert sent(pair, pair.reports([1, 1]))[0] == 200
        pair.now += 100
        assert refused(sent(pair, pair.reports([1, 1])), 429) == 3501
        assert stored(pair) == 2
        assert sent(pair, pair.reports([1]))[0] == 200  # what was refused does not count
        assert refused(sent(pair, pair.reports([1])), 429) == 3501
        assert sent(pair, pair.reports([1, 1, 1]), "192.0.2.2")[0] == 200
        pair.now = begun + 3599.5
        assert refused(sent(pair, pair.reports([1])), 429) == 1
        pair.now = begun + 3600
        assert sent(pair, pair.reports([1, 1, 1]))[0] == 200
        pair.now = begun - 1  # the clock was set back
        assert sent(pair, pair.reports([1]))[0] == 200
        assert stored(pair) == 10


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.0", False),
        (None, None, True),
        ("a-socket", None, True),
    ],
)
def test_networks_of_one_owner_count_together(
    tmp_path: Path, one: str | None, other: str | None, same: bool
) -> None:
    with limited(tmp_path, address=1) as pair:
        assert sent(pair, pair.reports([1]), one)[0] == 200
        assert sent(pair, pair.reports([1]), other)[0] == (429 if same else 200)


def test_addresses_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_limits, "_ADDRESSES", 2)
    with limited(tmp_path, address=2) as pair:
        statuses = [sent(pair, pair.reports([1]), f"192.0.2.{number}")[0] for number in range(5)]
        assert statuses == [200, 200, 200, 200, 429]  # from the third on they share a count
        assert sent(pair, pair.reports([1]), "192.0.2.0")[0] == 200
        assert len(pair.leader.uploads._of) == 3


def test_so_many_reports_wait_at_a_time(tmp_path: Path) -> None:
    with limited(tmp_path, waiting=4) as pair:
        assert sent(pair, pair.reports([1, 1, 1]))[0] == 200
        assert refused(sent(pair, pair.reports([1, 1])), 503) == 60
        assert stored(pair) == 3
        assert sent(pair, pair.reports([1]))[0] == 200
        pair.close()
        pair.open()  # what waits is known again
        refused(sent(pair, pair.reports([1])), 503)
        pair.run()
        assert sent(pair, pair.reports([1, 1, 1, 1]))[0] == 200
        refused(sent(pair, pair.reports([1])), 503)
        assert stored(pair) == 8


def test_what_is_refused_costs_no_count_of_what_waits(tmp_path: Path) -> None:
    """To count a million reports took 4 seconds, for each request that was refused."""
    with limited(tmp_path, waiting=4) as pair:
        statements: list[str] = []
        pair.leader.store._connection.set_trace_callback(statements.append)
        assert sent(pair, pair.reports([1, 1, 1, 1]))[0] == 200
        for _ in range(3):
            refused(sent(pair, pair.reports([1])), 503)
        twice = pair.reports([1, 1])
        pair.run()
        assert sent(pair, [*twice, *twice])[0] == 200  # two of them are stored
        assert sent(pair, pair.reports([1, 1]))[0] == 200
        refused(sent(pair, pair.reports([1])), 503)
        assert statements
        assert not any("count(" in statement for statement in statements)
        assert stored(pair) == 8


@pytest.mark.parametrize("limits", [{"waiting": 2, "address": 9}, {"waiting": 9, "address": 2}])
def test_nobody_is_told_to_try_again_what_never_fits(tmp_path: Path, limits: dict[str, int]) -> None:
    with limited(tmp_path, **limits) as pair:
        status, headers, body = sent(pair, pair.reports([1, 1, 1]))
        assert (status, json.loads(body)["detail"]) == (413, "a request has at most 2 reports")
        assert "retry-after" not in headers
        assert stored(pair) == 0
        assert sent(pair, pair.reports([1, 1]))[0] == 200


def test_few_long_reports_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = parties(2, vdaf={"type": "Prio3Histogram", "length": 100, "chunk_length": 10})
    with limited(tmp_path / "1", made) as pair:
        sizes = {len(one.to_bytes()) for one in pair.reports([1, 2])}
    assert len(sizes) == 1
    monkeypatch.setattr(upload_limits, "_WAITING_BYTES", 3 * sizes.pop())
    with limited(tmp_path / "2", made) as pair:
        assert sent(pair, pair.reports([1, 1]))[0] == 200
        refused(sent(pair, pair.reports([1])), 503)  # a report is taken to have a few bytes more
    monkeypatch.setattr(upload_limits, "_WAITING_BYTES", 1)
    with limited(tmp_path / "3", made) as pair:
        assert sent(pair, pair.reports([1]))[0] == 200


def test_a_task_has_so_many_reports(tmp_path: Path) -> None:
    with limited(tmp_path, reports=3) as pair:
        first, second, third, fourth = pair.reports([1, 1, 1, 1])
        assert sent(pair, [first, second, first])[::2] == (200, b"")
        pair.run()
        pair.close()
        pair.open()  # how many there were is known again
        status, _, answer = sent(pair, [third, fourth, second])
        statuses = [(one.report_id, one.error) for one in decoded_statuses(answer)]
        assert (status, statuses) == (200, [(fourth.metadata.report_id, ReportError.REPORT_DROPPED)])
        assert stored(pair) == 3


@pytest.mark.parametrize("name", ["reports", "waiting", "address"])
def test_limits_let_something_in(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be an integer of at least 1"):
        UploadLimits(**{name: 0})
    UploadLimits(**{name: 1})


def test_a_client_is_told_to_come_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with limited(tmp_path, address=1) as pair:

        def ask(peer: HttpPeer, method: str, path: str, *given: Any) -> tuple[int, bytes]:
            role, prefix = (Role.HELPER, "/dap/") if peer.url == pair.task.helper else (Role.LEADER, "/")
            body, media = given or (b"", "")
            status, _, answer = asked(
                pair.fronts[role], method, prefix + path, body or b"", media=media, client="192.0.2.1"
            )
            return status, answer

        monkeypatch.setattr(HttpPeer, "ask", ask)
        with DapUploader(pair.task, lambda: pair.now) as uploader:
            assert uploader.send([1]) == []
            with pytest.raises(SourceError, match="must have room for the request, got status 429"):
                uploader.send([1])
