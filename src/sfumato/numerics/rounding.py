"""Scalar arithmetic rounded outward: `_up` is never below the true result, `_down` never above it.

Sums, products, quotients and square roots are correctly rounded by IEEE 754; each is compared with the
exact result in integers and moved by one float only where it fell on the wrong side. So an operation
whose result is representable stays exact: four charges of 0.5 make 2.0, not a little more.

Elementary functions (exp, log, expm1, log1p) come from the C library, which is not correctly rounded.
The error bounds stated by glibc (manual, "Known Maximum Errors in Math Functions") and by FreeBSD's msun,
from which musl and others derive, are at most 2 units in the last place (ulp) for these four; results are
widened by `LIBM_ULPS` = 8 ulp. Where the value is rational (``exp(0)``, ``log(1)``) it is returned exactly.

Infinities follow the usual rules; a NaN stays a NaN. Zero is never negative where a bound is rounded down.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

from sfumato.numerics.interval import Interval

__all__ = [
    "LIBM_ULPS",
    "add_down",
    "add_up",
    "div_down",
    "div_up",
    "down",
    "exp_down",
    "exp_up",
    "expm1_down",
    "expm1_up",
    "fraction_down",
    "fraction_up",
    "log1p_down",
    "log1p_up",
    "log_down",
    "log_up",
    "mixture_bounds",
    "mul_down",
    "mul_up",
    "ratio_bounds",
    "sqrt_down",
    "sqrt_up",
    "sub_down",
    "sub_up",
    "up",
]

LIBM_ULPS = 8
"""Allowance for the C library's elementary functions, in units in the last place."""

_LARGEST = sys.float_info.max


def up(x: float) -> float:
    """Return the next float above ``x``."""
    return math.nextafter(x, math.inf)


def down(x: float) -> float:
    """Return the next float below ``x``."""
    return math.nextafter(x, -math.inf)


def _at_least(rounded: float, exact: Callable[[], Fraction]) -> float:
    if not math.isfinite(rounded):
        return -_LARGEST if rounded == -math.inf else rounded
    return up(rounded) if Fraction(rounded) < exact() else rounded


def _finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _quotient(x: float, y: float) -> float:
    if y == 0:
        raise ZeroDivisionError("division by zero has no bound")
    return x / y


def add_up(x: float, y: float) -> float:
    """Return a float that is at least ``x + y``; exact where the sum is a float."""
    rounded = x + y
    if not _finite(x, y):
        return rounded
    # Knuth's two-sum: without overflow, `error` is exactly x + y - rounded.
    virtual = rounded - x
    error = (x - (rounded - virtual)) + (y - virtual)
    if _finite(rounded, error):
        return up(rounded) if error > 0 else rounded
    return _at_least(rounded, lambda: Fraction(x) + Fraction(y))


def add_down(x: float, y: float) -> float:
    """Return a float that is at most ``x + y``; exact where the sum is a float."""
    return 0.0 - add_up(-x, -y)


def sub_up(x: float, y: float) -> float:
    """Return a float that is at least ``x - y``; exact where the difference is a float."""
    return add_up(x, -y)


def sub_down(x: float, y: float) -> float:
    """Return a float that is at most ``x - y``; exact where the difference is a float."""
    return 0.0 - add_up(-x, y)


def mul_up(x: float, y: float) -> float:
    """Return a float that is at least ``x * y``; exact where the product is a float."""
    rounded = x * y
    if not _finite(x, y, rounded):
        return -_LARGEST if rounded == -math.inf and _finite(x, y) else rounded
    # In integers: rounded < x * y, denominators multiplied out.
    (top, bottom), (a, b), (c, d) = rounded.as_integer_ratio(), x.as_integer_ratio(), y.as_integer_ratio()
    return up(rounded) if top * b * d < a * c * bottom else rounded


def mul_down(x: float, y: float) -> float:
    """Return a float that is at most ``x * y``; exact where the product is a float."""
    return 0.0 - mul_up(-x, y)


def div_up(x: float, y: float) -> float:
    """Return a float that is at least ``x / y``; exact where the quotient is a float."""
    rounded = _quotient(x, y)
    if not _finite(x, y):
        return rounded
    return _at_least(rounded, lambda: Fraction(x) / Fraction(y))


def div_down(x: float, y: float) -> float:
    """Return a float that is at most ``x / y``; exact where the quotient is a float."""
    return 0.0 - div_up(-x, y)


def ratio_bounds(top: Interval, bottom: Interval) -> Interval:
    """Bound the ratio of a number of at least 0 to a positive one, as closely as their bounds allow.

    Examples
    --------
    >>> ratio_bounds(Interval(1.0, 3.0), Interval(2.0, 4.0))
    Interval(lower=0.25, upper=1.5, tight=True)
    """
    return Interval(div_down(top.lower, bottom.upper), div_up(top.upper, bottom.lower))


def mixture_bounds(weight: Fraction, first: Interval, second: Interval) -> Interval:
    """Bound ``weight first + (1 - weight) second`` for a weight from 0 to 1.

    Examples
    --------
    >>> mixture_bounds(Fraction(1, 4), Interval(0.0, 1.0), Interval(2.0, 3.0))
    Interval(lower=1.5, upper=2.5, tight=True)
    """
    lower, upper = (
        weight * Fraction(one) + (1 - weight) * Fraction(other)
        for one, other in zip(first[:2], second[:2], strict=True)
    )
    return Interval(fraction_down(lower), fraction_up(upper))


def sqrt_up(x: float) -> float:
    """Return a float that is at least the square root of ``x``; exact where the root is a float."""
    root = math.sqrt(x)
    return up(root) if math.isfinite(root) and Fraction(root) ** 2 < Fraction(x) else root


def sqrt_down(x: float) -> float:
    """Return a float that is at most the square root of ``x``; exact where the root is a float."""
    root = math.sqrt(x)
    return down(root) if math.isfinite(root) and Fraction(root) ** 2 > Fraction(x) else root


def fraction_up(x: Fraction | int) -> float:
    """Return the smallest float that is at least the rational ``x``."""
    try:
        rounded = float(x)
    except OverflowError:
        return math.inf if x > 0 else -_LARGEST
    return up(rounded) if Fraction(rounded) < x else rounded


def fraction_down(x: Fraction | int) -> float:
    """Return the largest float that is at most the rational ``x``."""
    return 0.0 - fraction_up(-x)


def _widen_up(value: float) -> float:
    return up(value + LIBM_ULPS * math.ulp(value)) if math.isfinite(value) else value


def _widen_down(value: float) -> float:
    if value == math.inf:
        return _LARGEST
    return down(value - LIBM_ULPS * math.ulp(value)) if math.isfinite(value) else value


def _guarded(function: Callable[[float], float], x: float) -> float:
    try:
        return function(x)
    except OverflowError:
        return math.inf


def exp_up(x: float) -> float:
    """Return a float that is at least ``exp(x)``."""
    if x in (0, -math.inf):
        return math.exp(x)
    return _widen_up(_guarded(math.exp, x))


def exp_down(x: float) -> float:
    """Return a float that is at most ``exp(x)``, and never negative."""
    if x in (0, -math.inf, math.inf):
        return math.exp(x)
    return max(0.0, _widen_down(_guarded(math.exp, x)))


def expm1_up(x: float) -> float:
    """Return a float that is at least ``exp(x) - 1``."""
    if x in (0, -math.inf):
        return math.expm1(x)
    return _widen_up(_guarded(math.expm1, x))


def expm1_down(x: float) -> float:
    """Return a float that is at most ``exp(x) - 1``, and never below -1."""
    if x in (0, -math.inf, math.inf):
        return math.expm1(x)
    return max(-1.0, _widen_down(_guarded(math.expm1, x)))


def log_up(x: float) -> float:
    """Return a float that is at least ``log(x)``; minus infinity at 0."""
    if x in (0, 1, math.inf):
        return math.log(x) if x else -math.inf
    return _widen_up(math.log(x))


def log_down(x: float) -> float:
    """Return a float that is at most ``log(x)``; minus infinity at 0."""
    if x in (0, 1, math.inf):
        return math.log(x) if x else -math.inf
    return _widen_down(math.log(x))


def log1p_up(x: float) -> float:
    """Return a float that is at least ``log(1 + x)``; minus infinity at -1."""
    if x in (-1, 0, math.inf):
        return math.log1p(x) if x > -1 else -math.inf
    return _widen_up(math.log1p(x))


def log1p_down(x: float) -> float:
    """Return a float that is at most ``log(1 + x)``; minus infinity at -1."""
    if x in (-1, 0, math.inf):
        return math.log1p(x) if x > -1 else -math.inf
    return _widen_down(math.log1p(x))
