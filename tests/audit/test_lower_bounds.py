"""What two probabilities force, rounded to the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.lower_bounds import (
    certified_epsilon,
    certified_mu,
    certified_paired_epsilon,
    forced_epsilon,
    forced_paired_epsilon,
)
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from tests.cases import cases
from tests.chance import accepts_only, at_most


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


@given(st.integers(0, 1000), st.integers(0, 1000), st.sampled_from([0.0, 1e-5, 0.1]), st.data())
def test_counts_of_pairs_are_rounded_down(likely: int, rare: int, delta: float, data: st.DataObject) -> None:
    both = data.draw(st.integers(max(0, likely + rare - 1000), min(likely, rare)))
    certified = certified_paired_epsilon(likely, rare, both, trials=1000, delta=delta, risk=1e-3)
    counts = (np.array([float(count)]) for count in (likely, rare, both))
    forced = float(forced_paired_epsilon(*counts, trials=1000, delta=delta, risk=1e-3)[0])
    assert certified <= max(0.0, forced + 1e-12)
    assert certified >= min(forced, 50.0) - 1e-9


def test_of_rare_events_pairs_prove_more_than_two_bounds_apart() -> None:
    trials, likely, rare = 50_000, 500, 200
    apart = certified_epsilon(
        float(lower_confidence_bound(likely, trials, 5e-5)),
        float(upper_confidence_bound(rare, trials, 5e-5)),
        0.0,
    )
    paired = certified_paired_epsilon(likely, rare, 2, trials=trials, delta=0.0, risk=1e-4)
    assert apart + 0.1 < paired < math.log(likely / rare)


@cases(("p", "q", "delta"), [(0.05, 0.02, 0.0), (0.3, 0.1, 0.0), (0.05, 0.02, 0.01), (0.9, 0.6, 0.0)])
def test_pairs_of_runs_err_as_seldom_as_stated(p: float, q: float, delta: float) -> None:
    """One that takes the odds of pairs for the ratio itself, or forgets its risk, errs more often."""
    generator = np.random.default_rng(3)
    trials, audits, risk = 400, 4000, 0.2
    first, second = ((generator.random((audits // 100, 100, trials)) < chance) for chance in (p, q))
    counts = [hits.sum(axis=2).ravel().astype(float) for hits in (first, second, first & second)]
    truth = math.log((p - delta) / q)
    forced = forced_paired_epsilon(*counts, trials=trials, delta=delta, risk=risk)
    likely, rare, both = counts
    middle = np.log((likely - both) / np.maximum(rare - both, 0.5))

    def seldom(errors: int) -> None:
        at_most(errors, audits)(risk)

    accepts_only(seldom, int((forced > truth).sum()), odds=int((middle > truth).sum()))
