"""The best welfare against enumeration, and its upper bound."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.games.joint.valuations import Valuation
from sfumato.games.joint.welfare import optimal_welfare, welfare_ceiling


def by_enumeration(values: NDArray[np.float64], supply: tuple[int, ...], capacity: int) -> float:
    best = 0.0
    sets = [s for s in product((0, 1), repeat=len(supply)) if sum(s) <= capacity]
    for chosen in product(sets, repeat=len(values)):
        if (np.sum(chosen, axis=0) <= supply).all():
            best = max(best, float((values * chosen).sum()))
    return best


def test_against_enumeration() -> None:
    rng = np.random.default_rng(1)
    for capacity, supply in ((1, (1, 2, 1)), (2, (2, 1, 2)), (2, (1, 1, 1))):
        values = rng.random((4, 3))
        best = optimal_welfare(values, supply, capacity=capacity)
        assert best == pytest.approx(by_enumeration(values, supply, capacity))
        for _ in range(5):
            assert welfare_ceiling(values, supply, rng.random(3), capacity=capacity) >= best - 1e-7


def test_values_are_clipped() -> None:
    values = [[2.0, np.nan], [-1.0, 0.5]]
    assert (
        optimal_welfare(values, (5, 5)) == pytest.approx(1.5) == welfare_ceiling(values, (5, 5), [0.0, 0.0])
    )


def test_what_is_refused() -> None:
    for values, supply, message in (
        ([[1.0, 0.5]], (1,), "values must have a row for each agent, of 1 goods"),
        ([1.0, 0.5], (1, 1), "values must have a row for each agent"),
        (np.zeros((0, 2)), (1, 1), "values must have a row for each agent"),
        ([[1.0, 0.5]], (1, -1), "supply must be a list of non-negative numbers"),
    ):
        with pytest.raises(ParameterError, match=message):
            optimal_welfare(values, supply)
        with pytest.raises(ParameterError, match=message):
            welfare_ceiling(values, supply, [0.0] * len(supply))
    with pytest.raises(ParameterError, match="values must be an array"):
        optimal_welfare([[1.0], [1.0, 0.5]], (1, 1))
    kinds = [Valuation.additive([1.0, 0.5])]
    with pytest.raises(ParameterError, match="supply must be a list of non-negative numbers"):
        optimal_welfare([0], (1, -1), valuations=kinds)
    with pytest.raises(ParameterError, match="supply must be a list of non-negative numbers"):
        welfare_ceiling([0], (1, -1), [0.0, 0.0], valuations=kinds)
    for prices in ([0.0], [-0.5, 0.0]):
        with pytest.raises(ParameterError, match="prices must be non-negative"):
            welfare_ceiling([[1.0, 0.5]], (1, 1), prices)
