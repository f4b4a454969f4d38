"""Windows as protocols for a mean: the single bit and the piecewise mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.base.protocol import log_odds
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.numeric import window as client
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.numeric.protocol import NumericProtocol
from sfumato.local.numeric.simulation import drawn_reports, first_two
from sfumato.local.numeric.window_moments import WindowMoments
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Duchi", "OneBitMean", "PiecewiseMean", "StochasticRoundingMean", "WindowProtocol", "window_loss"]

Device = TypeVar("Device", bound=client.WindowRandomizer)
Result = TypeVar("Result")


def window_loss(device: client.WindowRandomizer) -> PrivacyLoss:
    r"""Return the loss of a window's report.

    Notes
    -----
    A report supports the grid points in whose windows it lies. The shared distribution of
    `sfumato.privacy.SupportResponse` is the even one, under which each window has the chance :math:`w/N \le
    1/2`; those of the two ends are disjoint. Rounding mixes reports of two grid points: given everybody's
    roundings the reports are those of grid points, and not to report the roundings is post-processing.
    """
    bound = log_odds(device.odds, device.epsilon)
    return SupportResponse(bound, Fraction(device.window, device.outputs))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProtocol(NumericProtocol[Device, Result]):
    """A report is likelier in the window of the truth; see `sfumato.local.device`."""

    moments: WindowMoments = field(init=False, repr=False, compare=False)

    def _prepare(self) -> None:
        self._set(moments=WindowMoments.of(self.device))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The odds that are drawn; see `window_loss`."""
        return window_loss(self.device)

    def _variances(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.moments.variance(shares)

    def _mean(self, total: int, squares: int, reports: int, simulated: bool) -> MeanEstimate:
        """Return the estimate from the sum of the reports and that of their squares."""
        moments = self.moments
        reach = (self.device.outputs - 1) / float(moments.gain * moments.steps)
        if not reports:
            return self._estimated(math.nan, math.inf, reach, 0, simulated)
        mean, square = total / reports, squares / reports
        share = moments.share(mean)
        # Rare reports far away make most of the error where epsilon is large; there may be none among few.
        deviation = moments.sampled(reports, total, squares) - moments.scatter(mean, square)
        return self._estimated(
            share, max(deviation, moments.least(share)) / reports, reach, reports, simulated
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeanProtocol(WindowProtocol[Device, MeanEstimate]):
    """A window of which the sums of the reports and of their squares are stored."""

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Sum up the reports, and their squares."""
        reports = self.device.layout.unpack(records).astype(np.int64)
        return np.array([reports.sum(), (reports * reports).sum()])

    def _simulate(self, points: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        found = drawn_reports(self.device, points, generator)
        return np.array(first_two(found))

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> MeanEstimate:
        """Return the estimate from totals; mostly called by an aggregator."""
        return self._mean(int(totals[0]), int(totals[1]), reports, simulated)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitMean(_MeanProtocol[client.OneBitMeanRandomizer]):
    r"""One bit a number; the smallest error of all in the worst case up to an epsilon of about 0.6.

    Parameters
    ----------
    epsilon, bounds
        See `NumericProtocol`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.OneBitMeanRandomizer`. The variance for a number in the middle is
    :math:`\left(\frac{e^\epsilon+1}{e^\epsilon-1}\right)^2` times the square of half the distance of the
    bounds, over n. `Duchi` is another name of it.

    References
    ----------
    Duchi, Jordan, Wainwright (2018), "Minimax optimal procedures for locally private estimation"; Ding,
    Kulkarni, Yekhanin (2017), "Collecting telemetry data privately", 1BitMean.

    Examples
    --------
    >>> protocol = OneBitMean(epsilon=1.0, bounds=(0.0, 24.0))
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([7.5] * 100_000, rng=1))
    100000
    >>> abs(aggregator.estimate().mean - 7.5) < 0.5
    True
    """

    wire_name: ClassVar[str] = "one-bit-mean"


Duchi = OneBitMean
"""Duchi, Jordan and Wainwright's mechanism for one dimension has the distribution of `OneBitMean`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseMean(_MeanProtocol[client.PiecewiseMeanRandomizer]):
    r"""A number near the truth, mostly; less error than one bit for a large epsilon.

    Parameters
    ----------
    epsilon, bounds
        See `NumericProtocol`.
    steps : int
        Of the grid between the bounds, up to 2^14.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.PiecewiseMeanRandomizer`. For numbers t in [-1, 1] the variance is about
    :math:`\frac{t^2}{e^{\epsilon/2}-1} + \frac{e^{\epsilon/2}+3}{3(e^{\epsilon/2}-1)^2}`, over n.

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu (2019), "Collecting and analyzing multidimensional data with
    local differential privacy".

    Examples
    --------
    >>> round(PiecewiseMean(epsilon=1.0, bounds=(-1.0, 1.0)).variance(1), 2)
    5.22
    """

    wire_name: ClassVar[str] = "piecewise-mean"

    steps: int = 2048


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StochasticRoundingMean(_MeanProtocol[client.StochasticRoundingMeanRandomizer]):
    r"""A number rounded to few grid points, by randomized response: for a large epsilon, under a shuffler.

    Parameters
    ----------
    epsilon, bounds
        See `NumericProtocol`.
    steps : int
        Of the grid between the bounds; few, as all grid points are alike to the response.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.StochasticRoundingMeanRandomizer`. With :math:`\gamma = \frac{m+1}{m+e^\epsilon}` a
    report is even over all grid points with probability :math:`\gamma`, and else the grid point itself. In
    squared distances of the bounds the variance is at most about :math:`\frac\gamma3 + \frac1{4m^2}`, over n.
    Shuffled, only the even reports hide anybody: :math:`n\gamma/m` of each grid point must, whatever n is.
    Then the best m grows as :math:`n^{1/3}`, and the sum deviates by as much as :math:`n^{1/6}`.
    `sfumato.local.shuffle.single_message_mean` finds it.

    References
    ----------
    Balle, Bell, Gascón, Nissim (2019), "The privacy blanket of the shuffle model", summation of
    real numbers.

    Examples
    --------
    >>> protocol = StochasticRoundingMean(epsilon=8.0, bounds=(0.0, 1.0), steps=15)
    >>> round(100_000 * protocol.variance(100_000) ** 0.5, 1)
    16.7
    """

    wire_name: ClassVar[str] = "stochastic-rounding-mean"

    steps: int = 16
