"""Distortion against linear programs, and which ballots are refused."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from sfumato.errors import ParameterError
from sfumato.games.joint.distortion import distortion, ranked_ballots


def by_linear_programs(ballots: NDArray[np.int64], lottery: NDArray[np.float64]) -> float:
    """Maximise the best candidate's welfare where the lottery's is 1, by Charnes and Cooper."""
    voters, m = ballots.shape
    best = 0.0
    for candidate in range(m):
        gain = np.zeros((voters, m + 1))
        gain[:, candidate] = 1
        orders, sums = [], []
        for voter, ballot in enumerate(ballots):
            for better, worse in zip(ballot, [*ballot[1:], None], strict=True):
                row = np.zeros((voters, m + 1))
                row[voter, better] = -1
                if worse is not None:
                    row[voter, worse] = 1
                orders.append(row.ravel()[: voters * (m + 1)])
            row = np.zeros((voters, m + 1))
            row[voter, :m], row[0, m] = 1, row[0, m] - 1
            sums.append(row.ravel())
        total = np.zeros((voters, m + 1))
        total[:, :m] = lottery
        found = linprog(
            -gain.ravel(), A_ub=np.array(orders), b_ub=np.zeros(len(orders)),
            A_eq=np.array([*sums, total.ravel()]), b_eq=np.array([0.0] * voters + [1.0]), bounds=(0, None),
        )  # fmt: skip
        assert found.fun is not None
        best = max(best, -found.fun)
    return best


def test_against_linear_programs() -> None:
    rng = np.random.default_rng(4)
    for _ in range(6):
        ballots = np.array([rng.permutation(3) for _ in range(4)])
        lottery = rng.dirichlet(np.ones(3))
        assert distortion(ballots, lottery) == pytest.approx(by_linear_programs(ballots, lottery), rel=1e-7)


def test_cases_by_hand() -> None:
    assert distortion([[0, 1]] * 3, [1.0, 0.0]) == 1.0
    assert distortion([[0, 1]] * 3, [0.0, 1.0]) == math.inf == distortion([[0, 1]], [0.0, 1.0])
    # All the worst, at a uniform lottery over m candidates: m.
    assert distortion([[0, 1, 2]], [1 / 3] * 3) == pytest.approx(3.0)


def test_what_is_refused() -> None:
    ballots: Any
    for ballots in ([[0, 0]], [[0, 2]], [[1, 0], [1, 1]]):
        with pytest.raises(ParameterError, match="ballots must be orders of all candidates") as caught:
            ranked_ballots(ballots, 2)
        assert "[" not in str(caught.value)
    for ballots in ([[0.0, 1.0]], [0, 1], np.zeros((0, 2), int), [[0, 1, 2]]):
        with pytest.raises(ParameterError, match="ballots must be whole numbers"):
            ranked_ballots(ballots, 2)
    with pytest.raises(ParameterError, match="its rows differ in length"):
        ranked_ballots([[0, 1], [0]], 2)
    for lottery in ([0.5, 0.6], [1.0], [-0.5, 1.5]):
        with pytest.raises(ParameterError, match="probabilities must be non-negative"):
            distortion([[0, 1]], lottery)
