"""The determinant lower bound on hereditary discrepancy, by enumeration of submatrices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.bounds.nuclear_norm import to_unit
from sfumato.mechanisms.factorization.strategies.optimal_strategy import as_workload
from sfumato.numerics.blas_threads import one_thread
from sfumato.numerics.rounding import fraction_down, mul_down

__all__ = ["DeterminantBound", "determinant_bound"]

_MOST: Final = 1 << 17


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeterminantBound:
    """A square submatrix whose determinant bounds discrepancy and factorization norm from below.

    Parameters
    ----------
    root : float
        The k-th root of its determinant's magnitude, for k rows and columns; rounded down.
    rows, columns : tuple of int
        Which they are.
    theorem : str
        What proves the bound on the discrepancy.

    Examples
    --------
    >>> import numpy as np
    >>> found = determinant_bound(np.array([[1, 1], [1, -1]]))
    >>> found.hereditary_discrepancy, found.rows, found.columns
    (0.7071067811865475, (0, 1), (0, 1))
    """

    root: float
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    theorem: str = "determinants (Lovasz, Spencer and Vesztergombi 1986)"

    @property
    def hereditary_discrepancy(self) -> float:
        """No less than this is the hereditary discrepancy: half of the root."""
        return mul_down(self.root, 0.5)

    @property
    def factorization_norm(self) -> float:
        """No less than this is the factorization norm: the root."""
        return self.root


@one_thread()
def determinant_bound(workload: ArrayLike) -> DeterminantBound:
    r"""Bound hereditary discrepancy and factorization norm of a matrix by its submatrices' determinants.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        Of at most 131,072 square submatrices: 9 queries on 9 cells, or 3 on 90.

    Returns
    -------
    DeterminantBound

    Raises
    ------
    ParameterError
        If the workload is no matrix of finite numbers, all 0, or too large.

    Notes
    -----
    Guarantee: for a submatrix B of k rows and columns the hereditary discrepancy is at least :math:`|\det
    B|^{1/k}/2`, and the factorization norm at least :math:`|\det B|^{1/k}`: by equal weights it is at least
    :math:`\|B\|_*/k`, the mean of singular values, whose geometric mean is the root. The determinant of the
    chosen submatrix is computed exactly; which is the greatest is decided in floats.

    References
    ----------
    Lovasz, Spencer, Vesztergombi (1986), "Discrepancy of set-systems and matrices"; Matousek, Nikolov,
    Talwar (2020), "Factorization norms and hereditary discrepancy".

    Examples
    --------
    >>> import numpy as np
    >>> round(determinant_bound(np.tril(np.ones((4, 4)))).root, 6)
    1.0
    """
    matrix = as_workload(workload)
    queries, cells = matrix.shape
    if math.comb(queries + cells, cells) - 1 > _MOST:
        remedy = "pass some of its rows and columns, whose bound holds for all"
        _check.refuse_state("workload", f"have at most {_MOST} square submatrices", "it has more", remedy)
    scaled, _ = to_unit(matrix)
    best, rows, columns = -np.inf, tuple[int, ...]((0,)), tuple[int, ...]((0,))
    for size in range(1, min(queries, cells) + 1):
        chosen = list(combinations(range(cells), size))
        index = np.array(chosen)
        for picked in combinations(range(queries), size):
            parts = scaled[list(picked)][:, index].transpose(1, 0, 2)
            logs = np.linalg.slogdet(parts)[1] / size
            at = int(logs.argmax())
            # Ties by rounding go to the smaller submatrix.
            if logs[at] > best + 1e-12:
                best, rows, columns = float(logs[at]), picked, chosen[at]
    square = [[Fraction(float(matrix[i, j])) for j in columns] for i in rows]
    return DeterminantBound(root=_root_down(abs(_determinant(square)), len(rows)), rows=rows, columns=columns)


def _determinant(square: list[list[Fraction]]) -> Fraction:
    """Return a determinant by elimination of rationals."""
    size, found = len(square), Fraction(1)
    rows = [list(row) for row in square]
    for step in range(size):
        pivot = next((i for i in range(step, size) if rows[i][step]), None)
        if pivot is None:
            return Fraction(0)
        rows[step], rows[pivot] = rows[pivot], rows[step]
        found *= rows[step][step]
        for i in range(step + 1, size):
            share = rows[i][step] / rows[step][step]
            rows[i] = [one - share * other for one, other in zip(rows[i], rows[step], strict=True)]
    return found


def _root_down(value: Fraction, degree: int) -> float:
    """Return the largest float whose power is at most a value."""
    bits = value.numerator.bit_length() - value.denominator.bit_length() + 1
    least, most = Fraction(0), Fraction(2) ** math.ceil(bits / degree)
    for _ in range(64):
        middle = (least + most) / 2
        least, most = (middle, most) if middle**degree <= value else (least, middle)
    nearest = Fraction(float(most))
    return fraction_down(nearest if nearest**degree <= value else least)
