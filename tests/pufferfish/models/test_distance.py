"""Quantile gaps against the least bottleneck of a coupling."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.pufferfish import NumberDistribution, ProbabilityBox, wasserstein_infinity


def bottleneck(first: list[int], second: list[int]) -> int:
    """Return the least distance that couples two equally likely multisets: sorted against sorted."""
    return max(abs(x - y) for x, y in zip(sorted(first), sorted(second), strict=True))


def test_equal_masses_are_a_matching() -> None:
    generator = np.random.default_rng(4)
    for _ in range(200):
        first, second = generator.integers(0, 12, (2, 7)).tolist()
        pair = [NumberDistribution(values, [Fraction(1, 7)] * 7) for values in (first, second)]
        assert wasserstein_infinity(*pair) == bottleneck(first, second)
        assert wasserstein_infinity(pair[1], pair[0]) == bottleneck(first, second)
        assert wasserstein_infinity(pair[0], pair[0]) == 0


def test_equal_cumulative_sums_leave_no_sliver() -> None:
    # In floats .1 + .2 > .3, and a sliver of mass would seem to move from 1 to 9.
    first = NumberDistribution([0, 1, 9], [0.1, 0.2, 0.7])
    second = NumberDistribution([1, 9], [0.3, 0.7])
    assert wasserstein_infinity(first, second) == 1


def test_a_box_bounds_what_it_holds() -> None:
    generator = np.random.default_rng(6)
    values = [0, 1, 3, 4]
    box = ProbabilityBox(values=values, lower=[0.1, 0.3, 0.5, 1], upper=[0.4, 0.6, 0.8, 1])
    other = NumberDistribution(values, [0.25] * 4)
    bound = wasserstein_infinity(box, other)
    found = []
    for _ in range(300):
        cumulative = sorted(
            Fraction(int(generator.integers(low, high + 1)), 10) for low, high in ((1, 4), (3, 6), (5, 8))
        )
        weights = np.diff([Fraction(0), *cumulative, Fraction(1)])
        found.append(wasserstein_infinity(NumberDistribution(values, weights), other))
    assert max(found) == bound == 2
    exact = ProbabilityBox(values=values, lower=[0.25, 0.5, 0.75, 1], upper=[0.25, 0.5, 0.75, 1])
    assert wasserstein_infinity(exact, other) == 0
    assert wasserstein_infinity(box, box) == 3
    empty = ProbabilityBox(values=[0, 1, 2, 50, 51], lower=[0, 0.5, 0.5, 0.5, 1], upper=[0, 0.5, 0.5, 0.5, 1])
    halves = NumberDistribution([1, 51], [0.5, 0.5])
    assert wasserstein_infinity(empty, halves) == wasserstein_infinity(halves, empty) == 0


def test_samples_and_broken_boxes_are_refused() -> None:
    for samples in ([0.1, 0.2], np.zeros(5)):
        with pytest.raises(ParameterError, match="samples prove no bound"):
            wasserstein_infinity(samples, NumberDistribution([0], [1]))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="be as many as the values"):
        NumberDistribution([1, 2, 3], [0.5, 0.5])
    cases = [
        ([0, 1], [0.5, 1], [0.4, 1], "from 0 to upper"),
        ([0, 1], [-0.5, 1], [0.4, 1], "from 0 to upper"),
        ([0, 1], [0.1, 0.9], [0.4, 1], "end with 1"),
        ([1, 0], [0.1, 1], [0.4, 1], "three ascending lists"),
        ([0, 0], [0.1, 1], [0.4, 1], "three ascending lists"),
        ([0, 1], [0.1], [0.4, 1], "three ascending lists"),
        ([], [], [], "three ascending lists"),
    ]
    for values, lower, upper, message in cases:
        with pytest.raises(ParameterError, match=message):
            ProbabilityBox(values=values, lower=lower, upper=upper)
