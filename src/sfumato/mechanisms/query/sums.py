"""Bounded sums and means: records are clamped, rounded to a grid and added exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import UnboundedSensitivity
from sfumato.mechanisms.base.grid import Grid, as_grid, whole
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.rational import ceil_log2
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift, check_public_size
from sfumato.mechanisms.query.records import as_numbers, exact_sum, relative_positions
from sfumato.numerics.interval import Interval
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ROUNDING", "BoundedSum", "Mean"]

_BITS = 24  # a record is rounded to this many bits of the larger bound
_COARSEST = 960  # exponent of the widest grid
ROUNDING = 0.5**_BITS * (0.5 + 1e-6)  # half a step, and what floats lose


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedSum(Query):
    """The sum of one number per record, each clamped to bounds.

    Parameters
    ----------
    bounds : tuple of two numbers
        Lower and upper bound of a record. Two ints mean that records are whole numbers, anything else that
        they are real and each is rounded to a grid.
    grid : Grid, optional
        What each record is rounded to; unless given, 24 bits of the larger bound, or 1 for int bounds.

    Raises
    ------
    ParameterError
        If the bounds are not numbers or reversed.
    UnboundedSensitivity
        If a bound is infinite.

    Notes
    -----
    One record adds a whole number of steps between the rounded bounds; so one unit moves the sum by at most
    the larger of them under add/remove and zero-out, and by at most their difference under replace-one. NaN
    counts as 0 and is then clamped like any number.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Norm
    >>> total = BoundedSum(bounds=(0, 10))
    >>> total(np.array([3, 50, -2])), total.sensitivity(Neighboring.ADD_REMOVE, Norm.L1)
    (13, 10.0)
    """

    bounds: tuple[float, float]
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        lower, upper = checked_bounds(self.bounds)
        object.__setattr__(self, "bounds", (lower, upper))
        given: Grid | None = self.grid
        if given is None:
            magnitude = Fraction(max(abs(lower), abs(upper)))
            exponent = (
                0 if isinstance(lower, int) and isinstance(upper, int) else ceil_log2(magnitude) - _BITS
            )
            if exponent > _COARSEST:
                _check.refuse(
                    "bounds", "be at most 2**984 in magnitude", self.bounds, "pass values in other units"
                )
            given = Grid(exponent=max(exponent, -1074))
        object.__setattr__(self, "grid", as_grid(given))

    @property
    def step(self) -> int | Fraction:
        """What one step is worth; 1 for int bounds."""
        return 1 if self._integral else self.grid.step

    @property
    def entries(self) -> int:
        """One number."""
        return 1

    @property
    def _integral(self) -> bool:
        return self.grid.exponent == 0 and all(isinstance(bound, int) for bound in self.bounds)

    @property
    def counts_records(self) -> bool:
        """Whether records are 0 or 1."""
        return self._integral and min(self.bounds) >= 0 and max(self.bounds) <= 1

    def steps(self, data: Any) -> int:
        """Return the exact sum in steps.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.

        Returns
        -------
        int
            In steps of `step`; private.
        """
        array = as_numbers(data, integral=self._integral)
        if self._integral:
            return exact_sum(np.clip(whole(array.astype(np.int64) if not array.size else array), *self._ends))
        return exact_sum(np.clip(self.grid.round(array), *self._ends))

    @property
    def _ends(self) -> tuple[int, int]:
        lower, upper = (self.grid.round(bound) for bound in self.bounds)
        return int(lower), int(upper)

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the larger bound, or under replace-one their difference.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        lower, upper = self._ends
        if neighboring is Neighboring.REPLACE_ONE:
            return Shift.entries(1, upper - lower)
        return Shift.entries(1, max(abs(lower), abs(upper)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Query):
    """The mean of one number per record, each clamped to bounds; n public or private.

    Parameters
    ----------
    bounds : tuple of two numbers
        Lower and upper bound of a record.
    n : int, optional
        The number of records, where it is public; the query is then the bounded sum over n, and add/remove is
        refused.

    Raises
    ------
    ParameterError
        If the bounds are not numbers, equal or reversed, or n is not positive.
    UnboundedSensitivity
        If a bound is infinite.

    Notes
    -----
    With public n, n is a constant that the sum is divided by, whatever the size of the data. Nobody is added
    or removed then, as n would tell: the relation must be replace-one or zero-out. A sum over a number that
    is no property of the data is a `BoundedSum`, divided afterwards.

    With private n the query has two entries, the centred sum and the count turned by 45 degrees so that one
    unit moves them least: with each record's position t in its bounds, from 0 to 1, they are the sum of t and
    the sum of 1 - t. Their sum is n, and ``estimate`` reads the mean off them. One record moves them by (t, 1
    - t): by 1 in L1, L2 and Linf under add/remove and zero-out; under replace-one by (d, -d), by 2, sqrt(2)
    and 1. A mean of private size has no such bound itself: claiming range / n is the classical mistake.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> mean = Laplace.for_query(Mean(bounds=(0.0, 100.0)), epsilon=1.0)
    >>> release = mean.release(np.full(100_000, 40.0), rng=5)
    >>> round(mean.query.estimate(release), 1)
    40.0
    """

    bounds: tuple[float, float]
    n: int | None = None

    def __post_init__(self) -> None:
        lower, upper = checked_bounds(self.bounds)
        if float(lower) == float(upper):
            remedy = "pass wider bounds; between these the mean is known"
            _check.refuse("bounds", "be (lower, upper) with lower < upper, as floats", self.bounds, remedy)
        if math.isinf(float(upper) - float(lower)):
            _check.refuse("bounds", "be less than 1e308 apart", self.bounds, "pass narrower ones")
        object.__setattr__(self, "bounds", (float(lower), float(upper)))
        if self.n is not None:
            object.__setattr__(self, "n", _check.integer("n", self.n, minimum=1))
            _ = self._sum  # it checks the bounds further

    @property
    def step(self) -> Fraction:
        """What one step is worth: of the sum over n, or of a record's position between its bounds."""
        return Fraction(1, 1 << _BITS) if self.n is None else self._sum.grid.step / self.n

    @property
    def entries(self) -> int:
        """One number with public n, two with private n."""
        return 2 if self.n is None else 1

    @property
    def _sum(self) -> BoundedSum:
        return BoundedSum(bounds=self.bounds)

    def steps(self, data: Any) -> int | NDArray[np.int64]:
        """Return the exact sum, or the two sums, in steps.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.

        Returns
        -------
        int, or array of int64 of shape (2,)
            In steps of `step`; private.
        """
        if self.n is not None:
            return self._sum.steps(data)
        one = 1 << _BITS
        # Any float error stays inside one record's own whole number of steps, from 0 to one.
        steps = np.rint(relative_positions(as_numbers(data, integral=False), self.bounds) * one).astype(
            np.int64
        )
        return np.array([exact_sum(steps), exact_sum(one - steps)], dtype=np.int64)

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the bound of the sum, or of the two sums.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        if self.n is not None:
            check_public_size(neighboring, "leave n out")
            return self._sum.shift(neighboring)
        one = 1 << _BITS
        if neighboring is Neighboring.REPLACE_ONE:
            return Shift.entries(2, one)
        return Shift(l0=2, l1=one, l2_squared=one**2, linf=one)

    def estimate(self, release: LatticeRelease) -> float:
        """Return the mean, within its bounds; where no record seems to be left, the middle of the bounds.

        Parameters
        ----------
        release : Release
            Of this query.

        Returns
        -------
        float
            In the unit of the data.
        """
        release = self.check_release(release)
        if self.n is not None:
            return float(np.clip(release.value, *self.bounds))
        high, low = np.asarray(release.value, dtype=np.float64)
        return self._between(float(high), float(low))

    def estimate_interval(self, release: LatticeRelease, level: float = 0.95) -> Interval:
        """Return an interval that holds the bounded data's mean with probability at least the level.

        Parameters
        ----------
        release : LatticeRelease
        level : float

        Returns
        -------
        Interval
            With private n, from an interval for each of the two sums at half the error (Bonferroni), between
            which the mean is monotone. Wider by half a step of a record, which its rounding moves it.
        """
        release = self.check_release(release)
        if self.n is not None:
            half = float(self._sum.grid.step) * (0.5 + 1e-6)  # and what floats lose
            lower, upper = release.interval(level)[:2]
            return Interval(
                float(np.clip(lower - half, *self.bounds)), float(np.clip(upper + half, *self.bounds))
            )
        minimum, maximum = (
            np.maximum(np.asarray(end, np.float64), 0.0) for end in release.interval((1 + level) / 2)[:2]
        )
        return Interval(
            self._between(float(minimum[0]), float(maximum[1]), empty=0.0, wider=-ROUNDING),
            self._between(float(maximum[0]), float(minimum[1]), empty=1.0, wider=ROUNDING),
        )

    def _between(self, high: float, low: float, *, empty: float = 0.5, wider: float = 0.0) -> float:
        lower, upper = self.bounds
        position = high / (high + low) if high + low > 0 else empty
        return min(upper, max(lower, lower + min(1.0, max(0.0, position + wider)) * (upper - lower)))


def checked_bounds(bounds: object) -> tuple[int | float, int | float]:
    """Return two finite bounds in order; ints stay ints.

    Raises
    ------
    ParameterError
        If they are not two numbers in order.
    UnboundedSensitivity
        If one is infinite.
    """
    rule = "be (lower, upper) with lower <= upper"
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        _check.refuse("bounds", rule, bounds, "state what a record is clamped to")
    if any(isinstance(bound, float) and math.isinf(bound) for bound in bounds):
        raise UnboundedSensitivity(
            f"bounds must be finite, got {bounds!r}; state what a record is clamped to"
        )
    lower, upper = (_exact_or_float(bound) for bound in bounds)
    if lower > upper:
        _check.refuse("bounds", rule, bounds, "swap them")
    if lower == upper == 0:
        remedy = "pass wider bounds; such a sum is always 0"
        _check.refuse("bounds", "leave room for a value other than 0", bounds, remedy)
    return lower, upper


def distinct_bounds(bounds: object) -> tuple[int | float, int | float]:
    """Return two finite bounds of which the second is larger; ints stay ints.

    Parameters
    ----------
    bounds : tuple of two numbers
        Lower and upper.

    Returns
    -------
    tuple

    Raises
    ------
    ParameterError
        If they are equal, or refused by `checked_bounds`.
    """
    lower, upper = checked_bounds(bounds)
    if lower == upper:
        remedy = "pass bounds that leave room for an answer"
        _check.refuse("bounds", "be (lower, upper) with lower < upper", bounds, remedy)
    return lower, upper


def _exact_or_float(bound: object) -> int | float:
    number = _check.finite("bounds", bound)
    return int(bound) if isinstance(bound, int | np.integer) else number
