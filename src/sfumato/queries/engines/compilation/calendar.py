"""Moments moved by a fixed span, and the spans between them, within the years 1 to 9999.

Whether the span leads out of the calendar is known before anything is added, so nothing can overflow.
"""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from sfumato.queries.engines.dialects.base import Dialect
from sfumato.queries.plan.date_arithmetic import MICROSECONDS
from sfumato.queries.plan.schema import ColumnType

__all__ = ["between", "moved", "moved_by"]

_MOST_DAYS = 4_000_000
_FIRST, _LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)


def moved(node: exp.Expr, sql: str, dialect: Dialect) -> str:
    """Return a moment some days, months or microseconds later or earlier; NULL outside of the calendar.

    A month later is the same day of the next month, or the last one there is.
    """
    sign = 1 if isinstance(node, (exp.DateAdd, exp.TimestampAdd)) else -1
    count, unit = sign * int(node.expression.name), node.args["unit"].name
    type_ = ColumnType.TIMESTAMP if unit == "MICROSECOND" else ColumnType.DATE
    ends = _movable(count, unit)
    if ends is None:
        return dialect.converted("NULL", type_)
    first, last = (f"CAST('{_spelled(end, type_)}' AS {dialect.types[type_]})" for end in ends)
    later = {
        "DAY": dialect.days_later,
        "MONTH": dialect.months_later,
        "MICROSECOND": dialect.microseconds_later,
    }
    return f"(CASE WHEN {sql} BETWEEN {first} AND {last} THEN {later[unit](sql, count)} END)"


def moved_by(date: str, count: str, dialect: Dialect) -> str:
    """Return a date as many days later as an integer says; NULL outside of the calendar.

    The integer is clamped before it is added, too: an engine may compute what a condition rules out.
    """
    ends = (dialect.moment(end.date().isoformat(), ColumnType.DATE) for end in (_FIRST, _LAST))
    first, last = (dialect.days_between(end, date) for end in ends)
    days = f"CAST({dialect.clamped(count, (-_MOST_DAYS, _MOST_DAYS))} AS INTEGER)"
    return f"(CASE WHEN {count} BETWEEN {first} AND {last} THEN {dialect.days_later(date, days)} END)"


def _movable(count: int, unit: str) -> tuple[dt.datetime, dt.datetime] | None:
    """Return the first and the last moment that stay in the calendar."""
    if unit == "MONTH":
        years, months = divmod(abs(count), 12)
        if years >= 9999:
            return None
        if count < 0:
            return dt.datetime(1 + years, 1 + months, 1), _LAST
        following = dt.datetime(9999 - years, 13 - months, 1) if months else None
        return _FIRST, dt.datetime(9999 - years, 12, 31) if following is None else following - dt.timedelta(
            days=1
        )
    try:
        span = dt.timedelta(**{"days" if unit == "DAY" else "microseconds": abs(count)})
        return (_FIRST + span, _LAST) if count < 0 else (_FIRST, _LAST - span)
    except OverflowError:
        return None


def _spelled(moment: dt.datetime, type_: ColumnType) -> str:
    if type_ is ColumnType.DATE:
        return moment.date().isoformat()
    return moment.isoformat(sep=" ", timespec="microseconds")


def between(node: exp.Expr, later: str, earlier: str, dialect: Dialect) -> str:
    """Return the days between dates, or the whole units of time between timestamps, cut towards zero."""
    if isinstance(node, exp.DateDiff):
        return dialect.days_between(later, earlier)
    micros, unit = dialect.microseconds_between(later, earlier), MICROSECONDS[node.args["unit"].name]
    if unit == 1:
        return micros
    zero, by = dialect.integer(0), dialect.integer(unit)
    back, forth = dialect.quotient(f"({zero} - {micros})", by), dialect.quotient(micros, by)
    whole = f"CASE WHEN {micros} < {zero} THEN {zero} - {back} ELSE {forth} END"
    return dialect.converted(whole, ColumnType.INTEGER)
