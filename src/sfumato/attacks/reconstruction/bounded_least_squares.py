"""Least squares for secret bits: without bounds, and within the box from 0 to 1."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, lsmr

__all__ = ["as_operator", "bounded_least_squares", "is_sparse", "least_squares", "smallest_singular_value"]

_SINGLE: Final = 1 << 22
"""Entries from which on a matrix of integers or short floats is multiplied in single precision."""
_STEPS: Final = 2000
_CHANGE: Final = 1e-5

Floats = NDArray[np.float64]


def is_sparse(matrix: Any) -> bool:
    """Return whether a matrix is one of scipy's sparse ones."""
    return bool(issparse(matrix))


def as_operator(queries: Any) -> LinearOperator:
    """Return products with a matrix, dense or sparse, and with its transpose."""
    if is_sparse(queries):
        held = queries.tocsr().astype(np.float64)
    else:
        short = (queries.dtype.kind in "biu" or queries.dtype == np.float32) and queries.size >= _SINGLE
        held = queries.astype(np.float32 if short else np.float64, copy=False)
    other, kind = held.T, held.dtype
    return LinearOperator(
        held.shape,
        matvec=lambda x: (held @ np.ravel(x).astype(kind)).astype(np.float64),
        rmatvec=lambda y: (other @ np.ravel(y).astype(kind)).astype(np.float64),
        dtype=np.float64,
    )


def least_squares(products: LinearOperator, answers: Floats) -> Floats:
    """Return the solution of least norm, by LSMR from the middle of the box (Fong, Saunders 2011)."""
    middle = np.full(products.shape[1], 0.5)
    rest = answers - products.matvec(middle)
    return middle + np.asarray(lsmr(products, rest, atol=1e-7, btol=1e-7, maxiter=_STEPS)[0])


def bounded_least_squares(products: LinearOperator, answers: Floats) -> Floats:
    """Return the minimum in the box, by accelerated projected gradients with restarts.

    Beck, Teboulle (2009), with the restart of O'Donoghue, Candès (2015).
    """
    step = 1 / (1.01 * _largest_square(products))
    x = np.clip(least_squares(products, answers), 0.0, 1.0)
    point, momentum = x, 1.0
    for _ in range(_STEPS):
        gradient = products.rmatvec(products.matvec(point) - answers)
        found = np.clip(point - step * gradient, 0.0, 1.0)
        moved = found - x
        if float((point - found) @ moved) > 0:
            momentum, point = 1.0, x
            if float(np.abs(moved).max()) < _CHANGE:
                break
            continue
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        point = found + (momentum - 1) / following * moved
        x, momentum = found, following
        if float(np.abs(moved).max()) < _CHANGE:
            break
    return x


def _largest_square(products: LinearOperator) -> float:
    """Return an upper estimate of the largest squared singular value, by the power method."""
    vector = np.ones(products.shape[1]) / math.sqrt(products.shape[1])
    size = 0.0
    for _ in range(30):
        image = products.rmatvec(products.matvec(vector))
        size = float(np.linalg.norm(image))
        if size == 0:
            return 1.0
        vector = image / size
    return 1.05 * size


def smallest_singular_value(queries: Any) -> float:
    """Return the smallest singular value, 0 where the queries do not determine all bits."""
    dense = np.asarray(queries.todense() if is_sparse(queries) else queries, dtype=np.float64)
    if dense.shape[0] < dense.shape[1]:
        return 0.0
    smallest = float(np.linalg.svd(dense, compute_uv=False)[-1])
    return smallest if smallest > 1e-9 * math.sqrt(dense.size) else 0.0
