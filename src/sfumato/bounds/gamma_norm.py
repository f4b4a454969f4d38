"""The factorization norm of a matrix between two certified bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.bounds.nuclear_norm import Floats, nuclear_norm_down, to_unit, unit_weights
from sfumato.mechanisms.factorization.strategies.optimal_strategy import as_workload
from sfumato.numerics.blas_threads import one_thread
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import fraction_down, fraction_up

__all__ = ["FactorizationNorm", "factorization_norm"]

_ROUNDS: Final = 1000
_TOLERANCE: Final = 1e-4
_MOST: Final = 512
_OUTWARD: Final = 1 + 2.0**-30
_UNIT: Final = 2.0**-52


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactorizationNorm:
    r"""Bounds on :math:`\gamma_2(W)`, and the factors and weights that prove them.

    Parameters
    ----------
    bounds : Interval
        Rounded outward.
    left, right : array
        Factors, ``left @ right`` is W to float accuracy; the upper bound is the greatest norm of a row of the
        first times that of a column of the second.
    rows, columns : array
        Unit vectors p and q; the lower bound is the nuclear norm of ``diag(p) W diag(q)``.

    Examples
    --------
    >>> import numpy as np
    >>> found = factorization_norm(np.eye(3))
    >>> round(found.bounds.lower, 6), round(found.bounds.upper, 6)
    (1.0, 1.0)
    """

    bounds: Interval
    left: Floats
    right: Floats
    rows: Floats
    columns: Floats


@one_thread()
def factorization_norm(workload: ArrayLike) -> FactorizationNorm:
    r"""Bound :math:`\gamma_2(W)`, the least product of row norm and column norm over all W = B C.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        At most 512 of each.

    Returns
    -------
    FactorizationNorm
        Both bounds usually meet to one in 10,000.

    Raises
    ------
    ParameterError
        If the workload is no matrix of finite numbers, all 0, or too large.

    Notes
    -----
    :math:`\gamma_2(W) = \max \|D_p W D_q\|_*` over unit vectors p and q. With the singular value
    decomposition :math:`D_p W D_q = U S V^T` the factors :math:`D_p^{-1} U S^{1/2}` and :math:`S^{1/2} V^T
    D_q^{-1}` give the upper bound; they meet where :math:`p_i^2` is in proportion to the diagonal of :math:`U
    S U^T`, and q likewise, which is iterated. Guarantee: each bound is certified by itself. What the product
    of the factors misses is paid by its greatest row norm, :math:`\gamma_2(R) \le \|R\|_{2 \to \infty}`.

    References
    ----------
    Linial, Shraibman (2009), "Lower bounds in communication complexity based on factorization norms"; Lee,
    Shraibman, Spalek (2008), "A direct product theorem for discrepancy", the dual.

    Examples
    --------
    >>> import numpy as np
    >>> hadamard = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> round(factorization_norm(hadamard).bounds.lower ** 2, 6)
    2.0
    """
    matrix, unit = to_unit(as_workload(workload))
    if max(matrix.shape) > _MOST:
        _check.refuse_state(
            "workload",
            f"have at most {_MOST} rows and columns",
            f"it has {max(matrix.shape)}",
            "use mean_error_bound",
        )
    used, asked = matrix.any(axis=0), matrix.any(axis=1)
    core = matrix[np.ix_(asked, used)]
    p, q, left, right = _climb(core)
    rows, columns = np.zeros(len(matrix)), np.zeros(matrix.shape[1])
    rows[asked], columns[used] = p, q
    b, c = np.zeros((len(matrix), left.shape[1])), np.zeros((right.shape[0], matrix.shape[1]))
    b[asked], c[:, used] = left, right
    bounds = Interval(
        fraction_down(Fraction(nuclear_norm_down(core, p, q)) * unit),
        fraction_up(Fraction(_above(matrix, b, c)) * unit),
    )
    left, right = b * float(unit / _half(unit)), c * float(_half(unit))
    return FactorizationNorm(bounds=bounds, left=left, right=right, rows=rows, columns=columns)


def _half(unit: Fraction) -> Fraction:
    """Return the root of a power of two, or of half of it."""
    return Fraction(2) ** ((unit.numerator.bit_length() - unit.denominator.bit_length()) // 2)


def _climb(matrix: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the best weights and factors that were found."""
    p, q = (unit_weights(np.ones(size)) for size in matrix.shape)
    lower, upper = 0.0, np.inf
    best_p, best_q = p, q
    left, right = matrix, np.eye(matrix.shape[1])
    for _ in range(_ROUNDS):
        u, sizes, v = np.linalg.svd(p[:, np.newaxis] * matrix * q, full_matrices=False)
        by_row, by_column = np.square(u) @ sizes, np.square(v).T @ sizes
        product = float(np.sqrt((by_row / p**2).max() * (by_column / q**2).max()))
        if product < upper:
            upper = product
            left, right = u * np.sqrt(sizes) / p[:, np.newaxis], np.sqrt(sizes)[:, np.newaxis] * v / q
        if sizes.sum() > lower:
            lower, best_p, best_q = float(sizes.sum()), p, q
        if upper <= lower * (1 + _TOLERANCE):
            break
        p, q = unit_weights(np.maximum(by_row, 1e-12)), unit_weights(np.maximum(by_column, 1e-12))
    return best_p, best_q, left, right


def _above(matrix: Floats, left: Floats, right: Floats) -> float:
    """Return an upper bound from factors, whatever floats lost in them."""
    rest = np.abs(matrix - left @ right) + 2 * _UNIT * (left.shape[1] + 4) * (np.abs(left) @ np.abs(right))
    norms = np.linalg.norm(left, axis=1).max() * np.linalg.norm(right, axis=0).max()
    return float((norms + np.linalg.norm(rest, axis=1).max()) * _OUTWARD + 1e-290)
