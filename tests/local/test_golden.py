"""What was written in the frozen formats gives the same estimates, and is written again byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.base.specifications import (
    protocol_from_specification,
    protocol_kind,
    protocol_specification,
)
from sfumato.local.device import Domain, MemoStore, PublicKey, Randomizer, ReportBatch
from sfumato.local.device.base.protocols import PROTOCOLS, protocol_named
from sfumato.local.shuffle import Collection, MixedBatch, Opening, SecretKey, SparseHistogram
from tests.golden.local import making

HERE = Path(making.__file__).parent
KNOWN: dict[str, Any] = json.loads((HERE / "protocols.json").read_text())
DRAWN_ANEW = {"envelopes.json", "batch-000001.mixed", "memos", "opening.state"}


def same(found: list[Any], known: list[Any]) -> bool:
    """Whether estimates are those that were written, up to the rounding of other machines."""
    words = [[part for part in parts if isinstance(part, str)] for parts in (found, known)]
    numbers = [[part for part in parts if not isinstance(part, str)] for parts in (found, known)]
    return words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], rel=1e-9, abs=1e-12)


def test_every_protocol_has_a_golden_file() -> None:
    inner = {"noisy-histogram", "signed-hadamard"}  # which stand in the files of others
    server_only = {"summation-histogram", "threshold-histogram", "shuffled-mean"}
    assert set(KNOWN) == (set(PROTOCOLS) - inner) | server_only
    whole = (HERE / "protocols.json").read_text()
    assert all(f'"{name}"' in whole for name in inner)


def test_wire_names_are_those_of_the_classes() -> None:
    for name in PROTOCOLS:
        kind = protocol_named(name)
        assert kind is not None
        assert kind.wire_name == name
    for name, known in KNOWN.items():
        if known["protocol"] is not None:
            assert getattr(protocol_kind(name), "wire_name", None) == name
    assert [name for name, known in KNOWN.items() if known["protocol"] is None] == [
        "sampled-marginals",
        "prefix-round",
    ]


def test_what_is_made_today_has_the_same_bytes() -> None:
    made = making.files()
    for name in made.keys() - {"protocols.json"}:
        if Path(name).name in DRAWN_ANEW:
            continue
        assert made[name] == (HERE / name).read_bytes(), name
    today = json.loads(made["protocols.json"])
    assert list(today) == list(KNOWN)
    for name, known in KNOWN.items():
        assert same(today[name].pop("estimate"), known["estimate"]), name
        assert today[name] == {key: value for key, value in known.items() if key != "estimate"}, name


def test_reports_and_states_give_the_same_estimates() -> None:
    for (protocol, _), (name, known) in zip(making.protocols(), KNOWN.items(), strict=True):
        randomizer = Randomizer.from_specification(known["randomizer"])
        assert randomizer.wire_name == known["randomizer"]["protocol"]
        if known["protocol"] is not None:
            again = protocol_from_specification(known["protocol"])
            assert again == protocol, name
            assert protocol_specification(again) == known["protocol"]
            assert again.device.digest == randomizer.digest
        batch = ReportBatch.from_bytes(bytes.fromhex(known["reports"]), digest=randomizer.digest)
        aggregator = protocol.aggregator()
        aggregator.add_batch(batch)
        assert aggregator.to_bytes().hex() == known["state"], name
        restored = protocol.aggregator(bytes.fromhex(known["state"]))
        assert same(making.numbers_of(restored.estimate()), known["estimate"]), name


def test_unknown_fields_names_and_versions_are_refused() -> None:
    for known in KNOWN.values():
        specification = known["randomizer"]
        for change in (
            {"surprise": 1},
            {"version": 1},
            {"version": 3},
            {"format": "sfumato.other"},
            {"protocol": "other"},
        ):
            with pytest.raises(ParameterError):
                Randomizer.from_specification({**specification, **change})
        if known["protocol"] is not None:
            parameters = known["protocol"]["parameters"]
            with pytest.raises(ParameterError):
                protocol_from_specification({**known["protocol"], "surprise": 1})
            with pytest.raises(ParameterError):
                protocol_from_specification(
                    {**known["protocol"], "parameters": {**parameters, "surprise": 1}}
                )


def test_domains_are_the_same() -> None:
    written = json.loads((HERE / "domains.json").read_text())
    for name, domain in making.DOMAINS.items():
        assert Domain.from_specification(written[name], domain) == domain


def test_collections_keys_envelopes_and_batches_open(tmp_path: Path) -> None:
    opens("chacha20-poly1305", HERE, tmp_path)
    opens("aes-256-gcm", HERE / "aes-256-gcm", tmp_path)


def opens(cipher: str, here: Path, folder: Path) -> None:
    keys = {}
    for role in ("analyst", "shuffler"):
        shutil.copy(here / f"{role}.key", folder / role)
        (folder / role).chmod(0o600)
        keys[role] = SecretKey.from_file(folder / role, role)
        assert keys[role].cipher == cipher
        assert keys[role].public == PublicKey.from_text((here / f"{role}.pub").read_text(), role)
    written = json.loads((here / "collection.json").read_text())
    collection = Collection.from_specification(written)
    assert collection == making.collection(keys["analyst"], keys["shuffler"])
    assert device.PublicCollection.from_specification(written).id == collection.device.id
    context = collection.device.envelope_context
    for envelope in json.loads((here / "envelopes.json").read_text()):
        assert keys["shuffler"].opened(bytes.fromhex(envelope), context) is not None
    content = (here / "batch-000001.mixed").read_bytes()
    assert MixedBatch.from_bytes(content).to_bytes() == content
    opening = collection.opening(keys["analyst"])
    assert opening.add(content) == 3
    stored = (here / "opening.state").read_bytes()
    assert opening.to_bytes() == stored
    assert Opening.from_bytes(stored, collection, keys["analyst"]).numbers == {1}
    assert opening.estimate().raw == pytest.approx([1 / 3] * 3 + [0] * 3)


def test_a_release_of_texts_is_read() -> None:
    here = HERE / "sparse"
    asked = device.SparseCollection.from_specification(json.loads((here / "collection.json").read_text()))
    key = (here / "devices.key").read_bytes()
    encrypted = [bytes.fromhex(one) for one in json.loads((here / "encrypted.json").read_text())]
    assert asked.decrypted(encrypted, key) == ["é", "red"]
    release = SparseHistogram(asked).opened((here / "release.mixed").read_bytes(), key)
    assert (release.number, list(release.counts), release.unreadable) == (1, ["red"], 0)


def test_a_memo_store_answers_by_the_same_memos(tmp_path: Path) -> None:
    shutil.copy(HERE / "memos", tmp_path / "memos")
    with MemoStore.open(tmp_path / "memos", making.STORE_KEY, at_least=3) as store:
        for question, value in making.questions():
            client = store.client(question)
            assert client.memos == 1
            client.report(value, 2)
            assert client.memos == 1
