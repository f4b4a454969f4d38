"""A browser that signs in and out: new identifiers, ends of sessions, and failures as events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.server.asgi import Refused
from sfumato.server.console.access.cookies import SESSION, read_cookie
from sfumato.server.console.access.sessions import Sessions
from tests.server.console.setting import Browser, Clock, Console, console


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Console]:
    with console(tmp_path) as one:
        yield one


def token(made: Console, name: str = "ada", *scopes: str, days: int = 1) -> str:
    return made.tokens.create(name, scopes or ("read", "ask"), days=days)[0]


def test_a_member_signs_in_and_out(made: Console) -> None:
    browser = Browser(made)
    assert browser.get().json["via"] == "public"
    assert browser.sign_in(token(made)).status == 200
    found = browser.get().json
    assert (found["name"], found["via"], found["roles"]) == ("ada", "token", ["analyst"])
    assert found["scopes"] == ["ask", "read"]
    signed = dict(browser.cookies)
    assert browser.post("/sign-out", {"csrf_token": found["csrf"]}).status == 200
    assert browser.cookies == {}
    assert browser.get().json["via"] == "public"
    browser.cookies = signed  # the cookie alone brings nothing back
    assert browser.get().json["via"] == "public"


def test_the_identifier_is_new_at_each_sign_in(made: Console) -> None:
    planted = Browser(made, {SESSION: "A" * 43})
    assert planted.sign_in(token(made)).status == 200
    assert planted.cookies[SESSION] != "A" * 43
    assert Browser(made, {SESSION: "A" * 43}).get().json["via"] == "public"
    before = dict(planted.cookies)
    assert planted.sign_in(token(made, "rita")).status == 200
    assert planted.get().json["name"] == "rita"
    assert Browser(made, before).get().json["via"] == "public", "the session before has ended"


def test_a_session_ends_when_it_is_idle_and_in_any_case(made: Console) -> None:
    browser = Browser(made)
    browser.sign_in(token(made))
    for _ in range(16):  # 8 hours but for 16 seconds, never idle for half an hour
        made.clock.now += 1799
        assert browser.get().json["name"] == "ada"
    made.clock.now += 1799
    assert browser.get().json["via"] == "public", "after 8 hours"
    browser.sign_in(token(made))
    made.clock.now += 1800
    assert browser.get().json["via"] == "public", "after half an hour without a request"


def test_a_session_ends_with_its_token(made: Console) -> None:
    browser, other = Browser(made), Browser(made)
    text, one = made.tokens.create("ada", ["read"], days=1)
    browser.sign_in(text)
    other.sign_in(text)
    made.clock.now = one.expires - 1000
    browser.sign_in(text)
    made.clock.now = one.expires
    assert browser.get().json["via"] == "public"
    text, one = made.tokens.create("ada", ["read"], days=1)
    browser.sign_in(text)
    assert browser.get().json["name"] == "ada"
    made.tokens.revoke(one.id)
    assert browser.get().json["via"] == "public"


def test_roles_are_those_of_the_ledger_at_each_request(made: Console) -> None:
    browser = Browser(made)
    browser.sign_in(token(made))
    made.ledger.members.set_roles("ada", ())
    found = browser.get().json
    assert (found["name"], found["roles"]) == ("ada", [])


def test_a_wrong_token_signs_nobody_in_and_the_ledger_says_so(made: Console) -> None:
    right = token(made)
    wrong = right[:-1] + ("0" if right[-1] != "0" else "1")
    browser = Browser(made)
    for text in (wrong, wrong):
        with pytest.raises(Refused) as refused:
            browser.sign_in(text)
        assert (refused.value.status, refused.value.why) == (401, "this token is not valid")
        assert wrong not in repr(refused.value)
    assert made.ledger.members.of("ada").failed_logins == 2
    assert browser.get().json["via"] == "public"


def test_sessions_are_few_and_the_oldest_goes_first() -> None:
    clock = Clock()
    sessions = Sessions(most=100, now=clock)

    def begin(name: str) -> str:
        return sessions.begin(name=name, scopes=frozenset(), via="oidc")

    own = [begin("ada") for _ in range(17)]
    assert len(set(own)) == 17
    assert sessions.find(own[0]) is None
    assert sessions.find(own[1]) is not None
    begin("ada")  # number 2 was used longest ago now
    assert sessions.find(own[2]) is None
    assert sessions.find(own[1]) is not None
    others = [begin(f"name {number}") for number in range(100)]
    assert sessions.find(own[1]) is None
    assert sessions.find(others[0]) is not None
    assert len(sessions._known) == 100
    assert all(number.encode() not in key for number in own for key in sessions._known)
    clock.now += 28_800
    begin("ada")
    assert len(sessions._known) == 1, "what is over is not stored"


def test_a_cookie_is_read_only_if_there_is_one() -> None:
    def read(*headers: bytes) -> str:
        return read_cookie({"headers": [(b"cookie", header) for header in headers]}, SESSION)

    good = f"{SESSION}=abc".encode()
    assert read(good) == read(b"a=1;" + good) == read(b"a=1", good) == "abc"
    for none in ((), (b"",), (b"sfumato=abc",), (good, good), (good + b"; " + good,), (good + b"\xff",)):
        assert read(*none) == ""
    assert read(f"{SESSION}=".encode()) == read(f"{SESSION}={'a' * 2049}".encode()) == ""
