"""Dates from numbers, and dates and timestamps as text: each is made of parts that every engine has alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan.constants import number, text
from sfumato.queries.plan.date_arithmetic import weekday
from sfumato.queries.plan.schema import ColumnType
from sfumato.queries.plan.typed_expressions import (
    DATA_TYPES,
    TEMPORAL,
    Compile,
    TypedTree,
    cast,
    only,
    operand,
    require,
)
from sfumato.queries.sql.expressions.casts import read_cast
from sfumato.queries.sql.expressions.rewrites import join_text
from sfumato.queries.sql.expressions.weeks import extracted

__all__ = ["read_date", "read_date_of_parts", "read_formatted"]

_INTEGER: Final = frozenset({ColumnType.INTEGER})
_LIMITS: Final = (("year", 9999), ("month", 12), ("day", 31))
_MAX_ELEMENTS: Final = 40
_SHORT: Final = MappingProxyType({"%F": "%Y-%m-%d", "%D": "%m/%d/%y", "%T": "%H:%M:%S", "%R": "%H:%M"})
"""Elements that stand for several."""


def read_date(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read DATE(x): a cast; a timestamp's day is that in UTC."""
    only(node, "this", what="DATE")
    return read_cast(exp.Cast(this=node.this, to=DATA_TYPES[ColumnType.DATE].copy()), compile_)


def read_date_of_parts(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read DATE(year, month, day): NULL where the calendar has no such day."""
    only(node, "year", "month", "day", what="DATE")
    parts = [
        require(compile_(node.args[slot]), _INTEGER, f"the {slot} of DATE")
        for slot, _ in _LIMITS
        if node.args.get(slot) is not None
    ]
    if len(parts) != len(_LIMITS):
        raise UnsupportedSql("DATE must take a date or a year, a month and a day; write DATE(2024, 1, 31)")
    within = [
        exp.Paren(
            this=exp.Between(this=operand(part).copy(), low=number("1").tree, high=number(str(most)).tree)
        )
        for part, (_, most) in zip(parts, _LIMITS, strict=True)
    ]
    spelled = [_padded(part, 2 if most < 100 else 4) for part, (_, most) in zip(parts, _LIMITS, strict=True)]
    joined = join_text([spelled[0], text("-"), spelled[1], text("-"), spelled[2]])
    last_two = exp.And(this=within[1], expression=within[2])
    condition = exp.And(this=within[0], expression=last_two)
    day = cast(joined, ColumnType.DATE).tree
    return TypedTree(exp.Case(ifs=[exp.If(this=condition, true=day)], default=exp.Null()), ColumnType.DATE)


def read_formatted(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read FORMAT_DATE, FORMAT_TIMESTAMP and FORMAT_DATETIME with a literal format, in English and in UTC."""
    only(node, "this", "format", "zone", what="FORMAT_DATE")
    inner, zone, format_ = node.this, node.args.get("zone"), node.args.get("format")
    wrappers = (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TsOrDsToDatetime)
    inner = inner.this if isinstance(inner, wrappers) else inner
    if zone is not None and (
        not isinstance(zone, exp.Literal) or zone.name.upper() not in ("UTC", "+00", "+00:00")
    ):
        raise UnsupportedSql("FORMAT_TIMESTAMP is in UTC; leave the time zone out")
    if inner is None:
        raise UnsupportedSql("FORMAT_DATE must take a format and a date; write FORMAT_DATE('%Y-%m', d)")
    moment = require(compile_(inner), TEMPORAL, "the argument of FORMAT_DATE")
    if not isinstance(format_, exp.Literal) or not format_.is_string:
        raise UnsupportedSql(
            "the format of FORMAT_DATE must be a string literal; write FORMAT_DATE('%Y-%m', d)"
        )
    parts = _elements(format_.name)
    if not any(part.startswith("%") and part != "%%" for part in parts):
        raise UnsupportedSql("the format of FORMAT_DATE must name a part of the date; write '%Y-%m'")
    return join_text([_element(part, moment) for part in parts])


def _elements(format_: str) -> list[str]:
    """Split a format into its elements, ``%Y`` and the like, and the text between them."""
    parts: list[str] = []
    position = 0
    while position < len(format_):
        end = position + 2 if format_[position] == "%" else format_.find("%", position)
        part = format_[position:] if end < 0 else format_[position:end]
        parts += _elements(_SHORT[part]) if part in _SHORT else [part]
        position += len(part)
    if len(parts) > _MAX_ELEMENTS:
        raise UnsupportedSql(f"the format of FORMAT_DATE must have at most {_MAX_ELEMENTS} parts; shorten it")
    return parts


def _element(part: str, moment: TypedTree) -> TypedTree:
    if not part.startswith("%"):
        return text(part)
    made = _ELEMENTS.get(part)
    needs_time = part in ("%H", "%M", "%S")
    if made is None or (needs_time and moment.type is not ColumnType.TIMESTAMP):
        known = " ".join(name for name in (*_ELEMENTS, *_SHORT))
        why = "a DATE has no time of day" if made is not None else f"the elements are {known}"
        raise UnsupportedSql(f"FORMAT_DATE has no element {part!r} here; {why}")
    return made(moment)


def _copy(moment: TypedTree) -> TypedTree:
    return TypedTree(moment.tree.copy(), moment.type)


def _extract(name: str, moment: TypedTree) -> TypedTree:
    week = extracted(_copy(moment), exp.var(name))
    if week is not None:
        return week
    if name == "DAYOFWEEK":
        return weekday(_copy(moment))
    return TypedTree(exp.Extract(this=exp.var(name), expression=moment.tree.copy()), ColumnType.INTEGER)


def _padded(value: TypedTree, width: int) -> TypedTree:
    """Return the last digits of a number that is not negative, with zeros before them."""
    zeros = join_text([text("0" * (width - 1)), cast(_copy(value), ColumnType.TEXT)])
    return TypedTree(exp.Right(this=zeros.tree, expression=exp.Literal.number(str(width))), ColumnType.TEXT)


def _digits(name: str, width: int) -> Callable[[TypedTree], TypedTree]:
    return lambda moment: _padded(_extract(name, moment), width)


def _plain(name: str) -> Callable[[TypedTree], TypedTree]:
    return lambda moment: cast(_extract(name, moment), ColumnType.TEXT)


def _named(name: str, words: tuple[str, ...]) -> Callable[[TypedTree], TypedTree]:
    def made(moment: TypedTree) -> TypedTree:
        branches = [
            exp.If(this=number(str(place)).tree, true=text(word).tree) for place, word in enumerate(words, 1)
        ]
        case = exp.Case(this=_extract(name, moment).tree, ifs=branches, default=exp.Null())
        return TypedTree(case, ColumnType.TEXT)

    return made


_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

_ELEMENTS: Final[Mapping[str, Callable[[TypedTree], TypedTree]]] = MappingProxyType(
    {
        "%Y": _digits("YEAR", 4),
        "%y": _digits("YEAR", 2),
        "%m": _digits("MONTH", 2),
        "%d": _digits("DAY", 2),
        "%j": _digits("DAYOFYEAR", 3),
        "%Q": _plain("QUARTER"),
        "%G": _digits("ISOYEAR", 4),
        "%V": _digits("ISOWEEK", 2),
        "%U": _digits("WEEK", 2),
        "%A": _named("DAYOFWEEK", _WEEKDAYS),
        "%a": _named("DAYOFWEEK", tuple(word[:3] for word in _WEEKDAYS)),
        "%B": _named("MONTH", _MONTHS),
        "%b": _named("MONTH", tuple(word[:3] for word in _MONTHS)),
        "%H": _digits("HOUR", 2),
        "%M": _digits("MINUTE", 2),
        "%S": _digits("SECOND", 2),
        "%%": lambda _: text("%"),
    }
)
"""What each element of a format becomes."""
