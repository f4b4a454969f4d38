"""The strategy with the smallest total squared error for a workload, with a certified optimality gap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array

__all__ = ["OptimalStrategy", "as_workload", "optimal_strategy", "svd_bound", "total_squared_error"]

_MAX_CELLS: Final = 2048
_ROUNDS: Final = 500
_REST: Final = 1e-6
_WIDEST: Final = 18.0  # logs of weights: beyond, rounding says more than they do


@final
@dataclass(frozen=True, slots=True, eq=False)
class OptimalStrategy:
    """A strategy and what is known of its error, at noise of one L2 sensitivity.

    Parameters
    ----------
    strategy : array of shape (cells, cells)
        Its columns have an L2 norm of at most 1.
    error : float
        The expected squared error of all answers together.
    bound : float
        No strategy has less.
    core : array of shape (rank, cells)
        The same without the little weight that lets the strategy determine every cell: its rows are sums of
        the workload's.
    """

    strategy: Array
    error: float
    bound: float
    core: Array


def optimal_strategy(workload: ArrayLike, *, tolerance: float = 1e-4) -> OptimalStrategy:
    r"""Return a strategy :math:`C` with nearly the smallest :math:`\operatorname{tr}(W (C^T C)^{-1} W^T)`.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        :math:`W`; up to 2,048 cells: 256 take a part of a second, 1,024 half a minute.
    tolerance : float
        Where to stop: the error is at most this much above the bound, relatively. After 500 rounds the best
        is returned with its bound.

    Returns
    -------
    Optimum

    Notes
    -----
    Among strategies whose columns have norms of at most 1, that is :math:`X = C^T C` with a diagonal of at
    most 1. For any positive :math:`\lambda`, with :math:`\Lambda = \operatorname{diag}(\lambda)` and :math:`S
    = (\Lambda^{1/2} W^T W \Lambda^{1/2})^{1/2}`, every such X has an error of at least
    :math:`(\operatorname{tr} S)^2/\sum \lambda_i` (weak duality; equal weights give the singular value bound
    of Li and Miklau). :math:`X = \Lambda^{-1/2} S \Lambda^{-1/2}`, scaled to the constraint, has an error of
    :math:`\operatorname{tr} S \max_i X_{ii}`; both meet where :math:`\lambda_i = S_{ii}`. The bound's log is
    concave in the weights and is climbed.

    At last X becomes :math:`(1 - 10^{-6}) X + 10^{-6} I`, with a full diagonal: that has full rank, so that
    estimates have no bias, and is at least :math:`(1 - 10^{-6})` times X, so that errors grow by no more.

    References
    ----------
    Li, Miklau (2013), "Optimal error of query sets under the differentially-private matrix mechanism";
    Yuan, Yang, Zhang, Hao (2016), "Convex optimization for linear query processing under approximate
    differential privacy"; Denisov, McMahan, Rush, Smith, Thakurta (2022), the optimum's form.

    Examples
    --------
    >>> import numpy as np
    >>> found = optimal_strategy(np.tril(np.ones((64, 64))))
    >>> 1 <= found.error / found.bound < 1.0002, round(found.bound / svd_bound(np.tril(np.ones((64, 64)))), 2)
    (True, 1.06)
    """
    matrix = as_workload(workload)
    gram = matrix.T @ matrix
    used = np.diag(gram) > 0
    dual = _Dual(gram[np.ix_(used, used)], _check.positive("tolerance", tolerance))
    dual.solve()
    product = np.eye(len(gram))
    product[np.ix_(used, used)] = dual.product
    # What the constraint leaves is used up, which only helps; then a little of every cell.
    product[np.diag_indices(len(gram))] = 1.0
    product = (1 - _REST) * product + _REST * np.eye(len(gram))
    strategy = np.asarray(np.linalg.cholesky(product).T, dtype=np.float64)
    core = np.zeros((len(dual.core), len(gram)))
    core[:, used] = dual.core
    return OptimalStrategy(strategy, total_squared_error(matrix, strategy), dual.bound, core)


class _Dual:
    r"""The dual's log, :math:`2 \log \operatorname{tr} S - \log \sum \lambda_i`, at the logs of the weights.

    Notes
    -----
    Its gradient is :math:`S_{ii}/\operatorname{tr} S - \lambda_i/\sum \lambda`. Every evaluation gives a
    bound and a strategy; the best of both are retained.
    """

    def __init__(self, gram: Array, tolerance: float) -> None:
        self._gram, self._tolerance = gram, tolerance
        self.bound, self._error = 0.0, math.inf
        self.product = self.core = np.eye(len(gram))

    def solve(self) -> None:
        """Climb until bound and error meet."""
        start = np.zeros(len(self._gram))
        options = {"maxiter": _ROUNDS, "ftol": 0.0, "gtol": 1e-12}
        bounds = [(-_WIDEST, _WIDEST)] * len(start)
        climb: Any = minimize  # its stubs know no callback beside a gradient
        climb(
            self, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=self._check_gap, options=options
        )

    def __call__(self, logs: Array) -> tuple[float, Array]:
        """Return minus the dual's log, and its gradient."""
        weights = np.exp(logs)
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(self._gram * np.outer(root, root))
        values[values < len(values) * 2.0**-50 * values[-1]] = 0.0
        sizes = np.sqrt(values)
        total = float(sizes.sum())
        diagonal = np.square(vectors) @ sizes
        self.bound = max(self.bound, total**2 / float(weights.sum()))
        scale = float((diagonal / weights).max())
        if total * scale < self._error:
            self._error = total * scale
            half = vectors / root[:, np.newaxis] * np.sqrt(sizes / scale)
            self.product, self.core = half @ half.T, half[:, sizes > 0].T
        gradient = diagonal / total - weights / weights.sum()
        return math.log(float(weights.sum())) - 2 * math.log(total), -gradient

    def _check_gap(self, _: Array) -> None:
        if self._error <= self.bound * (1 + self._tolerance):
            raise StopIteration


def svd_bound(workload: ArrayLike) -> float:
    """Return the singular value bound on the total squared error: no strategy of L2 sensitivity 1 has less.

    Parameters
    ----------
    workload : array of shape (queries, cells)

    Returns
    -------
    float

    Notes
    -----
    The square of the sum of the singular values, over the number of cells. It is attained where the square
    root of ``W^T W`` has a constant diagonal: for all marginals of some orders, for all cyclic shifts.

    References
    ----------
    Li, Miklau (2013), "Optimal error of query sets under the differentially-private matrix mechanism".

    Examples
    --------
    >>> import numpy as np
    >>> round(svd_bound(np.eye(8)), 9)
    8.0
    """
    matrix = as_workload(workload)
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return float(sizes.sum() ** 2 / matrix.shape[1])


def total_squared_error(workload: ArrayLike, strategy: ArrayLike) -> float:
    """Return the total squared error of a workload's answers by a strategy of full column rank.

    Parameters
    ----------
    workload : array of shape (queries, cells)
    strategy : array of shape (entries, cells)

    Returns
    -------
    float
        With noise of variance 1 on every entry, to float accuracy.
    """
    decoder = np.asarray(workload, dtype=np.float64) @ np.linalg.pinv(np.asarray(strategy, dtype=np.float64))
    return float(np.square(decoder).sum())


def as_workload(workload: ArrayLike) -> NDArray[np.float64]:
    """Return a workload's matrix, or refuse what is none."""
    matrix = np.array(workload, dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all() or not matrix.any():
        remedy = "pass a row for each query, a column for each cell"
        _check.refuse_type("workload", "be a matrix of finite numbers, not all 0", matrix, remedy)
    if matrix.shape[1] > _MAX_CELLS:
        remedy = "join cells, or answer factors of the workload"
        _check.refuse_state(
            "workload", f"have at most {_MAX_CELLS} cells", f"it has {matrix.shape[1]}", remedy
        )
    return matrix
