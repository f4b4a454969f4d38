"""Formulas up to constants are no numbers."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

from sfumato import bounds
from sfumato.errors import ParameterError

ORDERS = [
    bounds.fingerprinting_order(100, error=0.1, epsilon=1.0),
    bounds.reconstruction_order(100),
    bounds.histogram_order(100, epsilon=1.0),
    bounds.threshold_order(100, error=0.1, epsilon=1.0, pure=True),
]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_no_number_comes_of_them(order: Any) -> None:
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq):
        for other in (1.0, order):
            with pytest.raises(TypeError, match="no number"):
                compare(order, other)
    for make in (float, np.asarray, math.sqrt):
        with pytest.raises(TypeError):
            make(order)
    assert "up to constants" in str(order)
    assert order.theorem in str(order)


def test_their_formulas() -> None:
    assert bounds.fingerprinting_order(400, error=0.1, epsilon=0.5).without_constants == "400"
    assert bounds.reconstruction_order(100).without_constants == "10"
    pure, approximate = (bounds.histogram_order(1 << 50, epsilon=0.5, delta=delta) for delta in (0.0, 1e-6))
    assert pure.without_constants == f"{100 * math.log(2):.6g}"
    assert approximate.without_constants == f"{2 * math.log(1e6):.6g}"
    assert pure.mechanisms != approximate.mechanisms
    assert bounds.histogram_order(8, epsilon=1.0, delta=1e-9).without_constants == f"{math.log(8):.6g}"
    for points, stars in ((2, "1"), (4, "2"), (16, "3"), (65536, "4"), (1 << 65536, "5")):
        assert bounds.threshold_order(points, error=0.1, epsilon=1.0, pure=False).without_constants == stars
    rows = bounds.threshold_order(1024, error=0.1, epsilon=0.5, pure=True)
    assert rows.without_constants == f"{20 * math.log(1024):.6g}"


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(ParameterError, match="cells must be an integer of at least 2"):
        bounds.histogram_order(1, epsilon=1.0)
    with pytest.raises(ParameterError, match="points must be an integer of at least 2"):
        bounds.threshold_order(1, error=0.1, epsilon=1.0, pure=True)
