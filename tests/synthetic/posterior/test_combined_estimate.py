"""The rule for fully synthetic data, against fractions by hand and against what it is an estimate of."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import ParameterError
from sfumato.synthetic import combine


def test_the_rule_by_hand() -> None:
    estimates = [Fraction(9, 10), Fraction(13, 10), Fraction(11, 10), Fraction(8, 10)]
    mean = sum(estimates) / 4
    between = sum((each - mean) ** 2 for each in estimates) / 3
    within = Fraction(1, 100)
    total = Fraction(5, 4) * between - within
    freedom = 3 * (1 - within / (Fraction(5, 4) * between)) ** 2
    found = combine([float(each) for each in estimates], [0.01] * 4)
    assert found.estimate == pytest.approx(float(mean), rel=1e-12)
    assert found.variance == pytest.approx(float(total), rel=1e-12)
    assert found.degrees_of_freedom == pytest.approx(float(freedom), rel=1e-12)
    assert not found.adjusted
    law = stats.t(float(freedom), float(mean), float(total) ** 0.5)
    assert found.interval(0.9)[:2] == pytest.approx(law.interval(0.9), rel=1e-9)
    assert found.p_value(0.5) == pytest.approx(2 * law.cdf(0.5), rel=1e-9)


def test_a_variance_that_is_not_positive_is_replaced() -> None:
    found = combine([1.0, 1.1, 0.9], [0.04, 0.05, 0.06], row_ratio=2.0)
    assert found.adjusted
    assert found.variance == pytest.approx(2 * 0.05, rel=1e-12)
    assert found.degrees_of_freedom == 2
    same = combine([1.0, 1.0], [0.0, 0.0])
    assert (same.variance, same.adjusted, same.degrees_of_freedom) == (0.0, True, 1.0)


def test_several_quantities_are_combined_each_by_itself() -> None:
    rng = np.random.default_rng(1)
    estimates, variances = rng.normal(size=(20, 3)), np.full((20, 3), 0.1)
    variances[:, 2] = 5.0
    together = combine(estimates, variances)
    assert together.adjusted.tolist() == [False, False, True]
    for column in range(3):
        alone = combine(estimates[:, column], variances[:, column])
        assert together.estimate[column] == pytest.approx(alone.estimate, rel=1e-12)
        assert together.interval().lower[column] == pytest.approx(alone.interval().lower, rel=1e-12)
        assert together.p_value()[column] == pytest.approx(alone.p_value(), rel=1e-12)
    assert repr(together) == "<CombinedEstimate of 3 quantities>"


def test_the_variance_is_that_of_the_posterior_whatever_the_number_of_rows() -> None:
    # A parameter of posterior deviation .3; estimates of it with variances of their own.
    rng = np.random.default_rng(2)
    for variance in (0.01, 0.09, 0.5):
        drawn = rng.normal(1.0, 0.3, (4000, 50)) + rng.normal(0.0, variance**0.5, (4000, 50))
        found = combine(drawn, np.full(drawn.shape, variance))
        assert found.variance.mean() == pytest.approx(0.09, rel=0.03)
        assert found.estimate.mean() == pytest.approx(1.0, abs=0.02)


def test_what_cannot_be_combined_is_refused() -> None:
    for estimates, variances, given in (
        ([1.0], [1.0], {}),
        ([1.0, 2.0], [1.0], {}),
        (1.0, 1.0, {}),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), {}),
        ([1.0, np.nan], [1.0, 1.0], {}),
        ([1.0, 2.0], [1.0, np.inf], {}),
        ([1.0, 2.0], [1.0, -1.0], {}),
        ([1.0, 2.0], [1.0, 1.0], {"row_ratio": 0}),
    ):
        arguments: Any = (estimates, variances)
        with pytest.raises(ParameterError):
            combine(*arguments, **given)
    with pytest.raises(ParameterError, match="level"):
        combine([1.0, 2.0], [0.0, 0.0]).interval(1.5)
