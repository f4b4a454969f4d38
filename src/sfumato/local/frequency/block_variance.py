"""The variances of estimates whose categories come in blocks that are reported together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.frequency.variance import Array, ErrorModel, quadratic_ends
from sfumato.numerics.interval import Interval

__all__ = ["BlockErrorModel"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockErrorModel(ErrorModel):
    r"""The error model of estimates :math:`T/(gn)`: T adds up a 1, a -1 or a 0 for each report.

    Parameters
    ----------
    gap : float
        The mean g of what a respondent of the category adds; all others add 0 on average.
    own, other : float
        How often a respondent of a category in the same block, or in another one, adds no 0.
    rows, blocks : int
        Categories a block, and how many blocks; the last ones may have fewer.
    seen_shares : array, optional
        Shares of the blocks, if the reports estimated them; else they are those of their categories.

    Notes
    -----
    Let F be the block's share and f the category's. The mean square of one report's part is
    :math:`(Fa + (1-F)b) / g^2`, a being ``own`` and b ``other``; respondents are fixed, so the square of its
    mean comes off for each: 1 for those of the category, f in all. In one block the signs of rows u and v
    have as product the sign of row u xor v: so the covariance is :math:`f' / g`, :math:`f'` being the share
    of the category of that row. Those of two blocks are never both other than 0. Asked for a single share
    alone, it is as if the others were distributed evenly over all blocks.
    """

    gap: float
    own: float
    other: float
    rows: int
    blocks: int
    seen_shares: Array | None = None

    def seen(self, shares: Array) -> BlockErrorModel:
        """Return the error model for blocks whose shares were estimated."""
        return replace(self, seen_shares=np.clip(shares, 0.0, 1.0))

    def _block_shares(self, shares: Array) -> Array:
        """Return the share of each category's block."""
        if len(shares) == 1:
            return np.asarray(shares + (1 - shares) / self.blocks)
        block = np.arange(len(shares)) // self.rows
        reported = self.seen_shares
        return np.asarray(np.bincount(block, shares, self.blocks) if reported is None else reported, float)[
            block
        ]

    def variance(self, share: Array) -> Array:
        """Return the variance of one report's part in an estimate; see the notes."""
        return self._square(share) - share

    def _square(self, share: Array) -> Array:
        """Return the mean square of one report's part in an estimate."""
        inside = self._block_shares(share)
        return np.asarray((self.other + inside * (self.own - self.other)) / self.gap**2)

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one report's part; see the notes."""
        block, row = np.divmod(np.arange(len(shares)), self.rows)
        padded = np.zeros(self.blocks * self.rows)
        padded[: len(shares)] = shares
        product = block * self.rows + ((row + 1) ^ (row[rows, None] + 1)) - 1
        together = (block == block[rows, None]) & (row != row[rows, None])
        found = np.where(together, padded[np.where(together, product, 0)] / self.gap, 0.0)
        found[np.arange(len(rows)), rows] = self.variance(shares)[rows]
        return found

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares whose estimate would deviate by at most ``z`` standard deviations.

        Notes
        -----
        The mean square is that of the estimate; the ends solve a quadratic equation in the share.
        """
        square, half = self._square(np.clip(frequencies, 0.0, 1.0)), 0.5 / (reports * self.gap)
        return quadratic_ends(frequencies, half, z * z / reports, square, -1.0)
