"""The dual problem of the optimal strategy: the weights of cells at which bound and error meet."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy

from sfumato.mechanisms.factorization.strategies.integer_strategy import Array

__all__ = ["OptimalWeights"]

_ROUNDS: Final = 500
_ACCELERATED: Final = 40
_MEMORY: Final = 6
_WIDEST: Final = 18.0  # logs of weights: beyond, rounding says more than they do
_CONDITION: Final = 2.0**-33


class OptimalWeights:
    r"""The dual's log, :math:`2 \log \operatorname{tr} S - \log \sum \lambda_i`, at the logs of the weights.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        Without columns of zeros.
    tolerance : float
        Where to stop: the error over the bound, less 1.

    Attributes
    ----------
    bound : float
        The greatest that was found.

    Notes
    -----
    Its gradient is :math:`S_{ii}/\operatorname{tr} S - \lambda_i/\sum \lambda`. Every evaluation gives a
    bound and a strategy; the best of both are retained, so that no claim rests on how they were found.

    *The climb.* Where bound and error meet, the weights are a fixed point of :math:`\lambda_i \mapsto
    S_{ii}^2/\lambda_i`. It is iterated in logs with Anderson's acceleration, about ten evaluations where the
    workload has full rank; where that does not settle, L-BFGS goes on from the best weights.

    *Sums of earlier inputs.* Where each row of a triangular workload is a multiple of the one before but for
    its last entry, as in prefix sums, the inverse of :math:`W^T W` is tridiagonal, and so is that of the
    weighted one: its eigenvectors are found in a quarter of the time. Its smallest eigenvalues err relatively
    by about the condition times the unit of floats; beyond a condition of 2**33 the dense matrix is taken.

    References
    ----------
    Walker, Ni (2011), "Anderson acceleration for fixed-point iterations".

    Examples
    --------
    >>> import numpy as np
    >>> found = OptimalWeights(np.tril(np.ones((64, 64))), 1e-4)
    >>> found.solve()
    >>> found.product().shape, found.evaluations < 15
    ((64, 64), True)
    """

    def __init__(self, workload: Array, tolerance: float) -> None:
        self._workload, self._tolerance = workload, tolerance
        self._chain = _inverse_chain(workload)
        self._gram: Array | None = None
        self.bound, self._error, self.evaluations = 0.0, math.inf, 0
        ones = np.ones(workload.shape[1])
        self._best = (ones, ones, np.eye(len(ones)))
        self._highest = np.zeros(workload.shape[1])

    def solve(self) -> None:
        """Climb until bound and error meet."""
        self._accelerate()
        if self._met():
            return
        options = {"maxiter": _ROUNDS, "ftol": 0.0, "gtol": 1e-12}
        bounds = [(-_WIDEST, _WIDEST)] * len(self._highest)
        climb: Any = scipy.optimize.minimize  # its stubs know no callback beside a gradient
        climb(
            self,
            self._highest,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=self._stop_if_met,
            options=options,
        )

    def core(self) -> Array:
        """Return the best strategy found, shape (rank, cells); no column's norm exceeds 1."""
        root, sizes, vectors = self._best
        positive = sizes > 0
        return np.asarray((vectors[:, positive] / root[:, np.newaxis] * np.sqrt(sizes[positive])).T)

    def product(self) -> Array:
        """Return :math:`X = C^T C` of the best strategy found."""
        core = self.core()
        return np.asarray(core.T @ core)

    def __call__(self, logs: Array) -> tuple[float, Array]:
        """Return minus the dual's log, and its gradient."""
        diagonal, total, weights = self._evaluate(logs)
        gradient = diagonal / total - weights / weights.sum()
        return math.log(float(weights.sum())) - 2 * math.log(total), -gradient

    def _evaluate(self, logs: Array) -> tuple[Array, float, Array]:
        """Return the diagonal and the trace of S, and the weights; note the bound and the strategy."""
        self.evaluations += 1
        weights = np.exp(logs)
        root = np.sqrt(weights)
        sizes, vectors = self._roots(root)
        total = float(sizes.sum())
        diagonal = np.square(vectors) @ sizes
        bound = total**2 / float(weights.sum())
        if bound > self.bound:
            self.bound, self._highest = bound, logs
        scale = float((diagonal / weights).max())
        if total * scale < self._error:
            self._error = total * scale
            self._best = (root, sizes / scale, vectors)
        return diagonal, total, weights

    def _roots(self, root: Array) -> tuple[Array, Array]:
        """Return the eigenvalues and eigenvectors of S for the roots of the weights."""
        if self._chain is not None:
            diagonal, beside = self._chain
            inverses, vectors = scipy.linalg.eigh_tridiagonal(
                diagonal / np.square(root), beside / (root[1:] * root[:-1]), check_finite=False
            )
            if inverses[0] > _CONDITION * inverses[-1]:
                return 1 / np.sqrt(inverses), np.asarray(vectors, dtype=np.float64)
        if self._gram is None:
            self._gram = self._workload.T @ self._workload
        values, vectors = np.linalg.eigh(self._gram * np.outer(root, root))
        values[values < len(values) * 2.0**-50 * values[-1]] = 0.0
        return np.sqrt(values), np.asarray(vectors, dtype=np.float64)

    def _accelerate(self) -> None:
        """Iterate the fixed point with Anderson's acceleration, for as long as it may settle."""
        logs = np.zeros(len(self._highest))
        points: list[Array] = []
        moves: list[Array] = []
        for _ in range(_ACCELERATED):
            diagonal, _, weights = self._evaluate(logs)
            if self._met():
                return
            move = 2 * (np.log(np.maximum(diagonal, 1e-300)) - np.log(weights))
            move -= move.mean()  # the scale of the weights is free
            points, moves = [*points[1 - _MEMORY :], logs], [*moves[1 - _MEMORY :], move]
            logs = logs + move
            if len(moves) > 1:
                changes, steps = np.diff(moves, axis=0).T, np.diff(points, axis=0).T
                logs = logs - (steps + changes) @ np.linalg.lstsq(changes, move, rcond=1e-8)[0]
            logs = np.clip(logs, -_WIDEST, _WIDEST)

    def _met(self) -> bool:
        return self._error <= self.bound * (1 + self._tolerance)

    def _stop_if_met(self, _: Array) -> None:
        if self._met():
            raise StopIteration


def _inverse_chain(workload: Array) -> tuple[Array, Array] | None:
    """Return the diagonals of the inverse of ``W^T W`` where the notes show it to be tridiagonal."""
    rows, cells = workload.shape
    if rows != cells or not cells > 1 or np.triu(workload, 1).any():
        return None
    own = np.diagonal(workload).copy()
    above = workload[:-1, 0]
    if not above.all() or not own.all():
        return None
    ratios = workload[1:, 0] / above
    last = own[1:].copy()
    expected = ratios[:, np.newaxis] * workload[:-1]
    if not np.array_equal(np.tril(workload[1:], 0), np.tril(expected, 0)):
        return None
    diagonal = np.concatenate([[1.0], 1 + np.square(ratios)]) / np.square(own)
    return diagonal, -ratios / (own[:-1] * last)
