"""Decimals of a fixed number of places that are at or beyond a value, on a side."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

__all__ = ["PLACES", "decimal_above", "decimal_below"]

PLACES: Final = 4
"""How many places are shown of estimates and the ends of their intervals."""


def decimal_below(value: float | Fraction, places: int = PLACES) -> str:
    """Return the largest decimal of so many places that is at most a value.

    Parameters
    ----------
    value : float or Fraction
        Infinite ones are written ``inf`` and ``-inf``, and NaN ``nan``.
    places : int
    """
    return _decimal(value, places, -1)


def decimal_above(value: float | Fraction, places: int = PLACES) -> str:
    """Return the smallest decimal of so many places that is at least a value.

    Parameters
    ----------
    value : float or Fraction
        As in `decimal_below`.
    places : int
    """
    return _decimal(value, places, 1)


def _decimal(value: float | Fraction, places: int, side: int) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    whole = side * math.ceil(side * Fraction(value) * 10**places)
    digits = str(abs(whole)).rjust(places + 1, "0")
    cut = len(digits) - places
    return f"{'-' if whole < 0 else ''}{digits[:cut]}{'.' if places else ''}{digits[cut:]}"
