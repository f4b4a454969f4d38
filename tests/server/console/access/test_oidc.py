"""Sign-in by a real provider: who comes in, and codes, cookies and answers of somebody else's sign-in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from sfumato.errors import ParameterError
from sfumato.server.asgi import Refused
from sfumato.server.console.access.cookies import SESSION, SIGN_IN
from sfumato.server.console.access.oidc import OidcSignIn
from sfumato.server.console.access.oidc_settings import OidcSettings
from sfumato.server.console.access.sign_in import SignIn
from tests.server.console.access.provider import Provider, provider
from tests.server.console.setting import Browser, Console, console

BACK = "https://console.example/sign-in/oidc/back"
USERS = {
    "s-ada": {"email": "ada@example.org", "email_verified": True},
    "s-eve": {"email": "ada@example.org", "email_verified": False},
    "s-rita": {"email": "rita@example.org", "email_verified": True},
}
MEMBERS = {"s-ada": "ada", "s-rita": "rita"}


@pytest.fixture(scope="module")
def real() -> Iterator[Provider]:
    with provider(USERS, BACK) as one:
        yield one


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Console]:
    with console(tmp_path) as one:
        yield one


class Later:
    """The time, and some seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return time.time() + self.seconds


def oidc(made: Console, real: Provider, now: Later | None = None, **changes: Any) -> OidcSignIn:
    settings: dict[str, Any] = {
        "issuer": real.url,
        "client_id": real.client_id,
        "client_secret": real.client_secret,
        "redirect_uri": BACK,
        "members": MEMBERS,
    }
    sign_in = SignIn(made.sessions, made.tokens, made.failed)
    return OidcSignIn(OidcSettings(**settings | changes), sign_in, made.failed, now=now or Later())


def begun(one: OidcSignIn) -> tuple[str, str]:
    """Where a browser is sent, and its cookie."""
    place, header = asyncio.run(one.begin())
    cookie, _, rest = header.decode().partition(";")
    assert cookie.startswith(f"{SIGN_IN}=")
    assert rest == " Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600"
    return place, cookie


def finished(one: OidcSignIn, back: str, cookie: str) -> str:
    """The session with which a browser is answered."""
    headers = [(b"cookie", cookie.encode())] if cookie else []
    scope = {"type": "http", "headers": headers, "query_string": urlsplit(back).query.encode()}
    session, ended = asyncio.run(one.finish(scope))
    assert ended.startswith(f"{SIGN_IN}=;".encode())
    assert session.endswith(b"SameSite=Strict")
    return session.decode().partition(";")[0].removeprefix(f"{SESSION}=")


def refused(one: OidcSignIn, back: str, cookie: str) -> int:
    with pytest.raises(Refused) as error:
        finished(one, back, cookie)
    return error.value.status


def test_a_member_comes_in(made: Console, real: Provider) -> None:
    one = oidc(made, real)
    place, cookie = begun(one)
    asked = parse_qs(urlsplit(place).query)
    assert asked.keys() == {
        "response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge",
        "code_challenge_method",
    }  # fmt: skip
    back = real.signs_in(place, "s-ada")
    assert back.startswith(BACK)
    browser = Browser(made, {SESSION: finished(one, back, cookie)})
    found = browser.get().json
    assert (found["name"], found["via"], found["roles"]) == ("ada", "oidc", ["analyst"])
    assert found["scopes"] == ["ask", "grant", "publish", "read", "review"]
    assert refused(one, back, cookie) == 401, "a code is good for once"
    assert made.failed.dropped == 0


def test_a_code_of_another_sign_in_is_of_no_use(made: Console, real: Provider) -> None:
    one = oidc(made, real)
    evil, evil_cookie = begun(one)
    back = real.signs_in(evil, "s-ada")
    _, cookie = begun(one)
    assert refused(one, back, "") == 400, "in a browser where nothing began"
    assert refused(one, back, cookie) == 400, "in a browser where another began"
    place, cookie = begun(one)
    state = parse_qs(urlsplit(place).query)["state"][0]
    code = parse_qs(urlsplit(back).query)["code"][0]
    # With the state of its own sign-in the provider still wants the secret that the code began with.
    assert refused(one, f"{BACK}?code={code}&state={state}", cookie) == 401
    assert Browser(made, {SESSION: finished(one, back, evil_cookie)}).get().json["name"] == "ada"


def test_an_answer_that_is_none_signs_nobody_in(made: Console, real: Provider) -> None:
    later = Later()
    one = oidc(made, real, later)
    place, cookie = begun(one)
    state = parse_qs(urlsplit(place).query)["state"][0]
    for query, status in (
        ("", 400),
        ("code=x", 400),
        (f"code=x&state={state}x", 400),
        (f"code=x&state={state}&state={state}", 400),
        (f"code=x&state={state}&iss=https://evil.example", 400),
        (f"code=x&state={state}", 401),
        (f"code=&state={state}", 401),
        (f"state={state}", 401),
        (f"error=access_denied&code=x&state={state}", 401),
    ):
        assert refused(one, f"{BACK}?{query}", cookie) == status, query
    denied = real.signs_in(place, "s-ada", action="deny")
    assert refused(one, denied, cookie) in (400, 401)
    changed = cookie[:-5] + ("A" if cookie[-5] != "A" else "B") + cookie[-4:]
    assert refused(one, f"{BACK}?code=x&state={state}", changed) == 400
    assert refused(oidc(made, real), f"{BACK}?code=x&state={state}", cookie) == 400, "of another process"
    place, cookie = begun(one)
    back = real.signs_in(place, "s-ada")
    later.seconds = 601
    assert refused(one, back, cookie) == 400, "ten minutes are over"


def signed_in(made: Console, real: Provider, subject: str, **changes: Any) -> str:
    """The name of whom the provider signs in."""
    one = oidc(made, real, **changes)
    place, cookie = begun(one)
    number = finished(one, real.signs_in(place, subject), cookie)
    session = made.sessions.find(number)
    assert session is not None
    return session.name


def test_only_who_is_a_member_comes_in_by_a_claim_that_is_theirs(made: Console, real: Provider) -> None:
    by_email = {"claim": "email", "ask_for": ("openid", "email"), "members": {"ada@example.org": "ada"}}
    assert signed_in(made, real, "s-ada", **by_email) == "ada"
    # Without a table the claim is the name, which needs roles to do anything.
    assert signed_in(made, real, "s-rita", members=None) == "s-rita"
    before = made.ledger.head().position
    for subject, changes in (
        ("s-eve", {}),  # is in no table
        ("s-eve", by_email),  # whose address is not verified
        ("s-rita", by_email),
        ("s-ada", {"claim": "groups"}),  # which this provider does not state
    ):
        with pytest.raises(Refused) as error:
            signed_in(made, real, subject, **changes)
        assert error.value.status == 403
    assert made.ledger.head().position == before + 4, "the ledger has the failures"


def test_a_provider_that_cannot_be_asked_signs_nobody_in(made: Console, real: Provider) -> None:
    for issuer in (real.url + "/", "http://127.0.0.1:9", real.url.replace("127.0.0.1", "localhost") + "/x"):
        with pytest.raises(Refused) as error:
            begun(oidc(made, real, issuer=issuer))
        assert error.value.status == 503
        assert real.url not in error.value.why
    wrong = oidc(made, real, client_secret="wrong")
    place, cookie = begun(wrong)
    assert refused(wrong, real.signs_in(place, "s-ada"), cookie) == 401
    one = oidc(made, real)
    one._asking = 4
    with pytest.raises(Refused) as error:
        begun(one)
    assert error.value.status == 503


def test_settings_that_send_secrets_in_the_open_are_refused() -> None:
    right: dict[str, Any] = {"issuer": "https://id.example", "client_id": "c", "redirect_uri": BACK}
    assert "hidden" not in repr(OidcSettings(**right, client_secret="hidden"))
    for changes in (
        {"issuer": "http://id.example"},
        {"issuer": "https://id.example?x"},
        {"issuer": "https://me@id.example"},
        {"issuer": "id.example"},
        {"redirect_uri": "http://console.example/back"},
        {"redirect_uri": "https://console.example/back#x"},
        {"client_id": ""},
        {"claim": ""},
        {"ask_for": ("email",)},
        {"ask_for": ("openid email",)},
        {"members": {"x": ""}},
    ):
        with pytest.raises(ParameterError, match="must be"):
            OidcSettings(**right | changes)
