"""Numbers for the operator: well-formed, right, apart from what the public sees, and there after a kill."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.server import Listening, Visitor, serve
from sfumato.server.monitoring.operator_log import OperatorLog
from tests.server.setting import SHUFFLER, Process, collection, envelope, running

MADE = collection(5)
WIDTH = MADE.device.envelope_width
METRICS = {"metrics": ["127.0.0.1", 0]}
SAMPLE = re.compile(r'(sfumato_[a-z_]+)(?:\{reason="([a-z]+)"\})? (\d+(?:\.\d+)?)')
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "summary": ("_count", "_sum")}


def ask(port: int, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body=body)
        response = connection.getresponse()
        return response.status, response.getheader("content-type", ""), response.read()
    finally:
        connection.close()


def operator_port(process: Process) -> int:
    """The port that the second line states."""
    assert process.popen.stdout is not None
    line = process.popen.stdout.readline()
    assert re.fullmatch(r"metrics at http://127\.0\.0\.1:\d+/metrics\n", line)
    return int(line.rpartition(":")[2].partition("/")[0])


def numbers(port: int) -> dict[str, float]:
    """All samples, after a check that the page is OpenMetrics: each family whole, with its type first."""
    status, kind, page = ask(port, "/metrics")
    assert (status, kind) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    *lines, last = page.decode().removesuffix("\n").split("\n")
    assert last == "# EOF"
    found: dict[str, float] = {}
    families: dict[str, str] = {}
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, name, family = line.split(" ")
            assert name not in families
            families[name] = family
        elif line.startswith("# "):
            assert line.split(" ")[1] in {"UNIT", "HELP"}
            assert line.split(" ")[2] == list(families)[-1]
            if line.startswith("# UNIT"):
                assert line.split(" ")[2].endswith(line.split(" ")[3])
        else:
            matched = SAMPLE.fullmatch(line)
            assert matched is not None, line
            name = list(families)[-1]
            assert matched[1] in {name + suffix for suffix in SUFFIXES[families[name]]}
            at = matched[1].removeprefix("sfumato_") + (f" {matched[2]}" if matched[2] else "")
            assert at not in found
            found[at] = float(matched[3])
    return found


def send(process: Process, *envelopes: bytes) -> int:
    return ask(process.port, "/v1/reports", "POST", b"".join(envelopes))[0]


def test_numbers_are_right_and_survive_a_kill(tmp_path: Path) -> None:
    with running(MADE, tmp_path, options=METRICS, body=WIDTH * 8) as process:
        port = operator_port(process)
        assert set(numbers(port).values()) == {0.0}
        assert send(process, *(envelope(MADE, client) for client in range(7))) == 200
        assert send(process, envelope(MADE, 3)) == 200  # again: one client, counted once
        assert send(process, os.urandom(WIDTH), envelope(MADE, 7)) == 422
        assert send(process, b"short") == 422
        assert send(process, bytes(WIDTH * 9)) == 413
        before = numbers(port)
        assert before.pop("store_seconds_sum") > 0
        expected = dict.fromkeys(before, 0.0) | {
            "reports_taken_total": 8,
            "reports_waiting": 3,
            "batches_total": 1,
            "envelopes_refused_total seal": 1,
            "envelopes_refused_total shape": 1,
            "requests_refused_total large": 1,
            "store_seconds_count": 4,
        }
        assert before == expected
        process.popen.kill()
        process.popen.wait(60)
    with running(MADE, tmp_path, options=METRICS) as process:
        port = operator_port(process)
        after = numbers(port)
        assert after.pop("store_seconds_sum") > 0
        assert after == before
        assert send(process, os.urandom(WIDTH), *(envelope(MADE, client) for client in range(10))) == 422
        grown = numbers(port)
        assert (grown["reports_taken_total"], grown["envelopes_refused_total seal"]) == (10, 2)
        assert (grown["reports_waiting"], grown["batches_total"]) == (0, 2)


def test_connections_beyond_a_limit_are_counted_by_it(tmp_path: Path) -> None:
    with running(MADE, tmp_path, options=METRICS, rate=0.01, per_address=2, head_seconds=0.5) as process:
        port = operator_port(process)
        assert [send(process, envelope(MADE, client)) for client in range(3)] == [200, 429, 429]
        held = [socket.create_connection(("127.0.0.1", process.port), timeout=60) for _ in range(3)]
        assert [raw.recv(9)[:9] for raw in held[2:]] == [b"HTTP/1.1 "]
        for raw in held[:2]:
            assert raw.recv(9) == b""  # cut, as no request came
        for raw in held:
            raw.close()
        with Visitor(f"http://127.0.0.1:{process.port}", attempts=20) as visitor:
            assert visitor.status()["batches"] == 0
        found = numbers(port)
        assert found["requests_refused_total rate"] == 2
        assert found["connections_refused_total late"] == 2
        assert found["connections_refused_total address"] >= 1
        assert found["connections_refused_total connections"] == 0


def test_the_operator_is_answered_while_all_places_are_taken(tmp_path: Path) -> None:
    with running(MADE, tmp_path, options=METRICS, connections=2, seconds=600, head_seconds=600) as process:
        port = operator_port(process)
        held = [socket.create_connection(("127.0.0.1", process.port), timeout=60) for _ in range(2)]
        for raw in held:
            raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert raw.recv(12) == b"HTTP/1.1 200"
        assert ask(process.port, "/healthz")[0] == 503
        assert [numbers(port)["connections_refused_total connections"] for _ in range(5)] == [1] * 5
        assert ask(process.port, "/healthz")[0] == 503  # none of the operator's freed a place
        for raw in held:
            raw.close()


def test_the_public_sees_its_health_and_no_numbers(tmp_path: Path) -> None:
    with running(MADE, tmp_path, options=METRICS) as process:
        port = operator_port(process)
        for at in (process.port, port):
            assert ask(at, "/healthz")[::2] == (200, b'{"status": "ok"}')
            assert ask(at, "/healthz", "POST")[0] == 405
        assert ask(process.port, "/metrics")[0] == 404
        for path in ("/v1/status", "/v1/collection", "/v1/batches/1", "/v1/reports"):
            assert ask(port, path)[0] == 404
    with running(MADE, tmp_path) as process:
        assert ask(process.port, "/metrics")[0] == 404


def test_lines_of_the_log_have_their_time(tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    with running(MADE, tmp_path, options={"structured_log": True, **METRICS}) as process:
        assert process.popen.stdout is not None
        after_first = process.popen.stdout.readline()
        assert send(process, os.urandom(WIDTH)) == 422
        out, err = process.stop()
    assert err == ""
    first, last = map(json.loads, out.splitlines())
    second = json.loads(after_first)
    times = [datetime.fromisoformat(line.pop("time")) for line in (first, second, last)]
    assert before <= times[0] <= times[1] <= times[2] <= datetime.now(UTC)
    name = MADE.device.id.hex()
    assert first == {
        "level": "info",
        "event": "started",
        "message": f"collection {name} at {process.url}",
        "collection": name,
        "url": process.url,
    }
    assert second["event"] == "metrics"
    assert last["event"] == "stopped"
    assert (last["batches"], last["refused"]) == (0, {"shape": 0, "seal": 1})


def test_failures_have_a_level() -> None:
    said: list[str] = []
    OperatorLog(said.append, structured=True, now=lambda: 1.5).failure("store-failed")("the disk is full")
    line = json.loads(said[0])
    assert line == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "error",
        "event": "store-failed",
        "message": "the disk is full",
    }
    OperatorLog(said.append).failure("store-failed")("the disk is full")
    assert said[1] == "the disk is full"


def test_the_operators_port_is_another_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    where = Listening(host="127.0.0.2", port=port, metrics=("127.0.0.1", port))
    with pytest.raises(ParameterError, match="metrics must have a port of its own"):
        serve(MADE.device, SHUFFLER, tmp_path, listening=where)
    (tmp_path / "counters").write_bytes(b"junk")
    with pytest.raises(ParameterError, match="'counters' must hold a collector's counters"):
        serve(MADE.device, SHUFFLER, tmp_path)
