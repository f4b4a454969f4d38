"""One released marginal: counts, their standard deviation, intervals, and a table of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.frequency.consistency import nearest
from sfumato.synthetic.marginals.count_table import CountTable

__all__ = ["MarginalTable"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class MarginalTable(CountTable):
    """Noisy counts by some columns.

    Parameters
    ----------
    columns : tuple of str
    labels : tuple of tuple
        The cells of each column.
    counts : float64 array, an axis for each column
        Unbiased: they may be negative, and are no whole numbers.
    stddev : float, or float64 array of the shape of `counts`
        Standard deviation of each count's noise; one number where it is the same in all cells.
    proxy : float or float64 array
        As `stddev`, of a normal variable whose tails bound the noise's (its subgaussian parameter).
    half_step : float or float64 array
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
