"""Chernoff's p-value and interval of a mean, against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np

from sfumato.adaptive.holdout.mean_interval import mean_interval, mean_p_value


def exact_log_p(mean: float, claim: float, rows: int) -> mpmath.mpf:
    with mpmath.workdps(50):
        m, c = mpmath.mpf(mean), mpmath.mpf(claim)
        rest = (1 - m) * mpmath.log((1 - m) / (1 - c)) if m < 1 else 0
        return -rows * (m * mpmath.log(m / c) + rest)


def test_p_values_are_never_below_the_exact_ones_for_any_number_of_rows() -> None:
    rng = np.random.default_rng(1)
    for rows in (10, 10**6, 10**12, 10**15):
        for claim in rng.random(40):
            mean = min(1.0, claim + rng.random() * 2 / rows**0.5)
            exact = mpmath.exp(exact_log_p(mean, claim, rows))
            found = mean_p_value(mean, claim, rows)
            assert found >= exact
            assert found <= exact * 1.05 or rows > 10**12


def test_p_values_at_the_ends() -> None:
    assert mean_p_value(0.5, 0.5, 10) == mean_p_value(0.4, 0.5, 10) == 1.0
    assert abs(mean_p_value(1.0, 0.5, 10) / 2**-10 - 1) < 1e-7
    assert mean_p_value(1.0, 0.5, 10**6) == 0.0
    assert mean_p_value(0.5, 0.25, 100) < 1.0


def test_the_interval_holds_all_means_that_are_near() -> None:
    low, high = mean_interval(0.3, 1000, -3.0)
    for end, inside in ((low, 1e-6), (high, -1e-6)):
        log_p = exact_log_p(0.3, end, 1000)
        assert log_p < -3.0 - np.log(2) < exact_log_p(0.3, end + inside, 1000)
