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
    forced_epsilon,
)


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
