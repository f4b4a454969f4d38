"""The square wave: whole distributions of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.numeric import window as client
from sfumato.local.frequency.variance import Array
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.numeric.expectation_maximization import most_likely
from sfumato.local.numeric.simulation import drawn_reports, first_two
from sfumato.local.numeric.unbiased_weights import unbiased_weights
from sfumato.local.numeric.window import WindowProtocol

__all__ = ["DistributionEstimate", "SquareWave"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistributionEstimate:
    """The distribution of the respondents' numbers over the grid points.

    Parameters
    ----------
    mean : MeanEstimate
        Of the numbers, unbiased and with an interval; it does not rest on the distribution.
    counts : array of int
        How often each report came.
    device : SquareWave
        The client half, whose distribution is inverted.

    Notes
    -----
    `shares` are a most likely distribution: they never fall below 0, are biased, and have no intervals; their
    error is largest where the distribution has steps or peaks that are narrower than the window.
    `share_between` is unbiased and has an interval, at the price of more error.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local import SquareWave
    >>> protocol = SquareWave(epsilon=2.0, bounds=(0.0, 100.0), steps=20)
    >>> estimate = protocol.simulate(np.arange(100), np.full(100, 1000), rng=1)
    >>> round(float(estimate.shares().sum()), 6), float(estimate.points[-1])
    (1.0, 100.0)
    >>> 40 <= estimate.quantile(0.5) <= 60
    True
    """

    mean: MeanEstimate
    counts: NDArray[np.int64]
    device: client.SquareWaveRandomizer

    @property
    def points(self) -> Array:
        """The numbers that the shares are of, from the lower bound to the upper one."""
        return np.linspace(*self.device.bounds, self.device.steps + 1)

    def shares(self, *, smooth: bool = True) -> Array:
        """Return the share of the respondents at each of the points.

        Parameters
        ----------
        smooth : bool
            Whether neighbors are averaged in each round: better for distributions without narrow peaks.

        Returns
        -------
        ndarray of float64, shape (points,)
            A distribution over `points`.
        """
        if not self.mean.reports:
            _check.refuse("reports", "be at least 1 for a distribution", 0, "collect some")
        tolerance = 1e-3 if smooth else 1e-3 * math.exp(min(self.device.epsilon, 10.0))
        return most_likely(self.counts.astype(np.float64), self.device, smooth=smooth, tolerance=tolerance)

    def share_between(self, lower: float, upper: float) -> MeanEstimate:
        r"""Return the share of the respondents from one number to another, unbiased and with an interval.

        Parameters
        ----------
        lower, upper : float
            Within the bounds; the points from the one to the other count.

        Returns
        -------
        MeanEstimate
            Its ``mean`` is the share, raw; its intervals lie within [0, 1].

        Notes
        -----
        The target is the share of the respondents' numbers as their devices rounded them to points. Each
        report y counts as :math:`a_y` (`sfumato.local.numeric.unbiased_weights`), whose mean is 1 for points
        in the range and 0 for others, whatever the distribution. So the variance is :math:`\frac1n
        (\overline{a^2} - s)` with the share s, and the reports estimate both. It grows with the number of
        steps: take few. ``"exact"`` intervals hold for any number of reports, by Hoeffding's inequality.
        """
        smallest, largest = (_check.finite(name, end) for name, end in (("lower", lower), ("upper", upper)))
        within = (self.points >= smallest) & (self.points <= largest)
        if not within.any():
            remedy = "widen the range, or take more steps"
            _check.refuse("lower", "be below upper, with one of the points between them", lower, remedy)
        weights = unbiased_weights(self.device, within.astype(np.float64))
        reports, share, variance = self.mean.reports, math.nan, math.inf
        if reports:
            share = float(weights @ self.counts) / reports
            square = float((weights * weights) @ self.counts) / reports
            variance = max(square - min(max(share, 0.0), 1.0), 0.0) / reports
        return replace(
            self.mean, mean=share, variance=variance, bounds=(0.0, 1.0), reach=float(np.ptp(weights))
        )

    def quantile(self, share: float, *, smooth: bool = True) -> float:
        """Return the smallest point up to which at least a proportion of the respondents lies.

        Parameters
        ----------
        share : float
            The proportion, strictly between 0 and 1.
        smooth : bool
            See `shares`.

        Returns
        -------
        float
            One of `points`.
        """
        wanted = _check.unit_interval("share", share)
        point = int(np.searchsorted(np.cumsum(self.shares(smooth=smooth)), wanted))
        return float(self.points[min(point, self.device.steps)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SquareWave(WindowProtocol[client.SquareWaveRandomizer, DistributionEstimate]):
    r"""A number near the truth, in a window that is most informative about the whole distribution.

    Parameters
    ----------
    epsilon, bounds
        See `NumericProtocol`.
    steps : int
        Of the grid between the bounds, up to 2^12; one grid point more than that has a share.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.SquareWaveRandomizer`.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Li, Skoric (2020), "Estimating numerical distributions under local
    differential privacy": square wave, EM and EMS.

    Examples
    --------
    >>> protocol = SquareWave(epsilon=2.0, bounds=(0.0, 100.0), steps=100)
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch(np.arange(50_000) % 50, rng=1))
    50000
    >>> estimate = aggregator.estimate()
    >>> bool(abs(estimate.quantile(0.5) - 25) < 5), bool(estimate.mean.interval(0.99).lower < 24.5)
    (True, True)
    """

    wire_name: ClassVar[str] = "square-wave"

    steps: int = 256

    @property
    def totals(self) -> int:
        """One for each possible report."""
        return self.device.outputs

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count each possible report.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        reports = self.device.layout.unpack(records).astype(np.int64)
        return np.bincount(reports, minlength=self.device.outputs)

    def _simulate(self, points: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return drawn_reports(self.device, points, generator)

    def estimate(
        self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False
    ) -> DistributionEstimate:
        """Return the estimated distribution; mostly called by an aggregator.

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
        DistributionEstimate
            With the unbiased mean.
        """
        mean = self._mean(*first_two(totals), reports, simulated)
        return DistributionEstimate(mean=mean, counts=totals, device=self.device)
