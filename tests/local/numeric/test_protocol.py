"""Means of numbers: the published variances, no bias, intervals that cover, and whatever bytes come."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import (
    Duchi,
    HybridMean,
    LaplaceMean,
    OneBitMean,
    PiecewiseMean,
    SquareWave,
    StochasticRoundingMean,
)
from sfumato.local.numeric.window_moments import WindowMoments
from sfumato.privacy import Neighboring
from sfumato.privacy.nodes.shuffled import Shuffled
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import SEVEN_SIGMA, covers, within

MEANS: list[Any] = [LaplaceMean, OneBitMean, PiecewiseMean, HybridMean]
KINDS: list[Any] = [*MEANS, StochasticRoundingMean, SquareWave]
# The greatest variance for a number in [-1, 1]: Wang et al. 2019, their formulas.
PUBLISHED = {
    LaplaceMean: (32, 8, 2, 0.5),
    OneBitMean: (16.67, 4.68, 1.72, 1.08),
    PiecewiseMean: (21.2, 5.22, 1.23, 0.241),
    HybridMean: (16.67, 4.29, 1.04, 0.219),
}
NUMBERS = np.concatenate([np.full(300, -0.9), np.linspace(-0.3, 1, 500), [1.0] * 200])


def mean_of(estimate: Any) -> Any:
    return (
        getattr(estimate, "mean", estimate) if type(estimate).__name__ == "DistributionEstimate" else estimate
    )


def collected(protocol: Any, numbers: Any, seed: int) -> Any:
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(numbers, seed))
    return aggregator


@pytest.mark.parametrize("kind", MEANS)
def test_published_variances(kind: Any) -> None:
    for epsilon, wanted in zip((0.5, 1.0, 2.0, 4.0), PUBLISHED[kind], strict=True):
        assert kind(epsilon=epsilon, bounds=(-1, 1)).variance(1) == pytest.approx(wanted, rel=4e-3)
        assert kind(epsilon=epsilon, bounds=(0, 20)).variance(10) == pytest.approx(10 * wanted, rel=4e-3)


def test_the_hybrid_mixes_from_the_published_epsilon_on() -> None:
    # Wang et al. 2019, equation 9.
    root = 405 * np.sqrt(241)
    start = float(np.log((-5 + 2 * np.cbrt(6353 - root) + 2 * np.cbrt(6353 + root)) / 27))
    assert start == pytest.approx(0.609, abs=5e-4)
    for epsilon in (start - 1e-3, start + 1e-3, 0.7):
        hybrid, bit = HybridMean(epsilon=epsilon, bounds=(-1, 1)), OneBitMean(epsilon=epsilon, bounds=(-1, 1))
        assert (hybrid.device.choice is not None) == (epsilon > start)
        assert hybrid.variance(1) <= bit.variance(1) * (1.002 if epsilon < 0.7 else 0.999)


def test_two_papers_have_one_law() -> None:
    assert Duchi is OneBitMean


@cases("kind", [OneBitMean, PiecewiseMean, StochasticRoundingMean, SquareWave])
@cases("epsilon", [0.2, 1.0, 5.0])
def test_moments_are_those_of_the_enumerated_law(kind: Any, epsilon: float) -> None:
    more = {} if kind is OneBitMean else {"steps": 7}
    device = kind(epsilon=epsilon, bounds=(0, 1), **more).device
    moments = WindowMoments.of(device)
    for place in range(device.steps + 1):
        law = list(device.probabilities(place).values())
        first = sum((y * mass for y, mass in enumerate(law)), Fraction(0))
        second = sum((y * y * mass for y, mass in enumerate(law)), Fraction(0))
        assert first == moments.offset + moments.gain * place
        assert second == sum(part * place**power for power, part in enumerate(moments.square))
        share = np.array([place / device.steps])
        exact = float((second - first**2) / (moments.gain * device.steps) ** 2)
        assert moments.variance(share)[0] == pytest.approx(exact, rel=1e-9)


@cases("kind", KINDS)
@cases("epsilon", [0.5, 4.0])
def test_reports_have_no_bias_and_the_variance_that_is_stated(kind: Any, epsilon: float) -> None:
    protocol, n = kind(epsilon=epsilon, bounds=(-1, 1)), 200_000
    for value in (-1.0, 0.25, 1.0):
        found = mean_of(collected(protocol, np.full(n, value), 3).estimate())
        stated = protocol.variance(n, value)
        accepts_only(within(found.mean, np.sqrt(stated)), value, less=value - 0.5, more=value + 0.5)
        # Numbers alike: the variance that reports show is the stated one.
        assert found.variance == pytest.approx(stated, rel=0.03)
        assert found.simulated
        assert found.reports == n


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_intervals_cover(kind: Any, epsilon: float) -> None:
    protocol, repeats = kind(epsilon=epsilon, bounds=(-1, 1)), 1500
    truth, hits, exact, misses = float(NUMBERS.mean()), 0, 0, []
    numbers = np.tile(NUMBERS, 2)
    records = protocol.randomize_batch(np.tile(numbers, repeats), 11).records
    for part in np.split(records, repeats):
        found = mean_of(protocol.estimate(protocol.tally(part), len(part)))
        low, high, _ = found.interval(0.95)
        hits += low <= truth <= high
        misses.append((found.mean - truth) / found.stddev)
        if kind is not LaplaceMean:
            low, high, _ = found.interval(0.95, method="exact")
            exact += low <= truth <= high
    # One bit does not tell how far numbers differ; all others cover no more than they should.
    covers(
        hits, repeats, claimed=1.0 if kind is OneBitMean else 0.999, most=1.0 if kind is OneBitMean else 0.96
    )

    def check(deviation: float) -> None:
        # Standardised errors: mean 0 and deviation 1, or less for one bit.
        assert abs(np.mean(misses)) <= SEVEN_SIGMA * 1.05 * deviation / np.sqrt(repeats)
        assert np.std(misses) <= 1.13 * deviation
        assert kind in (OneBitMean, HybridMean) or np.std(misses) >= 0.87 * deviation

    wrong = {} if kind in (OneBitMean, HybridMean) else {"a_third_more": 4 / 3}
    accepts_only(check, 1.0, much_less=3 / 4 if wrong else 1 / 3, **wrong)
    assert kind is LaplaceMean or exact / repeats >= 0.97


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_close_to_epsilon_and_never_above(kind: Any) -> None:
    for epsilon in (0.3, 1.0, 4.0):
        loss = kind(epsilon=epsilon, bounds=(0, 1)).privacy_loss
        assert loss.neighboring is Neighboring.REPLACE_ONE
        assert 0.999 * epsilon <= loss.epsilon(0.0) <= epsilon
        assert Shuffled(loss, clients=100_000).epsilon(1e-6) < epsilon / 3


@cases("kind", KINDS)
def test_pieces_merge_and_states_come_back(kind: Any) -> None:
    protocol = kind(epsilon=1.0, bounds=(-1, 1))
    a, b = collected(protocol, NUMBERS, 1), collected(protocol, NUMBERS[:7], 2)
    left = protocol.aggregator(a.to_bytes()).merge(b)
    right = protocol.aggregator().merge(b.to_bytes()).merge(a)
    assert left.to_bytes() == right.to_bytes()
    assert left.accepted == 1007
    single = protocol.aggregator()
    assert all(single.add(record) for record in protocol.randomize_batch(NUMBERS, 1))
    assert single.totals.tolist() == a.totals.tolist()
    with pytest.raises(ParameterError):
        kind(epsilon=1.5, bounds=(-1, 1)).aggregator(a.to_bytes())


@cases("kind", KINDS)
def test_whatever_bytes_come_are_counted(kind: Any) -> None:
    protocol = kind(epsilon=1.0, bounds=(-1, 1))
    aggregator, width = protocol.aggregator(), protocol.device.width
    noise = np.random.default_rng(5).integers(0, 256, (20_000, width), dtype=np.uint8)
    protocol.device.layout.stamp(noise[:1500])
    aggregator.add_batch(noise)
    aggregator.add(b"")
    aggregator.add(bytes(width + 1))
    aggregator.add_batch(kind(epsilon=1.0, bounds=(-1, 2)).randomize_batch([0.5] * 10, 1))
    assert aggregator.accepted + sum(aggregator.refused.values()) == 20_012
    assert aggregator.refused["width"] == 2
    assert aggregator.refused["specification"] >= 10 + 20_000 * 0.9
    if kind is not OneBitMean:
        assert aggregator.refused["encoding"] > 0
    found = mean_of(aggregator.estimate())
    assert np.isfinite([found.mean, found.variance]).all()


@cases("kind", KINDS)
def test_without_reports_every_mean_is_possible(kind: Any) -> None:
    protocol = kind(epsilon=1.0, bounds=(-1, 3))
    found = mean_of(protocol.aggregator().estimate())
    assert np.isnan(found.mean)
    assert found.variance == np.inf
    assert tuple(found.interval())[:2] == (-1.0, 3.0)
    one = mean_of(collected(protocol, [0.5], 1).estimate())
    low, high, _ = one.interval()
    assert -1 <= low <= high <= 3


def test_what_is_asked_wrongly_is_refused() -> None:
    protocol = LaplaceMean(epsilon=1.0, bounds=(0, 1))
    found = collected(protocol, [0.5], 1).estimate()
    with pytest.raises(ParameterError, match="method must be 'normal' or 'exact'"):
        found.interval(method="score")
    with pytest.raises(ParameterError, match="method must be 'normal' for noise without bound"):
        found.interval(method="exact")
    with pytest.raises(ParameterError, match="level must"):
        found.interval(1.0)
    with pytest.raises(ParameterError, match="value must be from 0"):
        protocol.variance(10, 2.0)
    with pytest.raises(ParameterError, match="n must"):
        protocol.variance(0)


@pytest.mark.parametrize("kind", [PiecewiseMean, HybridMean, SquareWave])
def test_intervals_count_on_rare_reports_that_none_of_few_sends(kind: Any) -> None:
    """With epsilon 10 one report in 150 is far off and makes most of the error; of 300 there may be none."""
    protocol, repeats = kind(epsilon=10.0, bounds=(-1, 1)), 400
    hits, wide = 0, 0.0
    for part in np.split(protocol.randomize_batch(np.full(300 * repeats, 0.37), 12).records, repeats):
        low, high, _ = mean_of(protocol.estimate(protocol.tally(part), 300)).interval(0.95)
        hits += low <= 0.37 <= high
        wide = max(wide, high - low)
    covers(hits, repeats, 0.93, claimed=0.999)
    assert wide < 0.1


@cases("kind", [OneBitMean, PiecewiseMean, HybridMean, StochasticRoundingMean, SquareWave])
@cases("bounds", [(2.0, 7.0), (-9.0, -1.0)])
def test_exact_intervals_reach_as_far_as_two_reports_differ(kind: Any, bounds: tuple[float, float]) -> None:
    """Hoeffding's bound with the range of one report's part, found by estimates from every single report."""
    protocol = kind(epsilon=1.0, bounds=bounds, **({} if kind is OneBitMean else {"steps": 4}))
    records = np.unique(protocol.randomize_batch(np.repeat(bounds, 2000), 1).records, axis=0)
    parts = [mean_of(protocol.estimate(protocol.tally(record[None]), 1)).mean for record in records]
    found = mean_of(collected(protocol, np.repeat(bounds, 5000), 2).estimate())
    assert found.reach == pytest.approx(max(parts) - min(parts), rel=1e-9)
    half = (max(parts) - min(parts)) * np.sqrt(np.log(2 / 0.05) / (2 * 10_000))
    low, high, _ = found.interval(0.95, method="exact")
    assert (low, high) == pytest.approx((found.mean - half, found.mean + half), rel=1e-9)
    assert found.mean - low < (bounds[1] - bounds[0]) / 2
