"""The guards in a real process: what comes over sockets, slowly, at length, or under another name."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator

import pytest

from sfumato.server.console.access.token_store import TokenStore
from tests.server.console.serving import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    folder = tmp_path_factory.mktemp("console")
    # The process's clock stands still at 1e9 seconds; so must that of the token.
    text, _ = TokenStore(folder / "tokens.json", now=lambda: 1e9).create("ada", ["read"], days=1)
    with serving(folder, peers=["10.0.0.1"], body=1000, seconds=0.3, address_at_once=3) as one:
        yield one, text
        assert one.printed() == "", "nothing of a request is printed, whatever it was"


def sent(served: Served, data: bytes) -> bytes:
    """Send bytes and nothing more; return all that comes until the connection ends."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
        return answer


def test_a_browser_signs_in_and_out_over_http(served: tuple[Served, str]) -> None:
    service, text = served
    status, headers, body = service.ask("GET", "/")
    assert status == 200
    assert headers["cache-control"] == "no-store"
    assert "strict-transport-security" not in headers
    cookie = headers["set-cookie"].partition(";")[0]
    form = f"token={text}&csrf_token={json.loads(body)['csrf']}"
    sending = {
        "cookie": cookie,
        "origin": service.origin,
        "content-type": "application/x-www-form-urlencoded",
    }
    status, headers, _ = service.ask("POST", "/sign-in", form, sending)
    assert status == 200
    session = headers["set-cookie"].partition(";")[0]
    assert session != cookie
    found = json.loads(service.ask("GET", "/", headers={"cookie": session})[2])
    assert (found["name"], found["roles"]) == ("ada", ["analyst"])
    assert service.ask("POST", "/sign-in", form, {**sending, "cookie": session})[0] == 403
    assert service.ask("POST", "/sign-in", form, {**sending, "origin": "http://evil.example"})[0] == 403


def test_names_and_headers_that_lie_are_refused(served: tuple[Served, str]) -> None:
    service, text = served
    assert service.ask("GET", "/", headers={"host": f"evil.example:{service.port}"})[0] == 421
    assert service.ask("GET", "/", headers={"host": f"localhost:{service.port}"})[0] == 200
    assert b" 421 " in sent(service, b"GET / HTTP/1.0\r\n\r\n")
    for spoof in (
        {"x-remote-user": "carl"},
        {"X-Remote-User": "carl", "X-Forwarded-For": "10.0.0.1"},
        {"x-remote-user": "carl", "forwarded": "for=10.0.0.1", "x-real-ip": "10.0.0.1"},
        {"x-remote-user": "carl", "authorization": f"Bearer {text}"},
    ):
        assert service.ask("GET", "/", headers=spoof)[0] == 403
    assert json.loads(service.ask("GET", "/", headers={"x_remote_user": "carl"})[2])["via"] == "public"


def test_a_body_that_is_too_long_is_not_read(served: tuple[Served, str]) -> None:
    service, text = served
    lines = "POST /change HTTP/1.1", f"Host: 127.0.0.1:{service.port}", f"Authorization: Bearer {text}"
    head = "".join(f"{line}\r\n" for line in lines).encode()
    assert sent(service, head + b"Content-Length: 1001\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    chunks = b"Transfer-Encoding: chunked\r\n\r\n" + b"258\r\n" + b"x" * 600 + b"\r\n"
    assert sent(service, head + chunks + b"258\r\n" + b"x" * 600 + b"\r\n").startswith(b"HTTP/1.1 413 ")
    both = b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"
    assert re.match(rb"HTTP/1.1 (200|400) ", sent(service, head + both))
    assert sent(service, head + b"Content-Length: x\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_who_sends_slowly_is_cut_and_holds_up_nobody_else(served: tuple[Served, str]) -> None:
    service, _ = served
    head = f"POST /change HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\n".encode()
    slow = [socket.create_connection(("127.0.0.1", service.port), timeout=30) for _ in range(3)]
    try:
        for connection in slow:
            connection.sendall(head + b"Content-Length: 500\r\n\r\nhalf")
        answers = []
        for connection in slow:
            answer = b""
            while piece := connection.recv(1 << 16):
                answer += piece
            answers.append(answer)
    finally:
        for connection in slow:
            connection.close()
    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)
    assert all(b"connection: close" in answer for answer in answers)
    assert service.ask("GET", "/")[0] == 200, "their places are free again"


def test_nothing_of_a_token_is_answered(served: tuple[Served, str]) -> None:
    service, text = served
    secret = text.rsplit("_", 1)[1]
    wrong = text[:-1] + ("0" if text[-1] != "0" else "1")
    seen = sent(service, f"GET /{text}\r\n\r\n".encode())
    for headers in (
        {"authorization": f"Bearer {text}"},
        {"authorization": f"Bearer {wrong}"},
        {"authorization": text},
        {"authorization": f"Bearer {text}", "cookie": "a=1"},
        {"cookie": f"__Host-sfumato={text}"},
    ):
        _, more, body = service.ask("GET", f"/?{text}", headers=headers)
        seen += str(more).encode() + body
    seen += service.ask("POST", "/sign-in", f"token={wrong}", {"origin": service.origin})[2]
    assert secret[:-1].encode() not in seen
