"""A collection by way of a shuffler, as its analyst knows it: its price, its file, and what it opens."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import local
from sfumato.errors import ParameterError, SourceError
from sfumato.local.device import PublicCollection
from sfumato.local.shuffle import (
    Collection,
    MixedBatch,
    Opening,
    SecretKey,
    ShuffledHistogram,
    ShuffledSum,
)
from sfumato.local.shuffle.mixed_batch import random_order
from sfumato.numerics.randomness.source import random_source
from sfumato.privacy import Shuffled
from tests.cases import cases

ANALYST, SHUFFLER = SecretKey.generate("analyst"), SecretKey.generate("shuffler")
ORACLE = local.RandomizedResponse(epsilon=3.0, domain=local.Domain(["red", "green", "blue"]))


def made(protocol: Any = ORACLE, **changes: Any) -> Collection:
    keys = {"analyst": ANALYST.public, "shuffler": SHUFFLER.public}
    return Collection(**{"protocol": protocol, "batch_size": 20, "colluders": 2, **keys, **changes})


def batch(collection: Collection, values: list[Any], number: int = 1, rng: int | None = None) -> MixedBatch:
    """What a shuffler would release of some clients."""
    known = collection.device
    rows = []
    for value in values:
        opened = SHUFFLER.opened(known.envelope(value, os.urandom(16), rng), known.envelope_context)
        assert opened is not None
        rows.append(np.frombuffer(opened[16:], np.uint8))
    sealed = np.stack(rows).reshape(-1, known.sealed_width)
    return MixedBatch(known.id, number, sealed[random_order(len(sealed), random_source())])


def test_the_price_is_that_of_the_honest_clients() -> None:
    collection = made(batch_size=1000, colluders=100)
    assert collection.clients == 900
    expected = Shuffled(ORACLE.privacy_loss, clients=900)
    assert collection.privacy_loss == expected
    assert collection.privacy_loss.epsilon(1e-6) < made(batch_size=900).privacy_loss.epsilon(1e-6)


def test_several_messages_need_the_clients_that_they_were_planned_for() -> None:
    histogram = ShuffledHistogram(epsilon=2.0, delta=1e-3, clients=100, domain=local.Domain(range(3)))
    collection = made(histogram, batch_size=110, colluders=10)
    assert collection.privacy_loss == histogram.privacy_loss
    with pytest.raises(
        ParameterError, match="clients must be at least 100, as the protocol counts on, got 99"
    ):
        made(histogram, batch_size=110, colluders=11)


def test_sums_have_room_for_a_batch() -> None:
    total = ShuffledSum(epsilon=2.0, delta=1e-3, clients=10, bounds=(0.0, 1.0))
    assert total.max_clients == 20
    made(total, batch_size=20, colluders=10)
    with pytest.raises(ParameterError, match="batch_size must be at most 20, got 21; pass max_clients="):
        made(total, batch_size=21, colluders=11)


def test_batches_are_opened_and_counted() -> None:
    collection = made()
    opening = collection.opening(ANALYST)
    assert opening.add(batch(collection, ["red"] * 20).to_bytes()) == 20
    assert opening.add(batch(collection, ["blue"] * 20, number=2)) == 20
    assert opening.batches == 2
    assert sum(opening.refused.values()) == 0
    assert opening.exposed == ()
    estimate = opening.estimate()
    assert estimate.reports == 40
    assert not estimate.simulated
    assert estimate.frequencies.argmin() == 1


def test_messages_of_a_client_are_counted_by_the_protocol() -> None:
    histogram = ShuffledHistogram(epsilon=4.0, delta=1e-2, clients=18, domain=local.Domain(range(2)))
    collection = made(histogram)
    assert collection.device.messages == histogram.messages > 1
    opening = collection.opening(ANALYST)
    opening.add(batch(collection, [1] * 20))
    assert opening.aggregator.accepted == 20 * histogram.messages
    assert opening.estimate().reports == 20


def test_seeded_reports_mark_the_estimate() -> None:
    collection = made()
    opening = collection.opening(ANALYST)
    opening.add(batch(collection, ["red"] * 20, rng=1))
    assert opening.estimate().simulated


def test_it_goes_by_way_of_json() -> None:
    protocols = [
        ORACLE,
        local.OptimalLocalHashing(epsilon=1.0, domain=local.Domain(range(1000))),
        local.PiecewiseMean(epsilon=1.0, bounds=(18.0, 90.0)),
        ShuffledHistogram(epsilon=2.0, delta=1e-3, clients=18, domain=local.Domain(range(3))),
    ]
    for protocol in protocols:
        collection = made(protocol)
        again = Collection.from_specification(json.loads(json.dumps(collection.specification())))
        assert again.device.id == collection.device.id
        assert again.protocol == protocol


def test_a_protocol_that_json_has_not_is_given() -> None:
    oracle = local.RandomizedResponse(epsilon=3.0, domain=local.Domain([("a",), ("b",)]))
    told = made(oracle).specification()
    assert "protocol" not in told
    with pytest.raises(ParameterError, match="pass protocol="):
        Collection.from_specification(told)
    assert Collection.from_specification(told, protocol=oracle).protocol is oracle


@cases(
    "protocol",
    [
        {"name": "collection", "parameters": {}},
        {"name": "randomized-response", "parameters": {"epsilon": 3.0}},
        {"name": "randomized-response", "parameters": None},
        {"name": "randomized-response", "parameters": {"epsilon": 3.0, "domain": {"domain": 7}}},
        {"name": "randomized-response", "parameters": {"epsilon": 3.0, "domain": 7}},
        "RandomizedResponse",
        None,
    ],
)
def test_no_protocol_is_refused(protocol: object) -> None:
    with pytest.raises(ParameterError):
        Collection.from_specification({**made().specification(), "protocol": protocol})


def test_another_protocol_than_the_devices_is_refused() -> None:
    other = local.RandomizedResponse(epsilon=0.5, domain=ORACLE.domain)
    with pytest.raises(ParameterError, match="must be the one that the devices report by"):
        Collection.from_specification(made().specification(), protocol=other)


def test_foreign_and_broken_batches_are_refused_as_a_whole() -> None:
    collection = made()
    whole = batch(collection, ["red"] * 20)
    opening = collection.opening(ANALYST)
    other = made(name="other")
    data = whole.to_bytes()
    for bad in (
        batch(other, ["red"] * 20),
        MixedBatch(whole.collection, 1, whole.sealed[:-1]),
        MixedBatch(whole.collection, 1, whole.sealed.reshape(-1, whole.sealed.shape[1] * 2)),
        data[:-1],
        data + b"\x00",
        b"",
        b"junk" * 100,
        data[:8] + b"\x03" + data[9:],
    ):
        with pytest.raises(ParameterError, match="a batch must"):
            opening.add(bad)
    assert opening.batches == 0
    assert opening.add(data) == 20
    with pytest.raises(ParameterError, match="be opened once, got 1"):
        opening.add(data)
    assert opening.aggregator.accepted == 20


def test_broken_records_are_counted_and_show_too_many_liars() -> None:
    collection = made(colluders=2)
    for broken in (2, 3):
        whole = batch(collection, ["red"] * 20)
        sealed = whole.sealed.copy()
        sealed[:broken, -1] ^= 1
        opening = collection.opening(ANALYST)
        assert opening.add(MixedBatch(whole.collection, 1, sealed)) == 20 - broken
        assert opening.refused["seal"] == broken
        assert opening.exposed == ((1,) if broken > 2 else ())


def junk(document: Any) -> Iterator[Any]:
    """A document with each of its parts in turn replaced by what does not belong there, or left out."""
    strange: tuple[Any, ...] = (
        None,
        3,
        -1,
        2**70,
        1e308,
        "x",
        [],
        {},
        [[1]],
        {"digest": 5},
        {"digest": "0", "values": [[1]]},
    )
    yield from strange
    if isinstance(document, dict):
        for name, part in document.items():
            yield {key: value for key, value in document.items() if key != name}
            yield from ({**document, name: other} for other in junk(part))


def test_no_document_raises_an_error_of_another_kind() -> None:
    whole = json.loads(json.dumps(made().specification()))
    assert Collection.from_specification(whole).device.id == made().device.id
    accepted = 0
    for document in junk(whole):
        with contextlib.suppress(ParameterError):
            PublicCollection.from_specification(document)
        with contextlib.suppress(ParameterError):
            accepted += bool(Collection.from_specification(document))
    assert accepted < 10  # another name, or the same number in another way


def test_well_sealed_nonsense_is_counted() -> None:
    collection = made()
    known, whole = collection.device, batch(collection, ["red"] * 20)
    sealed = whole.sealed.copy()
    genuine = ORACLE.randomize("red")
    for place, content in enumerate(
        (b"\x02" + genuine, b"\x00" + genuine[:-1] + bytes([genuine[-1] ^ 0x40]))
    ):
        sealed[place] = np.frombuffer(ANALYST.public.seal(content, known.report_context), np.uint8)
    opening = Opening(collection, ANALYST)
    assert opening.add(MixedBatch(whole.collection, 1, sealed)) == 18
    assert opening.refused == {"seal": 1, "width": 0, "specification": 1, "encoding": 0}


def test_only_the_analyst_opens() -> None:
    for key in (SHUFFLER, SecretKey.generate("analyst")):
        with pytest.raises(ParameterError, match="key must be that of the collection's analyst"):
            made().opening(key)


def test_keys_are_kept_in_files_that_only_the_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "analyst.key"
    ANALYST.to_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert SecretKey.from_file(path, "analyst").public == ANALYST.public
    with pytest.raises(ParameterError, match="must be a new one"):
        ANALYST.to_file(path)
    with pytest.raises(ParameterError, match="secret key of one shuffler"):
        SecretKey.from_file(path, "shuffler")
    with pytest.raises(SourceError):
        SecretKey.from_file(tmp_path / "none", "analyst")
    for mode in (0o640, 0o604):
        path.chmod(mode)
        with pytest.raises(ParameterError, match="key's file must be one that its owner alone can read"):
            SecretKey.from_file(path, "analyst")
    path.chmod(0o400)
    assert SecretKey.from_file(path, "analyst").public == ANALYST.public
    path.chmod(0o600)
    path.write_text(ANALYST.public.to_text())
    with pytest.raises(ParameterError, match="secret key of one analyst"):
        SecretKey.from_file(path, "analyst")
    assert "seed" not in repr(ANALYST)
    assert ANALYST.word.decode() not in repr(ANALYST)


def test_keys_follow_from_their_seed_for_good() -> None:
    key = SecretKey("analyst", bytes(range(32)))
    assert key.public.point.hex() == "8140699ed9ef23b9834a4da17c330af79b2730660d7b7b893470bbdc212afd3c"
    assert key.public.point != SecretKey("shuffler", bytes(range(32))).public.point


class Scripted:
    """A source of the words that a test gives it."""

    simulated = True

    def __init__(self, *given: Sequence[int]) -> None:
        self.left = list(given)

    def words(self, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return np.array(self.left.pop(0), np.uint64)

    def bytes(self, count: int) -> bytes:
        raise NotImplementedError


def test_every_order_is_equally_likely() -> None:
    """All orders of four words, which are as likely as one another, give another order each."""
    for words in ((0, 1, 2, 3), (5, 1 << 40, 2**63, 2**64 - 1)):
        orders = Counter(tuple(random_order(4, Scripted(each)).tolist()) for each in permutations(words))
        assert orders == Counter(permutations(range(4)))


def test_words_that_are_alike_are_drawn_anew() -> None:
    """Ties broken by place would give the order of arrival more than its sixth: 35 of 125, and not 1 of 6."""
    after: Counter[tuple[int, ...]] = Counter()
    for words in product(range(5), repeat=3):
        source = Scripted(words, (7, 9, 8))
        order = tuple(random_order(3, source).tolist())
        alike = len(set(words)) < 3
        assert len(source.left) == (not alike)
        if alike:
            assert order == (0, 2, 1)
        else:
            after[order] += 1
    assert after == dict.fromkeys(permutations(range(3)), 10)


@cases("told", [None, [], "collection", 5, float("nan")])
def test_what_tells_no_collection_at_all_is_refused(told: Any) -> None:
    with pytest.raises(ParameterError, match="protocol must be written"):
        Collection.from_specification(told)
