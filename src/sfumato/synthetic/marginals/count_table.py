"""What tables of noisy counts have in common: standard deviations, intervals, and rows of a frame."""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato import _check
from sfumato._display import named
from sfumato.mechanisms.base.release_table import Rows, drawn_few
from sfumato.numerics.interval import Interval
from sfumato.synthetic.domain.attributes import Label

__all__ = ["CountTable"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CountTable(ABC):
    """Noisy counts by some columns.

    Parameters
    ----------
    columns : tuple of str
    labels : tuple of tuple
        What is counted of each column.
    counts : float64 array, an axis for each column
        Unbiased: they may be negative, and are no whole numbers.
    stddev : float, or float64 array of the shape of `counts`
        Standard deviation of each count's noise; one number where it is the same for all.
    proxy : float or float64 array
        As `stddev`, of a normal variable whose tails bound the noise's (its subgaussian parameter).
    half_step : float or float64 array
        Half of the steps of the lattices that the noise is drawn on.
    total : float
        The noisy number of rows, which all tables of a release share.
    possible : bool array of the shape of `counts`, optional
        Which of them can be of any row; the exact count of the others is 0. All unless given.
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    counts: NDArray[np.float64]
    stddev: Any
    proxy: Any
    half_step: Any
    total: float
    possible: NDArray[np.bool_] | None = None

    def interval(
        self, level: float = 0.95, *, simultaneous: bool = False, proven: bool = False
    ) -> Interval[Any]:
        r"""Return for each count an interval that holds the exact one.

        Parameters
        ----------
        level : float
            Of each interval; or of all of the table together.
        simultaneous : bool
            Whether all counts are in their intervals at once with probability ``level``: by the union bound.
        proven : bool
            Whether the intervals follow from a tail bound instead of the normal distribution.

        Returns
        -------
        Interval
            Of arrays of the shape of `counts`; from 0 to 0 where no row can be.

        Notes
        -----
        The noise of a count is a sum of independent discrete Gaussians, each at least a step wide. It is
        taken for normal, with half of their steps added: the sum's cumulants are those of the normal variable
        but for :math:`10^{-7}`. With ``proven``, :math:`2 \exp(-t^2/2s^2)` bounds the tails of the sum, as
        each is subgaussian with its parameter (Canonne, Kamath, Steinke 2020): 1.4 times as wide at .95.
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

    def to_arrow(self, level: float = 0.95) -> pa.Table:
        """Return a row for each count: its labels, the count, and the ends of its interval.

        Parameters
        ----------
        level : float
            Of each interval.

        Returns
        -------
        pyarrow.Table
        """
        ends, places = (
            self.interval(level),
            self._places,
        )
        columns = [_label_column(labels, place) for labels, place in zip(self.labels, places, strict=True)]
        numbers = [np.ravel(values) for values in (self.counts, ends.lower, ends.upper)]
        names = [*self.columns, *_free(self.columns)]
        return pa.table([*columns, *map(pa.array, numbers)], names=names)

    def plot(self, ax: Any = None, *, level: float = 0.95, most: int = 30) -> Any:
        """Draw the counts with their intervals; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float
            Of each interval.
        most : int
            How many counts are drawn at most, the first ones in the order of `to_arrow`; at least 1.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        places = self._places
        labels = {
            name: [named(own[place]) for place in column.tolist()]
            for name, own, column in zip(self.columns, self.labels, places, strict=True)
        }
        lower, upper, _ = self.interval(level)
        ends = Interval(np.ravel(lower), np.ravel(upper))
        ax = drawn_few(Rows(labels, np.ravel(self.counts), ends), most, ax)
        ax.set_ylabel("count")
        return ax

    @property
    def _places(self) -> NDArray[np.int64]:
        """Return where each count is along each column: a row for each column."""
        return np.indices(self.counts.shape).reshape(self.counts.ndim, self.counts.size)

    def __repr__(self) -> str:
        shape = " x ".join(str(len(each)) for each in self.labels) or "1"
        lowest, highest = (f"{float(end):.4g}" for end in (np.min(self.stddev), np.max(self.stddev)))
        between = lowest if lowest == highest else f"{lowest} to {highest}"
        return (
            f"<{type(self).__name__} of {', '.join(self.columns) or 'the rows'}, {shape}, stddev {between}>"
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
