"""The forms of texts that are cast, as regular expressions that every engine reads alike."""

from __future__ import annotations

from typing import Final

from sfumato.queries.plan.query import ColumnType

__all__ = ["DOMAINS", "OFFSET", "REAL_DATE", "REAL_TIMESTAMP", "SHAPES"]

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_LEAP_DAY = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"

OFFSET: Final = "[+-](0[0-9]|1[0-4]):[0-5][0-9]"
"""An offset from UTC."""

_REST = f"([ T]{_CLOCK}(Z|{OFFSET})?)?"

SHAPES: Final = {
    ColumnType.INTEGER: "[+-]?[0-9]+",
    ColumnType.FLOAT: "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,4})?",
    ColumnType.DATE: _DAY,
    ColumnType.TIMESTAMP: _DAY + _REST,
}
"""The form of a text by the type that it is cast to; a date of this form need be none."""

REAL_DATE: Final = (
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP_DAY})"
)
"""A date that the calendar has, but for the year 0000."""

REAL_TIMESTAMP: Final = REAL_DATE + _REST
"""The same, perhaps with a time of day and an offset."""

DOMAINS: Final = {"sqrt": ">= 0", "ln": "> 0", "log10": "> 0"}
"""Where the functions of a float have a value."""
