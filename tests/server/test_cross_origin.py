"""Pages of other origins: those of the list may report and read the collection, and no other page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.server import Shuffler
from sfumato.server.cross_origin import CrossOrigin, checked_origins
from sfumato.server.group_commit import GroupCommit
from sfumato.server.limits import Limits
from sfumato.server.web import Front
from tests.server.setting import SHUFFLER, collection, envelope, memory_folder

MADE = collection(3)
PAGE, OTHER = b"https://survey.example", b"https://survey.example.evil"
ASKS = ((b"access-control-request-method", b"POST"), (b"access-control-request-headers", b"content-type"))


def answers(
    requests: Sequence[tuple[str, str, Any]], origins: Sequence[str]
) -> list[tuple[int, dict[bytes, bytes]]]:
    """Make requests to a service, each of a method, a path and headers; status and headers of each answer."""

    async def run(app: Any) -> list[tuple[int, dict[bytes, bytes]]]:
        found = []
        for number, (method, path, headers) in enumerate(requests):
            sent: list[Any] = []

            async def receive(body: bytes = envelope(MADE, number)) -> Any:
                return {"type": "http.request", "body": body}

            async def send(message: Any, sent: list[Any] = sent) -> None:
                sent.append(message)

            await app({"type": "http", "method": method, "path": path, "headers": headers}, receive, send)
            assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
            found.append((sent[0]["status"], dict(sent[0]["headers"])))
        return found

    with memory_folder() as folder, Shuffler(MADE.device, SHUFFLER, folder) as shuffler:
        taker = GroupCommit(shuffler, Limits(), print)
        try:
            front = Front(shuffler, taker, Limits(), MADE.specification(), print)
            return asyncio.run(run(CrossOrigin(front, checked_origins(origins))))
        finally:
            taker.stop()


def allowed(headers: dict[bytes, bytes]) -> bytes | None:
    return headers.get(b"access-control-allow-origin")


def test_pages_of_the_list_may_report_and_no_other() -> None:
    requests = [
        ("POST", "/v1/reports", [(b"Origin", PAGE)]),
        ("GET", "/v1/collection", [(b"origin", PAGE)]),
        ("POST", "/v1/reports", [(b"origin", OTHER)]),
        ("POST", "/v1/reports", [(b"origin", b"null")]),
        ("POST", "/v1/reports", []),
    ]
    found = answers(requests, ["https://survey.example"])
    assert [status for status, _ in found] == [200] * 5
    assert [allowed(headers) for _, headers in found] == [PAGE, PAGE, None, None, None]
    assert all(headers[b"vary"] == b"origin" for _, headers in found)
    assert not any(b"access-control-allow-credentials" in headers for _, headers in found)


def test_a_browser_that_asks_first_gets_its_answer() -> None:
    requests = [
        ("OPTIONS", "/v1/reports", [(b"origin", PAGE), *ASKS]),
        ("OPTIONS", "/v1/collection", [(b"origin", PAGE), *ASKS]),
        ("OPTIONS", "/v1/reports", [(b"origin", OTHER), *ASKS]),
        ("OPTIONS", "/v1/reports", [(b"origin", PAGE)]),
    ]
    found = answers(requests, ["https://survey.example"])
    assert [status for status, _ in found] == [204, 204, 405, 405]
    assert [headers.get(b"access-control-allow-methods") for _, headers in found] == [
        b"POST",
        b"GET",
        None,
        None,
    ]
    assert allowed(found[0][1]) == PAGE
    assert found[0][1][b"access-control-allow-headers"] == b"content-type"
    assert allowed(found[2][1]) is None


def test_batches_health_and_metrics_are_for_no_page() -> None:
    paths = ["/v1/batches/1", "/healthz", "/metrics", "/other"]
    asked = [(method, path, [(b"origin", PAGE), *ASKS]) for path in paths for method in ("GET", "OPTIONS")]
    found = answers(asked, ["https://survey.example"])
    assert {allowed(headers) for _, headers in found} == {None}
    assert 204 not in {status for status, _ in found}


def test_the_paths_of_one_collection_of_many_are_allowed_alike() -> None:
    names = (
        "/week-7/v1/reports",
        "/week-7/v1/keys",
        "/v1/collections",
        "/week-7/v1/batches/1",
        "/v1/reports/x",
    )
    found = answers([("OPTIONS", path, [(b"origin", PAGE), *ASKS]) for path in names], [PAGE.decode()])
    assert [status for status, _ in found[:3]] == [204] * 3
    methods = [headers[b"access-control-allow-methods"] for _, headers in found[:3]]
    assert methods == [b"POST", b"GET", b"GET"]
    assert [allowed(headers) for _, headers in found] == [PAGE] * 3 + [None] * 2


def test_without_a_list_nothing_is_added() -> None:
    asked = [
        ("POST", "/v1/reports", [(b"origin", PAGE)]),
        ("OPTIONS", "/v1/reports", [(b"origin", PAGE), *ASKS]),
    ]
    found = answers(asked, [])
    assert [status for status, _ in found] == [200, 405]
    assert all({b"vary", b"access-control-allow-origin"}.isdisjoint(headers) for _, headers in found)


def test_only_origins_are_origins() -> None:
    wanted = ("https://a.example", "http://[::1]:81", "http://b.example")
    assert checked_origins(["HTTPS://A.example:443", "http://[::1]:81", "http://b.example:80"]) == wanted
    wrong: list[Any] = [
        "*", "null", "", "a.example", "https://", "https://a.example/", "https://a.example?x", "ftp://a.example",
        "https://me@a.example", "https://a.example:", "https://a.example:x", "https://a.example:0",
        "https://a.example#x", "https://ä.example", " https://a.example", "https://a.example\r\nx: y", 7,
        "https://[::1", None,
    ]  # fmt: skip
    for one in wrong:
        with pytest.raises(ParameterError, match="origins must be origins of pages"):
            checked_origins([one])
    with pytest.raises(ParameterError, match="origins must be a list"):
        checked_origins("https://a.example")
