"""A real browser: what it sends with forms of own pages and of another site's.

The console's pages have no scripts; the test lets in its own by a nonce, in place of a hand that sends forms.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from sfumato.server.asgi import answer, header_of
from sfumato.server.console.access.cookies import SESSION, read_cookie
from sfumato.server.console.guard.csrf import form_token
from sfumato.server.http_process import listening_socket
from tests.javascript.browser import browsing, pages
from tests.javascript.package import tool
from tests.server.console.setting import console

pytestmark = pytest.mark.browser

OWN = """<!doctype html><title>own</title>
<form method="post" action="/change"><input type="hidden" name="csrf_token" value="{token}"></form>
<script>location = "/ran-without-a-nonce"</script>
<script nonce="hand">document.forms[0].submit()</script>"""

ON = """<!doctype html><title>changed</title><script nonce="hand">location = "{evil}"</script>"""

EVIL = """<!doctype html><title>evil</title><form method="post" action="{own}/change">
<input type="hidden" name="csrf_token" value="{token}"></form><script type="module">
const tried = async (what) => {{ try {{ return (await what()).type }} catch {{ return "failed" }} }};
const body = new URLSearchParams({{csrf_token: "{token}"}});
const own = {{mode: "no-cors", credentials: "include"}};
const found = [
  await tried(() => fetch("{own}/read", {{credentials: "include"}})),
  await tried(() => fetch("{own}/read", own)),
  await tried(() => fetch("{own}/change", {{...own, method: "POST", body}})),
];
const frame = document.createElement("iframe");
const loaded = new Promise((resolve) => {{ frame.onload = resolve }});
frame.src = "{own}/framed";
document.body.append(frame);
await loaded;
let inside = "shown";
try {{ inside = frame.contentDocument === null ? "apart" : "own" }} catch {{ inside = "apart" }}
await fetch("/done", {{method: "POST", body: JSON.stringify([...found, inside])}});
document.forms[0].submit();
</script>"""


@contextmanager
def running(app: Any, listening: Any) -> Iterator[None]:
    """Serve in a thread, until the block ends."""
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


def _with_hand(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    if name == b"content-security-policy":
        value = value.replace(b"default-src 'none';", b"default-src 'none'; script-src 'nonce-hand';")
    return name, value


def test_only_forms_of_own_pages_come_in_and_only_own_scripts_run(tmp_path: Path) -> None:
    program = tool("chromium", "chromium-browser", "google-chrome")
    seen: queue.Queue[tuple[str, str, bool, bytes, int]] = queue.Queue()
    state = {"evil": "", "token": ""}

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/":
            state["token"] = form_token(scope)
            page = OWN.format(token=state["token"])
        else:
            page = ON.format(evil=state["evil"])
        await answer(send, 200, page.encode(), kind=b"text/html; charset=utf-8")

    with listening_socket("127.0.0.1", 0) as listening, pages(tmp_path, {}) as site:
        own = f"http://127.0.0.1:{listening.getsockname()[1]}"
        state["evil"] = f"http://localhost:{site.port}/evil.html"
        with console(tmp_path, origins=[own], other=inner) as made:

            async def noting(scope: Any, receive: Any, send: Any) -> None:
                async def sending(message: Any) -> None:
                    if message["type"] == "http.response.start":
                        message = {**message, "headers": [_with_hand(*one) for one in message["headers"]]}
                        cookie = read_cookie(scope, SESSION) != ""
                        origin = header_of(scope, b"origin")
                        seen.put((scope["method"], scope["path"], cookie, origin, message["status"]))
                        if scope["path"] == "/change" and message["status"] == 200:
                            text = EVIL.format(own=own, token=state["token"])
                            (tmp_path / "evil.html").write_text(text)
                    await send(message)

                await made.app(scope, receive, sending)

            with running(noting, listening), browsing(program, own) as browser:
                found = site.result(browser)
                requests = list[tuple[str, str, bool, bytes, int]]()
                while len([one for one in requests if one[:2] == ("POST", "/change")]) < 3:
                    requests.append(seen.get(timeout=60))
    foreign = f"http://localhost:{site.port}".encode()
    assert requests[:2] == [("GET", "/", False, b"", 200), ("POST", "/change", True, own.encode(), 200)]
    posts = [one for one in requests[2:] if one[0] == "POST"]
    assert posts == [("POST", "/change", False, foreign, 403)] * 2, "by a script, and by a form"
    assert all(not cookie for _, _, cookie, _, _ in requests[2:]), (
        "no cookie comes with another site's request"
    )
    assert "/ran-without-a-nonce" not in {path for _, path, *_ in requests}
    assert found == ["failed", "failed", "failed", "apart"], (
        "and of no answer does the other page see anything"
    )
