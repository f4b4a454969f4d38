"""Envelopes: of one length, bound to their collection, and sealed so that neither party sees both halves."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from sfumato.crypto.hpke import SEAL
from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.device.base.bernoulli import Coin
from sfumato.local.device.base.client_nonce import NONCE
from sfumato.local.device.shuffle.decoys import Decoys
from sfumato.local.shuffle import SecretKey
from tests.cases import cases

ANALYST, SHUFFLER = SecretKey.generate("analyst"), SecretKey.generate("shuffler")
DOMAIN = device.Domain(range(50))
DECOYS = Decoys(3, Coin(1 << 62))
KINDS = [
    device.RandomizedResponseRandomizer(epsilon=2.0, domain=DOMAIN),
    device.OptimizedUnaryEncodingRandomizer(epsilon=2.0, domain=DOMAIN),
    device.ShuffledHistogramRandomizer(epsilon=16.0, domain=DOMAIN, decoys=DECOYS),
]


def made(**changes: Any) -> device.PublicCollection:
    parts = {"randomizer": KINDS[0], "batch_size": 10, "colluders": 2, "name": "week 7"}
    keys = {"analyst": ANALYST.public, "shuffler": SHUFFLER.public}
    return device.PublicCollection(**{**parts, **keys, **changes})


@pytest.mark.parametrize("randomizer", KINDS, ids=lambda kind: type(kind).__name__)
def test_each_party_opens_its_own_seal_and_no_other(randomizer: device.Randomizer) -> None:
    collection = made(randomizer=randomizer)
    secret, report = os.urandom(32), randomizer.randomize(7)
    envelope = collection.seal(report, collection.nonce(secret))
    assert len(envelope) == collection.envelope_width
    opened = SHUFFLER.opened(envelope, collection.envelope_context)
    assert opened is not None
    assert opened[:NONCE] == collection.nonce(secret)
    width, records = collection.sealed_width, []
    assert len(opened) == NONCE + collection.messages * width
    for start in range(NONCE, len(opened), width):
        sealed = opened[start : start + width]
        assert SHUFFLER.opened(sealed, collection.report_context) is None
        told = ANALYST.opened(sealed, collection.report_context)
        assert told is not None
        assert told[0] == 0
        records.append(told[1:])
    assert b"".join(records) == report  # the law of what the analyst reads is the randomizer's, bit for bit
    assert ANALYST.opened(envelope, collection.envelope_context) is None
    assert width == 1 + randomizer.width + SEAL


def test_all_envelopes_have_one_length_whatever_is_true() -> None:
    collection = made()
    lengths = {len(collection.envelope(value, os.urandom(16))) for value in range(50)}
    assert lengths == {collection.envelope_width}


def test_a_nonce_is_of_one_client_and_one_collection() -> None:
    secret, others = os.urandom(32), [made(), made(name="week 8"), made(batch_size=11)]
    assert len({collection.nonce(secret) for collection in others}) == 3
    assert made().nonce(secret) == made().nonce(secret)
    assert made().nonce(os.urandom(32)) != made().nonce(secret)


@cases(
    "changes",
    [
        {"name": "week 8"},
        {"name": "x" * 200},
        {"batch_size": 11},
        {"colluders": 1},
        {"randomizer": device.RandomizedResponseRandomizer(epsilon=2.5, domain=DOMAIN)},
        {"analyst": SecretKey.generate("analyst").public},
        {"shuffler": SecretKey.generate("shuffler").public},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_envelope_opens_in_no_other_collection(changes: dict[str, Any]) -> None:
    own, other = made(), made(**changes)
    assert own.id != other.id
    envelope = own.envelope(3, os.urandom(16))
    opened = SHUFFLER.opened(envelope, own.envelope_context)
    assert opened is not None
    assert SHUFFLER.opened(envelope, other.envelope_context) is None
    assert ANALYST.opened(opened[NONCE:], own.report_context) is not None
    assert ANALYST.opened(opened[NONCE:], other.report_context) is None


def test_it_goes_by_way_of_json() -> None:
    for randomizer in KINDS:
        own = made(randomizer=randomizer)
        again = device.PublicCollection.from_specification(json.loads(json.dumps(own.specification())))
        assert again == own
        assert again.id == own.id
    # pinned: an id that changes would refuse every envelope of a collection that runs
    keys = {
        role: SecretKey(role, seed * 32).public for role, seed in (("analyst", b"\1"), ("shuffler", b"\2"))
    }
    assert made(**keys).id.hex() == "a786bd7ae127f0f036516c5601e07a2016e47385085ada4fb0a5147dacbca550"


def test_what_json_has_not_is_given() -> None:
    domain = device.Domain([("a", 1), ("b", 2)])
    own = made(randomizer=device.RandomizedResponseRandomizer(epsilon=1.0, domain=domain))
    with pytest.raises(ParameterError, match="domain"):
        device.PublicCollection.from_specification(own.specification())
    assert device.PublicCollection.from_specification(own.specification(), domain=domain).id == own.id


@cases(
    ("changes", "rule"),
    [
        ({"version": 1}, "version of sfumato.collection"),
        ({"surprise": 1}, "have only fields that are known here"),
        ({"randomizer": None}, "randomizer must be a dict"),
        ({"batch_size": "10"}, "batch_size must be an integer"),
        ({"batch_size": 1}, "batch_size must be an integer of at least 2"),
        ({"colluders": 10}, "colluders must be below"),
        ({"analyst": SHUFFLER.public.to_text()}, "analyst must be the public key"),
        ({"name": "x" * 201}, "name must be a text"),
    ],
)
def test_a_bad_file_is_refused(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        device.PublicCollection.from_specification({**made().specification(), **changes})
    with pytest.raises(ParameterError, match="of the format sfumato"):
        device.PublicCollection.from_specification([])  # type: ignore[arg-type]


def test_bad_parts_are_refused_and_never_shown() -> None:
    own, report, nonce = made(), KINDS[0].randomize(1), bytes(NONCE)
    with pytest.raises(ParameterError, match="report must be 5 bytes, but 1 were given"):
        own.seal(report[:1], nonce)
    with pytest.raises(ParameterError, match="nonce must be 16 bytes, got a value of type str"):
        own.seal(report, "0" * 16)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="secret must be at least 16 bytes, but 4 were given"):
        own.nonce(b"1234")
    both = SecretKey("shuffler", bytes(32))
    twin = dataclasses.replace(both.public, role="analyst")
    with pytest.raises(ParameterError, match="another key than the analyst"):
        made(analyst=twin, shuffler=both.public)
    with pytest.raises(ParameterError, match="analyst must be the key of one analyst"):
        made(analyst=SHUFFLER.public)


def test_a_seed_is_told_to_the_analyst_alone() -> None:
    own = made()
    opened = SHUFFLER.opened(own.envelope(1, bytes(16), rng=1), own.envelope_context)
    assert opened is not None
    told = ANALYST.opened(opened[NONCE:], own.report_context)
    assert told is not None
    assert told[0] == 1


JUNK: list[Any] = [None, True, -1, 1e400, "", "x", [], [1], {}, {"x": 1}, "1" * 1000]


def leaves(told: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to everything in a file, the whole of it too."""
    yield path
    if isinstance(told, dict | list):
        for key in told if isinstance(told, dict) else range(len(told)):
            yield from leaves(told[key], (*path, key))


@pytest.mark.parametrize("randomizer", KINDS, ids=lambda kind: type(kind).__name__)
def test_a_file_of_a_stranger_is_refused_in_words(randomizer: device.Randomizer) -> None:
    told = made(randomizer=randomizer).specification()
    refused = 0
    for path in leaves(told):
        for junk in JUNK:
            changed: Any = json.loads(json.dumps(told))
            place = changed
            for key in path[:-1]:
                place = place[key]
            if path:
                place[path[-1]] = junk
            try:
                device.PublicCollection.from_specification(changed if path else junk)
            except ParameterError:
                refused += 1
    assert refused > 80
