"""Names and values as SQL."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from sfumato._check import refuse

__all__ = ["literal_sql", "name_sql", "quoted"]


def name_sql(name: object) -> str:
    """Return a name in quotes, as SQL.

    Raises
    ------
    ParameterError
        If it is no string, or empty.
    """
    if not isinstance(name, str) or not name:
        refuse("name", "be a non-empty string", name, "name a column")
    return quoted(name)


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return str(exp.to_identifier(name, quoted=True).sql(dialect="bigquery"))


def literal_sql(value: object) -> str:
    """Return a Python value as an SQL literal: a bool, a number, a string, a date, a moment, or None.

    Raises
    ------
    ParameterError
        If there is no literal for it.

    Examples
    --------
    >>> literal_sql("CA"), literal_sql(dt.date(2020, 1, 31)), literal_sql(None)
    ("'CA'", "DATE '2020-01-31'", 'NULL')
    """
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", None) == 0:
        value = item()  # a numpy scalar
    for types, write in _LITERALS:
        if isinstance(value, types):
            return write(value)
    return refuse(
        "value", "be None, a bool, a number, a string, a date or a datetime", value, "convert it to one"
    )


def _number(value: int | float) -> str:
    if not math.isfinite(value):
        refuse("value", "be finite", value, "write the largest number that is meant")
    # the digits, whatever a subclass calls itself: an IntEnum is a number, too
    digits = float.__repr__(value) if isinstance(value, float) else int.__repr__(value)
    return f"({digits})" if value < 0 else digits


def _moment(value: dt.datetime) -> str:
    utc = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    return f"TIMESTAMP '{utc.isoformat(sep=' ')}'"


_LITERALS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...]] = (
    (type(None), lambda _: "NULL"),
    (bool, lambda value: "TRUE" if value else "FALSE"),
    ((int, float), _number),
    (str, lambda value: exp.Literal.string(value).sql(dialect="bigquery")),
    (dt.datetime, _moment),
    (dt.date, lambda value: f"DATE '{value.isoformat()}'"),
)
"""How each type is written; the first that fits."""
