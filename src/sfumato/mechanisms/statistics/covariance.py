"""Variance and covariance, from sums to which each record adds exactly one in total."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.records import as_numbers, as_table, exact_sum, relative_positions
from sfumato.mechanisms.query.sums import checked_bounds
from sfumato.numerics.interval import Interval
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Covariance", "Variance", "separated_bounds"]

_BITS: Final = 24
_ONE: Final = 1 << _BITS
_ROUNDING: Final = 2 / _ONE
"""More than the rounding of records moves a mean, or a variance, in positions."""
_Steps = NDArray[np.int64]


class _Shares(Query):
    """A query to which each record adds whole non-negative steps that sum to one."""

    __slots__ = ()

    @property
    def step(self) -> Fraction:
        """One record's steps are worth 1 together."""
        return Fraction(1, _ONE)

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the bound of one record, or under replace-one of the difference of two."""
        if neighboring is Neighboring.REPLACE_ONE:
            return Shift(l0=self.entries, l1=2 * _ONE, l2_squared=2 * _ONE**2, linf=_ONE)
        return Shift(l0=self.entries, l1=_ONE, l2_squared=_ONE**2, linf=_ONE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Variance(_Shares):
    r"""The variance of one number per record, each clamped to bounds; the number of records is private.

    Parameters
    ----------
    bounds : tuple of two numbers
        Lower and upper bound of a record.

    Notes
    -----
    With t a record's position in its bounds, from 0 to 1, the query has the three sums of :math:`t^2`,
    :math:`2t(1-t)` and :math:`(1-t)^2`, which tell count, mean and variance. Each record adds 1 in all, so
    one unit moves them by 1 in L1 under add/remove and zero-out, by 2 under replace-one: no less noise could
    hide the count alone. The variance is that of the data, with divisor n.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> variance = Laplace.for_query(Variance(bounds=(0.0, 10.0)), epsilon=1.0)
    >>> release = variance.release(np.tile([2.0, 6.0], 50_000), rng=1)
    >>> round(variance.query.estimate(release), 2)
    4.0
    """

    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", separated_bounds(self.bounds))

    @property
    def entries(self) -> int:
        """Three sums."""
        return 3

    def steps(self, data: Any) -> _Steps:
        """Return the exact sums in steps.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private.
        """
        position = relative_positions(as_numbers(data, integral=False), self.bounds)
        squares, rests = _rounded(position**2), _rounded((1 - position) ** 2)
        between = np.maximum(_ONE - squares - rests, 0)
        return np.array([exact_sum(part) for part in (squares, between, _ONE - squares - between)])

    def estimate(self, release: LatticeRelease) -> float:
        """Return the variance; where the noise leaves no data, that of evenly spread data.

        Parameters
        ----------
        release : Release
            Of this query.

        Returns
        -------
        float
            In the squared unit of the data.
        """
        high, cross, low = (max(0.0, float(entry)) for entry in self.check_release(release).value)
        width = self.bounds[1] - self.bounds[0]
        found = _variance(high, cross, low)
        return float(width**2 * (1 / 12 if math.isnan(found) else found))

    def estimate_interval(self, release: LatticeRelease, level: float = 0.95) -> Interval:
        """Return an interval that holds the bounded data's variance with probability at least the level.

        Parameters
        ----------
        release : LatticeRelease
        level : float

        Returns
        -------
        Interval
            The variances that are possible within intervals for the three sums at a third of the error each
            (Bonferroni).

        Notes
        -----
        For sums a, b, c the variance is :math:`(ac - b^2/4)/(a+b+c)^2`. It falls with b; in a it rises, then
        falls, and so in c. So it is least at a corner, and greatest on an edge. That each record was rounded
        moves the first and the last sum by half a step of each at most, the mean by as much, and so the
        variance by three halves of a step.
        """
        error = (1 - _check.unit_interval("level", level)) / 3
        around = self.check_release(release).interval(1 - error)
        minimum, maximum = (np.maximum(np.asarray(end), 0.0) for end in around[:2])
        ends = ((float(minimum[0]), float(maximum[0])), (float(minimum[2]), float(maximum[2])))
        low = min(_variance(a, float(maximum[1]), c) for a in ends[0] for c in ends[1])
        cross = float(minimum[1])
        candidates = [(a, c) for a in ends[0] for c in ends[1]]
        candidates += [(_turn(cross, c, ends[0]), c) for c in ends[1]]
        candidates += [(a, _turn(cross, a, ends[1])) for a in ends[0]]
        high = max(_variance(a, cross, c) for a, c in candidates)
        scale = (self.bounds[1] - self.bounds[0]) ** 2
        if math.isnan(low) or math.isnan(high):
            return Interval(0.0, scale / 4)
        return Interval(scale * max(0.0, low - _ROUNDING), scale * min(0.25, high + _ROUNDING))

    def mean_interval(self, release: LatticeRelease, level: float = 0.95) -> Interval:
        r"""Return an interval for the mean of the population that the records are independent draws from.

        Parameters
        ----------
        release : LatticeRelease
        level : float

        Returns
        -------
        Interval
            It holds the mean of the clamped population with probability at least the level, over sampling and
            noise, whatever the population.

        Notes
        -----
        Half of the error is the noise's: intervals for the three sums (Bonferroni) bound count, mean and
        variance of the data. The other half is the sampling's: with n records between 0 and 1 and their
        variance V (divisor n - 1) the population's mean is within :math:`\sqrt{2V\log(4/\beta)/n} +
        7\log(4/\beta)/(3(n-1))` of theirs, but with probability :math:`\beta`.

        References
        ----------
        Maurer, Pontil, "Empirical Bernstein bounds and sample variance penalization" (COLT 2009), Theorem 4.
        """
        error = (1 - _check.unit_interval("level", level)) / 2
        around = self.check_release(release).interval(1 - error / 3)
        minimum, maximum = (np.maximum(np.asarray(end), 0.0) for end in around[:2])
        count = math.floor(float(minimum.sum()))
        if count < 2:
            return Interval(*self.bounds)
        variance = self.estimate_interval(release, 1 - error).upper / (self.bounds[1] - self.bounds[0]) ** 2
        odds = math.log(4 / error)
        reach = math.sqrt(2 * variance * count / (count - 1) * odds / count) + 7 * odds / (3 * (count - 1))
        lower, upper = self.bounds
        low = _minimum_position(minimum, maximum) - reach - _ROUNDING
        high = 1 - _minimum_position(minimum[::-1], maximum[::-1]) + reach + _ROUNDING
        width = upper - lower
        return Interval(lower + width * max(low, 0.0), min(upper, lower + width * min(high, 1.0)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Covariance(_Shares):
    r"""The covariance of two numbers per record, each clamped to bounds; the number of records is private.

    Parameters
    ----------
    bounds : tuple of two tuples of two numbers
        Lower and upper bound of the first number, and of the second.

    Notes
    -----
    With s and t a record's positions in its bounds, the query has the four sums of :math:`st`,
    :math:`s(1-t)`, :math:`(1-s)t` and :math:`(1-s)(1-t)`. Each record adds 1 in all; see `Variance`.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> query = Covariance(bounds=((0.0, 1.0), (0.0, 2.0)))
    >>> covariance = Laplace.for_query(query, epsilon=1.0)
    >>> x = np.linspace(0, 1, 100_001)
    >>> round(query.estimate(covariance.release(np.stack([x, 2 * x], axis=1), rng=1)), 3)
    0.167
    """

    bounds: tuple[tuple[float, float], tuple[float, float]]

    def __post_init__(self) -> None:
        given: object = self.bounds
        if not isinstance(given, tuple | list) or len(given) != 2:
            _check.refuse("bounds", "be a pair of (lower, upper)", given, "pass bounds for each number")
        object.__setattr__(self, "bounds", (separated_bounds(given[0]), separated_bounds(given[1])))

    @property
    def entries(self) -> int:
        """Four sums."""
        return 4

    def steps(self, data: Any) -> _Steps:
        """Return the exact sums in steps, of an array of shape (n, 2).

        Parameters
        ----------
        data : array of shape (n, 2)
            Two numbers for each record.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private.
        """
        array = as_table(data, 2)
        s, t = (relative_positions(array[:, column], self.bounds[column]) for column in (0, 1))
        both, first, second = _rounded(s * t), _rounded(s * (1 - t)), _rounded((1 - s) * t)
        # Four roundings may sum to a step or two more than one: the largest part gives way.
        rest = _ONE - both - first - second
        parts = np.stack([both, first, second, np.maximum(rest, 0)])
        np.subtract.at(parts, (parts.argmax(axis=0), np.arange(len(s))), np.maximum(-rest, 0))
        return np.array([exact_sum(part) for part in parts])

    def estimate(self, release: LatticeRelease) -> float:
        """Return the covariance, with divisor n; 0 where the noise leaves no data.

        Parameters
        ----------
        release : Release
            Of this query.

        Returns
        -------
        float
            In the product of both units.
        """
        found = np.asarray(self.check_release(release).value, dtype=np.float64)
        both, first, second, none = np.maximum(found, 0.0)
        total = both + first + second + none
        scale = math.prod(upper - lower for lower, upper in self.bounds)
        return float(scale * (both * none - first * second) / total**2) if total > 0 else 0.0


def separated_bounds(bounds: object) -> tuple[float, float]:
    """Return two bounds of which the second is larger, at a distance whose square is a float."""
    lower, upper = checked_bounds(bounds)
    if float(lower) == float(upper):
        rule = "be (lower, upper) with lower < upper, as floats"
        _check.refuse("bounds", rule, bounds, "pass wider bounds; a constant is known already")
    if not 1e-150 <= float(upper) - float(lower) < 1e154:
        _check.refuse("bounds", "be from 1e-150 to 1e154 apart", bounds, "pass values in other units")
    return float(lower), float(upper)


def _rounded(share: NDArray[np.float64]) -> _Steps:
    return np.asarray(np.rint(share * _ONE), dtype=np.int64)


def _minimum_position(minimum: NDArray[np.float64], maximum: NDArray[np.float64]) -> float:
    """Return the smallest mean position that sums within their ends allow.

    It is the mean of 1, 1/2 and 0 weighted by the sums: least for few of the first and many of the last, and
    for the middle one at either end.
    """
    a, c = float(minimum[0]), float(maximum[2])
    return min((a + b / 2) / (a + b + c) for b in (float(minimum[1]), float(maximum[1])) if a + b + c > 0)


def _variance(high: float, cross: float, low: float) -> float:
    total = high + cross + low
    if not total > 0:
        return math.nan
    return max(0.0, high / total * (low / total) - (cross / total) ** 2 / 4)


def _turn(cross: float, other: float, ends: tuple[float, float]) -> float:
    """Return where the variance is greatest in one sum, within its ends."""
    best = cross + other + cross**2 / (2 * other) if other > 0 else math.inf
    return min(max(best, ends[0]), ends[1])
