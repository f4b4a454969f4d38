"""Hadamard response as frequency oracles: with one bit about the truth, or with blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.frequency import hadamard as client
from sfumato.local.frequency.block_design import NumberedOracle, balanced
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.variance import Array, ErrorModel, quadratic_ends
from sfumato.local.frequency.walsh_hadamard import walsh
from sfumato.numerics.interval import Interval

__all__ = ["BlockErrorModel", "HadamardResponse", "OneBitHadamard"]


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
    seen_total : float, optional
        The estimated share of all rows of all matrices but the first, those of no category among them.

    Notes
    -----
    Let F be the block's share and f the category's. The mean square of one report's part is
    :math:`(Fa + (1-F)b) / g^2`, a being ``own`` and b ``other``; respondents are fixed, so the square of its
    mean comes off for each: 1 for those of the category, f in all. In one block the signs of rows u and v
    have as product the sign of row u xor v: so the covariance is :math:`f' / g`, :math:`f'` being the share
    of the category of that row. Those of two blocks are never both other than 0. Asked for a single share
    alone, as planners do, it is as if all others were of the same block: as :math:`a \ge b`, no respondents
    have a greater variance.
    """

    gap: float
    own: float
    other: float
    rows: int
    blocks: int
    seen_shares: Array | None = None
    seen_total: float | None = None

    def seen(self, shares: Array, total: float | None = None) -> BlockErrorModel:
        """Return the error model for blocks whose shares were estimated."""
        return replace(self, seen_shares=np.clip(shares, 0.0, 1.0), seen_total=total)

    @property
    def reach(self) -> tuple[float, float]:
        """What a report adds at least and at most to n times a share: -1 or 1 over the gap."""
        return -1 / self.gap, 1 / self.gap

    def sum_variance(self, count: int) -> float | None:
        r"""Return the variance of one report's part in the share of all rows, if that was estimated.

        Notes
        -----
        All rows but the first sum to ``rows`` in column 0 of a matrix, and to -1 in each other one. Column 0
        of a matrix is reported with the same probability by all whose values are in it, and by all others: so
        that of any matrix is, with a probability of :math:`a' + (B-1) b'`, a' and b' being the chances of one
        column with the value's own sign, and of one of another matrix.
        """
        if self.seen_total is None:
            return None
        size, truth = self.rows + 1, (self.own + self.gap) / 2
        chance = 2 * (truth + (self.blocks - 1) * self.other / 2) / size
        return (size / self.gap) ** 2 * chance * (1 - chance)

    def total_reach(self, count: int) -> tuple[float, float]:
        """Return what a report adds to n times the share of all rows: of no column 0, and of one."""
        return -1 / self.gap, self.rows / self.gap

    def total(self, raw: Array) -> float:
        """Return the estimated share of all rows."""
        return super().total(raw) if self.seen_total is None else self.seen_total

    def _block_shares(self, shares: Array) -> Array:
        """Return the share of each category's block."""
        if len(shares) == 1:
            return np.ones(1) if self.rows > 1 else shares
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitHadamard(NumberedOracle[client.OneBitHadamardRandomizer]):
    r"""Each report is a column of a Hadamard matrix and one sign: fastest, and best for small epsilon.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; at most 2**26 categories.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see `sfumato.local.device`.

    The variance is :math:`\frac1n \left(\frac{e^\epsilon+1}{e^\epsilon-1}\right)^2` for a rare category: 6 %
    above the minimum for epsilon 0.5, 27 % for 1, and far more beyond. Counts become supports by one fast
    Walsh-Hadamard transform.

    References
    ----------
    Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms"; Cormode, Kulkarni,
    Srivastava (2018), "Marginal release under local differential privacy".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = OneBitHadamard(epsilon=1.0, domain=Domain(range(1000)))
    >>> round(oracle.variance(1), 3)
    4.683
    """

    wire_name: ClassVar[str] = "one-bit-hadamard"

    @property
    def overlap(self) -> Fraction:
        """A quarter: two rows have the same sign in half of the columns."""
        return Fraction(1, 4)

    @property
    def support(self) -> Support:
        """A report supports the rows that have its sign."""
        return balanced(self.device, Fraction(1, 4), Fraction(1, 8))

    @property
    def error_model(self) -> ErrorModel:
        """How far estimates deviate: as the support says."""
        return self.support

    def supports(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many reports support each value.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.

        Returns
        -------
        ndarray of int64, shape (categories,)
            In the order of the domain.
        """
        signs = totals.reshape(-1, 2)
        surplus = walsh((signs[:, 0] - signs[:, 1]).reshape(1, -1))[0, : len(self.domain)]
        return np.asarray((totals.sum() + surplus) // 2)

    def shares(self, totals: NDArray[np.int64], reports: int) -> NDArray[np.float64]:
        """Return unbiased estimates of the shares from counts of columns and signs.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.

        Returns
        -------
        ndarray of float64, shape (categories,)
            Unbiased estimates, in the order of the domain; NaN without reports.
        """
        return self.support.shares(self.supports(totals), reports)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(NumberedOracle[client.HadamardResponseRandomizer]):
    r"""Each report is a column of one of several Hadamard matrices, most likely the value's own.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; at most 2**26 categories.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see `sfumato.local.device`.

    *Estimates.* Let B be the number of matrices, :math:`r = 1/(e^\epsilon + 2B - 1)`, and T the reports from
    a value's matrix with a plus in its row, less those with a minus. Any other row of the matrix, and all of
    the first, have as many columns of each kind in common with it: so a report adds
    :math:`(e^\epsilon - 1) r` to T on average if the value is true, and else nothing. Its variance depends on
    how many respondents' values share the matrix: from one of these T gets a report with probability
    :math:`(e^\epsilon + 1) r`, from anybody else with 2r. See `BlockErrorModel`. As a mean over matrices with
    even shares it is about :math:`8 / (n (e^\epsilon - 1))` for large epsilon, twice the minimum; but a rare
    category beside a frequent one has many times that, and nobody knows beforehand which. So `variance` is
    the greatest for its share, where all respondents' values share the matrix. `ProjectiveGeometryResponse`
    has no such categories, and less variance.

    References
    ----------
    Acharya, Sun, Zhang (2019), "Hadamard response: estimating distributions privately, efficiently, and with
    little communication".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = HadamardResponse(epsilon=2.0, domain=Domain(range(1000)))
    >>> round(oracle.variance(1), 3)
    2.546
    """

    wire_name: ClassVar[str] = "hadamard-response"

    @property
    def overlap(self) -> Fraction:
        """None for rows of different matrices; a quarter for two of a single one."""
        return Fraction(0) if self.device.blocks > 1 else Fraction(1, 4)

    @property
    def error_model(self) -> BlockErrorModel:
        """How far estimates deviate, were all matrices' shares as those of the categories say."""
        truth, blocks = self.device.truth.chance, self.device.blocks
        lie = (1 - truth) / (2 * blocks - 1)
        return BlockErrorModel(
            gap=float(truth - lie),
            own=float(truth + lie),
            other=float(2 * lie),
            rows=self.device.size - 1,
            blocks=blocks,
        )

    def shares(self, totals: NDArray[np.int64], reports: int) -> NDArray[np.float64]:
        """Return unbiased estimates of the shares from counts of columns.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.

        Returns
        -------
        ndarray of float64, shape (categories,)
            Unbiased estimates, in the order of the domain; NaN without reports.
        """
        if not reports:
            return np.full(len(self.domain), np.nan)
        surplus = walsh(totals.reshape(-1, self.device.size).copy())[:, 1:].ravel()[: len(self.domain)]
        return np.asarray(surplus / (reports * self.error_model.gap))

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Estimate:
        """Return what the totals estimate, with variances that follow from the reports of each matrix.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.
        simulated : bool
            Whether the randomness of any report followed from a seed.

        Returns
        -------
        Estimate
            The shares of the categories.
        """
        error_model = self.error_model
        if reports:
            inside = totals.reshape(-1, self.device.size).sum(axis=1) / reports
            first = float(totals.reshape(-1, self.device.size)[:, 0].sum()) * self.device.size
            error_model = error_model.seen(
                (inside - error_model.other) / (error_model.own - error_model.other),
                (first / reports - 1) / error_model.gap,
            )
        return Estimate(
            domain=self.domain,
            reports=reports,
            raw=self.shares(totals, reports),
            error_model=error_model,
            loss=self.privacy_loss,
            simulated=simulated,
        )
