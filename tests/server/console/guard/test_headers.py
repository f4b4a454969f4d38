"""What every answer has, refusals too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.server.console.guard.headers import SecurityHeaders
from tests.server.console.setting import Answer, Browser, ask, console

POLICY = (
    b"default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    b"frame-ancestors 'none'"
)


def check(answer: Answer) -> None:
    assert answer.all(b"content-security-policy") == [POLICY]
    assert answer.all(b"x-content-type-options") == [b"nosniff"]
    assert answer.all(b"x-frame-options") == [b"DENY"]
    assert answer.all(b"referrer-policy") == [b"same-origin"]
    assert (
        answer.all(b"cross-origin-opener-policy")
        == answer.all(b"cross-origin-resource-policy")
        == [b"same-origin"]
    )
    assert answer.all(b"strict-transport-security") == [b"max-age=31536000"]
    assert len(answer.all(b"permissions-policy")) == 1


def test_every_answer_has_them(tmp_path: Path) -> None:
    with console(tmp_path) as made:
        browser = Browser(made)
        answers = [
            browser.get(),
            browser.get("/plain"),
            browser.post("/change", {}),
            ask(made.app, "GET", "/", host=False),
            ask(made.app, "GET", "/", [(b"authorization", b"Bearer x")]),
            ask(made.app, "POST", "/", [(b"content-length", b"9" * 30)]),
        ]
        assert [answer.status for answer in answers] == [200, 200, 403, 421, 401, 413]
        for answer in answers:
            check(answer)


def headers(stated: list[tuple[bytes, bytes]], *, https: bool = False, styles: Sequence[str] = ()) -> Answer:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": stated})
        await send({"type": "http.response.body", "body": b""})

    return ask(SecurityHeaders(app, https=https, styles=styles), "GET", "/")


def test_what_the_application_says_of_caches_counts_for_public_pages_only(tmp_path: Path) -> None:
    stored = [(b"Cache-Control", b"public, max-age=60")]
    assert headers(stored).all(b"Cache-Control") == [b"public, max-age=60"]
    assert headers([]).all(b"cache-control") == [b"no-store"]
    cookie = [*stored, (b"set-cookie", b"a=1")]
    assert [value for name, value in headers(cookie).headers if name.lower() == b"cache-control"] == [
        b"no-store"
    ]
    with console(tmp_path) as made:
        browser = Browser(made)
        browser.sign_in(made.tokens.create("ada", ["read"], days=1)[0])
        assert browser.get("/plain").all(b"cache-control") == [b"no-store"]


def test_the_application_cannot_loosen_them() -> None:
    loose = [(b"Content-Security-Policy", b"default-src *"), (b"X-Frame-Options", b"ALLOWALL")]
    answer = headers(loose, https=False)
    policies = [value for name, value in answer.headers if name.lower() == b"content-security-policy"]
    assert policies == [POLICY]
    assert answer.all(b"X-Frame-Options") == []
    assert answer.all(b"strict-transport-security") == []


def test_a_sheet_inside_of_a_page_is_named_by_its_hash() -> None:
    (policy,) = headers([], styles=("'sha256-abc='",)).all(b"content-security-policy")
    assert b"style-src 'self' 'sha256-abc='; " in policy


def test_there_is_no_websocket(tmp_path: Path) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    with console(tmp_path) as made:
        asyncio.run(made.app({"type": "websocket", "headers": [], "path": "/"}, receive, send))  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]
