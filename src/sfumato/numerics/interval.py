"""An interval: a lower and an upper bound that enclose the true value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Value = TypeVar("Value", default=float)
else:
    from typing import TypeVar

    Value = TypeVar("Value")

__all__ = ["Interval"]


class Interval(NamedTuple, Generic[Value]):
    """Two bounds that enclose a true value, rounded outward.

    Attributes
    ----------
    lower, upper : float or ndarray
        The bounds; ``lower <= truth <= upper``, entry by entry for arrays.
    tight : bool
        Whether both bounds come from one computation of the same truth. ``False`` where only one side
        is a theorem (then the other is a trivial bound, such as a lower bound of 0).

    Examples
    --------
    >>> lower, upper, tight = Interval(0.25, 0.5)
    >>> upper
    0.5
    """

    lower: Value
    upper: Value
    tight: bool = True
