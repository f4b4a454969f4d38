"""VCG: truth is dominant, which the tests enumerate."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import multi_unit_vickrey, vcg


def test_no_lie_gains_anything_under_vcg() -> None:
    grid = [0, 1, 3]
    for reports in product(product(grid, repeat=2), repeat=3):
        table = np.array(reports, float)
        honest = vcg(table)
        utility = table[0, honest.alternative] - honest.payments[0]
        assert utility >= 0
        for lie in product(grid, repeat=2):
            told = vcg([lie, *table[1:].tolist()])
            assert table[0, told.alternative] - told.payments[0] <= utility


def test_payments_are_the_harm_to_others() -> None:
    table = np.random.default_rng(1).random((4, 5))
    found = vcg(table)
    assert found.welfare == table.sum(axis=0).max()
    for agent in range(4):
        others = np.delete(table, agent, axis=0).sum(axis=0)
        assert found.payments[agent] == pytest.approx(others.max() - others[found.alternative])


def test_winners_pay_the_highest_losing_bid() -> None:
    sale = multi_unit_vickrey([5, 5, 9, 1, 5], supply=3)
    assert (sale.price, sale.winners.tolist(), sale.revenue) == (5.0, [0, 1, 2], 15.0)
    assert multi_unit_vickrey([5, 9], supply=2).revenue == 0.0
    with pytest.raises(ParameterError, match="bids must be at least 0"):
        multi_unit_vickrey([-1.0, 2.0], supply=1)
    with pytest.raises(ParameterError, match="values must be finite"):
        vcg([[np.inf]])
    with pytest.raises(ParameterError, match="values must have an agent"):
        vcg(np.zeros((0, 3)))
    with pytest.raises(ParameterError, match="values must be an array of numbers with 2 axes"):
        vcg([1.0])
