"""One released marginal: counts, their standard deviation, intervals, and a table of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato import _check
from sfumato.local.frequency.consistency import nearest
from sfumato.numerics.interval import Interval
from sfumato.synthetic.domain.attributes import Label

__all__ = ["MarginalTable"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalTable:
    """Noisy counts by some columns.

    Parameters
    ----------
    columns : tuple of str
    labels : tuple of tuple
        The cells of each column.
    counts : float64 array, an axis for each column
        Unbiased: they may be negative, and are no whole numbers.
    stddev : float
        Standard deviation of each count's noise.
    proxy : float
        As `stddev`, of a normal variable whose tails bound the noise's (its subgaussian parameter).
    half_step : float
        Half of the steps of the lattices that the noise is drawn on.
    total : float
        The noisy number of rows, which all tables of a release share.
    possible : bool array of the shape of `counts`, optional
        Which cells can hold a row; the exact count of the others, structural zeros, is 0. All unless given.

    Examples
    --------
    >>> table = MarginalTable(columns=("sex",), labels=(("f", "m"),), counts=np.array([51.5, -1.5]),
    ...     stddev=2.0, proxy=2.0, half_step=0.5, total=50.0)
    >>> table.interval(0.95).upper.round(2).tolist()
    [55.92, 2.92]
    >>> table.non_negative().tolist()
    [50.0, 0.0]
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    counts: NDArray[np.float64]
    stddev: float
    proxy: float
    half_step: float
    total: float
    possible: NDArray[np.bool_] | None = None

    def interval(
        self, level: float = 0.95, *, simultaneous: bool = False, proven: bool = False
    ) -> Interval[Any]:
        r"""Return for each cell an interval that holds its exact count.

        Parameters
        ----------
        level : float
            Of each interval; or of all of the table together.
        simultaneous : bool
            Whether all cells are in their intervals at once with probability ``level``: by the union bound.
        proven : bool
            Whether the intervals follow from a tail bound instead of the normal distribution.

        Returns
        -------
        Interval
            Of arrays of the shape of `counts`; from 0 to 0 where no row can be.

        Notes
        -----
        The noise of a cell is a sum of independent discrete Gaussians, each at least a step wide. It is taken
        for normal, with half of their steps added: the sum's cumulants are those of the normal variable but
        for :math:`10^{-7}`. With ``proven``, :math:`2 \exp(-t^2/2s^2)` bounds the tails of the sum, as each
        is subgaussian with its parameter (Canonne, Kamath, Steinke 2020): 1.4 times as wide at .95.
        """
        error = 1 - _check.unit_interval("level", level)
        if simultaneous:
            error /= max(1, self.counts.size)
        if proven:
            reach = math.sqrt(2 * math.log(2 / error)) * self.proxy
        else:
            reach = float(-ndtri(error / 2)) * self.stddev + self.half_step
        possible = True if self.possible is None else self.possible
        lower, upper = (np.where(possible, ends, 0.0) for ends in (self.counts - reach, self.counts + reach))
        return Interval(lower, upper)

    def non_negative(self) -> NDArray[np.float64]:
        """Return the nearest counts that are not negative and sum to the number of rows.

        Returns
        -------
        float64 array of the shape of `counts`
            They are biased: small counts are too large. Tables of other columns need not agree with them.
            Those of cells that no row can be in are 0.
        """
        nearby = np.zeros_like(self.counts)
        possible = np.ones(nearby.shape, bool) if self.possible is None else self.possible
        if self.total > 0 and possible.any():
            nearby[possible] = nearest((self.counts[possible] / self.total).reshape(1, -1))[0] * self.total
        return nearby

    def to_arrow(self, level: float = 0.95) -> pa.Table:
        """Return a row for each cell: its labels, its count, and the ends of its interval.

        Parameters
        ----------
        level : float
            Of each interval.

        Returns
        -------
        pyarrow.Table
        """
        ends, places = self.interval(level), np.indices(self.counts.shape).reshape(self.counts.ndim, -1)
        columns = [_label_column(labels, place) for labels, place in zip(self.labels, places, strict=True)]
        numbers = [np.ravel(values) for values in (self.counts, ends.lower, ends.upper)]
        names = [*self.columns, *_free(self.columns)]
        return pa.table([*columns, *map(pa.array, numbers)], names=names)

    def __repr__(self) -> str:
        shape = " x ".join(str(len(each)) for each in self.labels) or "1"
        return (
            f"<MarginalTable of {', '.join(self.columns) or 'the rows'}, {shape}, stddev {self.stddev:.4g}>"
        )


def _label_column(labels: tuple[Label, ...], places: NDArray[np.int64]) -> pa.Array:
    """Return cells' labels as a column; as texts, if "(other)" is among numbers or truth values."""
    if len({type(label) for label in labels} - {type(None)}) > 1:
        labels = tuple(None if label is None else str(label) for label in labels)
    return pa.array(labels).take(pa.array(places))


def _free(columns: tuple[str, ...]) -> list[str]:
    """Return names of the numbers that no column has."""
    names = []
    for name in ("count", "lower", "upper"):
        while name in columns:
            name += "_"  # noqa: PLW2901
        names.append(name)
    return names
