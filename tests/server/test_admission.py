"""Connections beyond the limits: they alone are refused, and who was admitted is served."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.server.admission import Admission, allow_files, origin
from sfumato.server.limits import Limits
from tests.server.setting import Process, collection, envelope, running

MADE = collection(50)
STATUS = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"


def connect(process: Process, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", process.port), timeout=60, source_address=(address, 0))


def answer(raw: socket.socket, request: bytes = STATUS) -> tuple[int, bytes]:
    """What a connection that stays open is answered; status 0 if it was cut."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        raw.sendall(request)
    file = raw.makefile("rb")
    try:
        line = file.readline()
        if not line:
            return 0, b""
        headers = dict(header.split(b": ") for header in iter(file.readline, b"\r\n"))
        return int(line.split()[1]), file.read(int(headers[b"content-length"].strip()))
    except ConnectionResetError:
        return 0, b""


def test_at_the_limit_the_next_one_is_refused_and_those_before_are_served(tmp_path: Path) -> None:
    with running(MADE, tmp_path, connections=4, seconds=600, head_seconds=600) as process:
        held = [connect(process) for _ in range(4)]
        assert [answer(raw)[0] for raw in held] == [200] * 4
        for _ in range(3):
            with connect(process) as late:
                assert answer(late) == (503, b'{"error": "too many at a time; try again"}')
        assert [answer(raw)[0] for raw in held] == [200] * 4  # with all places taken, and after refusals
        held[0].sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while held[0].recv(1000):
            pass
        with connect(process) as next_one:
            assert answer(next_one)[0] == 200
        for raw in held:
            raw.close()


def test_one_address_does_not_take_the_places_of_others(tmp_path: Path) -> None:
    with running(MADE, tmp_path, per_address=3, seconds=600, head_seconds=600) as process:
        held = [connect(process) for _ in range(3)]
        assert [answer(raw)[0] for raw in held] == [200] * 3
        with connect(process) as same, connect(process, "127.0.0.2") as other:
            assert answer(same)[0] == 503
            assert answer(other)[0] == 200
        assert [answer(raw)[0] for raw in held] == [200] * 3
        for raw in held:
            raw.close()


def test_a_head_that_does_not_come_is_cut_long_before_a_body(tmp_path: Path) -> None:
    head = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % MADE.device.envelope_width
    with running(MADE, tmp_path, seconds=600, head_seconds=0.5) as process:
        body = connect(process)
        body.sendall(head)
        for beginning in (b"", b"POST /v1/rep", head[:-2]):
            with connect(process) as raw, contextlib.suppress(ConnectionResetError):
                raw.sendall(beginning)
                assert raw.recv(100) == b""  # at most half a second later
        # Three times as long as a head may take, a body still may come.
        status, said = answer(body, envelope(MADE, 1))
        assert (status, json.loads(said)) == (200, {"taken": 1, "refused": 0})
        body.close()


def test_more_clients_at_a_time_than_were_served_once(tmp_path: Path) -> None:
    with running(MADE, tmp_path) as process:
        held = [connect(process, f"127.0.0.{2 + number % 6}") for number in range(600)]
        head = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
        for number, raw in enumerate(held):
            body = envelope(MADE, number)
            raw.sendall(head % len(body) + body)
        assert {answer(raw, b"")[0] for raw in held} == {200}
        for raw in held:
            raw.close()


def test_places_are_counted_and_addresses_forgotten() -> None:
    admission = Admission(connections=5, per_address=2)
    assert [admission.enter("a") for _ in range(3)] == [None, None, "address"]
    assert [admission.enter("b"), admission.enter("c"), admission.enter("d")] == [None] * 3
    assert admission.enter("e") == "connections"
    assert admission.admitted == 5
    for address in "aabcd":
        admission.leave(address)
    assert admission.admitted == 0
    assert not admission._of
    proxied = Admission(connections=1000, per_address=None)
    assert {proxied.enter("a") for _ in range(1000)} == {None}
    assert proxied.enter("a") == "connections"
    proxied.leave("a")
    assert not proxied._of
    assert not proxied.crowded
    proxied.refusing = 448
    assert proxied.crowded


def test_a_network_of_ipv6_is_one_sender() -> None:
    assert origin("2001:db8:1:2:3::4") == origin("2001:db8:1:2::") == "2001:db8:1:2::/64"
    assert origin("2001:db8:1:3::") != origin("2001:db8:1:2::")
    assert origin("fe80::1%eth0") == "fe80::/64"
    assert origin("::ffff:192.0.2.7") == origin("192.0.2.7") == "192.0.2.7"
    assert origin("") == origin("no address") == ""


def test_files_are_allowed_as_far_as_the_system_allows_them() -> None:
    script = (
        "import resource; from sfumato.server.admission import allow_files; "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (700, 2048)); "
        "print(allow_files(100), resource.getrlimit(resource.RLIMIT_NOFILE), "
        "allow_files(1000), resource.getrlimit(resource.RLIMIT_NOFILE), "
        "allow_files(5000), resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[0] == "100 (700, 2048) 1000 (1512, 2048) 1536 (2048, 2048)"
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert allow_files(1) == 1
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_bad_limits_are_refused() -> None:
    for name in ("per_address", "connections", "unfinished", "head_seconds"):
        with pytest.raises(ParameterError, match=name):
            Limits(**{name: 0})
    assert Limits(per_address=None).connections == 16_384
