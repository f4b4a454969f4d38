"""Clopper and Pearson's bounds against exact sums, and what they force, rounded to the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.audit.bounds import (
    certified_epsilon,
    certified_mu,
    forced_epsilon,
    least_probability,
    most_probability,
)


def at_least(hits: int, trials: int, p: float) -> mpmath.mpf:
    """P(Binomial(trials, p) >= hits), by summing whichever tail is shorter."""
    with mpmath.workdps(40):
        q, total = mpmath.mpf(p), mpmath.mpf(0)
        for k in range(hits, trials + 1):
            term = mpmath.binomial(trials, k) * q**k * (1 - q) ** (trials - k)
            total += term
            if k > p * trials + 10 and term < total * mpmath.mpf(10) ** -30:
                break
        return total


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 400), st.data(), st.sampled_from([0.05, 1e-4, 1e-9, 1e-13]))
def test_a_bound_errs_no_more_often_than_it_says_and_hardly_less(
    trials: int, data: st.DataObject, risk: float
) -> None:
    hits = data.draw(st.integers(1, trials))
    least = float(least_probability(hits, trials, risk))
    assert risk * (1 - 1e-2) <= at_least(hits, trials, least) <= risk
    most = float(most_probability(trials - hits, trials, risk))
    # By symmetry, at most trials - hits successes are at least hits failures.
    assert at_least(hits, trials, 1 - most) <= risk * (1 + 1e-9)


@pytest.mark.parametrize(("hits", "trials"), [(1, 10**6), (5, 10**6), (1000, 10**5)])
def test_many_trials(hits: int, trials: int) -> None:
    for risk in (1e-3, 1e-13):
        least = float(least_probability(hits, trials, risk))
        most = float(most_probability(hits, trials, risk))
        assert 0.98 * risk <= at_least(hits, trials, least) <= risk
        with mpmath.workdps(40):
            below = mpmath.betainc(trials - hits, hits + 1, 0, 1 - mpmath.mpf(most), regularized=True)
        assert 0.98 * risk <= below <= risk


def test_the_ends() -> None:
    assert float(least_probability(0, 100, 1e-9)) == 0.0
    assert float(most_probability(100, 100, 1e-9)) == 1.0
    assert math.isclose(float(most_probability(0, 100, 0.05)), 1 - 0.05**0.01, rel_tol=1e-5)
    both = least_probability(np.array([0, 50, 100]), 100, 0.01)
    assert both.shape == (3,)
    assert (np.diff(both) > 0).all()


@given(st.floats(0, 1), st.floats(1e-12, 1), st.floats(0, 0.5))
def test_epsilon_is_rounded_down(least: float, most: float, delta: float) -> None:
    epsilon = certified_epsilon(least, most, delta)
    rest = Fraction(least) - Fraction(delta)
    if rest <= 0:
        assert epsilon == 0.0
        return
    with mpmath.workdps(40):
        exact = mpmath.log(mpmath.mpf(rest.numerator) / rest.denominator / mpmath.mpf(most))
        assert epsilon <= max(mpmath.mpf(0), exact)
        assert epsilon >= float(exact) - 1e-12


def test_nothing_is_forced_by_nothing() -> None:
    assert certified_epsilon(0.0, 1.0, 0.0) == 0.0
    assert certified_mu(0.0, 1.0) == 0.0
    assert forced_epsilon(np.array([0.0]), np.array([0.5]), 0.0)[0] == -math.inf


@given(st.floats(0.01, 4.0), st.floats(-3.0, 3.0))
def test_mu_of_a_gaussian_pair_is_mu(mu: float, threshold: float) -> None:
    with mpmath.workdps(30):
        likely, rare = (float(mpmath.ncdf(mu - threshold)), float(mpmath.ncdf(-threshold)))
    assert abs(certified_mu(likely, rare) - mu) < 1e-9 + 1e-14 / min(1 - likely, rare)
