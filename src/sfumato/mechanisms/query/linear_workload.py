"""Workloads of linear queries: a public matrix times the histogram of the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import UnboundedSensitivity
from sfumato.mechanisms.base.grid import Grid, clamp
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.rational import ceil_log2
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.counts import Histogram
from sfumato.privacy.neighboring import Neighboring

__all__ = ["LinearWorkload", "exact_products"]

_BITS = (
    24  # entries of the matrix are rounded to this many bits of the largest, unless fewer hold them exactly
)
_HALF = (
    24  # counts are split in halves of so many bits, which no product and no sum of 2**14 of them overflows
)
_PAIRWISE = 2048  # columns; beyond that the differences of all pairs are bounded, not searched


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearWorkload(Query):
    """Many linear queries at once: a matrix with one row for each query, one column for each cell.

    Parameters
    ----------
    matrix : array of shape (queries, cells)
        Public and finite. Each entry is rounded to a power-of-two grid: the coarsest that holds all of them
        exactly, else 24 bits of the largest.
    histogram : Histogram, optional
        The cells; the whole numbers from 0 unless given.

    Raises
    ------
    ParameterError
        If the matrix is not two-dimensional or all zero, or its columns are not the histogram's cells.
    UnboundedSensitivity
        If an entry is not finite.

    Notes
    -----
    One record adds its cell's column: so the sensitivity is the largest norm of a column under add/remove and
    zero-out, and the largest norm of a difference of two columns under replace-one. That is searched over all
    pairs up to 2,048 columns; beyond, it is bounded by twice the largest column and by the range of each
    row.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Norm
    >>> prefixes = LinearWorkload(matrix=np.tril(np.ones((4, 4))))
    >>> prefixes(np.array([0, 1, 1, 3])).tolist()
    [1, 3, 3, 4]
    >>> [prefixes.sensitivity(Neighboring.ADD_REMOVE, norm) for norm in (Norm.L1, Norm.L2, Norm.LINF)]
    [4.0, 2.0, 1.0]
    """

    matrix: NDArray[Any] | Sequence[Sequence[float]]
    histogram: Histogram = None  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or not matrix.any():
            remedy = "pass an array of shape (queries, cells)"
            _check.refuse_type("matrix", "have two axes and an entry other than 0", matrix, remedy)
        if not np.isfinite(matrix).all():
            raise UnboundedSensitivity("matrix must be finite, got infinities or NaN; pass finite weights")
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        given: Histogram | None = self.histogram
        if given is None:
            object.__setattr__(self, "histogram", Histogram(categories=tuple(range(matrix.shape[1]))))
        if self.histogram.entries != matrix.shape[1]:
            remedy = "pass a column for each cell of the histogram"
            _check.refuse_type("matrix", f"have {self.histogram.entries} columns, one a cell", matrix, remedy)

    @property
    def grid(self) -> Grid:
        """What the matrix' entries are rounded to."""
        weights = np.asarray(self.matrix)
        largest = ceil_log2(Fraction(float(np.abs(weights).max())))
        finest = Grid(exponent=max(largest - _BITS, -1074))
        coarse = min(0, largest)
        for exponent in range(coarse, finest.exponent, -1):
            scaled = np.ldexp(weights, -exponent)
            if bool((scaled == np.rint(scaled)).all()):
                return Grid(exponent=exponent)
        return finest

    @property
    def step(self) -> int | Fraction:
        """What one step is worth; 1 where the matrix holds whole numbers."""
        step = self.grid.step
        return 1 if step == 1 else step

    @property
    def entries(self) -> int:
        """One number for each row of the matrix."""
        return int(np.asarray(self.matrix).shape[0])

    @property
    def counts_records(self) -> bool:
        """Whether the matrix holds zeros and ones, and no cell is counted by two queries."""
        matrix = np.asarray(self.matrix)
        return bool(np.isin(matrix, (0, 1)).all() and (matrix.sum(axis=0) <= 1).all())

    def weights(self) -> NDArray[np.int64]:
        """Return the matrix in whole steps.

        Returns
        -------
        array of int64, shape (queries, cells)
            In steps of `grid`.
        """
        return np.asarray(self.grid.round(np.asarray(self.matrix)), dtype=np.int64)

    def steps(self, data: Any) -> NDArray[np.int64]:
        """Return the exact product of matrix and histogram, in steps.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private.
        """
        return exact_products(self.weights(), self.histogram.steps(data))

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the largest norms of a column, or of a difference of two under replace-one.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        weights = self.weights()
        if neighboring is not Neighboring.REPLACE_ONE:
            return _largest(weights)
        columns = weights.shape[1]
        # A record may also be in no cell at all, which is a column of zeros.
        single = _largest(weights)
        ranges = np.max(weights, axis=1, initial=0) - np.min(weights, axis=1, initial=0)
        if columns > _PAIRWISE:
            return single.times(2, self.entries).tightest(_largest(ranges[:, np.newaxis]))
        worst = single
        for column in range(columns - 1):
            worst = _join(worst, _largest(weights[:, column + 1 :] - weights[:, [column]]))
        return worst


def exact_products(weights: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return weights of at most 25 bits times counts, exact; sums beyond 2^62 are clamped."""
    answers = [0] * len(weights)
    for start in range(0, len(counts), 1 << (62 - _BITS - _HALF)):
        part = slice(start, start + (1 << (62 - _BITS - _HALF)))
        high, low = counts[part] >> _HALF, counts[part] & ((1 << _HALF) - 1)
        above, below = weights[:, part] @ high, weights[:, part] @ low
        answers = [a + (int(h) << _HALF) + int(b) for a, h, b in zip(answers, above, below, strict=True)]
    return np.array([clamp(answer) for answer in answers], dtype=np.int64)


def _largest(columns: NDArray[np.int64]) -> Shift:
    sizes = np.abs(columns)
    squares = np.square(sizes.astype(np.float64)).sum(axis=0).max()
    if squares >= 1 << 53:
        # Products and sums of non-negative floats: relative error at most (rows + 1) roundings.
        squares *= 1 + (len(columns) + 2) * 2.0**-52
    return Shift(
        l0=int(np.count_nonzero(columns, axis=0).max()),
        l1=int(sizes.sum(axis=0).max()),
        l2_squared=math.ceil(squares),
        linf=int(sizes.max()),
    )


def _join(one: Shift, other: Shift) -> Shift:
    return Shift(
        l0=max(one.l0, other.l0),
        l1=max(one.l1, other.l1),
        l2_squared=max(one.l2_squared, other.l2_squared),
        linf=max(one.linf, other.linf),
    )
