"""Theil-Sen regression: private medians of the slopes through a few records each, robust to outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

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
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["TheilSen"]

_MOST: Final = 100
_SLOPES: Final = 1 << 23
_FEATURES: Final = 16
_AT_ONCE: Final = 1 << 16
_Array = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TheilSen(Mechanism):
    r"""Slopes and intercept of one feature or several, robust to records that do not fit.

    Parameters
    ----------
    slope_bounds : tuple of two numbers, or sequence of such tuples
        Public; of the only feature, or of each of up to 16.
    intercept_bounds : tuple of two numbers
        Public.
    epsilon : float
        Each slope and the intercept cost the same: half of it each for one feature.
    matchings : int, optional
        In how many random matchings each record gets partners. More use the data better, and take more time;
        the noise grows as the number of slopes does. Unless given, chosen from the public number of records:
        100 up to 80,000 of them, fewer beyond.
    grid : Grid, optional
        Of slopes and intercept.
    neighboring : Neighboring
        Replace-one or zero-out: how many records there are is public.

    Notes
    -----
    Guarantee: epsilon-DP. With d features, a matching puts records into groups of d + 1 at random,
    independently of the data; what is left over has no group. The slopes through a group's records are a
    function of these alone, so a replaced record changes one group's slopes in each of k matchings: at most k
    of the values of a feature's slope, and their `Quantile` under replace-one moves as in a chain of k
    neighbors, at a kth of the budget each: the ranges of its losses add, whatever k. The intercept is the
    median of what the slopes, which were released, leave of the responses: one number for each record. All d
    + 1 choices compose. The number of matchings follows from public parameters.

    *Several features.* The published private estimator is that of one feature; the medians of the slopes
    through d + 1 records, one feature at a time, are those of Dang et al. without privacy. A share a of bad
    records spoils :math:`1 - (1 - a)^{d+1}` of the groups, and more than half of them is too many: a fifth of
    the records for two features, an eighth for four.

    References
    ----------
    Alabi, McMillan, Sarathy, Smith, Vadhan, "Differentially private simple linear regression" (PoPETs 2022);
    Dang, Peng, Wang, Zhang, "Theil-Sen estimators in a multiple linear regression model" (2008).

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

    slope_bounds: tuple[Number, Number] | Sequence[tuple[Number, Number]]
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
        if self.features > _FEATURES:
            rule = f"be (lower, upper), or such a pair for each of up to {_FEATURES} features"
            _check.refuse("slope_bounds", rule, self.slope_bounds, "use LeastSquares for more")
        for bounds in self._bounds:  # they check the rest
            _ = self._median(bounds, self._share / (self.matchings or _MOST))
        _ = self._median(self.intercept_bounds, self._share)

    @property
    def features(self) -> int:
        """How many features there are."""
        return len(self._bounds)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        one = Exponential(outward(self._share), neighboring=self.neighboring)
        return one * (self.features + 1)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Fit a linear function.

        Parameters
        ----------
        value : array, frame or list of rows, of shape (n, d + 1)
            The features of each record, then its response; NaN counts as 0. Slopes through records that have
            no single function through them count as 0 or as the outermost slopes.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a `LinearFit`.
        """
        source = random_source(rng)
        array = as_table(value, self.features + 1, name="value")
        maximum = np.finfo(np.float64).max / 4
        real = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=maximum, neginf=-maximum)
        matchings = self.matchings or min(_MOST, max(1, _SLOPES // max(1, len(real))))
        at_once = max(1, _AT_ONCE // max(1, len(real)))
        found = np.concatenate(
            [
                _slopes_of_matchings(real, min(at_once, matchings - first), source)
                for first in range(0, matchings, at_once)
            ]
        )
        slopes = np.array(
            [
                float(self._median(bounds, self._share / matchings).release(column, source).value)
                for bounds, column in zip(self._bounds, found.T, strict=True)
            ]
        )
        rest = real[:, -1]
        with np.errstate(all="ignore"):
            for column, slope in enumerate(slopes.tolist()):  # each record by itself, as no matrix product is
                rest = rest - slope * real[:, column]
        intercept = self._median(self.intercept_bounds, self._share).release(rest, source).value
        return self._release_as(Release, LinearFit(float(intercept), slopes), source)

    @property
    def _bounds(self) -> tuple[tuple[Number, Number], ...]:
        """The bounds of each slope."""
        given: Any = self.slope_bounds
        several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
        if several and len(given) and all(isinstance(each, tuple | list | np.ndarray) for each in given):
            return tuple(tuple(each) for each in given)
        return (given,)

    @property
    def _share(self) -> Fraction:
        return drawn_epsilon(self.epsilon) / (self.features + 1)

    def _median(self, bounds: tuple[Number, Number], epsilon: Fraction) -> Quantile:
        return Quantile(
            bounds=bounds,
            epsilon=epsilon,
            grid=self.grid,  # type: ignore[arg-type]
            neighboring=self.neighboring,
        )


def _slopes_of_matchings(records: _Array, matchings: int, source: RandomSource) -> _Array:
    """Return the slopes through groups of as many records as there are columns, a row for each group."""
    (count, size), words = records.shape, source.words(matchings * len(records))
    order = np.argsort(words.reshape(matchings, count), axis=1, kind="stable")[:, : count // size * size]
    groups = records[order].reshape(-1, size, size)
    with np.errstate(all="ignore"):
        return np.nan_to_num(_solved(groups[:, 1:] - groups[:, :1]), nan=0.0, posinf=np.inf, neginf=-np.inf)


def _solved(systems: _Array) -> _Array:
    """Return the solutions of many systems of equations, whose right sides are their last columns.

    Gaussian elimination, with the largest pivot, all of whose steps are taken entry by entry: a solution is a
    function of its own system, and singular ones have infinite or no numbers rather than an exception.
    """
    systems, size, rows = systems.copy(), systems.shape[1], np.arange(len(systems))
    for pivot in range(size):
        largest = pivot + np.abs(systems[:, pivot:, pivot]).argmax(axis=1)
        chosen = systems[rows, largest]
        systems[rows, largest] = systems[:, pivot]
        systems[:, pivot] = chosen
        for row in range(pivot + 1, size):
            factor = systems[:, row, pivot] / chosen[:, pivot]
            systems[:, row, pivot:] -= factor[:, None] * chosen[:, pivot:]
    found = np.zeros((len(systems), size))
    for row in reversed(range(size)):
        rest = systems[:, row, -1]
        for column in range(row + 1, size):
            rest = rest - systems[:, row, column] * found[:, column]
        found[:, row] = rest / systems[:, row, row]
    return found
