"""A real browser comes in by a real provider of OpenID Connect, through the console's own pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.server.console.access.oidc_settings import OidcSettings
from sfumato.server.console.app import application
from sfumato.server.console.console import Console
from sfumato.server.console.settings import OIDC_BACK, ConsoleSettings
from sfumato.server.http_process import listening_socket
from tests.browser import Browser
from tests.server.console.access.provider import provider
from tests.server.console.guard.test_browser import running
from tests.server.console.visitor import Visitor

pytestmark = pytest.mark.browser

USERS: dict[str, dict[str, object]] = {"s-ada": {}, "s-eve": {}}
_FORM = "return document.querySelector('input[name=sub]')"


def test_who_the_provider_knows_comes_in_if_a_member(
    tmp_path: Path, key: Ed25519PrivateKey, browser: Browser
) -> None:
    assert key is not None
    with listening_socket("127.0.0.1", 0) as listening:
        origin = f"http://localhost:{listening.getsockname()[1]}"
        with provider(USERS, f"{origin}{OIDC_BACK}") as real:
            settings = ConsoleSettings(
                ledger=str(tmp_path / "people.ledger"),
                folder=tmp_path / "console",
                oidc=OidcSettings(
                    issuer=real.url,
                    client_id=real.client_id,
                    client_secret=real.client_secret,
                    redirect_uri=f"{origin}{OIDC_BACK}",
                    members={"s-ada": "ada"},
                ),
            )
            failures = list[str]()
            with Console(settings, failures.append) as console:
                app = application(console, [origin], failures.append)
                with running(app, listening):
                    visitor = Visitor(browser, origin)
                    for subject, comes_in in (("s-eve", False), ("s-ada", True)):
                        _sign_in(visitor, real.url, subject)
                        assert ("You are signed in." in visitor.text) is comes_in
                        assert visitor.violations() == []
                    visitor.press("Go on")
                    assert "Signed in as ada" in visitor.text
                    visitor.press("Sign out")
                    visitor.open("/account")
                    assert visitor.path == "/sign-in"
            assert failures == []


def _sign_in(visitor: Visitor, provider_url: str, subject: str) -> None:
    """Go by the console's own link to the provider, and sign in on its page by the keyboard."""
    visitor.open("/sign-in")
    visitor.press("Sign in with your organisation")
    assert visitor.browser.driver.current_url.startswith(provider_url)
    field = visitor.browser.run(_FORM)
    while visitor.browser.run("return document.activeElement") != field:
        visitor.browser.press(visitor.keys.TAB)
    before = visitor.page()
    visitor.browser.press(subject, visitor.keys.ENTER)
    visitor.await_page(before)
    assert visitor.path.startswith(OIDC_BACK), visitor.text
