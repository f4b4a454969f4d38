"""A certified lower bound on the nuclear norm of a matrix whose rows and columns are weighted."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.blas_threads import one_thread
from sfumato.numerics.rounding import div_down, fraction_down

__all__ = ["Floats", "nuclear_norm_down", "to_unit", "unit_weights"]

Floats = NDArray[np.float64]

_UNIT: Final = 2.0**-52
_OUTWARD: Final = 1 + 2.0**-30


def to_unit(matrix: Floats) -> tuple[Floats, Fraction]:
    """Return a matrix over a power of two, with entries up to 1, and that power.

    Entries below 1e-307 of the largest lose bits, no more than 5e-324 each.
    """
    exponent = int(np.frexp(np.abs(matrix).max())[1])
    return np.ldexp(matrix, -exponent), Fraction(2) ** exponent


def unit_weights(squares: Floats) -> Floats:
    """Return weights whose squares are in proportion to ``squares`` and sum to at most 1."""
    roots = np.sqrt(squares / squares.max())
    return np.asarray(roots / (math.sqrt(math.fsum(np.square(roots))) * (1 + 8 * _UNIT)))


@one_thread()
def nuclear_norm_down(matrix: Floats, rows: Floats, columns: Floats) -> float:
    r"""Return a lower bound on the sum of the singular values of ``diag(rows) matrix diag(columns)``.

    Notes
    -----
    For any U and V with r columns, :math:`\operatorname{tr}(U^T M V) \le \|U\| \|V\| \|M\|_*`. U and V are
    the computed singular vectors; :math:`\|U\|^2 \le 1 + \|U^T U - I\|_F`. What floats lose in the trace is
    at most (rows + columns + 8) units of :math:`\sum_k |u_k|^T |M| |v_k| \le r \|M\|_F \max |u_k| |v_k|`.
    """
    core, unit = to_unit(matrix)
    scaled = rows[:, np.newaxis] * core * columns
    left, sizes, right = np.linalg.svd(scaled, full_matrices=False)
    rank = max(1, int((sizes > len(sizes) * _UNIT * sizes[0]).sum()))
    left, right = left[:, :rank], right[:rank].T
    trace: float = math.fsum(((left.T @ scaled) * right.T).sum(axis=1))
    lost = _UNIT * (sum(matrix.shape) + 8) * rank * float(np.linalg.norm(scaled)) * _OUTWARD
    longest = max(_norm_above_one(left), _norm_above_one(right))
    found = div_down(trace - lost - 1e-290, 1 + longest) * (1 - 4 * _UNIT)
    return fraction_down(Fraction(max(0.0, found)) * unit)


def _norm_above_one(vectors: Floats) -> float:
    """Bound how far the square of the spectral norm lies above 1."""
    rows, rank = vectors.shape
    off = float(np.linalg.norm(vectors.T @ vectors - np.eye(rank)))
    return float((off + _UNIT * (rows + 8) * rank) * _OUTWARD)
