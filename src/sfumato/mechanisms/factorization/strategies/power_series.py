"""Truncated power series: lower triangular Toeplitz matrices and their products."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.participation import Participation

__all__ = [
    "LONGEST",
    "check_steps",
    "inverse",
    "is_decreasing",
    "prefix_weights",
    "product",
    "toeplitz_matrix",
    "worst_participation",
]

Array = NDArray[np.float64]

LONGEST: Final = 1 << 20
"""Most terms of a series."""
_SHORT: Final = 48


def check_steps(steps: object) -> None:
    """Refuse a number of steps that no strategy is made for."""
    if _check.integer("steps", steps, minimum=1) > LONGEST:
        _check.refuse("steps", f"be at most {LONGEST}", steps, "join steps, or start anew")


def product(a: ArrayLike, b: ArrayLike, length: int) -> Array:
    """Return the first ``length`` terms of the product of two series, to float accuracy.

    Parameters
    ----------
    a : array of shape (m,)
    b : array of shape (n,) or (n, columns)
    length : int
    """
    one, other = np.asarray(a, dtype=np.float64)[:length], np.asarray(b, dtype=np.float64)[:length]
    out = np.zeros((length, *other.shape[1:]))
    if min(len(one), len(other)) <= _SHORT:
        flat = other.ndim == 1 and len(other) < len(one)
        short, long = (other, one) if flat else (one, other)
        for lag in range(min(len(short), length)):
            part = long[: length - lag]
            out[lag : lag + len(part)] += short[lag] * part
        return out
    size = _transform_size(len(one) + len(other))
    left = np.fft.rfft(one, size).reshape(-1, *[1] * (other.ndim - 1))
    whole = np.fft.irfft(left * np.fft.rfft(other, size, axis=0), size, axis=0)[:length]
    out[: len(whole)] = whole
    return out


def inverse(a: ArrayLike, length: int) -> Array:
    """Return the first ``length`` terms of the series whose product with ``a`` is 1, by Newton's iteration.

    Parameters
    ----------
    a : array of shape (m,)
        Its first term is not 0.
    length : int

    Examples
    --------
    >>> inverse([1.0, -0.5], 4).tolist()
    [1.0, 0.5, 0.25, 0.125]
    """
    series = np.asarray(a, dtype=np.float64)
    if not series[1:].any():
        return np.concatenate([[1 / series[0]], np.zeros(length - 1)])
    out, size = np.array([1 / series[0]]), 1
    while size < length:
        size = min(2 * size, length)
        rest = -product(out, series, size)
        rest[0] += 2
        out = product(out, rest, size)
    return out


def prefix_weights(workload: ArrayLike | None, steps: int) -> Array:
    """Return the weights of a workload whose answer at step t is ``sum(w[t - i] * x[i])``; ones for None."""
    if workload is None:
        return np.ones(steps)
    weights = np.array(workload, dtype=np.float64)[:steps]
    if weights.ndim != 1 or not np.isfinite(weights).all() or not weights.size or weights[0] == 0:
        remedy = "pass the weight of the newest step first"
        _check.refuse_type("workload", "be finite weights by age, the first not 0", weights, remedy)
    return np.concatenate([weights, np.zeros(steps - weights.size)])


def toeplitz_matrix(series: Array, steps: int) -> Array:
    """Return the lower triangular Toeplitz matrix with that first column, shape (steps, steps)."""
    column = np.zeros(2 * steps - 1)
    column[steps - 1 : steps - 1 + min(steps, len(series))] = series[:steps]
    # Row t reads column[steps - 1 + t - i] for i = 0, 1, ...
    return np.lib.stride_tricks.sliding_window_view(column, steps)[:, ::-1].copy()


def is_decreasing(coefficients: NDArray[Any]) -> bool:
    """Return whether no coefficient is negative and none exceeds the one before."""
    return bool((coefficients >= 0).all() and (np.diff(coefficients) <= 0).all())


def worst_participation(coefficients: NDArray[Any], participation: Participation, steps: int) -> NDArray[Any]:
    """Return the sum of the columns of the earliest pattern; whole numbers stay whole."""
    gap, maximum = participation.separation, participation.max_steps(steps)
    if maximum * gap >= steps:
        # Every column from 0 on by the separation: sums within each residue.
        rows = np.zeros((-(-steps // gap), gap), dtype=coefficients.dtype)
        rows.reshape(-1)[: len(coefficients)] = coefficients[: rows.size]
        return np.cumsum(rows, axis=0).reshape(-1)[:steps]
    column = np.zeros(steps, dtype=coefficients.dtype)
    for start in participation.earliest_steps(steps).tolist():
        reach = min(len(coefficients), steps - start)
        column[start : start + reach] += coefficients[:reach]
    return column


def _transform_size(length: int) -> int:
    return 1 << (length - 1).bit_length()
