"""The HTTP interface without a socket: clients that go away, too many at a time, and a disk that is full."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from sfumato import server
from sfumato.errors import MissingExtra, ParameterError
from sfumato.server import Shuffler
from sfumato.server.group_commit import GroupCommit, NotStored
from sfumato.server.limits import Limits
from sfumato.server.monitoring.counters import Counters
from sfumato.server.periods.collection_window import CollectionWindow
from sfumato.server.shared_limits import Busy
from sfumato.server.web import Front
from tests.server.setting import SHUFFLER, collection, envelope, memory_folder

MADE = collection(3)
Answer = tuple[int, dict[bytes, bytes], Any]


@pytest.fixture
def shuffler() -> Iterator[Shuffler]:
    with memory_folder() as folder, Shuffler(MADE.device, SHUFFLER, folder) as made:
        yield made


@asynccontextmanager
async def front(
    shuffler: Shuffler, said: list[str], **limits: Any
) -> AsyncIterator[tuple[Front, GroupCommit]]:
    counters = Counters()
    taker = GroupCommit(shuffler, Limits(**limits), said.append, counters)
    try:
        app = Front(shuffler, taker, Limits(**limits), MADE.specification(), said.append, counters=counters)
        yield app, taker
    finally:
        taker.stop()


async def post(app: Front, *pieces: bytes, gone: bool = False) -> Answer | None:
    """Send a body in pieces; None if there was no answer."""
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": "http.disconnect"} if gone else {"type": "http.request"})
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"type": "http", "method": "POST", "path": "/v1/reports", "headers": []}, receive, send)
    if not sent:
        return None
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"])


async def health(app: Front) -> tuple[int, Any]:
    """What the service says of itself."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def nothing() -> Any:
        raise AssertionError

    await app({"type": "http", "method": "GET", "path": "/healthz", "headers": []}, nothing, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_body_in_pieces_is_one_body(shuffler: Shuffler) -> None:
    async def run() -> None:
        async with front(shuffler, []) as (app, _):
            body = envelope(MADE, 1) + envelope(MADE, 2)
            answer = await post(app, body[:1], b"", body[1:150], body[150:])
            assert answer is not None
            assert answer[::2] == (200, {"taken": 2, "refused": 0})

    asyncio.run(run())


def test_who_goes_away_in_the_middle_sent_nothing(shuffler: Shuffler) -> None:
    async def run() -> None:
        async with front(shuffler, []) as (app, _):
            assert await post(app, envelope(MADE, 1), gone=True) is None
            for client in (2, 3):
                assert await post(app, envelope(MADE, client)) is not None
            assert shuffler.batches == 0
            await post(app, envelope(MADE, 4))
            assert shuffler.batches == 1

    asyncio.run(run())


def test_more_than_may_wait_is_to_come_again(shuffler: Shuffler) -> None:
    async def run() -> None:
        async with front(shuffler, [], waiting=2) as (app, _):
            answers = await asyncio.gather(*(post(app, envelope(MADE, client)) for client in range(5)))
            statuses = [answer[0] for answer in answers if answer is not None]
            assert statuses == [200, 200, 503, 503, 503]
            assert answers[4] is not None
            assert answers[4][1][b"retry-after"] == b"1"
            # One request may always pass, however much it holds.
            answer = await post(app, *(envelope(MADE, client) for client in range(5)))
            assert answer is not None
            assert answer[::2] == (200, {"taken": 5, "refused": 0})

    asyncio.run(run())


def test_large_requests_share_some_room_and_small_ones_do_not_need_it(shuffler: Shuffler) -> None:
    pieces: dict[str, asyncio.Queue[int]] = {}
    sizes: list[int] = []

    async def send(app: Front, name: str, *sizes_of: int) -> Answer | None:
        """Send pieces, each when it is asked for."""
        pieces[name] = asyncio.Queue[int]()
        for size in sizes_of:
            pieces[name].put_nowait(size)
        sent: list[Any] = []

        async def receive() -> Any:
            size = await pieces[name].get()
            return {"type": "http.request", "body": bytes(size), "more_body": size > 0}

        async def note(message: Any) -> None:
            sent.append(message)

        await app({"type": "http", "method": "POST", "path": "/v1/reports", "headers": []}, receive, note)
        return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"])

    async def run() -> None:
        async with front(shuffler, [], unfinished=1000) as (app, _):
            first = asyncio.create_task(send(app, "first", 1 << 14, 1 << 14))  # alone: as much as it likes
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            second = await send(app, "second", (1 << 14) + 1, 0)
            small = await send(app, "small", 1 << 14, 0)
            pieces["first"].put_nowait(0)
            last = await first
            after = await send(app, "after", (1 << 14) + 1, 0)
            sizes.extend(each[0] for each in (second, small, last, after) if each is not None)
            assert second is not None
            assert (second[1][b"retry-after"], second[1][b"connection"]) == (b"1", b"close")
            assert app._shared.room._reserved == 0

    asyncio.run(run())
    assert sizes == [503, 422, 422, 422]


def test_a_full_disk_is_said_to_both_sides(shuffler: Shuffler) -> None:
    said: list[str] = []
    bodies = [[envelope(MADE, 100 * turn + client) for client in range(100)] for turn in range(20)]

    async def run() -> None:
        async with front(shuffler, said) as (app, _):
            connection = shuffler._store._connection
            connection.execute("PRAGMA max_page_count = 1")
            statuses = []
            for body in bodies:
                answer = await post(app, *body)
                assert answer is not None
                statuses.append(answer[0])
            assert 503 in statuses
            assert await health(app) == (503, {"status": "reports are not stored"})
            failed = app._counters["failed"]
            assert failed == statuses.count(503)
            connection.execute("PRAGMA max_page_count = 1000000")
            for body in bodies:
                answer = await post(app, *body)
                assert answer is not None
                assert answer[::2] == (200, {"taken": 100, "refused": 0})
            assert await health(app) == (200, {"status": "ok"})
            assert app._counters["failed"] == failed
            assert app._counters["stored"] == 40 - failed
            assert app._counters["nanoseconds"] > 0

    asyncio.run(run())
    assert shuffler.batches == 2000 // 3
    assert set(said) == {
        "the store failed (OperationalError: database or disk is full); clients are asked to try again"
    }


def test_a_rate_is_of_all_together(shuffler: Shuffler) -> None:
    async def run() -> None:
        async with front(shuffler, [], rate=0.001) as (_, taker):
            assert await taker.take([envelope(MADE, 1), b"junk"]) == [
                True,
                False,
            ]  # more than a second's worth
            for _ in range(3):
                with pytest.raises(Busy) as refused:
                    await taker.take([envelope(MADE, 1)])
                assert refused.value.status == 429

    asyncio.run(run())


def test_what_may_not_wait_does_not_use_up_the_rate(shuffler: Shuffler) -> None:
    async def run() -> None:
        async with front(shuffler, [], waiting=2, rate=5.0) as (app, _):
            answers = await asyncio.gather(*(post(app, envelope(MADE, client)) for client in range(8)))
            statuses = [answer[0] for answer in answers if answer is not None]
            assert statuses == [200, 200, 503, 503, 503, 503, 503, 503]

    asyncio.run(run())


def test_a_fault_is_told_to_the_operator_alone(shuffler: Shuffler) -> None:
    said: list[str] = []

    async def broken(_: object = None) -> Any:
        raise RuntimeError("secret")

    async def run() -> None:
        async with front(shuffler, said) as (app, _):
            with pytest.raises(RuntimeError):
                await app(
                    {"type": "http", "method": "GET", "path": "/v1/status", "headers": []}, broken, broken
                )

    asyncio.run(run())
    assert said == ["a request failed by a fault of this program or machine (RuntimeError)"]


def test_nobody_listens_to_failures(shuffler: Shuffler) -> None:
    def gone(_: str) -> None:
        raise BrokenPipeError

    async def run() -> None:
        taker = GroupCommit(shuffler, Limits(), gone)
        connection = shuffler._store._connection
        try:
            connection.execute("PRAGMA max_page_count = 1")
            with pytest.raises(NotStored):
                await taker.take([envelope(MADE, client) for client in range(2000)])
            connection.execute("PRAGMA max_page_count = 1000000")
            assert await asyncio.wait_for(taker.take([envelope(MADE, 5000)]), 30) == [True]
        finally:
            taker.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for module in ("serving", "http_process"):
        monkeypatch.delitem(sys.modules, f"sfumato.server.{module}", raising=False)
    monkeypatch.delitem(vars(server), "serve", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install 'sfumato\[server\]'"):
        _ = server.serve


@pytest.mark.parametrize("limits", [{"body": 0}, {"waiting": 1.5}, {"rate": 0.0}, {"seconds": float("inf")}])
def test_limits_have_rules(limits: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(limits))):
        Limits(**limits)


def test_other_traffic_is_left_alone(shuffler: Shuffler) -> None:
    async def run() -> None:
        async with front(shuffler, []) as (app, _):
            sent: list[Any] = []

            async def never() -> Any:
                raise AssertionError

            async def send(message: Any) -> None:
                sent.append(message)

            await app({"type": "websocket"}, never, send)
            assert sent == []

    asyncio.run(run())


def test_what_began_in_time_and_came_late_is_late(shuffler: Shuffler) -> None:
    """The window closes while a body is read: between its first look at the clock and its second."""
    at = datetime(2027, 1, 11, tzinfo=UTC)

    async def run() -> tuple[Answer | None, int]:
        said: list[str] = []
        async with front(shuffler, said) as (app, _):
            seconds = iter((at.timestamp() - 1, at.timestamp()))
            app.window = CollectionWindow(expires=at, now=lambda: next(seconds))
            return await post(app, envelope(MADE, 1)), shuffler.progress[1]

    answer, waiting = asyncio.run(run())
    assert answer is not None
    assert (answer[0], waiting) == (410, 0)
