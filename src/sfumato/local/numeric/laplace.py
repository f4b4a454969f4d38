"""Laplace noise as a protocol for a mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.numeric import laplace as client
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.numeric.protocol import NumericProtocol
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["LaplaceMean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceMean(NumericProtocol[client.LaplaceMeanRandomizer, MeanEstimate]):
    r"""The number plus discrete Laplace noise; the variance is the same for all numbers.

    Parameters
    ----------
    epsilon, bounds
        See `NumericProtocol`; epsilon is at least 2^-10.
    steps : int
        Of the grid between the bounds, up to 2^14.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.LaplaceMeanRandomizer`. The variance is about :math:`2/\epsilon^2` times the squared
    distance of the bounds, over n. Reports stop 64 scales beyond the grid: that moves a mean by less than
    :math:`e^{-63}` scales.

    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis".

    Examples
    --------
    >>> round(LaplaceMean(epsilon=1.0, bounds=(-1.0, 1.0)).variance(1), 2)
    8.0
    """

    wire_name: ClassVar[str] = "laplace-mean"

    steps: int = 2048

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Discrete Laplace noise on a grid point."""
        return DiscreteLaplace(self.device.scale, self.device.steps, neighboring=Neighboring.REPLACE_ONE)

    @property
    def totals(self) -> int:
        """One: the sum."""
        return 1

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Sum up the noisy grid points.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        return np.array([self.device.opened(records).sum()])

    def _simulate(self, points: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        # As for `SummationHistogram`: noise adds up to the difference of two negative binomial numbers.
        odds = 1 / math.expm1(1 / float(self.device.scale))
        up, down = generator.poisson(odds * generator.standard_gamma(np.full(2, float(points.sum()))))
        return np.array([points @ np.arange(len(points)) + up - down], np.int64)

    def _noise(self) -> float:
        """Return the variance of the noise, in shares of the way between the bounds."""
        return 1 / (2 * math.sinh(1 / (2 * float(self.device.scale))) ** 2) / self.device.steps**2

    def _variances(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        part = shares * self.device.steps % 1.0
        return np.asarray(self._noise() + part * (1 - part) / self.device.steps**2)

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> MeanEstimate:
        """Return the estimated mean; its variance is that of the noise and the maximum that rounding adds.

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
        MeanEstimate
            Unbiased.
        """
        if not reports:
            return self._estimated(math.nan, math.inf, math.inf, 0, simulated)
        variance = self._noise() + 0.25 / self.device.steps**2
        share = int(totals[0]) / reports / self.device.steps
        return self._estimated(share, variance / reports, math.inf, reports, simulated)
