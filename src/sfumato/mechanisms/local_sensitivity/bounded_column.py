"""A column of numbers clamped to public bounds, in steps of a grid, and the records around a rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.grid import Grid, as_grid
from sfumato.mechanisms.base.rational import Number, ceil_log2
from sfumato.mechanisms.query.sums import distinct_bounds
from sfumato.mechanisms.statistics.quantile.quantiles import without_nan
from sfumato.mechanisms.statistics.quantile.rank_sampling import PartitionedNumbers

__all__ = ["BoundedColumn", "RankNeighborhood", "as_proportion"]

_Steps = NDArray[np.int64]
_BITS: Final = 40
_DENOMINATOR: Final = 1 << 20
_WIDEST: Final = 1 << 61


class RankNeighborhood(NamedTuple):
    """The records to the left of a rank, and to the right of one, from the rank outward.

    Parameters
    ----------
    left : int64 array
        Not rising; ends with the lower bound unless it was cut.
    right : int64 array
        Not falling; ends with the upper bound unless it was cut.
    """

    left: _Steps
    right: _Steps


@final
@dataclass(frozen=True, slots=True)
class BoundedColumn:
    """Bounds and a grid.

    Parameters
    ----------
    bounds : tuple of two numbers
    grid : Grid
    """

    bounds: tuple[Number, Number]
    grid: Grid

    @classmethod
    def settle(cls, bounds: object, grid: Grid | None, bits: int = _BITS) -> BoundedColumn:
        """Check bounds, and choose a grid unless one is given: 1 for int bounds, else a few bits.

        Raises
        ------
        ParameterError
            If the bounds are not two numbers in order, or 2**61 steps apart.
        UnboundedSensitivity
            If one is infinite.
        """
        lower, upper = distinct_bounds(bounds)
        if grid is None:
            magnitude = Fraction(max(abs(lower), abs(upper)))
            whole = isinstance(lower, int) and isinstance(upper, int)
            grid = Grid(exponent=0 if whole else max(ceil_log2(magnitude) - bits, -1074))
        found = cls((lower, upper), as_grid(grid))
        low, high = found.ends
        if not low < high <= low + _WIDEST:
            _check.refuse("bounds", "be from 1 to 2**61 steps apart", bounds, "pass another grid")
        return found

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps."""
        lower, upper = (int(self.grid.round(bound)) for bound in self.bounds)
        return lower, upper

    def value(self, steps: int) -> int | float:
        """Return a number of steps in the unit of the data: an int for int bounds on a grid of 1."""
        whole = self.grid.exponent == 0 and all(isinstance(bound, int) for bound in self.bounds)
        return steps if whole else float(steps * self.grid.step)

    def ranks(self, data: Any) -> PartitionedNumbers:
        """Return the records of a column; NaN counts as 0."""
        return PartitionedNumbers(without_nan(data), self.grid, *self.ends)

    def steps(self, data: Any) -> _Steps:
        """Return the records of a column in order."""
        ranks = self.ranks(data)
        return ranks.window(0, ranks.size)

    def around(self, ranks: PartitionedNumbers, quantile: Fraction, reach: int) -> RankNeighborhood:
        """Return the records around a quantile, at most ``maximum_depth`` beside it on either side.

        Parameters
        ----------
        ranks : Partitioned
        quantile : Fraction
            The value at rank ``ceil(quantile n)`` of n, counted from 1, comes first on both sides; the lower
            bound has rank 0 and all below, the upper bound rank n + 1 and all above.
        reach : int
        """
        rank, (lower, upper) = math.ceil(quantile * ranks.size), self.ends
        if not rank:
            return RankNeighborhood(np.array([lower]), np.array([lower, upper]))
        first, last = max(0, rank - 1 - reach), min(ranks.size, rank + reach)
        window = ranks.window(first, last)
        left, right = window[: rank - first][::-1], window[rank - 1 - first :]
        return RankNeighborhood(
            np.append(left, lower) if not first else left,
            np.append(right, upper) if last == ranks.size else right,
        )


def as_proportion(name: str, value: object) -> Fraction:
    """Return a share strictly between 0 and 1 as a plain fraction, 1/10 for 0.1; or refuse it."""
    share = _check.fraction(name, value).limit_denominator(_DENOMINATOR)
    if not 0 < share < 1:
        _check.refuse(name, "be strictly between 0 and 1", value, "pass 0.5 for the median")
    return share
