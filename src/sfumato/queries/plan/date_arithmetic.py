"""Dates and timestamps moved by literal spans of time, and the spans between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan.constants import common, number, temporal
from sfumato.queries.plan.schema import ColumnType
from sfumato.queries.plan.typed_expressions import (
    TEMPORAL,
    Compile,
    TypedTree,
    cast,
    listing,
    only,
    operand,
    require,
)

__all__ = [
    "DAYS",
    "MICROSECONDS",
    "day_count",
    "days_later",
    "last_day",
    "read_date_diff",
    "read_moved",
    "read_span",
    "read_timestamp_diff",
    "weekday",
]

DAYS: Final = {"DAY": 1, "WEEK": 7}
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
MICROSECONDS: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}
_MAX_YEARS: Final = 10_000
_SUNDAY: Final = "0001-01-07"


def read_moved(sign: int, type_: ColumnType) -> Callable[[exp.Expr, Compile], TypedTree]:
    """Make the reader of DATE_ADD or TIMESTAMP_ADD, or with sign -1 of DATE_SUB or TIMESTAMP_SUB."""
    name = f"{type_.value}_{'ADD' if sign > 0 else 'SUB'}"

    def read(node: exp.Expr, compile_: Compile) -> TypedTree:
        only(node, "this", "expression", "unit", what=name)
        moment = require(compile_(node.this), {type_}, f"the argument of {name}")
        return _moved(moment, node.expression, node.args.get("unit"), _Span(sign, name, compile_))

    return read


def read_span(moment: TypedTree, span: exp.Interval, sign: int, compile_: Compile) -> TypedTree:
    """Read a moment plus or minus an INTERVAL."""
    require(moment, TEMPORAL, "what an INTERVAL is added to")
    return _moved(moment, span.this, span.args.get("unit"), _Span(sign, "INTERVAL", compile_))


@dataclass(frozen=True, slots=True)
class _Span:
    """What a span is called, whether it is added or subtracted, and how its amount is read."""

    sign: int
    name: str
    compile_: Compile


def _moved(moment: TypedTree, amount: exp.Expr | None, unit: exp.Expr | None, span: _Span) -> TypedTree:
    """Return the moment in one spelling: days or months for a date, microseconds for a timestamp."""
    name, sign = span.name, span.sign
    steps = (DAYS, _MONTHS) if moment.type is ColumnType.DATE else (MICROSECONDS,)
    written = unit.name.upper() if isinstance(unit, exp.Var) else ""
    found = next((known for known in steps if written in known), None)
    if found is None:
        units = listing([unit for known in steps for unit in known])
        raise UnsupportedSql(f"the unit of {name} must be one of {units}; write one of them")
    if found is DAYS and amount is not None and not isinstance(amount, exp.Literal):
        return _moved_by(moment, amount, found[written], span)
    count = sign * _whole(amount, name) * found[written]
    base = {id(DAYS): "DAY", id(_MONTHS): "MONTH"}.get(id(found), "MICROSECOND")
    per_year = {"DAY": 366, "MONTH": 12, "MICROSECOND": 366 * MICROSECONDS["DAY"]}[base]
    if abs(count) > _MAX_YEARS * per_year:
        raise UnsupportedSql(f"the span of {name} must be at most {_MAX_YEARS} years; write fewer")
    adds = count >= 0
    date = moment.type is ColumnType.DATE
    make = (
        (exp.DateAdd if adds else exp.DateSub) if date else (exp.TimestampAdd if adds else exp.TimestampSub)
    )
    made = make(this=moment.tree, expression=exp.Literal.string(str(abs(count))), unit=exp.var(base))
    return TypedTree(made, moment.type)


def _moved_by(moment: TypedTree, amount: exp.Expr, days: int, span: _Span) -> TypedTree:
    """Return a date so many days later or earlier as an expression says."""
    what = f"the span of {span.name}"
    count = require(span.compile_(amount), {ColumnType.INTEGER}, what)
    if days != 1:
        factor = exp.Literal.number(str(days))
        count = TypedTree(exp.Mul(this=operand(count), expression=factor), ColumnType.INTEGER)
    return days_later(moment, count if span.sign > 0 else _minus(count))


def days_later(date: TypedTree, count: TypedTree) -> TypedTree:
    """Return a date some days later, as many as a column says; NULL outside of the calendar.

    An amount that is a literal by itself has another spelling, with its sign in front of the interval.
    """
    made = exp.DateAdd(this=date.tree, expression=exp.Paren(this=count.tree), unit=exp.var("DAY"))
    return TypedTree(made, ColumnType.DATE)


def _minus(count: TypedTree) -> TypedTree:
    literal = isinstance(count.tree, exp.Neg) and isinstance(count.tree.this, exp.Literal)
    return TypedTree(count.tree.this if literal else exp.Neg(this=operand(count)), ColumnType.INTEGER)


def _whole(amount: exp.Expr | None, name: str) -> int:
    digits = amount.name if isinstance(amount, exp.Literal) else ""
    if not digits.removeprefix("-").isdecimal() or not digits.isascii() or len(digits) > 19:
        raise UnsupportedSql(f"the span of {name} must be a whole number as a literal; write INTERVAL 7 DAY")
    return int(digits)


def read_date_diff(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read DATE_DIFF: the boundaries of days, months, quarters or years from the second date to the first."""
    only(node, "this", "expression", "unit", "date_part_boundary", what="DATE_DIFF")
    sides = [
        require(side, {ColumnType.DATE}, "an argument of DATE_DIFF")
        for side in common([compile_(node.this), compile_(node.expression)], "DATE_DIFF")[0]
    ]
    unit = node.args.get("unit")
    part = unit.name.upper() if isinstance(unit, exp.Var) else ""
    if part == "DAY":
        return day_count(*sides)
    if part not in _MONTHS:
        raise UnsupportedSql(
            "the part of DATE_DIFF must be DAY, WEEK, ISOWEEK, MONTH, QUARTER, YEAR or ISOYEAR; write one of "
            "them"
        )
    years = _difference(*(_part("YEAR", side) for side in sides))
    if part == "YEAR":
        return years
    rest = _difference(*(_part(part, side) for side in sides))
    whole = exp.Mul(this=operand(years), expression=exp.Literal.number(str(12 // _MONTHS[part])))
    return TypedTree(exp.Add(this=exp.Paren(this=whole), expression=operand(rest)), ColumnType.INTEGER)


def day_count(later: TypedTree, earlier: TypedTree) -> TypedTree:
    """Return the days from one date to another."""
    made = exp.DateDiff(
        this=later.tree, expression=earlier.tree, unit=exp.var("DAY"), date_part_boundary=True
    )
    return TypedTree(made, ColumnType.INTEGER)


def _part(name: str, moment: TypedTree) -> TypedTree:
    return TypedTree(exp.Extract(this=exp.var(name), expression=moment.tree.copy()), ColumnType.INTEGER)


def _difference(left: TypedTree, right: TypedTree) -> TypedTree:
    return TypedTree(exp.Sub(this=operand(left), expression=operand(right)), ColumnType.INTEGER)


def read_timestamp_diff(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read TIMESTAMP_DIFF: whole units of time from the second timestamp to the first, cut towards zero."""
    only(node, "this", "expression", "unit", what="TIMESTAMP_DIFF")
    sides = [
        require(side, {ColumnType.TIMESTAMP}, "an argument of TIMESTAMP_DIFF")
        for side in common([compile_(node.this), compile_(node.expression)], "TIMESTAMP_DIFF")[0]
    ]
    unit = node.args.get("unit")
    part = unit.name.upper() if isinstance(unit, exp.Var) else ""
    if part not in MICROSECONDS:
        raise UnsupportedSql(
            f"the part of TIMESTAMP_DIFF must be one of {listing(MICROSECONDS)}; write one of them"
        )
    later, earlier = (side.tree for side in sides)
    made = exp.TimestampDiff(this=later, expression=earlier, unit=exp.var(part))
    return TypedTree(made, ColumnType.INTEGER)


def last_day(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read LAST_DAY: the day before the next month begins."""
    only(node, "this", "unit", what="LAST_DAY")
    unit = node.args.get("unit")
    if unit is not None and unit.name.upper() != "MONTH":
        raise UnsupportedSql("LAST_DAY is that of the MONTH; write LAST_DAY(d)")
    date = require(compile_(node.this), {ColumnType.DATE}, "the argument of LAST_DAY")
    first = exp.DateTrunc(this=date.tree, unit=exp.Literal.string("MONTH"))  # type: ignore[no-untyped-call]
    one = exp.Literal.string("1")
    following = exp.DateAdd(this=first, expression=one, unit=exp.var("MONTH"))
    return TypedTree(exp.DateSub(this=following, expression=one.copy(), unit=exp.var("DAY")), ColumnType.DATE)


def weekday(moment: TypedTree) -> TypedTree:
    """Return the day of the week: 1 for Sunday to 7 for Saturday."""
    date = moment if moment.type is ColumnType.DATE else cast(moment, ColumnType.DATE)
    since = day_count(date, temporal(_SUNDAY, ColumnType.DATE))
    seven, one = number("7"), number("1")
    positive = exp.Add(this=since.tree, expression=seven.tree)
    rest = exp.Mod(this=exp.Paren(this=positive), expression=seven.tree.copy())
    return TypedTree(exp.Add(this=exp.Paren(this=rest), expression=one.tree), ColumnType.INTEGER)
