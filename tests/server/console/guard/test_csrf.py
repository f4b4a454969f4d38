"""Forms of other sites, other sessions and other times change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.server.console.access.cookies import SESSION
from tests.server.console.setting import ORIGIN, Browser, Console, ask, console


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Console]:
    with console(tmp_path) as one:
        yield one


@pytest.fixture
def browser(made: Console) -> Browser:
    one = Browser(made)
    one.sign_in(made.tokens.create("ada", ["read"], days=1)[0])
    return one


def test_a_form_of_an_own_page_is_let_in_also_twice(made: Console, browser: Browser) -> None:
    token = browser.get().json["csrf"]
    for site in ("same-origin", None):
        assert browser.post("/change", {"csrf_token": token}, site=site).status == 200
    assert made.changed == ["ada", "ada"]


def test_a_form_without_its_token_is_refused(made: Console, browser: Browser) -> None:
    token = browser.get().json["csrf"]
    for fields in (
        {},
        {"csrf_token": ""},
        {"csrf_token": token[:-1]},
        {"csrf_token": "0" * 64},
        {"csrf": token},
    ):
        assert browser.post("/change", fields).status == 403
    twice = {"csrf_token": f"{token}&csrf_token={token}"}
    assert browser.post("/change", twice).status == 403
    for kind in (b"text/plain", b"application/json", b"multipart/form-data; boundary=x", b""):
        assert browser.post("/change", {"csrf_token": token}, kind=kind).status == 403
    many = {f"f{number}": "x" for number in range(1001)}
    assert browser.post("/change", {"csrf_token": token, **many}).status == 403
    assert browser.post("/change", {"csrf_token": token, "x": "\xe9"}).status == 403
    assert made.changed == []


def test_a_token_of_another_session_is_replayed_in_vain(made: Console, browser: Browser) -> None:
    before = browser.get().json["csrf"]
    other = Browser(made)
    other.sign_in(made.tokens.create("ada", ["read"], days=1)[0])
    assert other.post("/change", {"csrf_token": before}).status == 403, (
        "the same member's, in another browser"
    )
    browser.sign_in(made.tokens.create("ada", ["read"], days=1)[0])
    assert browser.post("/change", {"csrf_token": before}).status == 403, "of the session before"
    public = Browser(made)
    anonymous = public.get().json["csrf"]
    assert public.cookies
    public.sign_in(made.tokens.create("rita", ["read"], days=1)[0])
    assert public.post("/change", {"csrf_token": anonymous}).status == 403, "of before the sign-in"
    gone = browser.get().json["csrf"]
    browser.post("/sign-out", {"csrf_token": gone})
    assert browser.post("/change", {"csrf_token": gone}).status == 403, "after the sign-out"
    assert made.changed == []


def test_another_origin_is_refused_with_the_right_token_too(made: Console, browser: Browser) -> None:
    token = browser.get().json["csrf"]
    foreign = (
        None, "null", "", "https://evil.example", "http://console.example", "https://console.example:8443",
        "https://console.example.evil", "https://sub.console.example", ORIGIN + "/", ORIGIN.upper(),
    )  # fmt: skip
    for origin in foreign:
        assert browser.post("/change", {"csrf_token": token}, origin=origin).status == 403, origin
    for site in ("cross-site", "same-site", "none", "SAME-ORIGIN"):
        assert browser.post("/change", {"csrf_token": token}, site=site).status == 403, site
    assert made.changed == []


def test_every_method_that_is_not_a_question_is_guarded(made: Console, browser: Browser) -> None:
    cookie = (b"cookie", f"{SESSION}={browser.cookies[SESSION]}".encode())
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "X"):
        assert ask(made.app, method, "/change", [cookie]).status == 403, method
    assert made.changed == []


def test_a_sign_in_form_of_another_site_signs_nobody_in(made: Console) -> None:
    text, _ = made.tokens.create("eve", ["read"], days=1)
    victim = Browser(made)
    own = Browser(made).get().json["csrf"]  # eve's own page has a token for eve's cookie
    assert (
        victim.post("/sign-in", {"token": text, "csrf_token": own}, origin="https://evil.example").status
        == 403
    )
    assert victim.post("/sign-in", {"token": text, "csrf_token": own}).status == 403
    assert victim.get().json["via"] == "public"


def test_another_sites_page_loads_no_part_of_a_members_page(made: Console, browser: Browser) -> None:
    cross = (b"sec-fetch-site", b"cross-site")
    link = [(b"sec-fetch-mode", b"navigate"), (b"sec-fetch-dest", b"document")]
    assert browser.get("/plain", cross).status == 403
    assert (
        browser.get("/plain", cross, (b"sec-fetch-mode", b"navigate"), (b"sec-fetch-dest", b"iframe")).status
        == 403
    )
    assert browser.get("/plain", cross, *link).status == 200
    assert browser.get("/plain", (b"sec-fetch-site", b"same-site")).status == 403, "another port is one too"
    assert ask(made.app, "GET", "/plain", [cross]).status == 200, "what is public may be loaded"


def test_a_page_without_a_form_gives_no_cookie(made: Console) -> None:
    assert Browser(made).get("/plain").all(b"set-cookie") == []
    assert len(Browser(made).get("/").all(b"set-cookie")) == 1
