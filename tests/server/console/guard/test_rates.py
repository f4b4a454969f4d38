"""How much one sender gets, of an address and of a member, and what a body may be."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.server.asgi import answer_json
from sfumato.server.console.guard.bodies import BodyGuard, body_of
from sfumato.server.console.guard.rates import RateGuard, address_of
from sfumato.server.console.guard.request_limits import RequestLimits
from sfumato.server.console.rate_limiter import RateLimiter
from tests.server.console.setting import Clock, ask, asked, console


async def echo(scope: Any, receive: Any, send: Any) -> None:
    message = await receive()
    assert message == {"type": "http.request", "body": body_of(scope), "more_body": False}
    await answer_json(send, 200, {"bytes": len(message["body"])})


def test_an_address_gets_its_rate_and_others_theirs() -> None:
    clock = Clock(0.0)
    limiter = RateLimiter(2.0, burst=3, now=clock)
    app = RateGuard(echo_nothing, key=address_of, limiter=limiter, at_once=9)
    one, near, far = ("2001:db8::1", 1), ("2001:db8::2", 2), ("192.0.2.1", 3)
    assert [ask(app, "GET", "/", client=one).status for _ in range(3)] == [200] * 3
    refused = ask(app, "GET", "/", client=near)
    assert (refused.status, refused.all(b"retry-after")) == (429, [b"1"])
    assert ask(app, "GET", "/", client=far).status == 200
    clock.now = 0.5
    assert [ask(app, "GET", "/", client=one).status for _ in range(2)] == [200, 429]


async def echo_nothing(scope: Any, receive: Any, send: Any) -> None:
    await answer_json(send, 200, {})


def test_only_so_many_at_once_and_a_place_is_free_again_whatever_happened() -> None:
    async def run() -> None:
        gate = asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            await gate.wait()
            if scope["path"] == "/fails":
                raise OSError
            await answer_json(send, 200, {})

        limiter = RateLimiter(1000.0, burst=1000)
        app = RateGuard(slow, key=address_of, limiter=limiter, at_once=2)

        def request(path: str = "/", client: str = "192.0.2.1") -> Any:
            scope = {"type": "http", "method": "GET", "path": path, "headers": [], "client": (client, 1)}
            return asyncio.create_task(asked(app, scope, [b""]))

        first, second = request(), request("/fails")
        await asyncio.sleep(0)
        assert (await request()).status == 429
        other = request(client="192.0.2.2")
        await asyncio.sleep(0)
        gate.set()
        assert [(await first).status, (await other).status] == [200, 200]
        with pytest.raises(OSError):  # noqa: PT011
            await second
        assert [(await request()).status for _ in range(3)] == [200] * 3
        assert not app._open

    asyncio.run(run())


def test_a_member_is_counted_from_whatever_address(tmp_path: Path) -> None:
    with console(tmp_path, limits=RequestLimits(member_rate=1e-6, member_burst=2)) as made:
        text, _ = made.tokens.create("ada", ["read"], days=1)
        headers = [(b"authorization", f"Bearer {text}".encode())]
        found = [ask(made.app, "GET", "/", headers, client=(f"192.0.2.{n}", 1)).status for n in range(3)]
        assert found == [200, 200, 429]
        assert [ask(made.app, "GET", "/plain").status for _ in range(9)] == [200] * 9


def guard(seconds: float = 30.0, unfinished: int = 1 << 20) -> BodyGuard:
    return BodyGuard(echo, size=100_000, seconds=seconds, unfinished=unfinished)


def test_a_body_is_taken_up_to_its_limit_however_it_comes() -> None:
    exact = [b"x" * 60_000, b"", b"x" * 40_000]
    assert ask(guard(), "POST", "/", body=exact).json == {"bytes": 100_000}
    assert ask(guard(), "POST", "/", body=[*exact, b"x"]).status == 413
    assert ask(guard(), "GET", "/").json == {"bytes": 0}
    for length, status in ((b"100000", 200), (b"100001", 413), (b"9" * 5000, 413), (b"-1", 400), (b"x", 400)):
        assert ask(guard(), "POST", "/", [(b"content-length", length)]).status == status
    twice = [(b"content-length", b"1"), (b"content-length", b"2")]
    assert ask(guard(), "POST", "/", twice).status == 400


def test_a_body_that_stops_is_cut_and_one_that_is_left_is_nobodys() -> None:
    async def run() -> None:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def stalls() -> Any:
            await asyncio.Event().wait()

        async def gone() -> Any:
            return {"type": "http.disconnect"}

        def scope() -> Any:
            return {"type": "http", "method": "POST", "path": "/", "headers": []}

        await guard(seconds=0.01)(scope(), stalls, send)
        assert sent[0]["status"] == 408
        sent.clear()
        await guard()(scope(), gone, send)
        assert sent == []

    asyncio.run(run())


def test_bodies_that_are_on_their_way_share_what_there_is() -> None:
    async def run() -> None:
        app = guard(unfinished=50_000)
        begun, gate = asyncio.Event(), asyncio.Event()
        scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        sent: list[Any] = []

        async def slow() -> Any:
            if begun.is_set():
                await gate.wait()
                return {"type": "http.request", "body": b"", "more_body": False}
            begun.set()
            return {"type": "http.request", "body": b"x" * 60_000, "more_body": True}

        async def send(message: Any) -> None:
            sent.append(message)

        first = asyncio.create_task(app({**scope}, slow, send))
        await begun.wait()
        assert (await asked(app, {**scope}, [b"x" * 90_000])).status == 503
        assert (await asked(app, {**scope}, [b"x" * 16_384])).status == 200, "a small one always has room"
        gate.set()
        await first
        assert sent[0]["status"] == 200
        assert (await asked(app, {**scope}, [b"x" * 90_000])).status == 200

    asyncio.run(run())
    tight = guard(unfinished=1)
    assert ask(tight, "POST", "/", body=b"x" * 90_000).status == 200, "one is always allowed"
    assert tight._room._reserved == 0


def test_limits_that_are_none_are_refused() -> None:
    for wrong in (
        {"body": 0},
        {"member_at_once": 0},
        {"seconds": 0.0},
        {"address_rate": 0.0},
        {"unfinished": -1},
    ):
        with pytest.raises(ParameterError, match="must be"):
            RequestLimits(**wrong)
    assert RequestLimits(address_rate=None).address_rate is None
