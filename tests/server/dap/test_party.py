"""Parties of a task: what they hold, whom they let in, and the files of their secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.federated.dap.sealing import HpkeKey
from sfumato.federated.dap.version import Role
from sfumato.server.dap.party import DapParty, read_task
from tests.cases import cases
from tests.server.dap.setting import parties

LEADER, HELPER, COLLECTOR = Role.LEADER, Role.HELPER, Role.COLLECTOR


def test_each_party_lets_in_the_next_one_alone() -> None:
    made = parties()
    tokens = {role: party.sends for role, party in made.items()}
    accepted = {role: [of for of in made if party.accepts(tokens[of])] for role, party in made.items()}
    assert accepted == {LEADER: [COLLECTOR], HELPER: [LEADER], COLLECTOR: []}
    assert tokens[HELPER] is None
    for token in (None, "", "x", "\ud800"):
        assert not made[LEADER].accepts(token)
    assert made[LEADER].verify_key == made[HELPER].verify_key
    assert len(made[LEADER].task.task_id) == 32
    assert {len(str(tokens[role])) for role in (LEADER, COLLECTOR)} == {43}  # 32 bytes
    keys = {party.key.secret for party in made.values()}
    assert len(keys) == 3
    assert made[COLLECTOR].key.config.public_key == made[LEADER].task.collector.public_key


@cases(
    ("role", "changes", "why"),
    [
        (LEADER, {"role": Role.CLIENT}, "role must be leader, helper or collector"),
        (LEADER, {"key": HpkeKey(bytes(32), 256)}, "key must be 32 bytes"),
        (LEADER, {"key": HpkeKey(bytes(32), -1)}, "key must be 32 bytes"),
        (LEADER, {"verify_key": None}, "a verify key and a token's digest"),
        (HELPER, {"verify_key": bytes(31)}, "a verify key and a token's digest"),
        (HELPER, {"verify_key": bytes(33)}, "a verify key and a token's digest"),
        (LEADER, {"takes": None}, "a verify key and a token's digest"),
        (HELPER, {"takes": bytes(33)}, "a verify key and a token's digest"),
        (LEADER, {"sends": None}, "leader and collector must have a token"),
        (COLLECTOR, {"sends": ""}, "leader and collector must have a token"),
    ],
)
def test_a_party_without_its_secrets_is_refused(role: Role, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        replace(parties()[role], **changes)


def test_ids_of_keys_are_bytes() -> None:
    party = parties()[HELPER]
    for number in (0, 255):
        assert replace(party, key=HpkeKey(party.key.secret, number)).key.id == number


def test_a_party_comes_back_from_its_file(tmp_path: Path) -> None:
    for role, party in parties().items():
        path = tmp_path / role.name
        party.to_file(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_text().startswith('{\n  "')
        assert DapParty.from_file(path) == party
        with pytest.raises(ParameterError, match=r"must be a new one \(file exists\)"):
            party.to_file(path)
        for mode in (0o640, 0o604, 0o610):
            path.chmod(mode)
            with pytest.raises(ParameterError, match="its owner alone can read"):
                DapParty.from_file(path)
    with pytest.raises(SourceError, match="must be readable"):
        DapParty.from_file(tmp_path / "none")


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "party"
    parties()[LEADER].to_file(path)
    whole = json.loads(path.read_text())
    for changes in (
        {"key_id": "1"},
        {"sends": 5},
        {"role": "client"},
        {"key": "zz"},
        {"takes": 1},
        {"more": 1},
    ):
        path.write_text(json.dumps({**whole, **changes}))
        with pytest.raises(ParameterError, match="hold the secrets of one party"):
            DapParty.from_file(path)
    path.write_text(json.dumps({**whole, "task": {}}))
    with pytest.raises(ParameterError):
        DapParty.from_file(path)


def test_a_task_is_read_from_its_file(tmp_path: Path) -> None:
    task, path = parties()[LEADER].task, tmp_path / "task"
    path.write_text(json.dumps(task.specification()))
    assert read_task(path) == task
    with pytest.raises(SourceError, match="must be readable"):
        read_task(tmp_path / "none")
