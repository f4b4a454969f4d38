"""The trimmed mean: the mean of the records between two private quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.measurement import Measurement
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.sums import Mean, checked_bounds
from sfumato.mechanisms.statistics.quantile.quantiles import Quantiles, without_nan
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["TrimmedMean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedMean(Mechanism):
    """The mean of the records between two private quantiles.

    Bounds may be wide: the noise grows with the distance of the two quantiles, not with that of the bounds.

    Parameters
    ----------
    trim : int, float or Fraction
        Share of the records that is left out on either side, above 0 and below 1/2.
    bounds : tuple of two numbers
        Public bounds of the quantiles.
    epsilon : float
        Half of it pays for the quantiles, half for the mean.
    grid : Grid, optional
        Of the quantiles.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: basic composition of `Quantiles` and of `Laplace` noise on a `Mean` of private size between
    them, epsilon-DP. The second is taken of the records from the first quantile to the second, which were
    released: dropping records by a public rule moves no more than keeping them. Under zero-out a neutral
    record is left out, as for every `Query`.

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
        self._mean(self.bounds)
        _ = self.privacy_loss  # the parts check the rest

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._quantiles.privacy_loss + self._mean((0.0, 1.0)).privacy_loss

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
        data = without_nan(value).astype(np.float64)
        ends = self._quantiles.release(data, source).value
        lower, upper = (float(end) for end in ends)
        if lower == upper:
            upper = float(np.nextafter(lower, np.inf))
        measurement = self._mean((lower, upper))
        retained = data[(data >= lower) & (data <= upper)]
        return self._release_as(
            Release, measurement.query.estimate(measurement.release(retained, source)), source
        )

    @property
    def _quantiles(self) -> Quantiles:
        trim = Fraction(self.trim)
        return Quantiles(
            quantiles=(trim, 1 - trim),
            bounds=self.bounds,
            epsilon=drawn_epsilon(self.epsilon) / 2,
            grid=self.grid,  # type: ignore[arg-type]
            neighboring=self.neighboring,
        )

    def _mean(self, bounds: tuple[Number, Number]) -> Measurement:
        lower, upper = checked_bounds(bounds)
        query = Mean(bounds=(float(lower), float(upper)))
        return Laplace.for_query(query, epsilon=self.epsilon / 2, neighboring=self.neighboring)
