"""Counts by split and mix: two sums that a client moves, the stated law, and whatever comes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.errors import ParameterError
from sfumato.local import Domain, device
from sfumato.local.base.specifications import protocol_from_specification, protocol_specification
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.shuffle.split_and_mix import Split
from sfumato.local.shuffle import ShuffledCounts
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.privacy import loss_from_json
from tests.chance import accepts_only, rate
from tests.local.laws import SEVEN_SIGMA, audited, have_moments

PROTOCOL = ShuffledCounts(epsilon=1.0, delta=1e-6, clients=2000, domain=Domain(list("abcde")))
COUNTS = np.array([1200, 0, 40, 60, 700])
SHARES = COUNTS / 2000


@pytest.mark.parametrize(
    ("epsilon", "delta", "clients"), [(0.2, 1e-8, 100), (1.0, 1e-6, 50_000), (4.0, 1e-5, 1)]
)
def test_the_target_is_met_by_a_curators_noise(epsilon: float, delta: float, clients: int) -> None:
    protocol = ShuffledCounts(epsilon=epsilon, delta=delta, clients=clients, domain=Domain(range(3)))
    loss = protocol.privacy_loss
    assert loss.pure().epsilon == epsilon
    assert loss.delta(epsilon) <= delta
    assert loss_from_json(loss.to_json()) == loss
    noise = DiscreteLaplaceDistribution(protocol.device.scale)
    assert clients * math.sqrt(protocol.variance(clients)) == pytest.approx(noise.stddev)
    assert noise.stddev <= 2 * math.sqrt(2) / epsilon
    assert protocol.messages == 3 * protocol.device.split.shares


def test_estimates_have_the_moments_and_the_coverage_that_are_stated() -> None:
    generator, repeats = np.random.default_rng(1), 5000
    told = [PROTOCOL.simulate(COUNTS, generator) for _ in range(repeats)]
    drawn = np.array([each.frequencies for each in told])
    stated = PROTOCOL.variance(2000)
    have_moments(drawn - SHARES, stated, tells=0.25, kurtosis=6)
    assert told[0].variances == pytest.approx(stated)
    assert told[0].covariance() == pytest.approx(np.eye(5) * stated)
    errors = (drawn - SHARES) * 2000
    law = DiscreteLaplaceDistribution(PROTOCOL.device.scale)
    for level in (0.9, 0.95, 0.99):
        width, exact = law.half_width(level)
        # Noise at the very end of an interval is within: on this lattice that is often.
        ends = [each.interval(level) for each in told]
        inside = np.array([(low <= SHARES) & (high >= SHARES) for low, high, _ in ends])
        assert (inside == (abs(errors) <= width + 0.5))[:, SHARES > 0].all()
        # A share of 0 is also held by what was clipped to it.
        held = inside[:, SHARES > 0]
        assert inside.mean() >= held.mean()
        accepts_only(rate(int(held.sum()), held.size), exact, twice_as_many_beyond=1 - 2 * (1 - exact))
        assert level <= exact <= level + 0.05
    assert (told[0].bands(0.95).upper >= told[0].interval(0.95).upper).all()
    assert told[0].consistent("norm-sub").frequencies.sum() == pytest.approx(1.0)


def test_messages_one_by_one_have_the_law_of_the_simulator() -> None:
    values, repeats = np.repeat(np.array(list("abcde")), COUNTS), 60
    found = []
    for seed in range(repeats):
        whole, parts = PROTOCOL.aggregator(), PROTOCOL.aggregator()
        batch = PROTOCOL.randomize_batch(values, seed).shuffled(seed)
        assert whole.add_batch(batch) == 2000 * PROTOCOL.messages
        for part in np.array_split(batch.records, 3):
            parts.add_batch(part)
        assert parts.totals.tolist() == whole.totals.tolist()
        found.append(whole.estimate().counts)
    errors = np.array(found) - COUNTS
    assert (errors == np.rint(errors)).all()
    variance = 2000**2 * PROTOCOL.variance(2000)

    def check(stated: float) -> None:
        assert abs(errors.mean()) <= SEVEN_SIGMA * math.sqrt(stated / errors.size)
        # 300 squares of Laplace noise: within half of their mean by 3.8 sigma, with these seeds.
        assert (errors**2).mean() / stated == pytest.approx(1.0, abs=0.5)

    accepts_only(check, variance, half=variance / 2, three_times=3 * variance)


def test_each_category_has_as_many_messages_whatever_is_true() -> None:
    for value in "ae":
        records = PROTOCOL.randomize_batch([value] * 20, 3).records
        places, shares = PROTOCOL.device.opened(records)
        assert (np.bincount(places) == 20 * PROTOCOL.device.split.shares).all()
        sent = PROTOCOL.device.layout.unpack(records).reshape(20, -1).astype(np.int64)
        assert (np.diff(sent, axis=1) >= 0).all()
        assert shares.max() < 1 << PROTOCOL.device.split.bits


def test_hostile_messages_are_counted_and_refused() -> None:
    aggregator, made = PROTOCOL.aggregator(), PROTOCOL.device
    sent, width = PROTOCOL.randomize("b", 1), made.width
    assert all(aggregator.add(sent[at : at + width]) for at in range(0, len(sent), width))
    assert not aggregator.add(sent)
    assert not aggregator.add(sent[: width - 1] + bytes([sent[width - 1] ^ 0x80]))
    beyond = made.layout.pack(np.array([5, 6, 7], np.uint64) << np.uint64(made.split.bits))
    assert aggregator.add_batch(beyond) == 0
    assert aggregator.refused == {"width": 1, "specification": 1, "encoding": 3}
    assert aggregator.estimate().reports == 1
    aggregator.add_batch(made.layout.pack(np.array([3], np.uint64)))
    assert np.isnan(aggregator.estimate().frequencies).all()
    lower, upper, _ = aggregator.estimate().interval()
    assert (lower.tolist(), upper.tolist()) == ([0.0] * 5, [1.0] * 5)


def test_devices_and_protocols_are_made_again_from_json() -> None:
    told = json.loads(json.dumps(PROTOCOL.device.specification()))
    made = Randomizer.from_specification(told)
    assert made == PROTOCOL.device
    assert made.randomize("c", 5) == PROTOCOL.randomize("c", 5)
    assert protocol_from_specification(json.loads(json.dumps(protocol_specification(PROTOCOL)))) == PROTOCOL
    wrongs: list[dict[str, Any]] = [
        {"split": [5]},
        {"split": [2000, 3, 52], "domain": {"range": [0, 99, 1]}},
        {"epsilon": 2.0**-20},
        {"domain": 3},
    ]
    for wrong in wrongs:
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, **wrong})


def test_what_cannot_be_is_refused() -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "clients": 100, "domain": Domain(range(4))}
    wrongs: list[dict[str, Any]] = [
        {"epsilon": 2.0**-20},
        {"delta": 0.0},
        {"clients": 0},
        {"domain": range(4)},
        {"max_clients": 3},
    ]
    for wrong in wrongs:
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            ShuffledCounts(**{**given, **wrong})
    with pytest.raises(ParameterError, match="at most 65536 messages"):
        ShuffledCounts(**{**given, "domain": Domain(range(10_000))})
    with pytest.raises(ParameterError, match="categories of the domain"):
        PROTOCOL.randomize("z")
    with pytest.raises(ParameterError, match="true_counts"):
        PROTOCOL.simulate([1, 2])


@pytest.mark.parametrize("epsilon", [4.0, 1.0])
def test_the_mixed_bytes_keep_epsilon_and_use_it(epsilon: float) -> None:
    client = device.ShuffledCountsRandomizer(epsilon=epsilon, domain=Domain(range(2)), split=Split(2, 6, 6))
    generator = np.random.default_rng(7)

    def seen(value: int, size: int) -> Any:
        mixed = client.randomize_batch(np.tile([value, 0], size), generator).records
        places, shares = client.opened(mixed)
        # No learner adds up modulo a number: they are read as their sums, and the difference of these.
        split = [np.where(places == place, shares, 0).reshape(size, -1).sum(axis=1) % 64 for place in (0, 1)]
        return np.column_stack([*split, (split[0] - split[1]) % np.uint64(64)])

    trials = {1.0: 200_000, 4.0: 100_000}[epsilon]
    found = audit(seen, epsilon=epsilon, pairs=[(0, 1)], trials=trials, batch=True, confidence=1 - 1e-10)
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


def test_no_clients_are_simulated_too() -> None:
    found = PROTOCOL.simulate([0] * len(PROTOCOL.domain))
    assert found.reports == 0
    assert np.isnan(found.raw).all()
