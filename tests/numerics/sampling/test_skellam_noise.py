"""Skellam noise: Poisson tables against mpmath, draws against the distribution, sums of parts."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.numerics.certified.fixed_point import poisson_magnitude, thresholds
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.sampling.plans import poisson_plan
from sfumato.numerics.sampling.skellam_noise import LARGEST_VARIANCE, skellam
from tests.cases import cases
from tests.chance import accepts_only, frequencies, moments
from tests.numerics.sources import ListedSource


@cases("mean", [Fraction(1, 7), Fraction(5, 2), Fraction(90)])
def test_tables_are_those_of_the_poisson_distribution(mean: Fraction) -> None:
    table = thresholds(poisson_magnitude(mean), 63)
    with mpmath.workprec(400):
        m = mpmath.mpf(mean.numerator) / mean.denominator
        left = mpmath.mpf(1)
        for k in range(1, len(table) + 2):
            left -= mpmath.exp(-m) * m ** (k - 1) / mpmath.factorial(k - 1)
            assert (table[k - 1] if k <= len(table) else 0) == int(mpmath.floor(left * 2**63))


def distribution(variance: float) -> dict[int, float]:
    far = math.ceil(2 * math.sqrt(variance))
    return {k: float(mpmath.exp(-variance) * mpmath.besseli(abs(k), variance)) for k in range(-far, far + 1)}


@cases("variance", [Fraction(1, 2), Fraction(9), Fraction(75, 2)])
def test_draws_have_the_distribution(variance: Fraction) -> None:
    drawn = skellam(variance, 100_000, rng=8)
    accepts_only(
        frequencies(Counter(drawn.tolist())),
        distribution(float(variance)),
        wider=distribution(1.1 * float(variance)),
        narrower=distribution(0.9 * float(variance)),
    )


def test_parts_of_large_variances_add_up() -> None:
    variance = Fraction(1 << 16)  # four Poisson numbers on each side
    drawn = skellam(variance, 60_000, rng=3) / math.sqrt(float(variance))
    half = skellam(variance / 2, 60_000, rng=3) / math.sqrt(float(variance))
    accepts_only(moments(drawn, kurtosis=3.0), (0, 1), a_part_missing=(0, 0.75), shifted=(0.1, 1))
    accepts_only(moments(half, kurtosis=3.0), (0, 0.5), whole=(0, 1))


def test_an_open_draw_is_decided_with_more_bits() -> None:
    plan = poisson_plan(Fraction(5))
    first, longer = (thresholds(plan.tail, bits)[0] for bits in (63, 127))
    more = longer - (first << 64)
    for word, expected in ((more + 1, 0), (more - 1, 1)):
        assert plan.resolve([first << 1], ListedSource([word])) == expected


def test_work_does_not_depend_on_what_is_drawn() -> None:
    for size, expected in ((1, [256, 256]), (300, [300, 300]), (9000, [8192, 808, 8192, 808])):
        for seed in (5, 6):
            source = ListedSource(SimulatedSource(seed).words(20000).tolist())
            assert skellam(30, size, source).shape == (size,)
            assert source.requests == expected
    assert skellam(30, 0, rng=1).shape == (0,)


def test_what_cannot_be_is_refused() -> None:
    for variance, size, message in (
        (0, 1, "variance must be"),
        (LARGEST_VARIANCE + 1, 1, r"variance must be at most 2\*\*22"),
        (3, -1, "size must be"),
    ):
        with pytest.raises(ParameterError, match=message):
            skellam(variance, size)
    assert np.abs(skellam(LARGEST_VARIANCE, 1, rng=1))[0] < 20_000
