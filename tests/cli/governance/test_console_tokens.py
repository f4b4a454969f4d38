"""``sfumato console token``: a token is printed once, recognised, listed without its secret, and revoked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.server.console.access.token_store import InvalidToken, TokenStore


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["console", "token", *map(str, arguments)])


def test_a_token_is_printed_once_and_revoked(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    made = run("create", path, "ada", "--scope", "read", "--scope", "ask", "--days", 30)
    assert made.exit_code == 0
    text = made.stdout.strip()
    token = TokenStore(path).verified(text)
    assert token.name == "ada"
    assert token.scopes == {"read", "ask"}
    assert token.expires - token.created == 30 * 86_400
    assert token.id in made.stderr
    assert text.rsplit("_", 1)[1] not in made.stderr
    listed = run("list", path)
    assert token.id in listed.stdout
    assert "ask, read" in listed.stdout
    assert "usable" in listed.stdout
    facts = json.loads(run("list", path, "--json").stdout)
    assert [one["id"] for one in facts["tokens"]] == [token.id]
    assert all(text.rsplit("_", 1)[1] not in found for found in (listed.stdout, json.dumps(facts)))
    assert run("revoke", path, token.id).stdout == f"token {token.id} of ada is revoked\n"
    with pytest.raises(InvalidToken):
        TokenStore(path).verified(text)
    assert json.loads(run("list", path, "--json").stdout)["tokens"][0]["state"] == "revoked"


def test_a_token_reads_unless_more_is_said(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    assert run("list", path).stdout == "no tokens\n"
    facts = json.loads(run("create", path, "rita", "--json").stdout)
    assert (facts["scopes"], facts["state"]) == (["read"], "usable")
    assert TokenStore(path).verified(facts["token"]).name == "rita"


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    for words, said in (
        (("create", path, "ada", "--scope", "all"), "all"),
        (("create", path, "ada", "--days", 400), "must be at most 366"),
        (("create", path, " "), "name must be a printable name"),
        (("revoke", path, "0" * 16), "must be that of a token"),
    ):
        failed = run(*words)
        assert failed.exit_code == 2
        assert said in failed.stderr
    assert TokenStore(path).all() == ()
