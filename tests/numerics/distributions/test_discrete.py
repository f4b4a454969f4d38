"""The laws' certified numbers against mpmath at 120 digits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.numerics.certified import discrete_gaussian_tail
from sfumato.numerics.certified.discrete_gaussian_tail import tail
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from tests.cases import cases
from tests.numerics import reference

LAWS = {"laplace": DiscreteLaplaceDistribution, "gaussian": DiscreteGaussianDistribution}
NAMES = st.sampled_from(sorted(LAWS))
# The reference needs the far tail of a small law or a large scale; between 400 and 420 both its ways meet.
SCALES = st.one_of(
    st.fractions(Fraction(1, 50), 140),
    st.integers(401, 2**40).map(Fraction),
    st.floats(401, 2.0**40).map(Fraction),
)
REACH = {"laplace": 600, "gaussian": 36}


@given(name=NAMES, scale=SCALES, distance=st.floats(0, 1))
@settings(max_examples=50)
def test_tails_are_enclosed_tightly(name: str, scale: Fraction, distance: float) -> None:
    k = 1 + int(distance * REACH[name] * scale)
    distribution = LAWS[name](scale)
    bounds = distribution.upper_tail(k)
    with mp.workdps(reference.DIGITS):
        truth = reference.upper_tail(name, scale, k)
        assert mp.mpf(bounds.lower) <= truth <= mp.mpf(bounds.upper)
        if truth > 1e-300:
            assert bounds.upper - bounds.lower < 1e-10 * truth
        whole = distribution.upper_tail(1 - k)
        assert mp.mpf(whole.lower) <= 1 - truth <= mp.mpf(whole.upper)


@cases("stddev", [Fraction(1, 100), Fraction(99, 100), 1, Fraction(3, 2), 9, 128, 2**40])
def test_normaliser(stddev: int | Fraction) -> None:
    bounds = discrete_gaussian_tail.normaliser(Fraction(stddev))
    with mp.workdps(80):
        s = reference.number(Fraction(stddev))
        ratio = mp.jtheta(3, 0, mp.exp(-1 / (2 * s * s))) if s < 20 else s * mp.sqrt(2 * mp.pi)
        assert mp.mpf(bounds.lower) <= ratio <= mp.mpf(bounds.upper)
        assert bounds.upper - bounds.lower < 1e-12 * ratio


@given(z=st.floats(0, 64))
def test_mills_ratio(z: float) -> None:
    bounds = discrete_gaussian_tail.mills_ratio(z)
    with mp.workdps(60):
        truth = mp.sqrt(mp.pi / 2) * mp.erfc(mp.mpf(z) / mp.sqrt(2)) * mp.exp(mp.mpf(z) ** 2 / 2)
        assert mp.mpf(bounds.lower) <= truth <= mp.mpf(bounds.upper)
        assert bounds.upper - bounds.lower < 1e-12 * truth


@cases("stddev", [1, 2, 5, 20, 100, 128])
@cases("start", [0, 1, 3, 8, 50, 128, 500, 4000])
def test_both_ways_to_sum_agree(stddev: int, start: int) -> None:
    one = discrete_gaussian_tail._direct(start, Fraction(stddev))
    other = discrete_gaussian_tail._euler_maclaurin(start, Fraction(stddev))
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)


@given(name=NAMES, scale=st.fractions(Fraction(1, 10), 50), k=st.integers(-200, 200))
@settings(max_examples=30)
def test_pmf(name: str, scale: Fraction, k: int) -> None:
    bounds = LAWS[name](scale).pmf(k)
    with mp.workdps(reference.DIGITS):
        above = reference.upper_tail(name, scale, abs(k)) if k else (1 + _zero(name, scale)) / 2
        truth = above - reference.upper_tail(name, scale, abs(k) + 1)
        assert mp.mpf(bounds.lower) <= truth <= mp.mpf(bounds.upper)


def _zero(name: str, scale: Fraction) -> mp.mpf:
    return 1 - 2 * reference.upper_tail(name, scale, 1)


@given(name=NAMES, scale=SCALES, exponent=st.floats(-295, 0), above=st.booleans())
@settings(max_examples=35)
def test_quantile_is_the_smallest(name: str, scale: Fraction, exponent: float, above: bool) -> None:
    p = 10.0**exponent
    p = min(max(1 - p if above else p, 1e-290), 1 - 2.0**-53)
    distribution = LAWS[name](scale)
    k = distribution.quantile_above(p)
    assert distribution.upper_tail(k).upper <= p
    assert distribution.upper_tail(k - 1).upper > p


@given(
    name=NAMES, scale=SCALES, level=st.one_of(st.floats(0.001, 0.999), st.just(1 - 2.0**-53), st.just(1e-300))
)
@settings(max_examples=35)
def test_half_width_is_the_smallest(name: str, scale: Fraction, level: float) -> None:
    distribution = LAWS[name](scale)
    h, coverage = distribution.half_width(level)
    assert h >= 0
    assert coverage >= level
    with mp.workdps(reference.DIGITS):
        assert mp.mpf(coverage) <= 1 - 2 * reference.upper_tail(name, scale, h + 1)
        if h:
            # One less covers too little, up to the width of the certificate.
            assert 1 - 2 * reference.upper_tail(name, scale, h) < level + 1e-12


@cases("name", LAWS)
@cases("scale", [Fraction(1, 20), Fraction(1, 3), 1, 2, Fraction(21, 10), 30])
def test_standard_deviation(name: str, scale: Fraction) -> None:
    with mp.workdps(40):
        reach = int(150 * scale) + 3
        weights = [reference.weight(name, Fraction(scale), k) for k in range(reach)]
        variance = 2 * sum(k * k * w for k, w in enumerate(weights)) / (2 * sum(weights) - 1)
        assert LAWS[name](scale).variance == pytest.approx(float(variance), rel=1e-12)
        assert LAWS[name](scale).stddev == pytest.approx(float(mp.sqrt(variance)), rel=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_vanishing_laws(name: str) -> None:
    distribution = LAWS[name](1e-300)
    assert distribution.stddev == 0
    assert distribution.half_width(0.95) == (0, 1 - 2.0**-53)
    assert distribution.upper_tail(1).upper < 1e-300
    assert distribution.quantile_above(0.5) == 1


@pytest.mark.parametrize("name", LAWS)
def test_beyond_the_floats(name: str) -> None:
    distribution: SymmetricDistribution = LAWS[name](10)
    lower, upper, _ = distribution.upper_tail(10**30)
    assert lower == 0
    assert 0 < upper < 1e-300
    assert distribution.upper_tail(-(10**30)).lower >= 1 - 2.0**-53


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_a_value_and_draws(name: str) -> None:
    distribution = LAWS[name](10)
    assert distribution == LAWS[name](10.0)
    assert hash(distribution) == hash(LAWS[name](Fraction(10)))
    assert isinstance(distribution.sample(), int)
    assert (np.asarray(distribution.sample(9, 3)) == LAWS[name](10.0).sample((9,), 3)).all()
    with pytest.raises(AttributeError):
        setattr(distribution, "scale" if name == "laplace" else "sigma", 3)


@cases("name", LAWS)
@cases("bad", [0, -1, math.nan, math.inf, 2**40 + 1, "1", True])
def test_refuses_what_is_not_a_scale(name: str, bad: object) -> None:
    with pytest.raises(ParameterError, match="must be"):
        LAWS[name](bad)  # type: ignore[arg-type]


@cases("bad", [0, 1, -0.1, 1.1, math.nan, "a", None])
def test_refuses_what_is_not_a_probability(bad: Any) -> None:
    for call in (DiscreteLaplaceDistribution(1).quantile_above, DiscreteGaussianDistribution(1).half_width):
        with pytest.raises(ParameterError, match="must be strictly between 0 and 1"):
            call(bad)


@pytest.mark.parametrize("bad", [1.5, "1", None, True])
def test_refuses_what_is_not_an_integer(bad: object) -> None:
    with pytest.raises(ParameterError, match="k must be an integer"):
        DiscreteLaplaceDistribution(1).upper_tail(bad)  # type: ignore[arg-type]
    for distribution in (DiscreteLaplaceDistribution(1), DiscreteGaussianDistribution(1)):
        with pytest.raises(ParameterError, match="k must be an integer"):
            distribution.pmf(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LAWS)
def test_numpy_numbers_are_the_numbers_they_are(name: str) -> None:
    distribution = LAWS[name](Fraction(10**20, 3 * 10**12))
    assert distribution.pmf(np.int64(5)) == distribution.pmf(5)  # type: ignore[arg-type]
    assert distribution.upper_tail(np.int64(5)) == distribution.upper_tail(5)  # type: ignore[arg-type]
    assert distribution.half_width(np.float32(0.75)) == distribution.half_width(0.75)  # type: ignore[arg-type]


@cases("stddev", [129, 1000, 10**6, 2**39, Fraction(2**40, 3)])
@cases("z", [Fraction(1, 10), 2, 5, 63, 65, 70, 1000, 10**6, 10**12])
def test_tails_are_enclosed_however_far_out_and_wide(stddev: Fraction, z: Fraction) -> None:
    start = math.ceil(z * stddev)
    found = tail(start, Fraction(stddev))
    with mp.workdps(80):
        s = reference.number(Fraction(stddev))
        if 8 * start > stddev**2:
            truth = mp.fsum(mp.exp(-(start * i + mp.mpf(i * i) / 2) / s**2) for i in range(800))
        else:
            # Euler and Maclaurin's formula, order 28.
            x = start / s
            truth = s * mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2)) + mp.mpf(1) / 2
            for j in range(1, 15):
                n = 2 * j - 1
                derivative = -(s**-n) * mp.hermite(n, x / mp.sqrt(2)) * mp.mpf(2) ** (-mp.mpf(n) / 2)
                truth -= mp.bernoulli(2 * j) / mp.factorial(2 * j) * derivative
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= 1e-11 * truth
