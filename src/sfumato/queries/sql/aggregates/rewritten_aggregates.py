"""Aggregates that are written with others: COUNTIF, FILTER, and those of dates.

They become other calls before they are read, so each is bounded and priced as what it becomes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final

from sqlglot import exp

from sfumato.errors import OptionError, UnsupportedSql
from sfumato.queries.plan.constants import python_value, temporal
from sfumato.queries.plan.schema import ColumnType
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.aggregates.arguments import PER_GROUP, PER_ROW
from sfumato.queries.sql.expressions.scalar import Scope, function_name, read_constant, read_expression

__all__ = ["call_of_days", "plain_call", "unfiltered"]

_OF_DATES: Final = frozenset({"MIN", "MAX", "MEDIAN", "PERCENTILE_CONT"})
_EPOCH: Final = dt.date(1970, 1, 1)


def unfiltered(node: exp.Expr) -> exp.Expr:
    """Return the call that a FILTER stands behind; any other node as it is."""
    return node.this if isinstance(node, exp.Filter) else node


def plain_call(node: exp.Expr, names_unit: Callable[[exp.Expr], bool]) -> exp.Expr:
    """Return a call with the condition of FILTER, or of COUNTIF, inside of what it aggregates.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        A call of an aggregate.
    names_unit : callable
        Whether a node is the privacy unit.

    Returns
    -------
    sqlglot.exp.Expr
        ``SUM(x) FILTER (WHERE c)`` is ``SUM(IF(c, x, NULL))``, ``COUNTIF(c)`` is ``COUNT(IF(c, 1, NULL))``.
        The units that ``COUNT(DISTINCT unit) FILTER (WHERE c)`` counts are those with a row that meets c.
    """
    condition = None
    if isinstance(node, exp.Filter):
        only(node, "this", "expression", what="FILTER")
        condition, node = node.expression.this, node.this
    if not isinstance(node, exp.Anonymous):
        return node
    arguments = list(node.expressions)
    places = [place for place, each in enumerate(arguments) if not isinstance(each, exp.Kwarg)]
    if node.name.upper() == "COUNTIF":
        if len(places) != 1 or isinstance(arguments[places[0]], (exp.Star, exp.Distinct)):
            raise UnsupportedSql("COUNTIF must have one condition besides its bounds; write COUNTIF(x > 0)")
        arguments[places[0]] = _where(arguments[places[0]], exp.Literal.number("1"))
        node = exp.Anonymous(this="COUNT", expressions=arguments)
    if condition is None or not places:
        return node
    first = arguments[places[0]]
    if isinstance(first, exp.Distinct) and len(first.expressions) == 1:
        value = first.expressions[0]
        counts_units = names_unit(value.unnest())
        counted = _where(condition, exp.Literal.number("1") if counts_units else value)
        first = counted if counts_units else exp.Distinct(expressions=[counted])
    elif not isinstance(first, exp.Distinct):
        first = _where(condition, exp.Literal.number("1") if isinstance(first, exp.Star) else first)
    arguments[places[0]] = first
    return exp.Anonymous(this=node.this, expressions=arguments)


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.If(this=condition.copy(), true=value.copy(), false=exp.Null())


def call_of_days(node: exp.Expr, scope: Scope) -> exp.Expr | None:
    """Return an aggregate of dates as a date so many days after 1970 as the aggregate of days says.

    Bounds are dates; None for an aggregate of anything else.
    """
    call = unfiltered(node)
    name = function_name(call)
    if name not in _OF_DATES or not isinstance(call, exp.Anonymous) or not call.expressions:
        return None
    value, *others = call.expressions
    if isinstance(value, (exp.Kwarg, exp.Star, exp.Distinct)):
        return None
    type_ = read_expression(value, scope, f"the argument of {name}").type
    if type_ is ColumnType.TIMESTAMP:
        raise UnsupportedSql(f"{name} of a TIMESTAMP is not supported; write {name}(DATE(t), ...)")
    if type_ is not ColumnType.DATE:
        return None
    made = exp.Anonymous(this=name, expressions=[_days(value), *(_argument(name, each) for each in others)])
    whole = exp.Filter(this=made, expression=node.expression.copy()) if isinstance(node, exp.Filter) else made
    count = exp.Cast(this=whole, to=exp.DataType.build("INT64", dialect="bigquery"))
    return exp.DateAdd(this=_epoch(), expression=exp.Paren(this=count), unit=exp.var("DAY"))


def _epoch() -> exp.Expr:
    return exp.Cast(
        this=exp.Literal.string(_EPOCH.isoformat()), to=exp.DataType.build("DATE", dialect="bigquery")
    )


def _days(value: exp.Expr) -> exp.Expr:
    return exp.DateDiff(this=value.copy(), expression=_epoch(), unit=exp.var("DAY"), date_part_boundary=True)


def _argument(name: str, node: exp.Expr) -> exp.Expr:
    """Return a named argument for the aggregate of days: bounds become numbers of days."""
    if not isinstance(node, exp.Kwarg):
        return node.copy()
    key = node.this.name.lower()
    if key == "report_format":
        raise OptionError(f"{name} of a DATE has no report_format; its interval stands beside it")
    if key not in (PER_ROW, PER_GROUP):
        return node.copy()
    remedy = "write (DATE '2020-01-01', DATE '2025-12-31')"
    ends = node.expression.expressions if isinstance(node.expression, exp.Tuple) else []
    if len(ends) != 2:
        raise OptionError(f"{key} must be a pair of literals (lower, upper); {remedy}")
    dates = []
    for end in ends:
        term = read_constant(end, "a bound")
        if term.type is ColumnType.TEXT:
            term = temporal(term.tree.name, ColumnType.DATE)
        value = python_value(term)
        if term.type is not ColumnType.DATE or not isinstance(value, dt.date):
            raise OptionError(f"{key} of {name} must be dates, as its values are; {remedy}")
        dates.append((value - _EPOCH).days)
    numbers = [exp.Literal.number(str(abs(days))) for days in dates]
    signed = [exp.Neg(this=each) if days < 0 else each for each, days in zip(numbers, dates, strict=True)]
    return exp.Kwarg(this=node.this.copy(), expression=exp.Tuple(expressions=signed))
