"""Histograms among decoys: all messages enumerated, estimates against the law they state, whatever comes."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import Domain, device
from sfumato.local.device.base.bernoulli import Coin
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.shuffle.decoys import Decoys
from sfumato.local.shuffle import ShuffledHistogram
from sfumato.local.shuffle.protocol import fewest
from sfumato.privacy import AmongDecoys, RandomizedResponse
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import below_exponential, covers, have_moments, reports, within, worst_odds

COUNTS = np.array([700, 200, 0, 60, 0, 40, 1000])


@pytest.fixture(scope="module", autouse=True)
def planned() -> None:
    """Find the fewest decoys, which takes seconds, before the first test."""
    protocol()


@functools.cache
def protocol() -> ShuffledHistogram:
    return ShuffledHistogram(epsilon=1.0, delta=1e-6, clients=2000, domain=Domain(list("abcdefg")))


def small(categories: int, slots: int, epsilon: float = 2.0) -> device.ShuffledHistogramRandomizer:
    decoys = Decoys(slots, Coin(3 << 62))
    return device.ShuffledHistogramRandomizer(
        epsilon=epsilon, domain=Domain(range(categories)), decoys=decoys
    )


def seen(client: device.ShuffledHistogramRandomizer, values: list[int]) -> dict[bytes, Fraction]:
    """The exact law of the mixed messages of clients with such values: sorted records."""
    law, width = {b"": Fraction(1)}, client.width
    for value in values:
        after: dict[bytes, Fraction] = {}
        for (old, mass), (new, chance) in itertools.product(law.items(), client.probabilities(value).items()):
            both = old + new
            key = b"".join(sorted(both[at : at + width] for at in range(0, len(both), width)))
            after[key] = after.get(key, Fraction(0)) + mass * chance
        law = after
    return law


@cases(("categories", "slots", "clients"), [(2, 1, 2), (2, 2, 2), (3, 1, 2), (2, 1, 4), (3, 1, 3)])
def test_the_mixed_messages_of_few_clients_keep_what_is_priced(
    categories: int, slots: int, clients: int
) -> None:
    client = small(categories, slots)
    odds = client.truth.chance * (categories - 1) / (1 - client.truth.chance)
    told = RandomizedResponse(math.log(odds) * (1 + 1e-15), categories)
    loss = AmongDecoys(told, clients * slots, client.decoys.coin.chance)
    nearest = 0.0
    for others in itertools.combinations_with_replacement(range(categories), clients - 1):
        laws = [seen(client, [*others, changed]) for changed in (0, 1)]
        assert sum(laws[0].values()) == 1
        for epsilon in (0.0, 0.2, 0.5, 1.0, 1.5):
            factor = Fraction(math.exp(epsilon))
            gaps = (mass - factor * laws[1].get(key, Fraction(0)) for key, mass in laws[0].items())
            true, bound = float(sum(gap for gap in gaps if gap > 0)), loss.delta(epsilon)
            assert true <= bound * (1 + 1e-12) + 1e-14
            nearest = max(nearest, true / bound)
    assert nearest > 0.2


def test_a_clients_messages_alone_keep_the_bound_of_the_device() -> None:
    client = small(3, 2)
    worst = worst_odds(client.probabilities, range(3))
    assert below_exponential(worst, 2.0, share=0.2)


def test_one_client_draws_from_the_law_that_is_told() -> None:
    client, n = small(3, 1), 40_000
    records = client.randomize_batch(np.full(n, 1), 3).records.reshape(n, -1)
    found, counts = np.unique(records, axis=0, return_counts=True)
    law = client.probabilities(1)
    assert {row.tobytes() for row in found} <= law.keys()
    seen = {row.tobytes(): int(count) for row, count in zip(found, counts, strict=True)}
    accepts_only(reports(seen, law), law, of_another=client.probabilities(2))


@pytest.mark.parametrize(("epsilon", "delta", "clients"), [(0.3, 1e-5, 500), (1.0, 1e-6, 2000)])
def test_the_target_is_met_with_few_decoys(epsilon: float, delta: float, clients: int) -> None:
    protocol = ShuffledHistogram(
        epsilon=epsilon, delta=delta, clients=clients, domain=Domain(list("abcdefg"))
    )
    assert protocol.privacy_loss.delta(epsilon) <= delta
    decoys, loss = protocol.device.decoys, protocol.privacy_loss
    assert isinstance(loss, AmongDecoys)
    assert (loss.decoys, loss.chance) == (clients * decoys.slots, decoys.coin.chance)
    assert 15.999 < loss.loss.epsilon(0.0) <= 16.0
    fewer = AmongDecoys(RandomizedResponse(16.0, 7), clients * decoys.slots, decoys.coin.chance * 97 / 100)
    assert fewer.delta(epsilon) > delta
    # Gaussian noise of a curator, on two counts that move by one each, would stray about as far.
    curator = math.sqrt(2 * 2 * math.log(1.25 / delta)) / epsilon
    assert clients * math.sqrt(protocol.variance(clients)) < 1.3 * curator


def test_estimates_have_the_moments_that_are_stated() -> None:
    n, shares, repeats = int(COUNTS.sum()), COUNTS / COUNTS.sum(), 4000
    generator = np.random.default_rng(1)
    estimates = [protocol().simulate(COUNTS, generator) for _ in range(repeats)]
    drawn = np.array([estimate.frequencies for estimate in estimates])
    stated = protocol().error_model().variance(shares) / n
    have_moments(drawn - shares, stated, tells=0.2)
    matrix = (drawn - shares).T @ (drawn - shares) / repeats
    expected = protocol().error_model().covariance(shares, np.arange(7)) / n
    found = within(matrix, np.sqrt(np.outer(stated, stated) * 2 / repeats))
    accepts_only(found, expected, a_fifth_less=0.8 * expected, a_quarter_more=1.25 * expected)
    held = [(e.interval(0.95).lower <= shares) & (shares <= e.interval(0.95).upper) for e in estimates]
    covers(int(np.sum(held)), np.size(held), claimed=0.99, most=0.985, under=0.93)
    assert protocol().variance(n, 0.5) == pytest.approx(stated[-1], rel=1e-3)


def test_messages_one_by_one_have_the_law_of_the_simulator() -> None:
    values = np.repeat(np.array(list("abcdefg")), COUNTS * 20)
    batch = protocol().randomize_batch(values, 5).shuffled(6)
    assert len(batch) == len(values) * protocol().messages
    whole, parts = protocol().aggregator(), protocol().aggregator()
    whole.add_batch(batch)
    for part in np.array_split(batch.records, 3):
        parts.merge(protocol().aggregator(protocol().aggregator().merge(_counted(part)).to_bytes()))
    assert parts.totals.tolist() == whole.totals.tolist()
    estimate, shares = whole.estimate(), COUNTS / COUNTS.sum()
    assert estimate.reports == len(values)
    assert estimate.simulated
    stated = np.sqrt(protocol().error_model().variance(shares) / len(values))
    accepts_only(within(estimate.frequencies, stated), shares, in_another_order=np.roll(shares, 1))
    assert np.isnan(protocol().aggregator().estimate().frequencies).all()


def _counted(records: np.ndarray) -> bytes:
    made = protocol().aggregator()
    made.add_batch(records)
    return made.to_bytes()


def test_within_a_client_the_order_tells_nothing() -> None:
    client = small(3, 5)
    for value in range(3):
        sent = client.randomize(value)
        assert len(sent) == client.messages * client.width
        records = [sent[at : at + client.width] for at in range(0, len(sent), client.width)]
        assert records == sorted(records)
    assert len(client.randomize_batch([])) == 0
    assert not client.randomize_batch([1]).simulated
    assert client.randomize_batch([1], 7).records.tobytes() == client.randomize(1, 7)


def test_hostile_messages_are_counted_and_refused() -> None:
    aggregator = protocol().aggregator()
    sent, width = protocol().randomize("a", 1), protocol().device.width
    assert all(aggregator.add(sent[at : at + width]) for at in range(0, len(sent), width))
    assert not aggregator.add(sent)  # a whole client's messages are no record
    assert not aggregator.add(sent[: width - 1] + bytes([sent[width - 1] ^ 0x80]))
    own = protocol().device
    stranger = device.ShuffledHistogramRandomizer(
        epsilon=own.epsilon, domain=Domain(range(6)), decoys=own.decoys
    )
    assert aggregator.add_batch(stranger.randomize_batch([1, 2], 1)) == 0
    assert aggregator.refused == {"width": 1, "specification": 1 + 2 * stranger.messages, "encoding": 0}
    nine = small(9, 1)
    beyond = nine.layout.pack(np.array([9, 10, 15], np.uint64))
    assert nine.well_formed(beyond).tolist() == [True, False, False]


def test_a_device_is_made_again_from_its_specification() -> None:
    told = json.loads(json.dumps(protocol().device.specification()))
    made = Randomizer.from_specification(told)
    assert made == protocol().device
    assert made.digest == protocol().device.digest
    for wrong in ({"decoys": [2]}, {"decoys": [0, 5]}, {"decoys": None}, {"truth": 5}):
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, **wrong})


def test_what_cannot_be_is_refused() -> None:
    domain = Domain(range(4))
    for wrong in ({"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"clients": 0}, {"domain": range(4)}):
        given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "clients": 100, "domain": domain, **wrong}
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            ShuffledHistogram(**given)
    with pytest.raises(ParameterError, match="clients must be enough"):
        ShuffledHistogram(epsilon=1.0, delta=1e-6, clients=1, domain=Domain(range(10_000)))
    with pytest.raises(ParameterError, match="categories of the domain"):
        protocol().randomize("z")
    with pytest.raises(ParameterError, match="true_counts"):
        protocol().simulate([1, 2])


@cases(
    ("log_delta", "guess"),
    [
        (lambda n: -n / 1e4, 150_000),  # a line
        (lambda n: -n / 1e4, 900_000),
        (lambda n: -n / 1e4, 10),
        (lambda n: -((n / 1e4) ** 2), 50_000),
        (lambda n: -math.sqrt(n / 1e4), 3_000_000),
        (lambda n: -math.inf if n >= 77_777 else 0.0, 100_000),  # a step
        (lambda n: -math.inf, 1000),
    ],
)
def test_decoys_are_at_most_a_two_hundredth_too_many(log_delta: Callable[[int], float], guess: int) -> None:
    tried: list[int] = []

    def price(decoys: int) -> Any:
        tried.append(decoys)
        return SimpleNamespace(delta=lambda epsilon: math.exp(log_delta(decoys)))

    found = fewest(price, 1.0, 1e-6, guess)
    enough = log_delta(found) <= math.log(1e-6)
    assert enough
    fewer = found - max(1, int(0.005 * found)) - 1
    assert fewer <= 0 or log_delta(fewer) > math.log(1e-6)
    assert len(tried) == len(set(tried)) <= 50


def test_a_loss_like_a_line_is_asked_four_times() -> None:
    tried: list[int] = []

    def price(decoys: int) -> Any:
        tried.append(decoys)
        return SimpleNamespace(delta=lambda epsilon: math.exp(-decoys / 1e4))

    assert fewest(price, 1.0, 1e-6, 150_000) == pytest.approx(138_155, rel=0.005)
    assert len(tried) <= 4
