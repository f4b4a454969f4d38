"""p-Identity strategies for Laplace noise: every cell by itself, and p weighted sums of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array
from sfumato.mechanisms.factorization.strategies.optimal_strategy import as_workload
from sfumato.numerics.blas_threads import one_thread

__all__ = ["p_identity"]


@one_thread()
def p_identity(workload: ArrayLike, *, rows: int | None = None, seed: int = 0) -> Array:
    r"""Return a strategy of L1 sensitivity 1 with little total squared error for a workload.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        :math:`W`.
    rows : int, optional
        How many sums beside the cells themselves; one for sixteen cells unless given.
    seed : int
        Of the search's start.

    Returns
    -------
    ndarray, shape (cells + rows, cells)
        Of full column rank, all columns with an L1 norm of 1; at a local minimum, never worse than the cells
        alone.

    Notes
    -----
    The strategy is :math:`A = [I; \Theta] D` for :math:`\Theta \ge 0`, where the diagonal :math:`D` gives
    each column the norm 1: with :math:`e = 1 + \Theta^T 1` and :math:`M = (I + \Theta^T\Theta)^{-1}` the
    error is :math:`\operatorname{tr}(H M)`, :math:`H = \operatorname{diag}(e) W^T W \operatorname{diag}(e)`,
    and its gradient in :math:`\Theta` is :math:`2 \cdot 1 ((W^T W \circ M) e)^T - 2 \Theta M H M`.

    References
    ----------
    McKenna, Miklau, Hay, Machanavajjhala (2018), "Optimizing error of high-dimensional statistical queries
    under differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms.factorization.strategies.optimal_strategy import total_squared_error
    >>> prefixes = np.tril(np.ones((64, 64)))
    >>> total_squared_error(prefixes, p_identity(prefixes)) < 0.5 * total_squared_error(prefixes, np.eye(64))
    True
    """
    matrix = as_workload(workload)
    cells = matrix.shape[1]
    count = max(1, cells // 16) if rows is None else _check.integer("rows", rows, minimum=1)
    # On a scale where errors are near 1, as the search's tolerances want them.
    gram = matrix.T @ matrix / np.square(matrix).sum()

    def objective(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(count, cells)
        e = 1 + theta.sum(axis=0)
        m = np.linalg.inv(np.eye(cells) + theta.T @ theta)
        h = gram * np.outer(e, e)
        gradient = 2 * ((gram * m) @ e) - 2 * theta @ (m @ h @ m)
        return float((h * m).sum()), gradient.reshape(-1)

    start = np.random.default_rng(_check.integer("seed", seed)).random(count * cells)
    bounds = [(0.0, None)] * start.size
    found: Any = scipy.optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}
    )
    theta = found.x.reshape(count, cells) if found.fun <= 1.0 else np.zeros((count, cells))
    strategy = np.concatenate([np.eye(cells), theta])
    return np.asarray(strategy / strategy.sum(axis=0))
