"""The trimmed mean: the mean of the records between two private quantiles, from bounds that may be wide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.measurement import Measurement
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.records import relative_positions
from sfumato.mechanisms.query.sums import BoundedSum, Mean, checked_bounds
from sfumato.mechanisms.statistics.quantile.joint_quantiles import JointQuantiles
from sfumato.mechanisms.statistics.quantile.quantiles import Quantile, without_nan
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["TrimmedMean"]

_Numbers = NDArray[np.float64]
_DENOMINATOR: Final = 1 << 20
_MEDIAN: Final = Fraction(1, 4)
_QUANTILES: Final = Fraction(2, 5)
_LINEAR: Final = 32 / math.log(2)  # so many steps around the median are as wide as the grid's; 32 an octave


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedMean(Mechanism):
    r"""The mean of the records between two private quantiles.

    Bounds may be wide: the noise grows with the distance of the two quantiles, not with that of the bounds.

    Parameters
    ----------
    trim : int, float or Fraction
        Share of the records that is left out on either side, above 0 and below 1/2. Taken as the nearest
        fraction with a denominator of at most 2**20.
    bounds : tuple of two numbers
        Public bounds of the quantiles.
    epsilon : float
        A quarter of it pays for the median, two fifths for the quantiles, the rest for the mean.
    grid : Grid, optional
        Of the median, and of the quantiles next to it.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: epsilon-DP, by basic composition of three releases, each with parameters that those before it
    released: the `Quantile` 1/2 between the bounds, `JointQuantiles` of the records' places around it, and
    `Laplace` noise on the mean of the records clamped to the quantiles. A place is a function of one record
    and of the median. Under zero-out a neutral record is left out, as for every `Query`.

    *Coarse step.* Places rise with the distance d from the median, in steps of the grid, as :math:`c \log(1 +
    |d|/c)`: near the median as d, further away by 32 for each doubling. So the second release draws among
    some thousands of points, however wide the bounds, and its error is relative to the distance from the
    median. The first needs no precision, but a median between the bounds that is not beyond the records:
    about :math:`2 \log(n w / s) / \epsilon_1` records under add/remove and twice as many under
    replace-one, for bounds w apart and records with the deviation s.

    *Mean.* With W the mean of all records clamped to the quantiles a and b, and p the share left out, the
    estimate is :math:`(W - p a - p b) / (1 - 2p)`. Where a and b have the ranks that were asked for, this is
    the trimmed mean, ties included; and a rank that is off moves it in second order only, as a clamped share
    p moves W by as much as the correction. A record moves the sum of positions between a and b, from 0 to 1,
    by 1 at most: under replace-one with the public number of records, else of `Mean` with a private one.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = TrimmedMean(trim=0.05, bounds=(-1e6, 1e6), epsilon=2.0)
    >>> data = np.append(np.random.default_rng(0).normal(50, 1, 20_000), np.full(300, 9e5))
    >>> round(mechanism.release(data, rng=1).value, 1)
    50.0
    """

    trim: Number
    bounds: tuple[Number, Number]
    epsilon: float
    grid: Grid | None = None
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        trim = _check.fraction("trim", self.trim)
        if not trim < Fraction(1, 2):
            _check.refuse("trim", "be above 0 and below 1/2", self.trim, "take the median instead")
        _check.positive("epsilon", self.epsilon)
        lower, upper = checked_bounds(self.bounds)
        _ = Mean(bounds=(float(lower), float(upper))), self.privacy_loss  # the parts check the rest

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        quantiles = self._quantiles((0, 1))
        return self._median.privacy_loss + quantiles.privacy_loss + self._mean((0.0, 1.0)).privacy_loss

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the mean of a column.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            One real number per record; NaN counts as 0.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a float.
        """
        source = random_source(rng)
        ends = float(self.bounds[0]), float(self.bounds[1])
        data = np.clip(without_nan(value).astype(np.float64), *ends)
        median, step = self._median, float(self._median.grid.step)
        centre = float(median.release(data, source).value)
        lowest, highest = _places((np.array(ends) - centre) / step).astype(int).tolist()
        places = np.clip(_places((data - centre) / step), lowest, highest).astype(np.int64)
        found = np.asarray(self._quantiles((lowest, highest)).release(places, source).value, np.float64)
        lower, upper = np.clip(centre + step * _distances(found), *ends).tolist()
        if lower == upper:
            upper = float(np.nextafter(lower, np.inf))
        around = self._mean_between(data, (lower, upper), source)
        trim = Fraction(self.trim).limit_denominator(_DENOMINATOR)
        mean = (around - float(trim) * (lower + upper)) / float(1 - 2 * trim)
        return self._release_as(Release, min(max(mean, lower), upper), source)

    @property
    def _median(self) -> Quantile:
        return Quantile(
            bounds=self.bounds,
            epsilon=drawn_epsilon(self.epsilon) * _MEDIAN,
            grid=self.grid,  # type: ignore[arg-type]
            neighboring=self.neighboring,
        )

    def _quantiles(self, bounds: tuple[int, int]) -> JointQuantiles:
        trim = Fraction(self.trim)
        return JointQuantiles(
            quantiles=(trim, 1 - trim),
            bounds=bounds,
            epsilon=drawn_epsilon(self.epsilon) * _QUANTILES,
            neighboring=self.neighboring,
        )

    def _mean(self, bounds: tuple[float, float]) -> Measurement:
        """Return a measurement of the mean of clamped records, or with a public number of their positions."""
        public = self.neighboring is Neighboring.REPLACE_ONE
        query = BoundedSum(bounds=(0.0, 1.0)) if public else Mean(bounds=bounds)
        share = float(1 - _MEDIAN - _QUANTILES)
        return Laplace.for_query(query, epsilon=self.epsilon * share, neighboring=self.neighboring)

    def _mean_between(self, data: _Numbers, ends: tuple[float, float], source: RandomSource) -> float:
        """Return the noisy mean of the records clamped to two ends."""
        measurement = self._mean(ends)
        if isinstance(measurement.query, Mean):
            return measurement.query.estimate(measurement.release(data, source))
        total = float(measurement.release(relative_positions(data, ends), source).value)
        position = total / len(data) if len(data) else 0.5
        return ends[0] + min(1.0, max(0.0, position)) * (ends[1] - ends[0])


def _places(distances: _Numbers) -> _Numbers:
    """Return whole numbers that rise with distances in steps: as they near 0, as their logarithm far away."""
    return np.copysign(np.rint(_LINEAR * np.log1p(np.abs(distances) / _LINEAR)), distances)


def _distances(places: _Numbers) -> _Numbers:
    """Return distances that have these places."""
    return np.copysign(_LINEAR * np.expm1(np.abs(places) / _LINEAR), places)
