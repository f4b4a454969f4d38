"""Bounds and numbers in steps of power-of-two grids."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, TypeVar

from sfumato import _check
from sfumato.queries.plan.query import FoundBounds

__all__ = ["Number", "bits", "cut", "even_steps", "exact_exponent", "power", "row_steps", "steps"]

Number = TypeVar("Number", int, float)

_ROW_REACH: Final = 2**62  # the engine's integers


def cut(
    bounds: tuple[Number, Number] | None, attained: tuple[Number, Number] | None
) -> tuple[Number, Number]:
    """Return the bounds without what cannot be attained: clamping to them changes no attained number less.

    Where the two do not meet, every attained number is clamped to the same bound, which is returned twice.
    """
    if bounds is None or attained is None:
        found = attained if bounds is None else bounds
        if found is None:
            _check.refuse("bounds", "limit what a unit adds to a group", None, "give max_rows_per_group")
        return found
    (lower, upper), (minimum, maximum) = bounds, attained
    return min(max(lower, minimum), upper), max(min(upper, maximum), lower)


def bits(reach: float) -> int:
    """Return how many bits a number has before its point."""
    return math.frexp(reach)[1]


def exact_exponent(value: float) -> int:
    """Return the exponent of the coarsest grid that holds a number exactly, in at most 53 bits.

    >>> exact_exponent(0.5), exact_exponent(5.0), exact_exponent(-12.0), exact_exponent(0.0)
    (-1, 0, 2, 0)
    """
    numerator, denominator = value.as_integer_ratio()
    if denominator > 1 or numerator == 0:
        return 1 - denominator.bit_length()
    return (numerator & -numerator).bit_length() - 1


def steps(bounds: tuple[float, float], exponent: int) -> tuple[int, int]:
    """Return bounds in steps of a grid."""
    lower, upper = (round(Fraction(bound) / Fraction(2) ** exponent) for bound in bounds)
    return lower, upper


def row_steps(bounds: tuple[float, float], exponent: int) -> tuple[int, int]:
    """Return a row's bounds in steps, within the engine's range.

    That is at least 2**30 times the group's bounds, and what rows without bounds are clamped to, too.
    """
    lower, upper = (max(-_ROW_REACH, min(_ROW_REACH, bound)) for bound in steps(bounds, exponent))
    return lower, upper


def even_steps(bounds: FoundBounds, half: int) -> tuple[int, int, int]:
    """Widen found bounds until half their distance is a power of two.

    Parameters
    ----------
    bounds : FoundBounds
    half : int
        The steps that this is to be.

    Returns
    -------
    tuple
        Lower and upper bound in steps, and the power of two.
    """
    lower, upper = Fraction(bounds.lower), Fraction(bounds.upper)
    if lower < 0 < upper:
        upper = max(-lower, upper)
        lower = -upper
    elif lower >= 0 and upper != 2 * lower:
        lower = Fraction(0)
    elif upper <= 0 and lower != 2 * upper:
        upper = Fraction(0)
    distance = (upper - lower) / 2
    return int(lower / distance * half), int(upper / distance * half), power(float(distance))


def power(value: float) -> int:
    """Return the exponent of a power of two.

    Parameters
    ----------
    value : float
        A positive power of two.

    Returns
    -------
    int

    Examples
    --------
    >>> power(0.25), power(1024.0)
    (-2, 10)
    """
    return math.frexp(value)[1] - 1
