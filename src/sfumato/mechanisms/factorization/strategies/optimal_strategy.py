"""The strategy with the smallest total squared error for a workload, with a certified optimality gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array
from sfumato.mechanisms.factorization.strategies.optimal_weights import OptimalWeights
from sfumato.numerics.blas_threads import one_thread

__all__ = ["OptimalStrategy", "as_workload", "optimal_strategy", "svd_bound", "total_squared_error"]

_MAX_CELLS: Final = 2048
_REST: Final = 1e-6


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


@one_thread()
def optimal_strategy(workload: ArrayLike, *, tolerance: float = 1e-4) -> OptimalStrategy:
    r"""Return a strategy :math:`C` with nearly the smallest :math:`\operatorname{tr}(W (C^T C)^{-1} W^T)`.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        :math:`W`; up to 2,048 cells: 256 take a part of a second, 1,024 some seconds.
    tolerance : float
        Where to stop: the error is at most this much above the bound, relatively. After some 500 rounds the
        best is returned with its bound.

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
    concave in the weights and is climbed: see `OptimalWeights`.

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
    cells = matrix.shape[1]
    used = matrix.any(axis=0)
    dual = OptimalWeights(matrix[:, used], _check.positive("tolerance", tolerance))
    dual.solve()
    found = dual.core()
    core = np.zeros((len(found), cells))
    core[:, used] = found
    # What the constraint leaves is used up, which only helps; then a little of every cell.
    product = (1 - _REST) * (core.T @ core)
    product[np.diag_indices(cells)] = 1.0
    lower = np.linalg.cholesky(product)
    error = float(
        np.square(scipy.linalg.solve_triangular(lower, matrix.T, lower=True, check_finite=False)).sum()
    )
    return OptimalStrategy(np.asarray(lower.T, dtype=np.float64), error, dual.bound, core)


@one_thread()
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


@one_thread()
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
    rule, remedy = (
        "be a matrix of finite numbers, not all 0",
        "pass a row for each query, a column for each cell",
    )
    try:
        matrix = np.array(workload, dtype=np.float64)
    except (TypeError, ValueError):
        _check.refuse_type("workload", rule, workload, remedy)
    if matrix.ndim != 2 or not np.isfinite(matrix).all() or not matrix.any():
        _check.refuse_type("workload", rule, matrix, remedy)
    if matrix.shape[1] > _MAX_CELLS:
        remedy = "join cells, or answer factors of the workload"
        _check.refuse_state(
            "workload", f"have at most {_MAX_CELLS} cells", f"it has {matrix.shape[1]}", remedy
        )
    return matrix
