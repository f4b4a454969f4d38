"""dBitFlip as a frequency oracle: a few bits from everybody, about categories that are drawn for each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency import bit_flip as client
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.variance import Array, ErrorModel, quadratic_ends
from sfumato.numerics.interval import Interval
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["BitFlip"]

_BLOCK: Final = 1 << 14


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Flips(ErrorModel):
    """The error model of means of centred bits: linear in the share, and none of it shared by two categories.

    Parameters
    ----------
    true, other : float
        Variance of a report's part in the estimate of a category, where that is true, and where not.
    step : float
        By how much one bit moves the sum of all parts.
    lie : float
        The chance of a bit that lies.
    asked : int
        Bits of a report.
    """

    true: float
    other: float
    step: float
    lie: float
    asked: int

    @property
    def reach(self) -> tuple[float, float]:
        """What a 0 and what a 1 add to n times a share."""
        return -self.step * self.lie, self.step * (1 - self.lie)

    def sum_variance(self, count: int) -> float:
        """Return the variance of one report's part in the sum of all shares: estimates are uncorrelated."""
        return self.true + (count - 1) * self.other

    def total_reach(self, count: int) -> tuple[float, float]:
        """Return what a report of zeros and one of ones add to the sum."""
        low, high = self.reach
        return self.asked * low, self.asked * high

    def variance(self, share: Array) -> Array:
        """Return the variance of one report's part in an estimate."""
        return np.asarray(self.other + share * (self.true - self.other))

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one report's part."""
        found = np.zeros((len(rows), len(shares)))
        found[np.arange(len(rows)), rows] = self.variance(shares[rows])
        return found

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares whose estimate would deviate by at most ``z`` standard deviations."""
        half = 0.5 * self.step / reports
        return quadratic_ends(frequencies, half, z * z / reports, self.other, self.true - self.other)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BitFlip(Oracle[client.BitFlipRandomizer]):
    r"""For d categories, drawn evenly by each device, a bit that says whether it is true, or lies.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; at most 2**24 categories, often ranges of a number.
    asked : int
        The d, from 1 to 4096; all categories if there are fewer.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see `sfumato.local.device.BitFlipRandomizer`.

    *The loss.* For d > 1 a report is one of `SymmetricUnaryEncoding` with the same coin of which all but d
    bits, drawn independently, are thrown away: the loss of that one holds by post-processing, shuffled too.
    For d = 1 half of all :math:`2k` reports agree with a value (its own category with a 1, all others with a
    0), and a report is drawn from those with probability p: two values agree on :math:`k - 2` of them.

    *Estimates.* Let p be the chance of a true bit and q = 1 - p. A report adds :math:`\frac{k}{d} \frac{b -
    q}{p - q}` for each category it has a bit b of, and 0 for the others: on average 1 for the true one, and
    else nothing. For a rare category the variance is :math:`\frac{k}{d} \frac{pq}{(p-q)^2}`; two categories
    are uncorrelated.

    References
    ----------
    Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = BitFlip(epsilon=1.0, domain=Domain(range(32)), asked=4)
    >>> round(oracle.variance(1), 2)
    31.34
    """

    wire_name: ClassVar[str] = "bit-flip"

    added: ClassVar[tuple[int, int]] = (0, 1)
    """What one report adds to a total at least and at most."""

    asked: int = 16

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Bits about the two values, with the chances that are drawn; see the notes."""
        p, count = self.device.truth.chance, len(self.domain)
        odds = p / (1 - p)
        if self.asked == 1:
            return SupportResponse(self._bound(odds), Fraction(1, 2), Fraction(count - 2, 2 * count))
        return SupportResponse(self._bound(odds**2), 1 - p, (1 - p) ** 2)

    @property
    def error_model(self) -> _Flips:
        """How far estimates deviate; see the notes."""
        p = self.device.truth.chance
        gap, times = 2 * p - 1, Fraction(len(self.domain), self.asked)
        other = times * p * (1 - p) / gap**2
        return _Flips(
            true=float(other + times - 1),
            other=float(other),
            step=float(times / gap),
            lie=float(1 - p),
            asked=self.asked,
        )

    @property
    def totals(self) -> int:
        """For each category the reports that have a bit of it, and then those where it is 1."""
        return 2 * len(self.domain)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count for each category its bits, and those that are 1.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        count = len(self.domain)
        totals = np.zeros(2 * count, np.int64)
        for start in range(0, len(records), _BLOCK):
            drawn, bits = self.device.opened(records[start : start + _BLOCK])
            totals[:count] += np.bincount(drawn.ravel(), minlength=count)
            totals[count:] += np.bincount(drawn[bits], minlength=count)
        return totals

    def shares(self, totals: NDArray[np.int64], reports: int) -> NDArray[np.float64]:
        """Return unbiased estimates of the shares from counts of bits.

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
        count = len(self.domain)
        if not reports:
            return np.full(count, np.nan)
        q = float(1 - self.device.truth.chance)
        surplus = totals[count:] - q * totals[:count]
        return np.asarray(surplus * (count / self.asked / (1 - 2 * q) / reports))

    def _simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw how many in each category are asked of it, then of which others everybody is asked.

        Notes
        -----
        Whether a category is drawn, and what its bit says, are drawn for each one separately: the
        distribution of each is exact. With d below k the numbers of draws are correlated a little, by
        -1/(k-1); the centred bits, and so the estimates, are not.
        """
        chance, p = self.asked / len(self.domain), float(self.device.truth.chance)
        own = generator.binomial(counts, chance)
        rest = generator.binomial(counts.sum() - counts, chance)
        ones = generator.binomial(own, p) + generator.binomial(rest, 1 - p)
        return np.asarray(np.concatenate([own + rest, ones]), dtype=np.int64)
