"""Laws that end or fall in steps: certified probabilities and samplers against sums of 40 digits."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.numerics.distributions.staircase import StaircaseDistribution
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution, bounded_laplace
from sfumato.numerics.randomness.source import random_source
from tests.chance import accepts_only, frequencies

REACH = 3000
COUNT = 400_000
# Each with one that it could be mistaken for.
LAWS: dict[Any, Any] = {
    TruncatedLaplaceDistribution(10, 20): TruncatedLaplaceDistribution(10, 21),
    TruncatedLaplaceDistribution(Fraction(1, 3), 4): TruncatedLaplaceDistribution(Fraction(7, 20), 4),
    TruncatedLaplaceDistribution(100, 5): TruncatedLaplaceDistribution(100, 6),
    TruncatedLaplaceDistribution(7, 1): TruncatedLaplaceDistribution(5, 1),
    TruncatedLaplaceDistribution(20, 2000): TruncatedLaplaceDistribution(22, 2000),
    TruncatedLaplaceDistribution(10, 5, Fraction(3, 4)): TruncatedLaplaceDistribution(10, 5, Fraction(1, 4)),
    TruncatedLaplaceDistribution(2, 3, Fraction(1, 1 << 62)): TruncatedLaplaceDistribution(
        2, 3, Fraction(1, 9)
    ),
    StaircaseDistribution(1, 5, 2): StaircaseDistribution(1, 5, 3),
    StaircaseDistribution(Fraction(1, 3), 7, 7): StaircaseDistribution(Fraction(1, 3), 7, 6),
    StaircaseDistribution(2, 6, 1): StaircaseDistribution(2, 6, 2),
    StaircaseDistribution(Fraction(1, 20), 3, 1): StaircaseDistribution(Fraction(1, 20), 4, 1),
    StaircaseDistribution(40, 2, 1): StaircaseDistribution(40, 2, 2),
}


def weight(distribution: Any, k: int) -> mpmath.mpf:
    if isinstance(distribution, TruncatedLaplaceDistribution):
        inside = abs(k) <= distribution.limit
        rate = mpmath.mpf(distribution.scale.denominator) / distribution.scale.numerator  # type: ignore[union-attr]
        return mpmath.exp(-abs(k) * rate) if inside else mpmath.mpf(0)
    fallen = 0 if abs(k) < distribution.first else 1 + (abs(k) - distribution.first) // distribution.width
    exact = Fraction(distribution.epsilon)
    return mpmath.exp(-fallen * mpmath.mpf(exact.numerator) / exact.denominator)


def masses(distribution: Any) -> dict[int, mpmath.mpf]:
    if isinstance(distribution, TruncatedLaplaceDistribution) and distribution.weight:
        scale, limit, share = distribution.scale, distribution.limit, distribution.weight
        shorter, longer = (masses(TruncatedLaplaceDistribution(scale, each)) for each in (limit - 1, limit))
        first = mpmath.mpf(share.numerator) / share.denominator
        return {k: first * shorter[k] + (1 - first) * longer[k] for k in longer}
    weights = {k: weight(distribution, k) for k in range(-REACH, REACH + 1)}
    total = mpmath.fsum(weights.values())
    return {k: w / total for k, w in weights.items()}


@pytest.fixture(scope="module", params=LAWS, ids=repr)
def known(request: pytest.FixtureRequest) -> tuple[Any, dict[int, mpmath.mpf]]:
    with mpmath.workdps(40):
        return request.param, masses(request.param)


def test_probabilities_hold_the_sums(known: tuple[Any, dict[int, mpmath.mpf]]) -> None:
    distribution, pmf = known
    for k in (0, 1, 2, 3, 5, 9, 17, 40):
        tail = mpmath.fsum(p for j, p in pmf.items() if j >= k)
        for bounds, truth in (
            (distribution.pmf(k), pmf[k]),
            (distribution.pmf(-k), pmf[k]),
            (distribution.upper_tail(k), tail),
        ):
            assert bounds.lower <= truth * (1 + mpmath.mpf("1e-30"))
            assert truth * (1 - mpmath.mpf("1e-30")) <= bounds.upper
            assert bounds.upper - bounds.lower <= 1e-11 * float(truth) + 1e-300


def test_standard_deviation(known: tuple[Any, dict[int, mpmath.mpf]]) -> None:
    distribution, pmf = known
    truth = mpmath.sqrt(mpmath.fsum(p * k * k for k, p in pmf.items()))
    assert distribution.stddev == pytest.approx(float(truth), rel=1e-6)


def test_draws_follow_the_law(known: tuple[Any, dict[int, mpmath.mpf]]) -> None:
    distribution, pmf = known
    drawn = distribution.sample(COUNT, rng=12)
    near = range(-25, 26)
    accepts_only(
        frequencies(Counter(drawn.tolist())),
        {k: pmf[k] for k in near},
        zero_left_out={k: pmf[k] if k else 0.0 for k in near},
        like_it={k: mass for k, mass in masses(LAWS[distribution]).items() if k in near},
    )
    assert distribution.sample().__class__ is int
    assert distribution.sample((3, 0)).shape == (3, 0)


def test_half_widths_cover(known: tuple[Any, dict[int, mpmath.mpf]]) -> None:
    distribution, pmf = known
    for level in (0.5, 0.9, 0.999):
        half, covered = distribution.half_width(level)
        inside = mpmath.fsum(p for k, p in pmf.items() if abs(k) <= half)
        assert level <= inside * (1 + mpmath.mpf("1e-14"))
        assert covered <= inside * (1 + mpmath.mpf("1e-30"))
        if half:
            assert mpmath.fsum(p for k, p in pmf.items() if abs(k) < half) < level


@pytest.mark.parametrize(
    ("limit", "scale"), [(10**6, 10**9), (10**6, 10**5), (10**9, 10**9), (10**12, 10**9)]
)
def test_standard_deviation_of_wide_laws(limit: int, scale: int) -> None:
    t = limit / scale
    # The continuous law, from which these differ by less than a millionth.
    squares = 2 - math.exp(-t) * (t * t + 2 * t + 2)
    truth = scale * math.sqrt(squares / -math.expm1(-t)) if t > 0.01 else limit * math.sqrt(1 / 3 - t / 12)
    assert TruncatedLaplaceDistribution(scale, limit).stddev == pytest.approx(truth, rel=2e-5)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(5), Fraction(400)])
@pytest.mark.parametrize("centre", [-3, 0, 6])
def test_bounded_draws_follow_their_law(scale: Fraction, centre: int) -> None:
    drawn = bounded_laplace(
        scale, np.full(COUNT if scale == 400 else 120_000, centre), -3, 6, random_source(3)
    )
    values = np.arange(-3, 7)

    def bounded(scale: float, centre: int) -> dict[int, float]:
        weights = np.exp(-np.abs(values - centre) / scale)
        return dict(zip(values.tolist(), weights / weights.sum(), strict=True))

    right = bounded(float(scale), centre)
    wrong = {"narrower": bounded(float(scale) / 8, centre), "without one": right | {1: 0.0}}
    if scale < 400:
        wrong["moved"] = bounded(float(scale), 3 - centre)
    accepts_only(frequencies(Counter(drawn.tolist())), right, **wrong)


@pytest.mark.parametrize("scale", [Fraction(5), Fraction(400)])
def test_the_work_of_a_bounded_draw_does_not_follow_its_centre(scale: Fraction) -> None:
    class Counted:
        simulated, asked = True, 0

        def words(self, count: int) -> Any:
            self.asked += count
            return given.words(count)

        def bytes(self, count: int) -> bytes:
            return given.bytes(count)

    asked = set()
    for centre in (0, 500, 1000):
        for seed in range(20):
            given, counted = random_source(seed), Counted()
            bounded_laplace(scale, np.array([centre]), 0, 1000, counted)
            asked.add(counted.asked)
    assert len(asked) == 1


def test_bad_parameters() -> None:
    for distribution, message in (
        (lambda: TruncatedLaplaceDistribution(0, 3), "scale must"),
        (lambda: TruncatedLaplaceDistribution(1, 0), "limit must"),
        (lambda: TruncatedLaplaceDistribution(1, 1 << 61), "limit must be at most"),
        (lambda: TruncatedLaplaceDistribution(1, 3, Fraction(1)), "weight must be below 1"),
        (lambda: TruncatedLaplaceDistribution(1, 3, Fraction(1, (1 << 62) + 1)), "weight must be below 1"),
        (lambda: TruncatedLaplaceDistribution(1, 3, Fraction(-1, 2)), "weight must be"),
        (lambda: TruncatedLaplaceDistribution(1, 1, Fraction(1, 2)), "limit must be at least 2"),
        (lambda: StaircaseDistribution(0, 3, 1), "epsilon must"),
        (lambda: StaircaseDistribution(1, 0, 1), "width must"),
        (lambda: StaircaseDistribution(1, 3, 4), "first must be at most width"),
        (
            lambda: StaircaseDistribution(Fraction(1, 2**20), 2**40, 1),
            r"width must be at most 2\*\*54 times epsilon",
        ),
    ):
        with pytest.raises(ParameterError, match=message):
            distribution()
