"""Theil-Sen regression: the private median of pairwise slopes, robust to outliers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.query.records import as_table
from sfumato.mechanisms.statistics.least_squares import LinearFit
from sfumato.mechanisms.statistics.quantile.quantiles import Quantile
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["TheilSen"]

_MOST: Final = 100
_SLOPES: Final = 1 << 23


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TheilSen(Mechanism):
    """Slope and intercept of one feature, robust to records that do not fit.

    Parameters
    ----------
    slope_bounds, intercept_bounds : tuple of two numbers
        Public.
    epsilon : float
        Half of it pays for the slope, half for the intercept.
    matchings : int, optional
        In how many random matchings each record gets a partner. More use the data better, and take more time;
        the noise grows as the number of slopes does. Unless given, chosen from the public number of records:
        100 up to 80,000 of them, fewer beyond.
    grid : Grid, optional
        Of slope and intercept.
    neighboring : Neighboring
        Replace-one or zero-out: how many records there are is public.

    Notes
    -----
    Guarantee: epsilon-DP. A replaced record changes one slope in each matching, so at most k of all slopes,
    and their `Quantile` under replace-one moves as in a chain of k neighbors, at a kth of the budget each:
    the ranges of its losses add, whatever k. The intercept is the median of what the slope, which was
    released, leaves of the responses: one number for each record. The matchings are drawn independently of
    the data, and their number follows from public parameters.

    References
    ----------
    Alabi, McMillan, Sarathy, Smith, Vadhan, "Differentially private simple linear regression" (PoPETs 2022).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, 5000)
    >>> y = np.where(rng.random(5000) < 0.1, 1e6, 3 + 0.5 * x + rng.normal(0, 0.1, 5000))
    >>> bounds = {"slope_bounds": (-10.0, 10.0), "intercept_bounds": (-100.0, 100.0)}
    >>> mechanism = TheilSen(**bounds, epsilon=2.0, neighboring=Neighboring.REPLACE_ONE)
    >>> line = mechanism.release(np.stack([x, y], axis=1), rng=1).value
    >>> round(line.intercept, 1), line.slopes.round(1).tolist()
    (3.0, [0.5])
    """

    slope_bounds: tuple[Number, Number]
    intercept_bounds: tuple[Number, Number]
    epsilon: float
    matchings: int | None = None
    grid: Grid | None = None
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        _check.positive("epsilon", self.epsilon)
        if self.matchings is not None:
            _check.integer("matchings", self.matchings, minimum=1)
        if self.neighboring is Neighboring.ADD_REMOVE:
            raise NeighboringMismatch(
                "neighboring must be replace-one or zero-out, got add/remove; one record more gives others "
                "other partners: pass Neighboring.REPLACE_ONE"
            )
        _ = self._slope(self.matchings or _MOST), self._intercept  # they check the rest

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        half = Exponential(outward(drawn_epsilon(self.epsilon) / 2), neighboring=self.neighboring)
        return half * 2

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Fit a line.

        Parameters
        ----------
        value : array, frame or list of rows, of shape (n, 2)
            The feature and the response of each record; NaN counts as 0. Slopes of equal features count as
            the response's sign says, as the outermost slopes.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a `LinearFit`.
        """
        array = as_table(value, 2, name="value")
        source = random_source(rng)
        maximum = np.finfo(np.float64).max / 4
        real = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=maximum, neginf=-maximum)
        slopes = [np.zeros(0)]
        matchings = self.matchings or min(_MOST, max(1, _SLOPES // max(1, len(real))))
        for _ in range(matchings):
            order = np.argsort(source.words(len(real)), kind="stable")
            pairs = real[order[: len(real) // 2 * 2]].reshape(-1, 2, 2)
            across, up = (pairs[:, 1] - pairs[:, 0]).T
            with np.errstate(all="ignore"):
                slopes.append(np.nan_to_num(up / across, nan=0.0, posinf=np.inf, neginf=-np.inf))
        slope = float(self._slope(matchings).release(np.concatenate(slopes), source).value)
        with np.errstate(all="ignore"):
            rest = real[:, 1] - slope * real[:, 0]
        intercept = float(self._intercept.release(rest, source).value)
        return self._release_as(Release, LinearFit(intercept, np.array([slope])), source)

    def _slope(self, matchings: int) -> Quantile:
        return self._median(self.slope_bounds, drawn_epsilon(self.epsilon) / 2 / matchings)

    @property
    def _intercept(self) -> Quantile:
        return self._median(self.intercept_bounds, drawn_epsilon(self.epsilon) / 2)

    def _median(self, bounds: tuple[Number, Number], epsilon: Fraction) -> Quantile:
        return Quantile(
            bounds=bounds,
            epsilon=epsilon,
            grid=self.grid,  # type: ignore[arg-type]
            neighboring=self.neighboring,
        )
