"""A console as a process: who may enter is decided by tokens, and it ends when it is asked to."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.access.token_store import TokenStore
from tests.server.console.processes import Answered, Running, running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console's folder."""
    return tmp_path_factory.mktemp("console")


@pytest.fixture(scope="module", name="running")
def console(folder: Path, made: tuple[Path, Ed25519PrivateKey]) -> Iterator[Running]:
    """A console without data of its own process, started as people do; it prints nothing of its visitors."""
    shutil.copy(made[0] / "people.ledger", folder)
    (folder / "console.toml").write_text('ledger = "people.ledger"\ntitle = "A town"\n')
    with running(folder / "console.toml", warm=False) as one:
        yield one
        assert one.printed() == ""


def _cookie(answered: Answered) -> str:
    return answered.headers["set-cookie"].partition(";")[0]


def _token(answered: Answered) -> str:
    found = re.search('name="csrf_token" value="([0-9a-f]{64})"', answered.text)
    assert found is not None
    return found[1]


def test_people_sign_in_by_a_form_and_out(running: Running, folder: Path) -> None:
    secret, token = TokenStore(folder / "console" / "tokens").create("carl", tuple(Scope), days=1)
    form = running.ask("GET", "/sign-in")
    cookie, csrf = _cookie(form), _token(form)
    policy = form.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    sent = urlencode({"csrf_token": csrf, "token": secret})
    assert running.ask("POST", "/sign-in", sent, cookie=cookie, origin="http://evil.example").status == 403
    assert running.ask("POST", "/sign-in", sent, cookie=cookie).status == 403
    assert running.ask("POST", "/sign-in", sent, origin=running.origin).status == 403
    wrong = urlencode({"csrf_token": csrf, "token": secret[:-4] + "0000"})
    refused = running.ask("POST", "/sign-in", wrong, cookie=cookie, origin=running.origin)
    assert refused.status == 401
    assert refused.text.count("not valid") == 1
    assert secret not in refused.text
    entered = running.ask("POST", "/sign-in", sent, cookie=cookie, origin=running.origin)
    assert (entered.status, entered.headers["location"]) == (303, "/")
    own = _cookie(entered)
    assert own != cookie
    assert running.ask("GET", "/grants", cookie=cookie).headers["location"] == "/sign-in"
    page = running.ask("GET", "/members", cookie=own)
    assert page.status == 200
    assert "no-store" in page.headers["cache-control"]
    again = urlencode({"csrf_token": csrf, "name": "bo", "role-analyst": "yes"})
    assert running.ask("POST", "/members/roles", again, cookie=own, origin=running.origin).status == 403
    right = urlencode({"csrf_token": _token(page), "name": "bo", "role-analyst": "yes"})
    assert running.ask("POST", "/members/roles", right, cookie=own, origin=running.origin).status == 303
    TokenStore(folder / "console" / "tokens").revoke(token.id)
    assert running.ask("GET", "/members", cookie=own).headers["location"] == "/sign-in"


def test_wrong_hosts_and_methods_get_nothing(running: Running) -> None:
    assert running.ask("GET", "/releases").status == 200
    assert running.ask("GET", "/releases", host="evil.example").status >= 400
    assert running.ask("PUT", "/releases").status >= 400
    assert running.ask("GET", "/releases/" + "9" * 5000).status == 404
    assert running.ask("GET", "/releases", authorization="Bearer nonsense").status == 401
