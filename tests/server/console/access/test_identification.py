"""Who asks: bearer tokens, a proxy's header, and requests that say two things."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.server.console.access.cookies import SESSION
from sfumato.server.console.access.proxy_header import ProxyHeader
from tests.server.console.setting import Browser, ask, console

LOCAL = ("127.0.0.1", 9)


def bearer(text: str) -> tuple[bytes, bytes]:
    return (b"authorization", f"Bearer {text}".encode())


def test_a_bearer_token_recognises_its_member(tmp_path: Path) -> None:
    with console(tmp_path) as made:
        text, one = made.tokens.create("ada", ["read"], days=1)
        found = ask(made.app, "GET", "/", [bearer(text)])
        assert found.json["name"] == "ada"
        assert (found.json["via"], found.json["roles"], found.json["scopes"]) == (
            "token",
            ["analyst"],
            ["read"],
        )
        assert ask(made.app, "POST", "/change", [bearer(text)]).status == 200
        assert made.changed == ["ada"]
        wrong = (
            [bearer(text + "0")],
            [bearer("")],
            [(b"authorization", b"Basic YWRhOng=")],
            [(b"authorization", text.encode())],
            [bearer(text), bearer(text)],
        )
        for headers in wrong:
            refused = ask(made.app, "POST", "/change", headers)
            assert refused.status == 401
            assert refused.all(b"www-authenticate") == [b'Bearer realm="sfumato"']
        made.tokens.revoke(one.id)
        assert ask(made.app, "GET", "/", [bearer(text)]).status == 401
        assert made.ledger.members.of("ada").failed_logins == 1
        assert made.changed == ["ada"]


def test_a_token_beside_a_cookie_is_refused(tmp_path: Path) -> None:
    with console(tmp_path) as made:
        text, _ = made.tokens.create("ada", ["read"], days=1)
        browser = Browser(made)
        browser.sign_in(text)
        refused = browser.get("/", bearer(text))
        assert refused.status == 400
        assert ask(made.app, "GET", "/", [bearer(text), (b"cookie", b"other=1")]).status == 400


def test_only_the_proxy_says_who_asks(tmp_path: Path) -> None:
    with console(tmp_path, proxy=ProxyHeader(header="x-remote-user")) as made:
        named = (b"x-remote-user", b"otto")
        found = ask(made.app, "GET", "/", [named], client=LOCAL).json
        assert (found["name"], found["via"], found["roles"]) == ("otto", "proxy", ["auditor"])
        for client in (("192.0.2.1", 9), ("127.0.0.2", 9), ("::2", 9), None, ("", 0), ("localhost", 9)):
            assert ask(made.app, "GET", "/", [named], client=client).status == 403
        for client in (("::1", 9), ("::ffff:127.0.0.1", 9)):
            assert ask(made.app, "GET", "/", [named], client=client).status == 200
        for wrong in ([named, named], [(b"x-remote-user", b"")], [(b"x-remote-user", b"a\xff")]):
            assert ask(made.app, "GET", "/", wrong, client=LOCAL).status == 400
        assert ask(made.app, "GET", "/", client=LOCAL).json["via"] == "public"
        text, _ = made.tokens.create("ada", ["read"], days=1)
        assert ask(made.app, "GET", "/", [named, bearer(text)], client=LOCAL).status == 400
        assert ask(made.app, "GET", "/", [bearer(text)], client=LOCAL).json["name"] == "ada"
        assert ask(made.app, "POST", "/", [named], client=LOCAL).status == 403, (
            "a form needs its token here too"
        )
    with console(tmp_path) as made:
        found = ask(made.app, "GET", "/", [named], client=LOCAL).json
        assert found["via"] == "public", "where no proxy is declared, the header means nothing"


def test_a_form_behind_the_proxy_needs_the_token_of_its_member(tmp_path: Path) -> None:
    with console(tmp_path, proxy=ProxyHeader(header="x-remote-user")) as made:
        page = ask(made.app, "GET", "/", [(b"x-remote-user", b"otto")], client=LOCAL)
        (cookie,) = page.all(b"set-cookie")
        headers = [
            (b"cookie", cookie.partition(b";")[0]),
            (b"origin", b"https://console.example"),
            (b"x-csrf-token", page.json["csrf"].encode()),
        ]
        for name, status in ((b"otto", 200), (b"rita", 403)):
            answer = ask(made.app, "POST", "/change", [*headers, (b"x-remote-user", name)], client=LOCAL)
            assert answer.status == status
        assert made.changed == ["otto"]


def test_a_proxys_secret_is_needed_where_there_is_one(tmp_path: Path) -> None:
    secret = b"s" * 32
    with console(tmp_path, proxy=ProxyHeader(header="x-remote-user", secret=secret)) as made:
        named = (b"x-remote-user", b"otto")
        shown = (b"x-sfumato-proxy-secret", secret)
        assert ask(made.app, "GET", "/", [named, shown], client=LOCAL).json["name"] == "otto"
        for wrong in ([], [(shown[0], b"s" * 31 + b"t")], [shown, shown]):
            assert ask(made.app, "GET", "/", [named, *wrong], client=LOCAL).status == 403
        assert ask(made.app, "GET", "/", [named, shown]).status == 403
    assert secret.decode() not in repr(ProxyHeader(header="x-remote-user", secret=secret))


def test_what_is_no_proxy_is_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"header": "X-Remote-User"},
        {"header": "cookie"},
        {"header": "x-sfumato-proxy-secret"},
        {"header": "a b"},
        {"header": "x-user", "peers": ()},
        {"header": "x-user", "peers": ("0.0.0.0/0",)},
        {"header": "x-user", "peers": ("::/0",)},
        {"header": "x-user", "peers": ("proxy.example",)},
        {"header": "x-user", "peers": ("10.0.0.1/8",)},
        {"header": "x-user", "secret": b"short"},
    ]
    for parameters in wrong:
        with pytest.raises(ParameterError, match="must"):
            ProxyHeader(**parameters)


def test_nobody_is_recognised_by_a_cookie_that_is_no_session(tmp_path: Path) -> None:
    with console(tmp_path) as made:
        for value in ("", "x", "A" * 43, "../../etc/passwd", "%00"):
            assert Browser(made, {SESSION: value}).get().json["via"] == "public"
