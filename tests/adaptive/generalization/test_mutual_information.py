"""Mutual information: against enumeration, and the bias of a selection against its bound."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato.adaptive import mutual_information, selection_bias
from sfumato.errors import ParameterError
from sfumato.privacy import ZCDP, ApproximateDP, Gaussian, Neighboring, PureDP

REPLACE = Neighboring.REPLACE_ONE


def test_coins_of_randomized_response_say_less_than_the_bound() -> None:
    for epsilon in (0.1, 1.0):
        lie = 1 / (1 + math.exp(epsilon))
        exact = math.log(2) + lie * math.log(lie) + (1 - lie) * math.log(1 - lie)
        bound = mutual_information(PureDP(epsilon, neighboring=REPLACE), rows=5)
        assert 5 * exact <= bound <= 5 * epsilon**2 / 2 * (1 + 1e-6)


def test_the_bound_is_rho_for_each_row() -> None:
    assert mutual_information(ZCDP(0.25, neighboring=REPLACE), rows=8) == pytest.approx(2.0, rel=1e-9)
    found = mutual_information(Gaussian(10.0, neighboring=REPLACE) * 3, rows=100)
    assert found == pytest.approx(1.5, rel=1e-6)


def test_the_bias_of_the_best_of_many_means_is_bounded() -> None:
    # The mean of the largest of k means of n fair coins, exactly.
    for k, n in itertools.product((2, 10, 100), (5, 40)):
        masses = np.array([math.comb(n, j) / 2**n for j in range(n + 1)])
        largest = np.diff(np.minimum(masses.cumsum(), 1.0) ** k, prepend=0.0)
        bias = float(largest @ (np.arange(n + 1) / n)) - 0.5
        assert 0 < bias <= selection_bias(math.log(k), rows=n)


def test_what_has_a_delta_or_another_relation_is_refused() -> None:
    with pytest.raises(ParameterError, match="replacing one row"):
        mutual_information(PureDP(1.0), rows=3)
    with pytest.raises(ParameterError, match="without delta"):
        mutual_information(ApproximateDP(0.25, 1e-6, neighboring=REPLACE), rows=8)
    with pytest.raises(ParameterError, match="information"):
        selection_bias(-0.1, rows=3)
