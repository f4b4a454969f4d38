"""Parties that draw their own secrets: what they give away, and that they fit together."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from sfumato.errors import ParameterError, SourceError
from sfumato.federated.dap.collection_messages import BatchMode
from sfumato.federated.dap.hpke_config import HpkeConfig
from sfumato.federated.dap.task import DapTask
from sfumato.federated.dap.version import Role
from sfumato.server.dap.party_secrets import PartySecrets, PublicPart, agreement_number
from tests.cases import cases
from tests.server.dap.setting import Pair

LEADER, HELPER, COLLECTOR = Role.LEADER, Role.HELPER, Role.COLLECTOR
SECRETS = {role: PartySecrets(role, bytes([role]) * 32) for role in (LEADER, HELPER, COLLECTOR)}
PARTS = {role: secrets.public for role, secrets in SECRETS.items()}


def made(collector: PublicPart = PARTS[COLLECTOR], **changes: Any) -> DapTask:
    given: dict[str, Any] = {
        "task_id": bytes(range(32)),
        "leader": "http://127.0.0.1:8421",
        "helper": "http://127.0.0.1:8422/dap",
        "vdaf": {"type": "Prio3Count"},
        "collector": collector.key,
        "min_batch_size": 3,
    }
    return DapTask(**{**given, **changes})


def joined(task: DapTask) -> dict[Role, Any]:
    return {
        LEADER: SECRETS[LEADER].joined(task, [PARTS[COLLECTOR], PARTS[HELPER]]),
        HELPER: SECRETS[HELPER].joined(task, [PARTS[LEADER]]),
        COLLECTOR: SECRETS[COLLECTOR].joined(task),
    }


def test_parties_that_know_public_parts_only_fit_together(tmp_path: Path) -> None:
    parties = joined(made(batch_mode=BatchMode.LEADER_SELECTED))
    with Pair(tmp_path, parties) as pair:
        pair.upload(pair.reports([1, 0, 1]))
        found = pair.collect(1)
        assert (found.result, found.reports) == (2, 3)
    accepted = {
        role: [of for of in parties if party.accepts(parties[of].sends)] for role, party in parties.items()
    }
    assert accepted == {LEADER: [COLLECTOR], HELPER: [LEADER], COLLECTOR: []}
    assert [party.role for party in parties.values()] == [LEADER, HELPER, COLLECTOR]
    assert (parties[HELPER].sends, parties[COLLECTOR].verify_key, parties[COLLECTOR].takes) == (None,) * 3


def test_the_verify_key_is_that_of_the_two_and_the_task() -> None:
    one, other = joined(made()), joined(made(task_id=bytes(32)))
    keys = [of[role].verify_key for of in (one, other) for role in (LEADER, HELPER)]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    secret = HKDFExpand(SHA256(), 32, b"sfumato dap 1 leader agreement").derive(bytes([LEADER]) * 32)
    shared = X25519PrivateKey.from_private_bytes(secret).exchange(
        X25519PublicKey.from_public_bytes(PARTS[HELPER].agreement)
    )
    info = b"sfumato dap 1 verify key" + PARTS[LEADER].agreement + PARTS[HELPER].agreement
    assert keys[0] == HKDF(SHA256(), 32, bytes(range(32)), info).derive(shared)
    mallory = PartySecrets.generate(HELPER)
    third = SECRETS[LEADER].joined(made(), [PARTS[COLLECTOR], mallory.public])
    assert third.verify_key not in keys
    numbers = {agreement_number(key) for key in (*keys, third.verify_key)}
    assert len(numbers) == 3
    assert {len(number) for number in numbers} == {32}


def test_nothing_secret_is_in_what_is_given_away() -> None:
    for role, secrets in SECRETS.items():
        shown = json.dumps(PARTS[role].specification()) + repr(secrets) + repr(PARTS[role])
        for secret in (secrets.seed, secrets.key.secret, secrets._derived(b"agreement")):
            assert secret.hex() not in shown
            assert repr(secret) not in shown
        assert secrets.token not in shown
        assert PARTS[role].token == hashlib.sha256(secrets.token.encode()).digest()
        assert PARTS[role].key == secrets.key.config
    derived = {
        secrets._derived(use) for secrets in SECRETS.values() for use in (b"hpke", b"token", b"agreement")
    }
    assert len(derived) == 9
    same = bytes(32)
    assert len({PartySecrets(role, same).token for role in SECRETS}) == 3
    assert PartySecrets.generate(LEADER).seed != PartySecrets.generate(LEADER).seed


@cases(
    ("role", "given", "why"),
    [
        (LEADER, [HELPER], "be those of helper and collector, but they are those of helper"),
        (LEADER, [], "they are those of none"),
        (LEADER, [HELPER, COLLECTOR, COLLECTOR], "be those of helper and collector"),
        (LEADER, [LEADER, COLLECTOR], "be those of helper and collector"),
        (HELPER, [], "be those of leader"),
        (HELPER, [LEADER, COLLECTOR], "be those of leader"),
        (COLLECTOR, [LEADER], "be those of nobody"),
    ],
)
def test_each_party_needs_the_parts_of_those_it_speaks_with(role: Role, given: list[Role], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        SECRETS[role].joined(made(), [PARTS[one] for one in given])


def test_a_task_of_another_collector_is_not_joined() -> None:
    other = made(PartySecrets.generate(COLLECTOR).public)
    with pytest.raises(ParameterError, match="hold the key of this collector"):
        SECRETS[COLLECTOR].joined(other)
    with pytest.raises(ParameterError, match="hold the key of this collector"):
        SECRETS[LEADER].joined(other, [PARTS[HELPER], PARTS[COLLECTOR]])


@cases(
    ("changes", "why"),
    [
        ({"role": Role.CLIENT}, "role must be one of leader, helper, collector"),
        ({"agreement": bytes(32)}, "small order"),
        ({"agreement": bytes(31)}, "two usable keys"),
        ({"key": HpkeConfig(1, bytes(32))}, "small order"),
        ({"key": replace(PARTS[LEADER].key, id=256)}, "two usable keys"),
        ({"key": replace(PARTS[LEADER].key, id=-1)}, "two usable keys"),
        ({"token": bytes(31)}, "token must be a digest of 32 bytes"),
    ],
)
def test_parts_that_cannot_be_used_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        replace(PARTS[LEADER], **changes)


def test_parts_and_secrets_come_back_from_their_files(tmp_path: Path) -> None:
    for role, secrets in SECRETS.items():
        path, public = tmp_path / f"{role}.secret", tmp_path / f"{role}.json"
        secrets.to_file(path)
        assert path.stat().st_mode & 0o77 == 0
        assert PartySecrets.from_file(path) == secrets
        public.write_text(json.dumps(PARTS[role].specification()))
        assert PublicPart.from_file(public) == PARTS[role]
    with pytest.raises(ParameterError, match="be a new one"):
        SECRETS[LEADER].to_file(tmp_path / f"{LEADER}.secret")
    (tmp_path / f"{LEADER}.secret").chmod(0o640)
    with pytest.raises(ParameterError, match="its owner alone"):
        PartySecrets.from_file(tmp_path / f"{LEADER}.secret")
    for read in (PartySecrets.from_file, PublicPart.from_file):
        with pytest.raises(SourceError, match="file must be readable"):
            read(tmp_path / "none")


@pytest.mark.parametrize("name", ["role", "seed"])
@pytest.mark.parametrize("value", [None, 7, "x", [], "client", "00" * 31])
def test_files_of_other_secrets_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / "secret"
    SECRETS[LEADER].to_file(path)
    document = json.loads(path.read_text())
    for changed in ({**document, name: value}, {key: document[key] for key in document if key != name}):
        path.write_text(json.dumps(changed))
        with pytest.raises(ParameterError, match="hold a role and a seed"):
            PartySecrets.from_file(path)


@pytest.mark.parametrize("name", ["role", "key", "agreement", "token"])
@pytest.mark.parametrize("value", [None, 7, "x", [], {"id": "1", "public_key": "00" * 32}])
def test_documents_of_other_parts_are_refused(name: str, value: Any) -> None:
    document = PARTS[HELPER].specification()
    for changed in ({**document, name: value}, {key: document[key] for key in document if key != name}):
        with pytest.raises(ParameterError, match="hold a role, two keys"):
            PublicPart.from_specification(changed)


def test_a_party_is_no_client_and_has_a_whole_seed() -> None:
    with pytest.raises(ParameterError, match="role must be one of"):
        PartySecrets.generate(Role.CLIENT)
    with pytest.raises(ParameterError, match="seed must be 32 bytes"):
        PartySecrets(LEADER, bytes(31))
