"""An interior-point method for the optimal mechanism's linear program, which uses the program's blocks.

The program has a block of variables for each report z: the column ``p_z(x)`` of the table. Ratios bind the
entries of one column only; that rows add up to 1 binds the columns. A step of the method therefore solves
one small system for each column and one for the rows, where a general solver factors a matrix of all entries.

References
----------
Mehrotra, On the implementation of a primal-dual interior point method, SIAM Journal on Optimization 2, 1992.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

__all__ = ["LinearProgram", "dual_bound", "solve"]

_Array = NDArray[np.float64]
_Best = tuple[float, _Array, float, _Array]
_PATIENCE = 15
_START = 100.0
_FEASIBLE = 1e-9


class LinearProgram(NamedTuple):
    """Minimise ``sum(costs * table)`` over tables whose rows add up to 1.

    Along each edge, both ways, ``table[x] <= factor * table[y]``.

    Attributes
    ----------
    costs : ndarray of shape (n, m)
        Prior times loss, for each place and report.
    edges : ndarray of int64, shape (k, 2)
        Pairs of places.
    factors : ndarray of shape (k,)
        ``exp(epsilon d)`` of each edge.
    """

    costs: _Array
    edges: NDArray[np.int64]
    factors: _Array

    def constraints(self) -> csr_array:
        """Return the matrix G of ``G p >= 0``, for one column p of the table."""
        x = np.concatenate([self.edges[:, 0], self.edges[:, 1]])
        y = np.concatenate([self.edges[:, 1], self.edges[:, 0]])
        rows = np.arange(x.size)
        factors = np.concatenate([self.factors, self.factors])
        data = np.concatenate([-np.ones(x.size), factors])
        entries = (data, (np.concatenate([rows, rows]), np.concatenate([x, y])))
        return coo_array(entries, shape=(x.size, self.costs.shape[0])).tocsr()


def dual_bound(program: LinearProgram, multipliers: _Array) -> float:
    """Return a lower bound of the program's value from any multipliers.

    Parameters
    ----------
    program : LinearProgram
        The program.
    multipliers : ndarray of shape (2 k, m)
        Of the constraints; negative ones are taken for 0.

    Returns
    -------
    float
        By weak duality: with ``u_x = min_z (c - G^T y)_xz`` the value of every feasible table is at least the
        sum of u. It is lowered by what rounding can have added.
    """
    reduced = program.costs - program.constraints().T @ np.maximum(multipliers, 0)
    size = float(np.abs(program.costs).sum() + (np.maximum(multipliers, 0).max(axis=1)).sum())
    return float(reduced.min(axis=1).sum()) - 1e-13 * size


def _newton_matrices(program: LinearProgram, weights: _Array) -> _Array:
    """Return ``G^T diag(w) G`` for each column of weights."""
    n, m = program.costs.shape
    (i, j), factors = program.edges.T, program.factors[:, None]
    there, back = np.split(weights, 2)
    found = np.zeros((n, n, m))
    found[i, j] = found[j, i] = -factors * (there + back)
    squares = program.constraints().power(2).T @ weights
    found[np.arange(n), np.arange(n)] = squares
    return np.ascontiguousarray(found.transpose(2, 0, 1))


def _inverses(matrices: _Array) -> _Array:
    """Return inverses of positive definite matrices, scaled first to ones on the diagonal."""
    scale = 1 / np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    both = scale[:, :, None] * scale[:, None, :]
    found: _Array = np.linalg.inv(matrices * both) * both
    return found


class _Newton:
    """Newton's systems at a point: one for each column, and one for the rows."""

    def __init__(
        self,
        *,
        program: LinearProgram,
        matrix: csr_array,
        table: _Array,
        slack: _Array,
        multipliers: _Array,
        dual_rows: _Array,
    ) -> None:
        self._matrix, self._transposed = matrix, matrix.T.tocsr()
        self._slack, self._multipliers = slack, multipliers
        self._residual = program.costs - dual_rows[:, None] - self._transposed @ multipliers
        self._short = 1 - table.sum(axis=1)
        self._inverse = _inverses(_newton_matrices(program, multipliers / slack))
        self._coupling = self._inverse.sum(axis=0)

    def direction(self, complement: _Array) -> tuple[_Array, _Array, _Array, _Array]:
        """Return the moves of table, slack, multipliers and row multipliers that reach a complementarity."""
        wanted = self._transposed @ (complement / self._slack) - self._residual
        moved = np.matmul(self._inverse, wanted.T[:, :, None])[:, :, 0].T
        rows = np.linalg.solve(self._coupling, self._short - moved.sum(axis=1))
        move = moved + np.matmul(self._inverse, rows).T
        slack_move = self._matrix @ move
        return move, slack_move, (complement - self._multipliers * slack_move) / self._slack, rows


def _step(values: _Array, change: _Array) -> float:
    down = change < 0
    return min(1.0, float((-values[down] / change[down]).min(initial=np.inf)) * 0.995)


def _better(program: LinearProgram, best: _Best, table: _Array, multipliers: _Array) -> tuple[_Best, bool]:
    """Return the best table and the best bound so far, and whether their difference got smaller."""
    value, bound = float((program.costs * table).sum()), dual_bound(program, multipliers)
    feasible = float(np.abs(table.sum(axis=1) - 1).max()) < _FEASIBLE
    first = (value, table) if feasible and value < best[0] else best[:2]
    second = (bound, multipliers) if bound > best[2] else best[2:]
    return (*first, *second), first[0] - second[0] < 0.99 * (best[0] - best[2])


def solve(program: LinearProgram, *, gap: float = 1e-5, iterations: int = 100) -> tuple[_Array, _Array]:
    """Return a nearly optimal table and multipliers.

    Parameters
    ----------
    program : LinearProgram
        The program; its edges connect all places.
    gap : float
        Relative difference of the table's value and the bound at which to stop.
    iterations : int
        Most steps.

    Returns
    -------
    tuple of two ndarrays
        The table, shape (n, m), whose constraints hold up to rounding, and the multipliers, shape (2 k, m).
    """
    n, m = program.costs.shape
    matrix = program.constraints()
    table = np.full((n, m), 1 / m)
    dual_rows = np.zeros(n)
    # A uniform table is feasible and strictly inside.
    slack: _Array = matrix @ table
    multipliers = _START * float((program.costs * table).sum()) / slack.size / slack
    best = (np.inf, table, -np.inf, multipliers)
    stalled = 0
    for _ in range(iterations):
        best, better = _better(program, best, table, multipliers)
        stalled = 0 if better else stalled + 1
        # Near the optimum columns that are not used at all make the systems singular; that ends it.
        if best[0] - best[2] <= gap * best[0] or stalled > _PATIENCE:
            break
        try:
            newton = _Newton(
                program=program,
                matrix=matrix,
                table=table,
                slack=slack,
                multipliers=multipliers,
                dual_rows=dual_rows,
            )
        except np.linalg.LinAlgError:
            break
        average = float((slack * multipliers).mean())
        _, slack_move, multiplier_move, _ = newton.direction(-slack * multipliers)
        ahead = (slack + _step(slack, slack_move) * slack_move) * (
            multipliers + _step(multipliers, multiplier_move) * multiplier_move
        )
        centre = (max(float(ahead.mean()), 0.0) / average) ** 3 * average
        move, slack_move, multiplier_move, rows = newton.direction(
            centre - slack * multipliers - slack_move * multiplier_move
        )
        primal, dual = _step(slack, slack_move), _step(multipliers, multiplier_move)
        table = table + primal * move
        slack = slack + primal * slack_move
        multipliers = multipliers + dual * multiplier_move
        dual_rows = dual_rows + dual * rows
    return best[1], best[3]
