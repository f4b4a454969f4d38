"""Weeks: their first day, their number in a year, and how many begin between two dates.

ISO weeks are the engine's own, the rest is arithmetic on days since Monday, 0001-01-01, which every
engine has alike: an engine's other weeks depend on its settings. ``WEEK`` begins on Sunday, ``WEEK(MONDAY)``
and its like on the day that they name, ``ISOWEEK`` on Monday; an ISO week belongs to the year that its
Thursday is in.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan import date_arithmetic
from sfumato.queries.plan.constants import common, number, temporal
from sfumato.queries.plan.date_arithmetic import day_count, days_later
from sfumato.queries.plan.schema import ColumnType
from sfumato.queries.plan.typed_expressions import Compile, TypedTree, cast, only, operand, require

__all__ = ["extracted", "first_weekday", "iso_year_start", "read_date_diff", "read_whole_weeks", "week_start"]

_DAYS: Final = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_MONDAY: Final = "0001-01-01"
_INTEGER: Final = ColumnType.INTEGER


def first_weekday(part: exp.Expr | None) -> int | None:
    """Return the day that a part of time's weeks begin on, 0 for Monday; None if it is no week.

    Examples
    --------
    >>> first_weekday(exp.var("WEEK")), first_weekday(exp.var("ISOWEEK")), first_weekday(exp.var("DAY"))
    (6, 0, None)
    """
    if isinstance(part, exp.WeekStart):
        name = part.this.name.upper()
        if name not in _DAYS:
            raise UnsupportedSql(
                f"the first day of a WEEK must be one of {', '.join(_DAYS)}; write WEEK(MONDAY)"
            )
        return _DAYS.index(name)
    name = part.name.upper() if isinstance(part, (exp.Var, exp.Literal)) else ""
    return {"WEEK": 6, "ISOWEEK": 0, "WEEKISO": 0}.get(name)


def week_start(moment: TypedTree, first: int) -> TypedTree:
    """Return the first day of a moment's week, in the type that the moment has."""
    date = _date(moment)
    if first == 0:
        monday = exp.DateTrunc(this=date.tree, unit=exp.Literal.string("ISOWEEK"))  # type: ignore[no-untyped-call]
        day = TypedTree(monday, ColumnType.DATE)
    else:
        back = exp.Neg(this=exp.Paren(this=_position(date, first).tree))
        day = days_later(date, TypedTree(back, _INTEGER))
    return day if moment.type is ColumnType.DATE else cast(day, ColumnType.TIMESTAMP)


def iso_year_start(moment: TypedTree) -> TypedTree:
    """Return the first day of a moment's ISO year, a Monday, in the type that the moment has."""
    date = _date(moment)
    weeks = exp.Sub(this=_part("ISOWEEK", date).tree, expression=number("1").tree)
    back = exp.Neg(this=exp.Paren(this=exp.Mul(this=exp.Paren(this=weeks), expression=number("7").tree)))
    day = days_later(week_start(date, 0), TypedTree(back, _INTEGER))
    return day if moment.type is ColumnType.DATE else cast(day, ColumnType.TIMESTAMP)


def extracted(moment: TypedTree, part: exp.Expr | None) -> TypedTree | None:
    """Return the week or ISO year of a moment; None for any other part."""
    name = part.name.upper() if isinstance(part, exp.Var) else ""
    if name in ("ISOWEEK", "ISOYEAR"):
        return _part(name, moment)
    first = first_weekday(part)
    if first is None:
        return None
    # the days from here to the next first day of a week, the day itself left out: 6 - n % 7 = (6 n + 6) % 7
    date = _date(moment)
    days = exp.Mul(this=exp.Paren(this=_since(date, first).tree), expression=number("6").tree)
    ahead = exp.Add(this=exp.Paren(this=days), expression=number("6").tree)
    left = exp.Mod(this=exp.Paren(this=ahead), expression=number("7").tree)
    return _weeks(exp.Add(this=_part("DAYOFYEAR", date).tree, expression=left))


def read_whole_weeks(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read DIV as weeks are written with it: of days that cannot be negative."""
    only(node, "this", "expression", what="DIV")
    sides = [compile_(node.this), compile_(node.expression)]
    days, seven = sides
    if days.type is not _INTEGER or not _not_negative(days.tree) or seven.tree.name != "7":
        raise UnsupportedSql("DIV is not supported; write CAST(FLOOR(x / y) AS INT64)")
    return _weeks(days.tree)


def _not_negative(tree: exp.Expr) -> bool:
    """Return whether days that this module writes are not negative, whatever the date."""
    tree = tree.unnest()
    if isinstance(tree, (exp.Add, exp.Mul)):
        return _not_negative(tree.this) and _not_negative(tree.expression)
    if isinstance(tree, exp.Mod):
        return _not_negative(tree.this)
    if isinstance(tree, exp.DateDiff):
        return bool(tree.expression == temporal(_MONDAY, ColumnType.DATE).tree)
    return isinstance(tree, (exp.Extract, exp.Literal))


def read_date_diff(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read DATE_DIFF: the boundaries between two dates, those of weeks and ISO years too."""
    unit = node.args.get("unit")
    first, iso_year = first_weekday(unit), isinstance(unit, exp.Var) and unit.name.upper() == "ISOYEAR"
    if first is None and not iso_year:
        return date_arithmetic.read_date_diff(node, compile_)
    only(node, "this", "expression", "unit", "date_part_boundary", what="DATE_DIFF")
    dates = [
        require(side, {ColumnType.DATE}, "an argument of DATE_DIFF")
        for side in common([compile_(node.this), compile_(node.expression)], "DATE_DIFF")[0]
    ]
    numbers = (
        _part("ISOYEAR", date) if first is None else _weeks(_since(date, first).tree) for date in dates
    )
    indices = map(operand, numbers)
    return TypedTree(exp.Sub(this=next(indices), expression=next(indices)), _INTEGER)


def _date(moment: TypedTree) -> TypedTree:
    return moment if moment.type is ColumnType.DATE else cast(moment, ColumnType.DATE)


def _since(date: TypedTree, first: int) -> TypedTree:
    """Return the days since a first day of a week before the calendar begins."""
    days = day_count(TypedTree(date.tree.copy(), date.type), temporal(_MONDAY, ColumnType.DATE))
    return TypedTree(exp.Add(this=days.tree, expression=number(str(7 - first)).tree), _INTEGER)


def _position(date: TypedTree, first: int) -> TypedTree:
    """Return the days since the first one of the week: 0 to 6."""
    return TypedTree(exp.Mod(this=operand(_since(date, first)), expression=number("7").tree), _INTEGER)


def _part(name: str, date: TypedTree) -> TypedTree:
    return TypedTree(exp.Extract(this=exp.var(name), expression=date.tree.copy()), _INTEGER)


def _weeks(days: exp.Expression) -> TypedTree:
    """Return the whole weeks in a number of days that is not negative."""
    return TypedTree(exp.IntDiv(this=days, expression=number("7").tree), _INTEGER)
