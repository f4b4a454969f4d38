"""Clopper and Pearson's bounds against exact binomial sums."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from tests.cases import cases


def upper_tail(hits: int, trials: int, p: float) -> Fraction:
    q = Fraction(p)
    return sum(
        (comb(trials, k) * q**k * (1 - q) ** (trials - k) for k in range(hits, trials + 1)), Fraction(0)
    )


@cases("risk", [0.4, 0.025, 1e-9, 1e-14])
@cases(("hits", "trials"), [(1, 1), (1, 50), (7, 40), (39, 40), (40, 40), (70, 140)])
def test_bounds_stand_where_the_tails_are_the_risk(hits: int, trials: int, risk: float) -> None:
    least = float(lower_confidence_bound(hits, trials, risk))
    assert risk * (1 - 1e-3) < upper_tail(hits, trials, least) <= risk
    most = float(upper_confidence_bound(trials - hits, trials, risk))
    # Near 1 floats are no closer than this.
    assert risk * (1 - 1e-3) - trials * 1e-15 < 1 - upper_tail(trials - hits + 1, trials, most) <= risk


def test_nothing_and_all_seen_bound_nothing() -> None:
    assert lower_confidence_bound([0, 5], 5, 0.1)[0] == 0
    assert upper_confidence_bound([0, 5], 5, 0.1)[1] == 1


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
    least = float(lower_confidence_bound(hits, trials, risk))
    assert risk * (1 - 1e-2) <= at_least(hits, trials, least) <= risk
    most = float(upper_confidence_bound(trials - hits, trials, risk))
    # By symmetry, at most trials - hits successes are at least hits failures.
    assert at_least(hits, trials, 1 - most) <= risk * (1 + 1e-9)


def at_most(hits: int, trials: int, p: float) -> mpmath.mpf:
    """P(Binomial <= hits), term by term in 40 digits."""
    with mpmath.workdps(40):
        q = mpmath.mpf(p)
        return mpmath.fsum(
            mpmath.binomial(trials, k) * q**k * (1 - q) ** (trials - k) for k in range(hits + 1)
        )


@pytest.mark.parametrize(("hits", "trials"), [(1, 10**6), (5, 10**6), (1000, 10**5)])
def test_many_trials(hits: int, trials: int) -> None:
    for risk in (1e-3, 1e-13):
        least = float(lower_confidence_bound(hits, trials, risk))
        most = float(upper_confidence_bound(hits, trials, risk))
        assert 0.98 * risk <= at_least(hits, trials, least) <= risk
        assert 0.98 * risk <= at_most(hits, trials, most) <= risk


def test_the_ends() -> None:
    assert float(lower_confidence_bound(0, 100, 1e-9)) == 0.0
    assert float(upper_confidence_bound(100, 100, 1e-9)) == 1.0
    assert math.isclose(float(upper_confidence_bound(0, 100, 0.05)), 1 - 0.05**0.01, rel_tol=1e-5)
    both = lower_confidence_bound(np.array([0, 50, 100]), 100, 0.01)
    assert both.shape == (3,)
    assert (np.diff(both) > 0).all()
