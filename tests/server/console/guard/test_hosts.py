"""Requests for other names are not answered, whatever their names resolve to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.server.asgi import answer_json
from sfumato.server.console.guard.hosts import HostGuard, own_origins
from tests.server.console.setting import ask, console


async def app(scope: Any, receive: Any, send: Any) -> None:
    await answer_json(send, 200, {})


def status(origins: list[str], *hosts: bytes) -> int:
    guard = HostGuard(app, origins=own_origins(origins))
    return ask(guard, "GET", "/", [(b"Host", host) for host in hosts], host=False).status


def test_its_own_names_alone_are_answered() -> None:
    loopback = ["http://127.0.0.1:8421", "http://localhost:8421", "http://[::1]:8421"]
    for host in (b"127.0.0.1:8421", b"localhost:8421", b"LOCALHOST:8421", b"[::1]:8421"):
        assert status(loopback, host) == 200
    for hosts in (
        (), (b"",), (b"evil.example:8421",), (b"127.0.0.1",), (b"127.0.0.1:80",), (b"127.0.0.1:8421.evil",),
        (b"localhost:8421", b"evil.example"), (b"localhost:8421", b"localhost:8421"), (b"localhost:8421 ",),
        (b"localhost.:8421",), (b"user@localhost:8421",), (b"0.0.0.0:8421",), (b"localhost\xff:8421",),
    ):  # fmt: skip
        assert status(loopback, *hosts) == 421, hosts
    assert status(["https://console.example"], b"console.example:443") == 200
    assert status(["https://console.example"], b"console.example:80") == 421
    assert status(["http://console.example"], b"console.example:80") == 200


def test_nothing_is_read_or_recognised_for_another_name(tmp_path: Path) -> None:
    with console(tmp_path) as made:
        text, _ = made.tokens.create("ada", ["read"], days=1)
        headers = [(b"host", b"evil.example"), (b"authorization", f"Bearer {text}0".encode())]
        assert ask(made.app, "POST", "/change", headers, host=False).status == 421
        assert made.ledger.members.of("ada").failed_logins == 0


def test_a_service_without_a_name_is_refused() -> None:
    with pytest.raises(ParameterError, match="origins must be at least one"):
        own_origins([])
    with pytest.raises(ParameterError, match="origins must be origins of pages"):
        own_origins(["console.example"])
