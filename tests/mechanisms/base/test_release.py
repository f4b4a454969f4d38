"""Releases: intervals with exactly their coverage, values that are exact, nothing to change afterwards."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.mechanisms import Gaussian, Grid, Laplace, LatticeRelease, Release
from sfumato.mechanisms.base.additive import AdditiveMechanism
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, rate

PmfOf = Callable[[Fraction, int], dict[int, mpmath.mpf]]

LEVELS = [0.01, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9]


def smallest_half_width(pmf: dict[int, mpmath.mpf], level: float) -> tuple[int, float]:
    covered = pmf[0]
    for half in itertools.count():
        if half:
            covered += pmf[half] + pmf[-half]
        if covered >= level:
            return half, float(covered)
    raise AssertionError


@cases("level", LEVELS)
@cases("noise", [Fraction(1, 3), Fraction(5, 2), Fraction(20)])
@cases("distribution", ["laplace", "gaussian"])
def test_interval_is_the_smallest_with_exactly_its_coverage(
    level: float, noise: Fraction, distribution: str, laplace_pmf: PmfOf, gaussian_pmf: PmfOf
) -> None:
    pmf = (laplace_pmf if distribution == "laplace" else gaussian_pmf)(noise, math.ceil(25 * noise) + 5)
    mechanism: AdditiveMechanism = (
        Laplace(sensitivity=1, scale=noise)
        if distribution == "laplace"
        else Gaussian(sensitivity=1, stddev=noise)
    )
    release = mechanism.release(np.array([10, -3]), rng=1)
    half, coverage = smallest_half_width(pmf, level)
    assert (release.interval(level).upper - release.value).tolist() == [half, half]
    assert (release.value - release.interval(level).lower).tolist() == [half, half]
    assert coverage - 1e-10 <= release.coverage(level) <= coverage


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_cover_as_often_as_they_say(level: float) -> None:
    draws = 100_000
    release = Gaussian(sensitivity=1, stddev=3).release(np.full(draws, 7), rng=20261121)
    interval, coverage = release.interval(level), release.coverage(level)
    inside = int(np.count_nonzero((interval.lower <= 7) & (interval.upper >= 7)))
    accepts_only(rate(inside, draws), coverage, wider=coverage + 0.02, narrower=coverage - 0.02)


@given(st.integers(-(2**62), 2**62), st.fractions(Fraction(1, 10**6), 10**6))
def test_ends_are_rounded_outward(steps: int, step: Fraction) -> None:
    distribution = DiscreteLaplaceDistribution(5)
    common = {
        "step": step,
        "distribution": distribution,
        "loss": DiscreteLaplace(Fraction(5)),
        "neighboring": Neighboring.ADD_REMOVE,
    }
    half, _ = distribution.half_width(0.95)
    exact = (steps - half) * step, (steps + half) * step
    scalar = LatticeRelease(steps=steps, **common).interval()  # type: ignore[arg-type]
    array = LatticeRelease(steps=np.array([steps]), **common).interval()  # type: ignore[arg-type]
    for lower, upper in ((scalar.lower, scalar.upper), (float(array.lower[0]), float(array.upper[0]))):
        assert Fraction(lower) <= exact[0] < exact[1] <= Fraction(upper)
        assert (
            Fraction(upper) - Fraction(lower)
            <= (exact[1] - exact[0]) + abs(steps * step) * Fraction(1, 2**49) + 1
        )


def test_grid_intervals_are_exact() -> None:
    release = Laplace(sensitivity=1.0, scale=2.0, grid=Grid(exponent=-4)).release(np.zeros(3), rng=5)
    half = release.distribution.half_width(0.95)[0]
    assert (release.interval().upper - release.value).tolist() == [half / 16] * 3
    assert release.stddev == pytest.approx(2 * 2**0.5, rel=1e-3)


def test_whole_numbers_stay_exact() -> None:
    value = 2**61 + 1
    release = Laplace(sensitivity=1, scale=Fraction(1, 100)).release(np.array([value]), rng=1)
    assert release.value.tolist() == [value]
    assert release.value.dtype == np.int64


def test_releases_are_frozen() -> None:
    release = Laplace(sensitivity=1, scale=1).release(np.zeros(3, dtype=int), rng=1)
    with pytest.raises(ValueError, match="read-only"):
        release.value[0] = 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.simulated = False  # type: ignore[misc]
    with pytest.raises(ParameterError, match="step must be 1"):
        dataclasses.replace(release, step=2)


def test_release_leaves_the_value_alone() -> None:
    value = np.arange(3)
    Laplace(sensitivity=1, scale=100).release(value, rng=1)
    assert value.tolist() == [0, 1, 2]
    value[0] = 1
    assert "123456789" not in repr(Laplace(sensitivity=1, scale=10**6).release(123456789, rng=1))


@cases("level", [0.0, 1.0, -1, math.nan, "high"])
def test_levels_out_of_range_are_refused(level: float) -> None:
    release = Laplace(sensitivity=1, scale=1).release(1, rng=1)
    with pytest.raises(ParameterError, match="level must be strictly between 0 and 1"):
        release.interval(level)
    with pytest.raises(ParameterError, match="level must be strictly between 0 and 1"):
        release.coverage(level)


def test_a_function_of_a_release_costs_nothing_more_and_cannot_write_into_it() -> None:
    release = Laplace(sensitivity=1, scale=2).release(np.array([3, -4]), rng=5)
    mapped = release.map(lambda value: np.maximum(value, 0))
    assert isinstance(mapped, Release)
    assert mapped.value.tolist() == np.maximum(release.value, 0).tolist()
    assert mapped.loss == release.loss
    assert mapped.simulated
    assert mapped.neighboring is release.neighboring

    def write(value: np.ndarray) -> np.ndarray:
        value[0] = 0
        return value

    with pytest.raises(ValueError, match="read-only"):
        release.map(write)
    with pytest.raises(ValueError, match="read-only"):
        mapped.value[0] = 1


@cases(
    ("step", "middle"),
    [
        *itertools.product(
            [Fraction(1), Fraction(1, 4), Fraction(2**960), Fraction(1, 2**1074)],
            [0, 5, 2**52 + 1, 2**53, 2**53 + 1, 2**54 - 3, 2**62],
        ),
        *itertools.product(
            [Fraction(3, 7), Fraction(3, 4), Fraction(3, 2**1074), Fraction(1, 3 * 2**1071)],
            [0, 5, 2**52 + 1, 2**62 - 3],
        ),
        # Here what floats round off adds up to 1.9 ulp.
        (Fraction(9230867130490807309, 2**63), 4558669585260954884),
    ],
)
@cases("sign", [1, -1])
@cases("side", [-1, 1])
def test_ends_of_arrays_are_outward_and_exact_where_the_grid_is_of_floats(
    step: Fraction, middle: int, sign: int, side: int
) -> None:
    distribution = DiscreteLaplaceDistribution(5)
    half, _ = distribution.half_width(0.95)
    release = LatticeRelease(
        steps=np.array([sign * middle - side * half]),
        step=step,
        distribution=distribution,
        loss=DiscreteLaplace(Fraction(5)),
        neighboring=Neighboring.ADD_REMOVE,
    )
    lower, upper, _ = release.interval()
    end, exact = float((lower if side < 0 else upper)[0]), sign * middle * step
    assert (Fraction(end) - exact) * side >= 0
    if step.numerator & (step.numerator - 1) == 0 and step.denominator % 3 and middle <= 2**53:
        assert end == exact
    # Two floats outward from what is less than 2 ulp off, or not at all.
    held = middle < 2**50 and Fraction(float(exact)) == exact
    assert abs(Fraction(end) - exact) <= (2 if held else 4) * Fraction(math.ulp(end))


@cases("mechanism", [Laplace(sensitivity=1, scale=40), Gaussian(sensitivity=1, stddev=40)], ids=repr)
def test_a_seed_simulates_the_same_noise_on_one_number_as_on_an_array_of_it(
    mechanism: AdditiveMechanism,
) -> None:
    for seed in range(5):
        alone, listed = mechanism.release(9, rng=seed), mechanism.release(np.array([9]), rng=seed)
        assert [alone.value] == listed.value.tolist()


@cases("mechanism", [Laplace(sensitivity=1, scale=2), Gaussian(sensitivity=0.5, stddev=2)], ids=repr)
def test_a_mechanism_shows_its_grid_and_not_what_follows_from_it(mechanism: AdditiveMechanism) -> None:
    assert f"grid={mechanism.grid!r}" in repr(mechanism)
    assert "integral" not in repr(mechanism)
