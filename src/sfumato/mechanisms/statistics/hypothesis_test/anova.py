"""Analysis of variance with absolute differences: whether groups have one mean."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.records import relative_positions
from sfumato.mechanisms.statistics.covariance import separated_bounds
from sfumato.mechanisms.statistics.hypothesis_test.groups import (
    as_sizes,
    check_fixed_groups,
    checked_release,
    real_column,
)
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult
from sfumato.mechanisms.statistics.null_draws import null_draws, rank_among
from sfumato.privacy.neighboring import Neighboring

__all__ = ["AbsoluteVariation", "OneWayAnova"]

_BITS: Final = 16
_ONE: Final = 1 << _BITS
_DRAWS: Final = 999
_FEW: Final = 1 << 12
_BETWEEN: Final = Fraction(7, 10)
"""Share of the sensitivity that is given to the variation between groups, as in Swanberg et al."""
_Array = NDArray[np.float64]


class AbsoluteVariation(NamedTuple):
    """The two sums of an analysis of variance with absolute differences, in the unit of the data.

    Attributes
    ----------
    between : float
        Over all records, the distance of the group's mean from the mean of all.
    within : float
        Over all records, the distance from the group's median.
    ratio : float
        Either over its degrees of freedom, and the first by the second.

    Examples
    --------
    >>> AbsoluteVariation(between=4.0, within=8.0, ratio=3.0).ratio
    3.0
    """

    between: float
    within: float
    ratio: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneWayAnova(Query):
    r"""Absolute differences between groups' means and within groups, of one bounded number per record.

    Parameters
    ----------
    sizes : tuple of ints
        How many records each group has, public, at most 2**20 in all. The data has the records of one group
        after those of another. Of more records than that the first ones count; what is missing, and NaN,
        count as 0.
    bounds : tuple of two numbers
        Lower and upper bound of a record, which is clamped to them.

    Notes
    -----
    Guarantee: with y a record's position in its bounds, from 0 to 1 and rounded to 16 bits by itself, the two
    sums are :math:`\sum_j n_j |\bar y_j - \bar y|` and :math:`\sum_j \sum_i |y_{ij} - m_j|` with the groups'
    medians m. A replaced record of group g moves its group's term of the first by at most :math:`1 - n_g/n`
    and the others' by as much together, so the first by at most :math:`2(1 - \min_j n_j/n)`; and the second
    by at most 1, as :math:`\sum_i |y_{ij} - m|` is least at the median, and moves by at most 1 for each m.
    Both are whole numbers of steps, of which seven in ten of the L1 norm are the first's.

    Differences from medians, rather than from means (Swanberg et al. 2019), halve the second's sensitivity.

    References
    ----------
    Swanberg, Globus-Harris, Griffith, Ritz, Groce, Bray, "Improved differentially private analysis of
    variance" (PoPETs 2019), the statistic F1.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> query = OneWayAnova(sizes=(200, 200, 200), bounds=(-5.0, 5.0))
    >>> noisy = Laplace.for_query(query, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> rng = np.random.default_rng(0)
    >>> same, moved = rng.normal(size=600), rng.normal(size=600) + np.repeat([0, 0, 1], 200)
    >>> query.test(noisy.release(same, rng=1), rng=2).p_value > 0.05
    True
    >>> query.test(noisy.release(moved, rng=1), rng=2).p_value
    0.001
    """

    sizes: tuple[int, ...]
    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", as_sizes(self.sizes))
        object.__setattr__(self, "bounds", separated_bounds(self.bounds))
        if self._total == len(self.sizes):
            _check.refuse("sizes", "have a group of two records or more", self.sizes, "pass larger groups")

    @property
    def step(self) -> Fraction:
        """What one step is worth in the first sum, in positions."""
        return Fraction(1, _ONE * self._total)

    @property
    def entries(self) -> int:
        """Two sums."""
        return 2

    def steps(self, data: Any) -> NDArray[np.int64]:
        """Return both sums in steps.

        Parameters
        ----------
        data : array of shape (n,)
            The records of the first group, then those of the next.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`, the second times `weight`; private.
        """
        positions = relative_positions(real_column(data, self._total), self.bounds)
        column = np.rint(positions * _ONE).astype(np.int64)
        parts = np.split(column, np.cumsum(self.sizes)[:-1])
        whole = int(column.sum())
        between = sum(abs(self._total * int(part.sum()) - part.size * whole) for part in parts)
        # Any number between the two middle ones will do for a median.
        within = sum(
            int(np.abs(part - np.partition(part, part.size // 2)[part.size // 2]).sum()) for part in parts
        )
        return np.array([between, within * self.weight], np.int64)

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the bound for a record that is replaced by one of its group.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        check_fixed_groups(neighboring)
        first, second = self._first_move * _ONE, self.weight * _ONE
        return Shift(l0=2, l1=first + second, l2_squared=first**2 + second**2, linf=max(first, second))

    @property
    def weight(self) -> int:
        """By how much the second sum is multiplied, in steps of one record's whole range."""
        return max(1, round(self._first_move * (1 - _BETWEEN) / _BETWEEN))

    @property
    def _first_move(self) -> int:
        return 2 * (self._total - min(self.sizes))

    @property
    def _total(self) -> int:
        return sum(self.sizes)

    def estimate(self, release: LatticeRelease) -> AbsoluteVariation:
        """Return both sums, and their ratio.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        AbsoluteVariation
            The second sum is at least its noise's standard error.
        """
        given = checked_release(self, release)
        width = self.bounds[1] - self.bounds[0]
        between, within = self._sums(np.asarray(given.steps, dtype=np.float64), given)
        return AbsoluteVariation(
            float(between) * width, float(within) * width, float(self._ratio(between, within))
        )

    def test(
        self, release: LatticeRelease, *, draws: int = _DRAWS, rng: int | np.random.Generator | None = None
    ) -> HypothesisTestResult:
        """Return the p-value of a release: post-processing, free of charge.

        Parameters
        ----------
        release : LatticeRelease
            Of this query, under replace-one.
        draws : int
            How many data sets are drawn under the null hypothesis; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        HypothesisTestResult
            Its statistic is the noisy ratio of both sums; its p-value is the rank among drawn ones, with
            noise.

        Notes
        -----
        Under the null hypothesis all records are normal with one mean and variance, and seldom outside the
        bounds. The variance is estimated from the noisy second sum, and stands for the true one: a parametric
        bootstrap, of the right size in the limit of many records. Normal groups' means are independent of
        differences within them, so both sums are drawn by themselves; the second by its normal limit beyond
        4,096 records.
        """
        given = checked_release(self, release)
        number, generator = null_draws(draws, rng)
        within = self._drawn_within(number, generator)
        released = self.estimate(given)
        deviation = released.within / (self.bounds[1] - self.bounds[0]) / float(within.mean())
        sizes = np.array(self.sizes, dtype=np.float64)
        means = generator.standard_normal((number, sizes.size)) / np.sqrt(sizes)
        middle = (means * sizes).sum(axis=1, keepdims=True) / self._total
        between = (sizes * np.abs(means - middle)).sum(axis=1)
        first, second = between / float(self.step), within * (_ONE * self.weight)
        sums = deviation * np.stack([first, second], axis=1)
        noise = np.asarray(given.distribution.sample((number, 2), generator))
        drawn = self._ratio(*self._sums((sums + noise).T, given))
        return HypothesisTestResult(released.ratio, rank_among(released.ratio, drawn))

    def _sums(self, steps: _Array, release: LatticeRelease) -> tuple[Any, Any]:
        """Return both sums in positions, the second at least the standard error of its noise."""
        unit, second = float(self.step), 1 / (_ONE * self.weight)
        minimum = release.distribution.stddev * second
        return steps[0] * unit, np.maximum(steps[1] * second, minimum)

    def _ratio(self, between: Any, within: Any) -> Any:
        groups = len(self.sizes)
        return between / (groups - 1) / (within / (self._total - groups))

    def _drawn_within(self, number: int, generator: np.random.Generator) -> _Array:
        """Return draws of the second sum for standard normal records."""
        if self._total > _FEW:
            mean = np.sqrt(2 / np.pi) * self._total
            drawn = mean + np.sqrt((1 - 2 / np.pi) * self._total) * generator.standard_normal(number)
            return np.asarray(drawn)
        found = np.zeros(number)
        for size in self.sizes:
            records = generator.standard_normal((number, size))
            middle = np.median(records, axis=1, keepdims=True)
            found += np.abs(records - middle).sum(axis=1)
        return found
