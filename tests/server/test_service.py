"""The real process on loopback: what it answers, refuses and endures, and what it never tells."""

from __future__ import annotations

import contextlib
import datetime as dt
import http.client
import http.server
import ipaddress
import json
import os
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from sfumato.errors import ParameterError, SourceError
from sfumato.local.shuffle import SecretKey
from sfumato.server import Listening, Visitor, serve
from tests.cases import cases
from tests.server.setting import (
    ANALYST,
    SHUFFLER,
    Process,
    collection,
    envelope,
    memory_folder,
    running,
    values_in,
)

MADE = collection(50)
WIDTH = MADE.device.envelope_width


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with running(MADE, tmp_path_factory.mktemp("service"), seconds=2) as process:
        yield process


def ask(
    process: Process, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        told = {key.lower(): value for key, value in response.getheaders() if key.lower() != "date"}
        return response.status, told, response.read()
    finally:
        connection.close()


def waits(process: Process) -> socket.socket:
    return socket.create_connection(("127.0.0.1", process.port), timeout=60)


def test_a_second_time_is_answered_as_the_first(service: Process) -> None:
    one = envelope(MADE, 1)
    first = ask(service, "POST", "/v1/reports", one)
    assert first[0] == 200
    assert json.loads(first[2]) == {"taken": 1, "refused": 0}
    assert ask(service, "POST", "/v1/reports", one) == first
    assert ask(service, "POST", "/v1/reports", envelope(MADE, 2)) == first


def test_what_is_public_is_told_and_no_more(service: Process) -> None:
    before = ask(service, "GET", "/v1/status")
    ask(service, "POST", "/v1/reports", envelope(MADE, 3))
    assert ask(service, "GET", "/v1/status") == before
    status = json.loads(before[2])
    assert status.keys() == {"collection", "batch_size", "batches"}
    assert status["collection"] == MADE.device.id.hex()
    with Visitor(service.url) as visitor:
        assert visitor.collection() == json.loads(json.dumps(MADE.specification()))


@cases(
    ("body", "refused", "taken"),
    [
        (b"", 1, 0),
        (b"x", 1, 0),
        (bytes(WIDTH), 1, 0),
        (os.urandom(3 * WIDTH), 3, 0),
        (os.urandom(3 * WIDTH + 1), 1, 0),
        (envelope(collection(50, name="other"), 1), 1, 0),
        (envelope(MADE, 4) + bytes(WIDTH), 1, 1),
    ],
    ids=["nothing", "short", "zeros", "noise", "no whole number", "foreign", "half good"],
)
def test_hostile_bodies(service: Process, body: bytes, refused: int, taken: int) -> None:
    status, _, answer = ask(service, "POST", "/v1/reports", body)
    assert (status, json.loads(answer)) == (422, {"taken": taken, "refused": refused})


@cases(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/reports", 405),
        ("POST", "/v1/status", 405),
        ("DELETE", "/v1/batches/1", 405),
        ("GET", "/v1/batches/../waiting.db", 401),
        ("GET", "/../../etc/passwd", 404),
    ],
)
def test_hostile_paths(service: Process, method: str, path: str, status: int) -> None:
    assert ask(service, method, path)[0] == status


def send_all(raw: socket.socket, pieces: list[bytes]) -> None:
    for piece in pieces:
        raw.sendall(piece)


def test_large_bodies_are_not_read(service: Process) -> None:
    with waits(service) as raw:  # the length is enough to say so
        raw.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n")
        answer = b"".join(iter(lambda: raw.recv(1000), b""))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"at most 1048576 bytes" in answer
    with waits(service) as raw:  # chunks without end, and no length told
        raw.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            send_all(raw, [chunk] * 1000)


def test_no_http_at_all(service: Process) -> None:
    for junk in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"\x00" * 5000, b"A" * 200_000):
        with waits(service) as raw:
            try:
                raw.sendall(junk + b"\r\n\r\n")
                assert raw.recv(100).startswith(b"HTTP/1.1 400")
            except OSError:
                pass  # cut off: as good
    assert ask(service, "GET", "/v1/status")[0] == 200


def test_slow_clients_are_cut(service: Process) -> None:
    beginnings = [
        b"",
        b"POST /v1/rep",
        b"POST /v1/reports HTTP/1.1\r\nHost: x\r\n",
        b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
    ]
    sockets = []
    for beginning in beginnings:
        sockets.append(waits(service))
        sockets[-1].sendall(beginning)
    assert ask(service, "GET", "/v1/status")[0] == 200
    for raw in sockets:
        with raw, contextlib.suppress(ConnectionResetError):
            assert raw.recv(100) == b""


def test_many_at_a_time(service: Process) -> None:
    batches = json.loads(ask(service, "GET", "/v1/status")[2])["batches"]
    answers: Counter[str] = Counter()

    def send(place: int) -> None:
        with Visitor(service.url, attempts=10) as visitor:
            for start in range(100 + 25 * place, 125 + 25 * place, 5):
                answers.update(visitor.send([envelope(MADE, client) for client in range(start, start + 5)]))

    threads = [threading.Thread(target=send, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == Counter(taken=200, refused=0)
    with Visitor(service.url) as visitor:
        after = visitor.status()["batches"]
        assert after - batches in (4, 5)  # who waited before is in them
        found = sum(
            (values_in(MADE, visitor.batch(number, ANALYST)) for number in range(1, after + 1)), Counter()
        )
    assert set(found.values()) == {1}
    assert set(found) <= {1, 2, 3, 4} | set(range(100, 300)) | set(range(1000, 1050))


def test_batches_are_the_analysts(service: Process) -> None:
    with Visitor(service.url) as visitor:
        visitor.send([envelope(MADE, client) for client in range(1000, 1050)])
        opening = MADE.opening(ANALYST)
        assert opening.add(visitor.batch(1, ANALYST)) == 50
        latest = visitor.status()["batches"]
        with pytest.raises(SourceError, match="status 404"):
            visitor.batch(latest + 1, ANALYST)
        for key in (SHUFFLER, SecretKey.generate("analyst")):
            with pytest.raises(SourceError, match="status 401"):
                visitor.batch(1, key)
    right = {"authorization": "Bearer " + ANALYST.word.decode()}
    for number in ("0", "-1", "1e0", "01x", "", "9" * 4000, "%31", "²"):
        path = f"/v1/batches/{number}".encode().decode("latin-1")
        assert ask(service, "GET", path.replace("²", "%C2%B2").replace("Â", ""), headers=right)[0] in (
            404,
            200,
        )
    for header in ("", "Bearer", "Basic " + ANALYST.word.decode(), "Bearer " + ANALYST.public.token.hex()):
        assert ask(service, "GET", "/v1/batches/1", headers={"authorization": header})[0] == 401


def test_nothing_is_told_of_anybody(tmp_path: Path) -> None:
    with running(MADE, tmp_path) as process:
        with waits(process) as raw:
            port = raw.getsockname()[1]
            raw.sendall(b"nonsense\r\n\r\n")
            raw.recv(1000)
        ask(process, "POST", "/v1/reports", envelope(MADE, 1), headers={"user-agent": "secret-agent"})
        ask(process, "POST", "/v1/reports", bytes(WIDTH))
        with Visitor(process.url) as visitor:
            visitor.send([envelope(MADE, client) for client in range(100, 150)])
        out, err = process.stop()
    assert err == ""
    assert out.splitlines() == [
        f"collection {MADE.device.id.hex()} at {process.url}",
        "1 batches released; refused envelopes: 0 by shape, 1 by seal",
    ]
    kept = b"".join(path.read_bytes() for path in process.folder.rglob("*") if path.is_file())
    for trace in (b"127.0.0.1", b"agent", str(port).encode() + b" ", ANALYST.word):
        assert trace not in kept
    names = sorted(path.name for path in process.folder.rglob("*"))
    assert names == ["batch-000001.mixed", "batches", "counters", "waiting.db", "waiting.db-journal"]


def test_it_ends_when_it_is_asked_at_once(tmp_path: Path) -> None:
    for warm in (False, True):
        with running(MADE, tmp_path, warm=warm) as process:
            out, err = process.stop()
            assert process.popen.returncode == 0
        assert err == ""
        assert out.splitlines()[1:] == ["0 batches released; refused envelopes: 0 by shape, 0 by seal"]


def test_a_visitor_says_what_is_wrong() -> None:
    without = ("ftp://x", "localhost", "http://", "http://x/a b")
    for url in (
        *without,
        "http://x:port",
        "http://x:99999",
        "http://x:0",
        "http://[x",
        "http://x?y",
        "http://a@x",
    ):
        with pytest.raises(ParameterError, match="url must be"):
            Visitor(url)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with pytest.raises(SourceError, match="is the service running"):
        Visitor(f"http://127.0.0.1:{port}", attempts=2).status()
    with pytest.raises(SourceError, match=r"must answer, got Unicode\w*Error"):
        Visitor("http://a..b", attempts=1).status()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"port": 70_000}, "port must be at most 65535, got 70000"),  # which the system takes for 4464
        ({"port": -1}, "port must be"),
        ({"host": "a..b"}, "host and port must be free on this machine"),
        ({"certificate": ("none.pem", "none.key")}, "certificate must be a PEM file that matches its key"),
        ({"certificate": ("junk.pem", "junk.pem")}, "certificate must be a PEM file that matches its key"),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    (tmp_path / "junk.pem").write_text("no certificate at all")
    if "certificate" in changes:
        changes = {"certificate": tuple(tmp_path / name for name in changes["certificate"])}
    with pytest.raises(ParameterError, match=told):
        serve(MADE.device, SHUFFLER, tmp_path, listening=Listening(say=pytest.fail, **changes))


@cases(
    "answer",
    [b"hello", b"[1]", b"[" * 100_000, b'{"taken": 1}', b'{"taken": "1", "refused": 0, "batches": true}'],
)
def test_a_visitor_of_something_else(answer: bytes) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=other.serve_forever, args=(0.01,))
        thread.start()
        try:
            with Visitor(f"http://127.0.0.1:{other.server_port}") as visitor:
                with pytest.raises(SourceError, match="must be a shuffler's service"):
                    visitor.status()
                with pytest.raises(SourceError, match="must be a shuffler's service"):
                    visitor.send([b"envelope"])
        finally:
            other.shutdown()
            thread.join()


def certified(folder: Path) -> tuple[Path, Path]:
    """Write a certificate of 127.0.0.1 that its own key signed, and that key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shuffler")])
    now = dt.datetime.now(dt.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(1)).not_valid_after(now + dt.timedelta(1))
    made = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    paths = folder / "certificate.pem", folder / "certificate.key"
    paths[0].write_bytes(made.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


def test_it_speaks_tls(tmp_path: Path) -> None:
    paths = certified(tmp_path)
    with running(MADE, tmp_path, tls=paths) as process:
        assert process.url.startswith("https://127.0.0.1:")
        with Visitor(process.url, context=ssl.create_default_context(cafile=paths[0])) as visitor:
            assert visitor.send([envelope(MADE, 1)]) == {"taken": 1, "refused": 0}
        with Visitor(process.url, attempts=1) as stranger, pytest.raises(SourceError, match="SSL"):
            stranger.status()


def test_it_takes_no_more_than_it_may(tmp_path: Path) -> None:
    with running(MADE, tmp_path, rate=0.01, connections=4, head_seconds=0.5) as process:
        answers = [ask(process, "POST", "/v1/reports", envelope(MADE, client))[0] for client in range(3)]
        assert answers == [200, 429, 429]
        held = [waits(process) for _ in range(4)]
        with Visitor(process.url, attempts=20) as visitor:  # refused at first, until those are cut
            assert visitor.status()["batches"] == 0
        for raw in held:
            raw.close()


def test_the_service_is_killed_while_many_send() -> None:
    with memory_folder() as folder:
        killed_while_many_send(folder)


def killed_while_many_send(tmp_path: Path) -> None:
    made = collection(7)
    answered: set[int] = set()
    for turn in range(2):
        with running(made, tmp_path) as process:
            stop = threading.Event()

            def send(
                place: int, url: str = process.url, turn: int = turn, stop: threading.Event = stop
            ) -> None:
                with Visitor(url, attempts=1) as visitor:
                    for client in range(1000 * turn + 200 * place, 1000 * turn + 200 * place + 200):
                        try:
                            taken = visitor.send([envelope(made, client)])["taken"]
                        except (SourceError, ValueError):
                            return
                        answered.update([client] * taken)
                        if client % 200 == 40 + 7 * turn:
                            stop.set()

            threads = [threading.Thread(target=send, args=(place,)) for place in range(4)]
            for thread in threads:
                thread.start()
            stop.wait(60)
            process.popen.kill()
            for thread in threads:
                thread.join()
    assert len(answered) > 80
    with running(made, tmp_path) as process, Visitor(process.url) as visitor:
        visitor.send([envelope(made, 16_000 + client) for client in range(7)])  # push out who waits
        batches = visitor.status()["batches"]
        parts = [values_in(made, visitor.batch(number, ANALYST)) for number in range(1, batches + 1)]
    assert {part.total() for part in parts} == {7}
    found = sum(parts, Counter[int]())
    assert max(found.values()) == 1
    assert answered <= set(found)


def test_waits_between_attempts_double_up_to_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen: nobody answers there
        waits: list[float] = []
        monkeypatch.setattr("time.sleep", waits.append)
        with (
            Visitor(f"http://127.0.0.1:{taken.getsockname()[1]}", attempts=7) as visitor,
            pytest.raises(SourceError, match="must answer, got ConnectionRefusedError"),
        ):
            visitor.status()
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 2.0, 2.0])
