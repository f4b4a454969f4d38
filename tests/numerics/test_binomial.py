"""Clopper and Pearson's bounds against exact binomial sums."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from sfumato.numerics.binomial import least_probability, most_probability


def upper_tail(hits: int, trials: int, p: float) -> Fraction:
    q = Fraction(p)
    return sum(
        (comb(trials, k) * q**k * (1 - q) ** (trials - k) for k in range(hits, trials + 1)), Fraction(0)
    )


@pytest.mark.parametrize("risk", [0.4, 0.025, 1e-9, 1e-14])
@pytest.mark.parametrize(("hits", "trials"), [(1, 1), (1, 50), (7, 40), (39, 40), (40, 40), (150, 300)])
def test_bounds_stand_where_the_tails_are_the_risk(hits: int, trials: int, risk: float) -> None:
    least = float(least_probability(hits, trials, risk))
    assert risk * (1 - 1e-3) < upper_tail(hits, trials, least) <= risk
    most = float(most_probability(trials - hits, trials, risk))
    # Near 1 floats are no closer than this.
    assert risk * (1 - 1e-3) - trials * 1e-15 < 1 - upper_tail(trials - hits + 1, trials, most) <= risk


def test_nothing_and_all_seen_bound_nothing() -> None:
    assert least_probability([0, 5], 5, 0.1)[0] == 0
    assert most_probability([0, 5], 5, 0.1)[1] == 1
