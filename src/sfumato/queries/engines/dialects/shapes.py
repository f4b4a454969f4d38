"""The forms of texts that are cast, as regular expressions that every engine reads alike."""

from __future__ import annotations

from typing import Final

__all__ = ["DATE", "FLOAT", "INTEGER", "REAL_DATE", "REAL_TIMESTAMP", "TIMESTAMP"]

_LEAP_DAY = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
_REST = f"([ T]{_CLOCK}(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])?)?"

INTEGER: Final = "[+-]?[0-9]+"
"""A sign or none, and digits."""

FLOAT: Final = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,4})?"
"""These, a point and an exponent."""

DATE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
"""Digits in the positions of a date, which need be none."""

TIMESTAMP: Final = DATE + _REST
"""The same, perhaps with a time of day and an offset."""

REAL_DATE: Final = (
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP_DAY})"
)
"""A date that the calendar has, but for the year 0000."""

REAL_TIMESTAMP: Final = REAL_DATE + _REST
"""The same, perhaps with a time of day and an offset."""
