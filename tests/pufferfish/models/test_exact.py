from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.pufferfish.models.exact import exact_number, exact_probabilities


def test_a_float_stands_for_its_shortest_decimal() -> None:
    assert exact_number("x", 0.1) == Fraction(1, 10)
    assert exact_number("x", np.float64(1e-20)) == Fraction(1, 10**20)
    assert exact_number("x", np.int64(7)) == 7
    assert exact_number("x", Fraction(2, 3)) == Fraction(2, 3)
    for bad in (True, "1", float("inf"), float("nan"), None, 1j):
        with pytest.raises(ParameterError):
            exact_number("x", bad)


def test_probabilities_sum_to_exactly_one() -> None:
    assert exact_probabilities("p", [0.1, 0.2, 0.7]) == (Fraction(1, 10), Fraction(1, 5), Fraction(7, 10))
    assert sum(exact_probabilities("p", [1 / 3] * 3)) == 1
    for bad in ([0.5, 0.6], [1.5, -0.5], []):
        with pytest.raises(ParameterError, match="be non-negative and sum to one"):
            exact_probabilities("p", bad)
