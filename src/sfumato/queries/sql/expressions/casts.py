"""Casts, and parts of dates and timestamps."""

from __future__ import annotations

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.constants import temporal
from sfumato.queries.plan.date_arithmetic import weekday
from sfumato.queries.plan.query import ColumnType
from sfumato.queries.plan.typed_expressions import (
    ANY,
    NUMERIC,
    TEMPORAL,
    UNSIGNED,
    Compile,
    TypedTree,
    cast,
    listing,
    only,
    require,
    target_type,
    unsigned,
)
from sfumato.queries.sql.expressions import weeks

__all__ = [
    "read_cast",
    "read_extract",
    "read_truncate",
]

_DATE_PARTS = frozenset({"YEAR", "QUARTER", "MONTH", "DAY"})
_TIME_PARTS = frozenset({"HOUR", "MINUTE", "SECOND"})


_CASTS = {
    ColumnType.BOOLEAN: frozenset({ColumnType.BOOLEAN, ColumnType.INTEGER, ColumnType.TEXT}),
    ColumnType.INTEGER: NUMERIC | {ColumnType.BOOLEAN, ColumnType.TEXT, ColumnType.DECIMAL},
    ColumnType.FLOAT: NUMERIC | {ColumnType.TEXT, ColumnType.DECIMAL},
    ColumnType.TEXT: ANY,
    ColumnType.DATE: TEMPORAL | {ColumnType.TEXT},
    ColumnType.TIMESTAMP: TEMPORAL | {ColumnType.TEXT},
    ColumnType.DECIMAL: frozenset({ColumnType.DECIMAL, ColumnType.INTEGER, ColumnType.TEXT}),
}
"""The types that each type can be cast from."""

_TO_UNSIGNED = _CASTS[ColumnType.DECIMAL] | {ColumnType.BOOLEAN}
_DECIMALS = frozenset({exp.DataType.Type.DECIMAL, exp.DataType.Type.BIGDECIMAL})


def read_cast(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read CAST, SAFE_CAST and typed literals: a value that cannot be cast becomes NULL."""
    only(node, "this", "to", "safe", what="CAST")
    to = node.args["to"]
    if to.this == UNSIGNED.this and str(to.args["kind"]).upper() == UNSIGNED.args["kind"]:
        return _unsigned(compile_(node.this), sized=bool(to.expressions))
    target = ColumnType.DECIMAL if to.this in _DECIMALS else target_type(to)
    if target is None:
        types = ", ".join(("UINT64", *(type_.value for type_ in _CASTS)))
        raise UnsupportedSql(f"CAST must go to one of {types}, without a size; use one of them")
    if target is ColumnType.DECIMAL and to.expressions:
        raise UnsupportedSql(
            "CAST to NUMERIC must have neither precision nor scale, for no digits are cut off; write "
            "CAST(x AS NUMERIC)"
        )
    argument = compile_(node.this)
    if argument.type is target:
        return argument
    if argument.type is ColumnType.TEXT and target in TEMPORAL and isinstance(argument.tree, exp.Literal):
        return temporal(argument.tree.name, target)
    if argument.type is not None and argument.type not in _CASTS[target]:
        if target is ColumnType.DECIMAL and argument.type is ColumnType.FLOAT:
            raise _inexact(argument, "NUMERIC", ", with x * 100 for cents")
        raise SchemaError(
            f"CAST cannot turn {argument.type.value} into {target.value}; write it with CASE or EXTRACT"
        )
    return cast(argument, target)


def _unsigned(argument: TypedTree, *, sized: bool) -> TypedTree:
    """Read CAST(x AS UINT64): a BOOL is 0 or 1."""
    if sized:
        raise UnsupportedSql("CAST to UINT64 must have no size; write CAST(x AS UINT64)")
    if argument.type is ColumnType.FLOAT:
        raise _inexact(argument, "UINT64")
    if argument.type is not None and argument.type not in _TO_UNSIGNED:
        raise SchemaError(
            f"CAST cannot turn {argument.type.value} into UINT64; write it with CASE or EXTRACT"
        )
    return unsigned(cast(argument, ColumnType.INTEGER) if argument.type is ColumnType.BOOLEAN else argument)


def _inexact(argument: TypedTree, target: str, more: str = "") -> SchemaError:
    """Return the refusal of a float, whose digits no two engines write alike."""
    whole = cast(argument, ColumnType.INTEGER).tree.sql(dialect="bigquery").removeprefix("SAFE_")
    return SchemaError(
        f"CAST to {target} must be of exact values, got FLOAT64; write CAST({whole} AS {target}){more}"
    )


def read_extract(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read EXTRACT(part FROM moment)."""
    only(node, "this", "expression", what="EXTRACT")
    moment = require(compile_(node.expression), TEMPORAL, "the argument of EXTRACT")
    week = weeks.extracted(moment, node.this)
    if week is not None:
        return week
    if node.name.upper() == "DATE":
        raise UnsupportedSql("EXTRACT must be of a number, got DATE; write DATE(t)")
    part = _part(node.this, moment, "EXTRACT", _DATE_PARTS | {"DAYOFWEEK", "DAYOFYEAR", "ISOYEAR"})
    if part == "DAYOFWEEK":
        return weekday(moment)
    return TypedTree(exp.Extract(this=exp.var(part), expression=moment.tree), ColumnType.INTEGER)


def read_truncate(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read DATE_TRUNC and TIMESTAMP_TRUNC; which of the two it becomes follows from the argument's type."""
    only(node, "this", "unit", "input_type_preserved", what="DATE_TRUNC")
    moment = require(compile_(node.this), TEMPORAL, "the argument of DATE_TRUNC")
    first = weeks.first_weekday(node.args.get("unit"))
    if first is not None:
        return weeks.week_start(moment, first)
    part = _part(node.args.get("unit"), moment, "DATE_TRUNC", _DATE_PARTS | {"ISOYEAR"})
    if part == "ISOYEAR":
        return weeks.iso_year_start(moment)
    if moment.type is ColumnType.DATE:
        unit = exp.Literal.string(part)
        return TypedTree(exp.DateTrunc(this=moment.tree, unit=unit), moment.type)  # type: ignore[no-untyped-call]
    return TypedTree(exp.TimestampTrunc(this=moment.tree, unit=exp.var(part)), moment.type)


def _part(node: exp.Expr | None, moment: TypedTree, what: str, date_parts: frozenset[str]) -> str:
    allowed = date_parts | _TIME_PARTS if moment.type is ColumnType.TIMESTAMP else date_parts
    written = allowed | {"WEEK", "ISOWEEK"}
    name = node.name.upper() if isinstance(node, (exp.Var, exp.Literal)) else ""
    if name not in allowed:
        type_ = "" if moment.type is None else f" of a {moment.type.value}"
        raise UnsupportedSql(
            f"the part of {what}{type_} must be one of {listing(written)}; write one of them"
        )
    return name
