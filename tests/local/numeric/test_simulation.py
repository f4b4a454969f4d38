"""Numbers simulated by counts: the law of everybody's reports, for any number of people."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import (
    HybridMean,
    LaplaceMean,
    OneBitMean,
    PiecewiseMean,
    SquareWave,
    StochasticRoundingMean,
)
from sfumato.local.numeric.simulation import at_points, drawn_reports, even_windows
from tests.cases import cases
from tests.chance import accepts_only, frequencies
from tests.local.laws import alike, covers, have_moments, within

KINDS: list[Any] = [LaplaceMean, OneBitMean, PiecewiseMean, HybridMean, StochasticRoundingMean, SquareWave]
NUMBERS, COUNTS = np.array([-0.9, -0.31, 0.2, 1.0]), np.array([300, 200, 300, 200])
MEAN = float(NUMBERS @ COUNTS) / 1000


def mean_of(estimate: Any) -> Any:
    return getattr(estimate, "mean", estimate) if hasattr(estimate, "counts") else estimate


@pytest.mark.parametrize(
    ("starts", "window"), [((2, 0, 1), 3), ((1, 1), 5), ((0, 3), 1), ((1, 0, 0, 1, 1), 2)]
)
def test_windows_have_the_law_of_draws_one_by_one(starts: tuple[int, ...], window: int) -> None:
    people = [at for at, count in enumerate(starts) for _ in range(count)]
    law: Counter[tuple[int, ...]] = Counter()
    for drawn in product(range(window), repeat=len(people)):
        places = np.bincount(
            [a + b for a, b in zip(people, drawn, strict=True)], minlength=len(starts) + window - 1
        )
        law[tuple(places.tolist())] += 1
    generator, n = np.random.default_rng(1), 6000
    seen = Counter(tuple(even_windows(np.array(starts), window, generator).tolist()) for _ in range(n))
    assert set(seen) <= set(law)
    chances = {row: count / window ** len(people) for row, count in law.items()}
    even = dict.fromkeys(law, 1 / len(law))
    if len(set(law.values())) > 1:
        accepts_only(frequencies(seen), chances, even=even)
    first = {row: 2 / (len(law) + 1) if row == next(iter(law)) else 1 / (len(law) + 1) for row in law}
    if len(law) > 1:
        accepts_only(frequencies(seen), chances, one_twice_as_often=first)


@pytest.mark.parametrize("kind", [OneBitMean, PiecewiseMean, StochasticRoundingMean, SquareWave])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_reports_have_the_moments_of_the_enumerated_law(kind: Any, epsilon: float) -> None:
    device = kind(epsilon=epsilon, bounds=(0, 1), **({} if kind is OneBitMean else {"steps": 7})).device
    places = np.arange(device.steps + 1) * 40 + 5
    laws = np.array([[float(p) for p in device.probabilities(k).values()] for k in range(device.steps + 1)])
    mean = places @ laws
    covariance = np.diag(mean) - (laws * places[:, None]).T @ laws
    generator, repeats = np.random.default_rng(2), 3000
    drawn = np.array([drawn_reports(device, places, generator) for _ in range(repeats)])
    assert (drawn.sum(axis=1) == places.sum()).all()
    spread = np.sqrt(np.diag(covariance))
    have_moments(drawn - mean, spread**2, tells=0.25)
    found = within(np.cov(drawn.T), np.outer(spread, spread) * np.sqrt(2 / repeats))
    accepts_only(found, covariance, a_fifth_less=0.8 * covariance, a_fifth_more=1.2 * covariance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_estimates_stray_as_stated_and_intervals_cover(kind: Any, epsilon: float) -> None:
    protocol, times, repeats = kind(epsilon=epsilon, bounds=(-1, 1)), 1000, 1200
    n = times * 1000
    shares = (NUMBERS + 1) / 2
    exact = 4 * float(protocol._variances(shares) @ COUNTS) / 1000 / n
    generator = np.random.default_rng(3)
    found = [mean_of(protocol.simulate(NUMBERS, COUNTS * times, generator)) for _ in range(repeats)]
    errors = np.array([each.mean for each in found]) - MEAN
    have_moments(errors, exact, tells=0.4)
    held = sum(each.interval(0.95).lower <= MEAN <= each.interval(0.95).upper for each in found)
    # A single bit does not tell how far numbers differ: its variance is that of numbers all alike.
    covers(
        held, repeats, claimed=1.0 if kind is OneBitMean else 0.999, most=1.0 if kind is OneBitMean else 0.96
    )
    assert all(each.simulated and each.reports == n for each in found)


@cases("kind", KINDS)
def test_the_totals_are_those_of_an_aggregator(kind: Any) -> None:
    protocol, repeats = (
        kind(epsilon=2.0, bounds=(-1, 1), **({} if kind is OneBitMean else {"steps": 6})),
        1000,
    )
    numbers = np.repeat(NUMBERS, [3, 2, 3, 2])
    records = protocol.randomize_batch(np.tile(numbers, repeats), 5).records
    one_by_one = np.array([protocol.tally(part) for part in np.split(records, repeats)])
    generator = np.random.default_rng(6)
    at_once = np.array([protocol.simulate_counts(NUMBERS, [3, 2, 3, 2], generator) for _ in range(repeats)])
    assert at_once.dtype == np.int64
    assert one_by_one.shape == at_once.shape
    for power in (1, 2):
        drawn = at_once.astype(float) ** power
        accepts_only(
            alike(one_by_one**power), drawn, two_fifths_of_a_deviation_off=drawn + 0.4 * drawn.std(axis=0)
        )


@cases("kind", KINDS)
def test_a_thousand_million_people_are_simulated_at_once(kind: Any) -> None:
    protocol = kind(epsilon=1.0, bounds=(18, 90))
    numbers = np.linspace(18, 90, 200)
    found = mean_of(protocol.simulate(numbers, np.full(200, 5_000_000), 1))
    assert found.reports == 10**9
    accepts_only(within(found.mean, np.sqrt(protocol.variance(10**9))), 54, a_hundredth_off=54.54)
    assert mean_of(protocol.simulate([], rng=1)).reports == 0
    assert mean_of(protocol.simulate([20, 30.5], rng=1)).reports == 2


def test_odd_people_are_refused() -> None:
    protocol = PiecewiseMean(epsilon=1.0, bounds=(0, 1), steps=1 << 14)
    for counts in ([1, 2], [[1]], [-1], [0.5], ["1"]):
        with pytest.raises(ParameterError, match="counts must be 1 whole numbers"):
            protocol.simulate([0.5], counts)
    with pytest.raises(ParameterError, match="counts must add up to at most"):
        protocol.simulate([0.5, 0.7], [1 << 32, 1 << 32])
    with pytest.raises(ParameterError, match="values must be numbers"):
        protocol.simulate([1.5])


def test_as_many_people_are_simulated_as_the_refusal_says() -> None:
    device, most = PiecewiseMean(epsilon=1.0, bounds=(0.0, 1.0), steps=100).device, 2**62 // 200**2
    found = at_points(device, [0.0, 1.0], [most - 1, 1], np.random.default_rng(1))
    assert (found[0], found[-1], found.sum()) == (most - 1, 1, most)
    with pytest.raises(ParameterError, match=f"counts must add up to at most {most}, got {most + 1}"):
        at_points(device, [0.0, 1.0], [most, 1], np.random.default_rng(1))
