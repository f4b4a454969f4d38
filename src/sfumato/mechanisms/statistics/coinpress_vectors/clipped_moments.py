"""Sums of clipped vectors, or of their outer products: what multivariate CoinPress measures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.records import as_table, exact_sum
from sfumato.mechanisms.statistics.upper_triangle import product_sums
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ClippedMoments"]

_BITS: Final = 20
_ONE: Final = 1 << _BITS
_SLACK: Final = Fraction(1, 1 << 40)
"""More than float errors add to the norm of a clipped record, relative to it."""
_FAR: Final = 1e150
_Array = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedMoments(Query):
    r"""Sums of transformed vectors that are clipped to length 1, or of their outer products.

    Parameters
    ----------
    columns : int
        How many numbers a record has.
    order : {1, 2}
        1 for the sum of vectors z, 2 for the upper triangle of that of :math:`zz^T`, the entries off the
        diagonal times :math:`\sqrt 2`.
    center : tuple of floats
        What is subtracted from a record.
    factors : float64 array of shape (columns, columns), or float
        What the difference is multiplied by, a matrix or a number; then it is clipped.

    Notes
    -----
    Guarantee: a record is turned into its own whole numbers by a function of it alone: products and sums of
    columns are taken one after the other, never by a matrix product, whose rounding may depend on how many
    rows there are. Vector or triangle have an L2 norm of at most 1 (:math:`\|zz^T\|_F = |z|^2`), and rounding
    to 20 bits adds half a step to each of the e entries at most: together :math:`\sqrt e\,2^{-21}`. A record
    that is replaced moves the sums by at most 2, or by :math:`\sqrt 2` for outer products, as
    :math:`\langle z, z'\rangle^2 \ge 0`, and by twice the rounding. NaN counts as 0.

    Examples
    --------
    >>> query = ClippedMoments(columns=2, order=1, center=(0.0, 0.0), factors=0.1)
    >>> import numpy as np
    >>> query(np.array([[3.0, 4.0], [30.0, 40.0]])).round(3).tolist()
    [0.9, 1.2]
    """

    columns: int
    order: Literal[1, 2]
    center: tuple[float, ...]
    factors: _Array | float

    @property
    def step(self) -> Fraction:
        """What one step is worth."""
        return Fraction(1, _ONE)

    @property
    def entries(self) -> int:
        """The vector, or the upper triangle."""
        return self.columns if self.order == 1 else self.columns * (self.columns + 1) // 2

    def steps(self, data: Any) -> NDArray[np.int64]:
        """Return the exact sums in steps.

        Parameters
        ----------
        data : array of shape (n, columns)
            A vector for each record.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private.
        """
        z = self._clipped(as_table(data, self.columns).astype(np.float64))
        if self.order == 2:
            return product_sums(z, _ONE)
        return np.array([exact_sum(np.rint(column * _ONE).astype(np.int64)) for column in z.T], np.int64)

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the bound of one record, or under replace-one of the difference of two.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        two, sums = neighboring is Neighboring.REPLACE_ONE, self.entries
        largest = Fraction(_ONE) * (1 + _SLACK)
        apart = largest * (2 if self.order == 1 else Fraction(math.sqrt(2) * (1 + 2.0**-50)))
        rounding = Fraction(math.isqrt(sums) + 1) * (1 if two else Fraction(1, 2))
        l2 = (apart if two else largest) + rounding
        linf = math.ceil(largest * (2 if two else 1)) + 1
        l1 = min(math.ceil(l2 * (math.isqrt(sums) + 1)), linf * sums)
        return Shift(l0=sums, l1=l1, l2_squared=math.floor(l2**2), linf=min(linf, l1))

    def _clipped(self, data: _Array) -> _Array:
        """Return transformed records of length 1 at most."""
        real = np.clip(np.nan_to_num(data, nan=0.0, posinf=np.inf, neginf=-np.inf), -_FAR, _FAR)
        apart = [
            np.clip(column - middle, -_FAR, _FAR) for column, middle in zip(real.T, self.center, strict=True)
        ]
        factors = np.eye(self.columns) * self.factors if isinstance(self.factors, float) else self.factors
        # Products that overflow are one record's own matter, whatever becomes of them.
        with np.errstate(over="ignore", invalid="ignore"):
            rows = [np.clip(np.nan_to_num(_weighted(apart, each)), -_FAR, _FAR) for each in factors]
        norm = np.sqrt(_weighted([row * row for row in rows], np.ones(self.columns)))
        return np.stack([row / np.maximum(norm, 1.0) for row in rows], axis=1)


def _weighted(columns: list[_Array], weights: _Array) -> _Array:
    """Return a weighted sum of columns, each entry rounded by itself."""
    total = np.zeros_like(columns[0])
    for column, weight in zip(columns, weights.tolist(), strict=True):
        if weight:
            total += column * weight
    return total
