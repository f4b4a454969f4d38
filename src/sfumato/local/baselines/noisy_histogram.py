"""Histogram encodings as frequency oracles: noisy histograms are summed, or compared with a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.noisy_histogram import NoisyHistogramRandomizer
from sfumato.local.frequency.oracle import Oracle, SupportOracle
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.numerics.certified.fixed_point import exp_bounds
from sfumato.numerics.interval import Interval
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["HistogramErrorModel", "SummationHistogram", "ThresholdHistogram"]

_BITS: Final = 160


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SummationHistogram(Oracle[NoisyHistogramRandomizer]):
    r"""Each report is a one among zeros with Laplace noise on each; reports are summed (SHE).

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; at most 2**20 categories.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.NoisyHistogramRandomizer`.

    The variance of a share is :math:`8/(n\epsilon^2)`, whatever the share: never the smallest here, but the
    noise of different categories is independent and nearly Laplace. `ThresholdHistogram` reads the same
    reports.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency estimation",
    summation with histogram encoding.

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> round(SummationHistogram(epsilon=1.0, domain=Domain(range(100))).variance(1), 3)
    8.0
    """

    wire_name: ClassVar[str] = "summation-histogram"
    device_name: ClassVar[str] = "noisy-histogram"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Discrete Laplace noise on the two numbers that move; see `histogram_loss`."""
        return histogram_loss(self.device)

    @property
    def error_model(self) -> ErrorModel:
        """How far estimates deviate: by the noise alone."""
        half = float(1 / (2 * self.device.scale))
        noise = 1 / (2 * math.sinh(half) ** 2) / self.device.steps**2
        return HistogramErrorModel(noise, self.device.limit / self.device.steps)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Add up the numbers of steps.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        return np.asarray(self.device.numbers(records).sum(axis=0, dtype=np.int64))

    def shares(self, totals: NDArray[np.int64], reports: int) -> NDArray[np.float64]:
        """Return the mean histogram.

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
            return np.full(len(totals), np.nan)
        return np.asarray(totals / (reports * self.device.steps))

    def _simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        # Discrete Laplace noise is the difference of two geometric numbers; their sums are negative binomial:
        # a Poisson number with a gamma distribution for its mean.
        odds = 1 / math.expm1(float(1 / self.device.scale))
        mean = odds * generator.standard_gamma(np.full((2, len(counts)), float(counts.sum())))
        up, down = generator.poisson(mean)
        return np.asarray(self.device.steps * counts + up - down, dtype=np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdHistogram(SupportOracle[NoisyHistogramRandomizer]):
    r"""Each report is a one among zeros with Laplace noise on each; reports count what is large (THE).

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; at most 2**20 categories.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.NoisyHistogramRandomizer`.

    A number from the threshold on supports its category. The threshold is the step for which a rare
    category's estimate has the smallest variance; it is between a half and 1. Symmetric unary encoding has
    the same form, less variance and a bit for each category.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency estimation",
    thresholding with histogram encoding.

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = ThresholdHistogram(epsilon=1.0, domain=Domain(range(100)))
    >>> round(oracle.variance(1), 2), oracle.threshold / oracle.device.steps
    (4.81, 0.625)
    """

    wire_name: ClassVar[str] = "threshold-histogram"
    device_name: ClassVar[str] = "noisy-histogram"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Discrete Laplace noise on the two numbers that move; see `histogram_loss`."""
        return histogram_loss(self.device)

    @property
    def threshold(self) -> int:
        """Smallest number of steps that supports a category."""
        return _best(self.device.scale, self.device.steps)

    @property
    def support(self) -> Support:
        """A report supports what it puts at the threshold or above; each category by itself."""
        return _support(self.device.scale, self.device.steps)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count the numbers from the threshold on.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        return np.asarray((self.device.numbers(records) >= self.threshold).sum(axis=0, dtype=np.int64))


def histogram_loss(device: NoisyHistogramRandomizer) -> PrivacyLoss:
    r"""Return the loss of a report, whatever is read from it.

    Notes
    -----
    Exact but for the limit, which is post-processing: another truth moves two of the numbers by all steps of
    a one, one up and one down; noise is independent and symmetric. So the report's pair is the product of two
    of `sfumato.privacy.DiscreteLaplace`. Its epsilon is that of the protocol, and composition is tighter than
    that of pure DP.
    """
    moved = DiscreteLaplace(device.scale, device.steps, neighboring=Neighboring.REPLACE_ONE)
    return moved * 2


@final
@dataclass(frozen=True, slots=True)
class HistogramErrorModel(ErrorModel):
    """The error model of estimates whose noise is the same whatever is true, and independent.

    Parameters
    ----------
    noise : float
        Variance of one report's part.
    largest : float, optional
        The most that one report adds to n times a share, and takes from it.
    """

    alike: ClassVar[bool] = True

    noise: float
    largest: float | None = None

    @property
    def reach(self) -> tuple[float, float] | None:
        """What a report takes from n times a share at most, and adds to it."""
        return None if self.largest is None else (-self.largest, self.largest)

    def sum_variance(self, count: int) -> float:
        """Return the variance of one report's part in the sum of all shares: noise is independent."""
        return count * self.noise

    def variance(self, share: Array) -> Array:
        """Return the noise's variance.

        Parameters
        ----------
        share : array
            True shares, from 0 to 1.

        Returns
        -------
        ndarray of float64
            The same number for every share.
        """
        return np.full(len(share), self.noise)

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of a diagonal matrix.

        Parameters
        ----------
        shares : array, shape (categories,)
            True shares.
        rows : int64 array
            Indices of the rows that are wanted.

        Returns
        -------
        ndarray of float64, shape (rows, categories)
            Covariances of one report's part.
        """
        return np.asarray(np.where(rows[:, None] == np.arange(len(shares)), self.noise, 0.0))

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares whose estimate would deviate by at most ``z`` standard deviations.

        Parameters
        ----------
        frequencies : array
            Estimated shares.
        reports : int
            At least 1.
        z : float
            Standard deviations.

        Returns
        -------
        Interval
            Not cut off at 0 and 1.
        """
        away = z * math.sqrt(self.noise / reports)
        return Interval(frequencies - away, frequencies + away)


def _tail(number: int, scale: Fraction) -> Fraction:
    """Return the probability that noise is at least a number, to about ``2**-159``."""
    if number <= 0:
        return 1 - _tail(1 - number, scale)
    ratio, power = (Fraction(exp_bounds(k / scale, _BITS)[0], 1 << _BITS) for k in (1, number))
    return power / (1 + ratio)


@lru_cache(maxsize=64)
def _support(scale: Fraction, steps: int) -> Support:
    """Return the supports by numbers from the best threshold on."""
    threshold = _best(scale, steps)
    true, other = _tail(threshold - steps, scale), _tail(threshold, scale)
    return Support(true=true, other=other, with_true=true * other, both_others=other * other)


@lru_cache(maxsize=64)
def _best(scale: Fraction, steps: int) -> int:
    """Return the threshold with the smallest variance for a rare category."""

    def variance(threshold: int) -> Fraction:
        true, other = _tail(threshold - steps, scale), _tail(threshold, scale)
        return other * (1 - other) / (true - other) ** 2

    return min(range(1, 2 * steps), key=variance)
