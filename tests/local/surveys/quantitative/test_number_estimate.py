"""The estimated mean: unbiased, with intervals that cover, by enumeration of all answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import AdditiveScrambling, UnrelatedNumber
from tests.cases import cases

MIXTURE = UnrelatedNumber(lower=0, upper=2, truth="3/4", other={0: "1/3", 1: "1/3", 2: "1/3"})
CLOCK = AdditiveScrambling(lower=10, upper=12, noise={0: "3/4", 1: "1/8", 2: "1/8"}, wrap=True)


def outcomes(design: Any, shares: Any, respondents: int) -> Iterator[tuple[float, Any]]:
    """Every set of answers, with its probability."""
    rates = np.asarray(shares) @ np.array(design.transition, dtype=float)
    for chosen in combinations_with_replacement(range(len(rates)), respondents):
        counts = np.bincount(chosen, minlength=len(rates))
        ways = math.factorial(respondents) / math.prod(map(math.factorial, counts.tolist()))
        yield (
            ways * float(np.prod(rates**counts)),
            design.estimate(dict(zip(design.answers, counts.tolist(), strict=True))),
        )


@cases("design", [MIXTURE, CLOCK], ids=["mixture", "clock"])
def test_mean_and_variance_are_unbiased(design: Any) -> None:
    shares = np.array([0.6, 0.1, 0.3])
    true = float(shares @ np.arange(design.lower, design.upper + 1))
    mean = second = stated = whole = 0.0
    for mass, found in outcomes(design, shares, 6):
        whole += mass
        mean += mass * found.mean
        second += mass * (found.mean - true) ** 2
        stated += mass * found.variance
    assert (whole, mean) == pytest.approx((1, true), abs=1e-12)
    assert stated == pytest.approx(second, rel=1e-10) == pytest.approx(design.variance(6, shares), rel=1e-10)


@cases("shares", [(1, 0, 0), (0, 0, 1), (0.5, 0, 0.5), (0.9, 0.05, 0.05), (0.2, 0.5, 0.3)])
def test_intervals_cover_at_least_as_often_as_they_state(shares: tuple[float, ...]) -> None:
    true = float(np.asarray(shares) @ np.arange(3))
    for level in (0.5, 0.9):
        covered = dict.fromkeys(("bernstein", "hoeffding"), 0.0)
        for mass, found in outcomes(MIXTURE, shares, 11):
            for method in covered:
                lower, upper, _ = found.interval(level, method)
                covered[method] += mass * (lower <= true <= upper)
        assert min(covered.values()) >= level


def test_intervals_by_their_formulas() -> None:
    found = MIXTURE.estimate({0: 5000, 1: 4000, 2: 1000})
    width = float(np.ptp(MIXTURE.weights))
    weights = np.repeat(MIXTURE.weights, [5000, 4000, 1000])
    variance, log = float(weights.var(ddof=1)), math.log(4 / 0.05)
    assert found.variance == pytest.approx(variance / 10_000)
    halves = {
        "wald": 1.959964 * found.stddev,
        "hoeffding": width * math.sqrt(math.log(2 / 0.05) / 20_000),
        "bernstein": math.sqrt(2 * variance * log / 10_000) + 7 * width * log / (3 * 9999),
    }
    for method, half in halves.items():
        lower, upper, _ = found.interval(0.95, method)  # type: ignore[arg-type]
        assert (upper - found.mean, found.mean - lower) == pytest.approx((half, half), rel=1e-6)
    assert str(found).startswith(f"mean {found.mean:.4f} (95 % interval ")


def test_the_distribution_is_estimated_too() -> None:
    rates = np.array([0.5, 0.3, 0.2]) @ np.array(CLOCK.transition, dtype=float)
    counts = (rates * 160_000).round().astype(int).tolist()
    found = CLOCK.estimate(dict(zip(CLOCK.answers, counts, strict=True)))
    assert found.distribution.shares == pytest.approx([0.5, 0.3, 0.2])
    assert found.distribution.maximum_likelihood == pytest.approx([0.5, 0.3, 0.2], abs=1e-6)
    assert found.maximum_likelihood == pytest.approx(found.mean, abs=1e-5) == pytest.approx(10.7)


def test_a_mean_outside_of_the_bounds_is_raw_and_shows_a_misfit() -> None:
    found = MIXTURE.estimate({0: 1000})
    assert found.mean == pytest.approx(-1 / 3)
    assert found.maximum_likelihood == pytest.approx(0)
    assert found.interval()[:2] == (0.0, 0.0)
    width = float(np.ptp(MIXTURE.weights))
    assert found.misfit == pytest.approx(2 * math.exp(-2000 / 9 / width**2))
    assert MIXTURE.estimate({0: 400, 1: 300, 2: 300}).misfit == 1.0


def test_few_answers() -> None:
    none, one = MIXTURE.estimate([]), MIXTURE.estimate([2])
    assert math.isnan(none.mean)
    assert none.misfit == 1.0
    assert one.mean == pytest.approx(7 / 3)
    for found in (none, one):
        assert math.isnan(found.stddev)
        assert found.interval()[:2] == (0.0, 2.0)
    for arguments in ((1.0, "wald"), (0.95, "exact")):
        with pytest.raises(ParameterError, match=" must be"):
            none.interval(*arguments)
    assert MIXTURE.estimate([0.0, 2.0]).mean == MIXTURE.estimate([0, 2]).mean
    for bad in ([0, None], [math.nan], ["1"], [3], [0.5]):
        with pytest.raises(ParameterError, match="answers must each be one of"):
            MIXTURE.estimate(bad)


def test_a_normal_interval_is_a_number_at_the_highest_level() -> None:
    design = UnrelatedNumber(lower=0, upper=3, truth="1/2", other=dict.fromkeys(range(4), "1/4"))
    lower, upper, _ = design.estimate([1] * 5).interval(1 - 2.0**-53, "wald")
    assert lower == upper == 0.5
