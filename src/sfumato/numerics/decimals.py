"""Floats as the decimals that people write: 0.1 is a tenth, and ten of them are 1.

The float next to a tenth is a little more than a tenth, so the sum of ten of them is more than 1. Who writes
``epsilon=0.1`` means a tenth. Here a float is read as the shortest decimal that is read back as it, which is
what Python shows: the decimal that was typed, if that has at most 15 digits. As decimals, floats have the
order that they have as floats.

Results are rounded outward under this reading: `decimal_up` is the smallest float that is, as a decimal, at
least the exact number. A number of up to 15 digits is itself. A sum may have more digits than a float: it is
a `DecimalSum` then, exact to 40 digits, whose value as a float is rounded up.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, Final, final

__all__ = [
    "DecimalSum",
    "at_most_decimal",
    "decimal_add_up",
    "decimal_down",
    "decimal_of",
    "decimal_part",
    "decimal_sub_down",
    "decimal_sum_up",
    "decimal_up",
    "outward",
]

_SUMS: Final = Context(prec=40, rounding=ROUND_CEILING)
"""Sums of more digits are rounded up."""
_LARGEST: Final = sys.float_info.max


@final
class DecimalSum(float):
    """A sum of decimals that is the decimal of no float; as a float, the smallest that is at least it.

    >>> total = decimal_add_up(1.0, 1e-30)
    >>> total, str(total.exact)
    (1.0000000000000002, '1.000000000000000000000000000001')
    """

    __slots__ = ("exact",)

    exact: Decimal

    def __new__(cls, exact: Decimal) -> DecimalSum:
        """Return a sum from its digits."""
        nearest = float(exact)
        rounded = nearest if Decimal(repr(nearest)) >= exact else math.nextafter(nearest, math.inf)
        self = super().__new__(cls, rounded)
        self.exact = exact
        return self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DecimalSum):
            return self.exact == other.exact
        return False if isinstance(other, float | int) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = float.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return DecimalSum, (self.exact,)


def decimal_of(x: float) -> Fraction:
    """Return the decimal that a finite float was written as.

    >>> decimal_of(0.1), decimal_of(1e-7)
    (Fraction(1, 10), Fraction(1, 10000000))
    """
    return Fraction(_digits(x))


def _digits(x: float) -> Decimal:
    return x.exact if isinstance(x, DecimalSum) else Decimal(repr(float(x)))


def decimal_up(exact: Fraction | float) -> float:
    """Return the smallest float that is, as a decimal, at least a number of at least 0.

    >>> decimal_up(Fraction(3, 10)), decimal_up(Fraction(0.1))
    (0.3, 0.10000000000000002)
    """
    if isinstance(exact, float) and not math.isfinite(exact):
        return exact
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    # Any smaller float than the nearest one is read as less than all that is nearest to it.
    return nearest if decimal_of(nearest) >= Fraction(exact) else math.nextafter(nearest, math.inf)


def decimal_down(exact: Fraction | float) -> float:
    """Return the largest float that is, as a decimal, at most a number of at least 0.

    >>> decimal_down(Fraction(3, 10)), decimal_down(Fraction(1, 3))
    (0.3, 0.3333333333333333)
    """
    if isinstance(exact, float) and not math.isfinite(exact):
        return exact
    try:
        nearest = float(exact)
    except OverflowError:
        return _LARGEST
    return nearest if decimal_of(nearest) <= Fraction(exact) else math.nextafter(nearest, 0.0)


def outward(exact: Fraction | float) -> float:
    """Return the smallest float that is at least a number both as it is and as a decimal.

    >>> outward(Fraction(3, 10)), outward(Fraction(1, 10))
    (0.30000000000000004, 0.1)
    """
    rounded = decimal_up(exact)
    if math.isinf(rounded):
        return rounded
    return rounded if Fraction(rounded) >= Fraction(exact) else math.nextafter(rounded, math.inf)


def at_most_decimal(x: float) -> float:
    """Return the largest float that is at most the decimal that ``x`` was written as.

    >>> at_most_decimal(0.5), at_most_decimal(0.3), at_most_decimal(0.1)
    (0.5, 0.3, 0.09999999999999999)
    """
    return x if Fraction(x) <= decimal_of(x) else math.nextafter(x, -math.inf)


def decimal_part(x: float, parts: int) -> float:
    """Return the largest float of which so many are together at most ``x``, all as decimals.

    >>> decimal_part(1e-7, 4)
    2.5e-08
    """
    return decimal_down(decimal_of(x) / parts)


def decimal_add_up(x: float, y: float) -> float:
    """Return the sum of two numbers of at least 0 as decimals: exact to 40 digits, and rounded up beyond.

    >>> decimal_add_up(0.1, 0.2), decimal_add_up(0.7, 0.1)
    (0.3, 0.8)
    """
    if math.isinf(x) or math.isinf(y):
        return float(x) + float(y)
    exact = _SUMS.add(_digits(x), _digits(y))
    nearest = float(exact)
    if math.isinf(nearest):
        return nearest
    return nearest if Decimal(repr(nearest)) == exact else DecimalSum(exact.normalize(_SUMS))


def decimal_sum_up(values: Iterable[float]) -> float:
    """Return the sum of numbers of at least 0 as decimals, rounded up once.

    >>> decimal_sum_up([0.1] * 10)
    1.0
    """
    numbers = list(values)
    if math.inf in numbers:
        return math.inf
    return decimal_up(sum(map(decimal_of, numbers), Fraction(0)))


def decimal_sub_down(x: float, y: float) -> float:
    """Return ``x - y`` as decimals, rounded down; ``y`` is at most ``x``.

    >>> decimal_sub_down(1.0, 0.9), decimal_sub_down(0.3, 0.1)
    (0.1, 0.2)
    """
    if math.isinf(x):
        return x
    return decimal_down(decimal_of(x) - decimal_of(y))
