"""Float arithmetic rounded to the private side: guarantees up, noise down.

Every formula of this package is a short chain of IEEE operations and of libm or scipy functions with a small
relative error. Instead of rounding each step, a result is moved outward once, by more than the chain can have
lost: the caller names the allowance in units of ``2 ** -53`` relative to the largest magnitude that entered
the chain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction

from sfumato.numerics.rounding import fraction_up

__all__ = ["UNIT", "above", "below", "sum_above", "text_above", "text_below", "times_above"]

UNIT = 2.0**-53


def above(value: float, units: float = 2.0, scale: float = 0.0) -> float:
    """Return a float above ``value`` by ``units`` rounding errors of ``max(|value|, |scale|)``."""
    if math.isinf(value):
        return value
    return math.nextafter(value + units * UNIT * max(abs(value), abs(scale)), math.inf)


def below(value: float, units: float = 2.0, scale: float = 0.0) -> float:
    """Return a float below ``value`` by ``units`` rounding errors of ``max(|value|, |scale|)``."""
    return -above(-value, units, scale)


def times_above(count: int, value: float | Fraction) -> float:
    """Return the smallest float at or above ``count * value``, for a count of any size."""
    if isinstance(value, float) and (count == 1 or math.isinf(value)):
        return value
    return fraction_up(Fraction(value) if count == 1 else count * Fraction(value))


def sum_above(values: Iterable[float]) -> float:
    """Return the smallest float at or above a sum of non-negative numbers."""
    numbers = list(values)
    if math.inf in numbers:
        return math.inf
    try:
        total = math.fsum(numbers)
    except OverflowError:
        return math.inf
    # fsum is correctly rounded, so what it leaves out has the sign of the error.
    return math.nextafter(total, math.inf) if math.fsum([*numbers, -total]) > 0 else total


def text_above(value: float, digits: int = 6) -> str:
    """Return a decimal number of so many digits, at most 15, that is read as no smaller float."""
    nearest = f"{value:.{digits}g}"
    return nearest if float(nearest) >= value else _text(value, digits, ROUND_CEILING)


def text_below(value: float, digits: int = 6) -> str:
    """Return a decimal number of so many digits, at most 15, that is read as no greater float."""
    nearest = f"{value:.{digits}g}"
    return nearest if float(nearest) <= value else _text(value, digits, ROUND_FLOOR)


def _text(value: float, digits: int, rounding: str) -> str:
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal_from_float(value)):.{digits}g}"
