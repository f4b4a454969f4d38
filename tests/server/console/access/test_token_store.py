"""Tokens: who is recognised by one, for how long, and what a file of them must be."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.access.token_store import InvalidToken, TokenStore

DAY = 86_400


class Clock:
    """Seconds since 1970, as a test sets them."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> TokenStore:
    return TokenStore(tmp_path / "tokens.json", now=clock)


def refused(store: TokenStore, text: str) -> str:
    with pytest.raises(InvalidToken) as error:
        store.verified(text)
    assert str(error.value) == "this token is not valid"
    return error.value.name


def test_a_token_is_known_by_its_whole_text_only(store: TokenStore) -> None:
    text, token = store.create("ada", ["read", Scope.ASK], days=1)
    assert store.verified(text) == token
    assert token.scopes == {Scope.READ, Scope.ASK}
    other, _ = store.create("eve", ["read"], days=1)
    front, secret = text.rsplit("_", 1)
    flipped = secret[:-1] + ("0" if secret[-1] != "0" else "1")
    assert refused(store, f"{front}_{flipped}") == "ada"
    assert refused(store, f"{front}_{other.rsplit('_', 1)[1]}") == "ada"
    for none in (
        "",
        "sfumato",
        secret,
        text[:-1],
        text + "0",
        text.upper(),
        f" {text}",
        text + "\n",
        "é" * 90,
    ):
        assert refused(store, none) == ""
    assert refused(store, f"sfumato_{'0' * 16}_{secret}") == ""
    assert refused(store, f"sfumato_{'0' * 16}_{'0' * 64}") == ""


def test_a_token_ends_at_its_second_and_a_revoked_one_at_once(store: TokenStore, clock: Clock) -> None:
    text, token = store.create("ada", ["read"], days=2)
    assert token.expires - token.created == 2 * DAY
    clock.now = token.expires - 1
    assert store.find(token.id) == store.verified(text) == token
    clock.now = token.expires
    assert store.find(token.id) is None
    assert refused(store, text) == "ada"
    later, second = store.create("ada", ["read"], days=2)
    assert store.verified(later) == second
    assert store.revoke(second.id).revoked
    assert store.find(second.id) is None
    assert refused(store, later) == "ada"
    assert [each.revoked for each in store.all()] == [False, True]


def test_the_file_holds_no_secret_and_is_its_owners_alone(store: TokenStore, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        text, _ = store.create("ada", ["read"], days=1)
    finally:
        os.umask(old)
    secret = text.rsplit("_", 1)[1]
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        content = path.read_bytes()
        assert secret.encode() not in content
        assert bytes.fromhex(secret) not in content
    (tmp_path / "tokens.json").chmod(0o640)
    with pytest.raises(SourceError, match=r"must be its owner's alone.*chmod 600"):
        TokenStore(tmp_path / "tokens.json").all()


def test_the_first_token_makes_the_folder_its_owners_alone(tmp_path: Path) -> None:
    text, token = TokenStore(tmp_path / "console" / "tokens").create("carl", ["read"], days=1)
    assert (tmp_path / "console").stat().st_mode & 0o777 == 0o700
    assert TokenStore(tmp_path / "console" / "tokens").verified(text) == token


def test_another_process_sees_a_change_with_its_next_question(tmp_path: Path, store: TokenStore) -> None:
    other = TokenStore(tmp_path / "tokens.json", now=lambda: 1e9)
    text, token = store.create("ada", ["read"], days=1)
    assert other.verified(text) == token
    store.revoke(token.id)
    assert refused(other, text) == "ada"


def test_who_writes_at_once_loses_no_token(tmp_path: Path) -> None:
    def write(name: str) -> None:  # the lock is of the opened file: two threads are as two processes
        store = TokenStore(tmp_path / "tokens.json")
        for _ in range(20):
            store.create(name, ["read"], days=1)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("ada", "bob")))
    names = [token.name for token in TokenStore(tmp_path / "tokens.json").all()]
    assert names == ["ada"] * 20 + ["bob"] * 20


def test_what_cannot_be_a_token_or_its_file_is_refused(store: TokenStore, tmp_path: Path) -> None:
    for scopes in ([], ["everything"], ["read", "READ"]):
        with pytest.raises(ParameterError, match="scopes must be"):
            store.create("ada", scopes, days=1)
    for days in (0, 367, 1.5, True):
        with pytest.raises(ParameterError, match="days must be"):
            store.create("ada", ["read"], days=days)  # type: ignore[arg-type]
    for name in ("", " ", "a\nb", "x" * 201):
        with pytest.raises(ParameterError, match="name must be"):
            store.create(name, ["read"], days=1)
    with pytest.raises(ParameterError, match="id must be that of a token"):
        store.revoke("0" * 16)
    assert store.all() == ()
    path = tmp_path / "wrong.json"
    good = {"format": "sfumato.console-tokens", "version": 1, "tokens": []}
    for wrong in ({}, good | {"version": 2}, good | {"more": 1}, good | {"tokens": [{"id": "x"}]}):
        path.write_text(json.dumps(wrong))
        path.chmod(0o600)
        with pytest.raises(ParameterError, match="tokens"):
            TokenStore(path).all()
    with pytest.raises(SourceError, match="must be one that can be read and written"):
        TokenStore(tmp_path / "missing" / "too" / "tokens.json").create("ada", ["read"], days=1)
