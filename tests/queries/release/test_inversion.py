"""The search for where a test begins to reject: the end is rejected, and near, wherever it starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from sfumato.queries.release.inversion import first_rejected
from tests.cases import cases

Floats = NDArray[np.float64]


MISS = np.array([0.5, 0.1, 0.05, 0.01, 1e-4])


def _laplace(x: Floats, _groups: object = None) -> Floats:
    return np.exp(-x)


def _normal(x: Floats, _groups: object = None) -> Floats:
    return np.asarray(2 * ndtr(-x))


@cases("wrong", [0.1, 0.3, 1.0, 3.0, 10.0])
@cases("far", [40.0, 1000.0])
def test_the_end_is_rejected_and_near_whatever_the_guess(wrong: float, far: float) -> None:
    for p_value, exact in ((_laplace, -np.log(MISS)), (_normal, -ndtri(MISS / 2))):
        found = first_rejected(p_value, MISS, wrong * exact, np.full(5, far))
        assert (p_value(found) <= MISS).all()
        assert (found <= exact * 1.002).all()


def test_a_group_has_the_end_that_it_has_alone() -> None:
    guess = np.array([0.3, 1.0, 2.0, 5.0, 40.0])
    together = first_rejected(_laplace, MISS, guess, np.full(5, 99.0))
    for index in range(5):
        one = slice(index, index + 1)
        alone = first_rejected(_laplace, MISS[one], guess[one], np.full(1, 99.0))
        assert alone[0] == together[index]


def test_groups_are_asked_for_only_until_they_are_found() -> None:
    rates, asked = np.array([1.0, 2.0, 50.0]), list[list[int]]()

    def p_value(x: Floats, groups: NDArray[np.intp]) -> Floats:
        asked.append(groups.tolist())
        return np.asarray(np.exp(-x * rates[groups]))

    found = first_rejected(p_value, np.full(3, 0.05), np.array([2.0, 1.0, 30.0]), np.full(3, 99.0))
    assert asked[0] == [0, 1, 2]
    assert asked[-1] == [2], "whose guess is far off"
    exact = -np.log(0.05) / rates
    assert ((exact <= found) & (found <= 1.002 * exact)).all()


def test_where_nothing_near_is_rejected_the_end_is_the_farthest() -> None:
    found = first_rejected(_laplace, np.array([0.05]), np.array([9.0]), np.array([2.0]))
    assert found[0] == 2.0
