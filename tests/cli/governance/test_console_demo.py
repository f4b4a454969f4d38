"""The console's demo: four members who can enter, a ledger that is real, and an end that leaves nothing."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from sfumato.cli.governance.console_demo import QUESTION, console_demo, make_office
from sfumato.cli.governance.signing_key import read_signing_key
from sfumato.errors import ParameterError
from sfumato.ledger import Ledger
from sfumato.server.console.access.token_store import TokenStore
from sfumato.server.console.settings import read_settings
from tests.cli.governance.running_console import running_demo

ROLES = {"analyst", "reviewer", "curator", "auditor"}


def test_the_office_has_a_member_for_each_role(tmp_path: Path) -> None:
    tokens = make_office(tmp_path)
    settings = read_settings(tmp_path / "console.toml")
    assert sorted(settings.domains["data"]) == ["age", "housing", "sex", "state", "tenure"]
    store = TokenStore(settings.tokens)
    assert {store.verified(token).name for token in tokens.values()} == set(tokens)
    with Ledger.read(settings.ledger) as ledger:
        members = {role.value: member for member in ledger.members.all() for role in member.roles}
        assert len(ledger.entries()) == 0
    assert set(members) == ROLES
    assert {member.name for member in members.values()} == set(tokens)
    reviewer = members["reviewer"]
    key = read_signing_key(tmp_path / f"{reviewer.name}.pem", None)
    assert key.public_key().public_bytes_raw().hex() == reviewer.public_key


@pytest.mark.exhaustive  # the browser's tests begin with it, too
def test_it_prints_who_enters_and_ends_without_a_trace() -> None:
    with running_demo() as demo:
        assert set(demo.tokens) == ROLES
        assert demo.text.startswith(f"console at {demo.origin}\n")
        for line in QUESTION.splitlines():
            assert f"     {line}\n" in demo.text
        for role, token in demo.tokens.items():
            asked = urllib.request.Request(
                f"{demo.origin}{demo.pages[role]}",
                headers={"authorization": f"Bearer {token}", "accept": "text/html"},
            )
            with urllib.request.urlopen(asked, timeout=60) as answer:
                assert answer.status == 200
                assert demo.names[role] in answer.read().decode()
        assert demo.stop() == (0, "")
    assert not demo.folder.exists()


def test_a_console_that_cannot_begin_leaves_its_folder_empty(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="port must be at most 65535"):
        console_demo(tmp_path, 1 << 16, print)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").write_text("mine")
    with pytest.raises(ParameterError, match="--folder must be new or empty"):
        console_demo(tmp_path / "used", 0, print)
    assert [path.name for path in (tmp_path / "used").iterdir()] == ["file"]
    with pytest.raises(ParameterError, match="--folder must be a folder that can be made"):
        console_demo(tmp_path / "used" / "file", 0, print)
