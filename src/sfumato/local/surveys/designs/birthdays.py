"""The share of people whose birthday lies between two days: a device that everybody carries."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from sfumato import _check

__all__ = ["birthday_share"]

# Of four years: 29 February comes once.
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP: Final = (2, 29)
_CYCLE: Final = 4 * 365 + 1


def birthday_share(first: tuple[int, int], last: tuple[int, int]) -> Fraction:
    """Return the share of birthdays from one day to another, both included.

    Parameters
    ----------
    first, last : tuple of two ints
        Month and day; the last may come earlier in the year than the first, and the span goes over New Year.

    Returns
    -------
    Fraction
        For births distributed evenly over all days of four years. They are not quite: where the true share is
        known from statistics, state that.

    Examples
    --------
    >>> birthday_share((1, 1), (3, 31))
    Fraction(361, 1461)
    >>> birthday_share((12, 25), (1, 6))
    Fraction(52, 1461)
    """
    start, end = _index("first", first), _index("last", last)
    year = [(month, day) for month, days in enumerate(_DAYS, 1) for day in range(1, days + 1)]
    year.insert(year.index((3, 1)), _LEAP)
    inside = year[start : end + 1] if start <= end else year[start:] + year[: end + 1]
    return Fraction(sum(1 if day == _LEAP else 4 for day in inside), _CYCLE)


def _index(name: str, day: tuple[int, int]) -> int:
    """Return the index of a day in a leap year."""
    reported: object = day
    if (
        not isinstance(reported, tuple | list)
        or len(reported) != 2
        or any(isinstance(one, bool) or not isinstance(one, int) for one in reported)
    ):
        _check.refuse(name, "be a month and a day of it", day, "such as (3, 31)")
    month, number = day
    longest = 29 if month == 2 else _DAYS[month - 1] if 1 <= month <= 12 else 0
    if not 1 <= number <= longest:
        _check.refuse(name, "be a month and a day of it", day, "such as (3, 31)")
    return sum(_DAYS[: month - 1]) + (month > 2) + number - 1
