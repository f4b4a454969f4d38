"""Precision: how narrow an interval of the accountant must be."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

from sfumato import _check
from sfumato.errors import PrecisionWarning
from sfumato.numerics.interval import Interval

__all__ = ["STANDARD", "Precision"]

_FINEST = 1e-8
_NOTHING = 1e-300
"""A delta that need not be distinguished from 0."""


@dataclass(frozen=True, slots=True)
class Precision:
    """The width that an interval of the accountant is refined to.

    Parameters
    ----------
    relative : float
        Width over the upper end; from 1e-8 to below 1.
    absolute : float
        A width that is always narrow enough, for values close to 0.

    Examples
    --------
    >>> Precision(relative=1e-6).absolute
    1e-07
    """

    relative: float = 1e-3
    absolute: float = 1e-7

    def __post_init__(self) -> None:
        relative = _check.unit_interval("relative", self.relative, "pass a width such as 1e-3")
        if relative < _FINEST:
            _check.refuse("relative", f"be at least {_FINEST}", relative, "floats cannot prove more")
        object.__setattr__(self, "relative", relative)
        absolute = _check.non_negative("absolute", self.absolute, "pass 0 for none")
        object.__setattr__(self, "absolute", absolute)

    def of_delta(self) -> Precision:
        """Return the same for a delta, which has no width that is always narrow enough.

        Returns
        -------
        Precision
            With the same relative width.
        """
        return replace(self, absolute=_NOTHING)

    def met(self, lower: float, upper: float) -> bool:
        """Whether an interval is narrow enough: one with a finite end alone never is.

        Parameters
        ----------
        lower, upper : float
            The ends.

        Returns
        -------
        bool
        """
        return lower == upper or upper - lower <= self.width(upper) < math.inf

    def width(self, upper: float) -> float:
        """Return the width that is narrow enough below ``upper``.

        Parameters
        ----------
        upper : float
            The upper end of an interval.

        Returns
        -------
        float
            In the same unit.
        """
        return max(self.absolute, self.relative * upper)

    def checked(self, interval: Interval, what: str) -> Interval:
        """Return the interval; warn if it should be narrow and is not, or proves nothing finite.

        Parameters
        ----------
        interval : Interval
            Of any number of a loss.
        what : str
            What the interval is for, as the warning names it.

        Returns
        -------
        Interval
            The same one.
        """
        if interval.tight and math.isfinite(interval.lower) and not self.met(interval.lower, interval.upper):
            warnings.warn(
                f"the interval for {what} is [{interval.lower!r}, {interval.upper!r}], wider than asked: "
                "floats, or the time allowed, do not prove more; its ends are right all the same",
                PrecisionWarning,
                stacklevel=3,
            )
        elif interval.upper == math.inf and not interval.tight:
            warnings.warn(
                f"no finite bound for {what} is proven: a part that is known by an upper bound fails wholly "
                "with a probability that is not below delta, or the numbers leave the range of floats; "
                "allow a larger delta",
                PrecisionWarning,
                stacklevel=3,
            )
        return interval


STANDARD = Precision()
