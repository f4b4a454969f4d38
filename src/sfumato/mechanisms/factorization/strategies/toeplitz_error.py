"""The expected squared error of a Toeplitz strategy as a function of its coefficients, and its minimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.power_series import (
    Array,
    inverse,
    prefix_weights,
    product,
    worst_participation,
)
from sfumato.numerics.blas_threads import one_thread

__all__ = ["ToeplitzError", "check_objective", "optimal_coefficients"]


class ToeplitzError:
    r"""Squared sensitivity times squared error, with its gradient in the coefficients :math:`c`.

    Notes
    -----
    With :math:`g = 1/c` and :math:`b = w g` as series, the error is :math:`E = \sum_t r_t b_t^2`: :math:`r_t`
    is 1 for the greatest error, that of the last step, and :math:`(n - t)/n` for the mean. As :math:`db = -b
    g\, dc`, the gradient of :math:`E` is minus the correlation of :math:`2 r b` with :math:`b g`. The squared
    sensitivity is that of the earliest pattern.
    """

    def __init__(
        self, steps: int, participation: Participation, workload: ArrayLike | None, objective: str
    ) -> None:
        check_objective(objective)
        self.steps = steps
        self._participation = participation
        self._workload = prefix_weights(workload, steps)
        ages = np.arange(steps)
        self._weights = np.ones(steps) if objective == "max" else (steps - ages) / steps

    def __call__(self, c: Array) -> tuple[float, Array]:
        """Return the log of the error and its gradient in all ``len(c)`` coefficients."""
        n = self.steps
        g = inverse(c, n)
        b = product(self._workload, g, n)
        weighted = self._weights * b
        error = float(weighted @ b)
        correlated = product(2 * weighted[::-1], product(b, g, n), n)[::-1][: len(c)]
        column = worst_participation(c, self._participation, n)
        squares = float(column @ column)
        moved = np.zeros(len(c))
        for start in self._participation.earliest_steps(n).tolist():
            reach = min(len(c), n - start)
            moved[:reach] += 2 * column[start : start + reach]
        return float(np.log(error) + np.log(squares)), moved / squares - correlated / error


@one_thread()
def optimal_coefficients(start: Array, criterion: ToeplitzError) -> Array:
    """Return coefficients that fall from 1, with no more error than ``start`` and nearly the smallest.

    Parameters
    ----------
    start : array of shape (bands,)
        Falls from 1.
    criterion : Criterion
    """

    def objective(tail: Array) -> tuple[float, Array]:
        value, gradient = criterion(np.concatenate([[1.0], tail]))
        return value, gradient[1:]

    found: Any = scipy.optimize.minimize(
        objective,
        start[1:],
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-9},
    )
    tail = np.minimum.accumulate(np.clip(found.x, 0.0, 1.0))
    best = np.concatenate([[1.0], tail])
    return best if criterion(best)[0] <= criterion(start)[0] else start


def check_objective(objective: str) -> None:
    """Refuse what is not the name of an error to minimise."""
    if objective not in {"mean", "max"}:
        remedy = "'mean' averages the squared error over all steps"
        _check.refuse("objective", "be 'mean' or 'max'", objective, remedy)
