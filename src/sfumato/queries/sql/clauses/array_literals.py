"""Arrays that a query writes out: literals, and ranges of integers and dates."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan.constants import common, python_value, temporal
from sfumato.queries.plan.query import ColumnType
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.expressions.scalar import read_constant

__all__ = ["listed_values"]

_MAX_VALUES: Final = 1_000_000
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS: Final = {"DAY": 1, "WEEK": 7}


def listed_values(array: exp.Expr) -> tuple[list[object], ColumnType | None]:
    """Return the values of an array, and their type.

    Raises
    ------
    UnsupportedSql
        If it is not an array of literals, GENERATE_ARRAY or GENERATE_DATE_ARRAY, or has too many values.
    """
    if isinstance(array, exp.GenerateSeries):
        return _integers(array), ColumnType.INTEGER
    if isinstance(array, exp.GenerateDateArray):
        return _dates(array), ColumnType.DATE
    if not isinstance(array, exp.Array) or not array.expressions:
        raise UnsupportedSql("a list of groups must be literals with a name; write UNNEST(['a', 'b']) AS key")
    terms, type_ = common([read_constant(value, "a listed group") for value in array.expressions], "a list")
    return [python_value(term) for term in terms], type_


def _integers(array: exp.GenerateSeries) -> list[object]:
    only(array, "start", "end", "step", what="GENERATE_ARRAY")
    written = (array.args["start"], array.args.get("end"), array.args.get("step") or exp.Literal.number("1"))
    bounds = [None if node is None else python_value(read_constant(node, "a bound")) for node in written]
    if not all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds) or bounds[2] == 0:
        raise UnsupportedSql(
            "GENERATE_ARRAY must have whole numbers, its step not 0; write GENERATE_ARRAY(1, 12)"
        )
    start, end, step = (int(str(bound)) for bound in bounds)
    values = range(start, end + (1 if step > 0 else -1), step)
    _require_few(len(values), "GENERATE_ARRAY")
    return list(values)


def _dates(array: exp.GenerateDateArray) -> list[object]:
    only(array, "start", "end", "step", what="GENERATE_DATE_ARRAY")
    first, last = (_date(array.args.get(slot)) for slot in ("start", "end"))
    step = array.args.get("step")
    count, unit = 1, "DAY"
    if isinstance(step, exp.Interval):
        digits, unit = step.this.name, step.args["unit"].name.upper()
        count = int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 7 else 0
    if not count or unit not in {**_DAYS, **_MONTHS}:
        raise UnsupportedSql(
            "the step of GENERATE_DATE_ARRAY must be days, weeks, months, quarters or years from 1; write "
            "INTERVAL 1 MONTH"
        )
    values: list[object] = []
    for date in _stepped(first, count, unit):
        if date > last:
            break
        values.append(date)
        _require_few(len(values), "GENERATE_DATE_ARRAY")
    if not values:
        _require_few(0, "GENERATE_DATE_ARRAY")
    return values


def _date(node: exp.Expr | None) -> dt.date:
    term = None if node is None else read_constant(node, "a bound")
    if term is not None and term.type is ColumnType.TEXT:
        term = temporal(term.tree.name, ColumnType.DATE)
    value = None if term is None else python_value(term)
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise UnsupportedSql(
            "GENERATE_DATE_ARRAY must have dates; write GENERATE_DATE_ARRAY('2024-01-01', '2024-12-31')"
        )
    return value


def _stepped(first: dt.date, count: int, unit: str) -> Iterator[dt.date]:
    """Yield the dates that are whole steps after the first, up to the end of the calendar."""
    place = 0
    while True:
        try:
            if unit in _DAYS:
                yield first + dt.timedelta(days=place * count * _DAYS[unit])
            else:
                years, month = divmod(first.month - 1 + place * count * _MONTHS[unit], 12)
                year = first.year + years
                day = min(first.day, calendar.monthrange(year, month + 1)[1])
                yield dt.date(year, month + 1, day)
        except (OverflowError, ValueError, calendar.IllegalMonthError):
            return
        place += 1


def _require_few(count: int, name: str) -> None:
    if not 1 <= count <= _MAX_VALUES:
        raise UnsupportedSql(f"{name} must list 1 to {_MAX_VALUES} values; choose other bounds")
