"""Calls of VAR, STDDEV, COVAR and CORR: how rows' values vary, and how two columns are correlated.

They are of rows, not of units: a unit with several rows in a group counts several times, up to the most rows
that it may have there.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from sqlglot import exp

from sfumato.errors import OptionError
from sfumato.queries.plan.query import Aggregate, AggregateKind, Expression
from sfumato.queries.plan.typed_expressions import TypedTree, operand
from sfumato.queries.sql.aggregates.arguments import PER_GROUP, PER_ROW, Bounds, Call, as_bounds

__all__ = ["VARIANCE_CALLS", "read_covariance", "read_variance"]

VARIANCE_CALLS: Final = MappingProxyType(
    {
        "VAR_POP": AggregateKind.VAR_POP,
        "VAR_SAMP": AggregateKind.VAR_SAMP,
        "VARIANCE": AggregateKind.VAR_SAMP,
        "STDDEV_POP": AggregateKind.STDDEV_POP,
        "STDDEV_SAMP": AggregateKind.STDDEV_SAMP,
        "STDDEV": AggregateKind.STDDEV_SAMP,
        "COVAR_POP": AggregateKind.COVAR_POP,
        "COVAR_SAMP": AggregateKind.COVAR_SAMP,
        "CORR": AggregateKind.CORR,
    }
)
"""What each function computes; those without a suffix are of samples, as in BigQuery."""

_THINNEST = 1e10  # a grid over the range must reach from zero to it in 64 bits


def read_variance(call: Call, name: str, expression: Expression) -> Aggregate:
    """Read a call of one column, with ``contribution_bounds_per_row => (lower, upper)`` or without.

    Raises
    ------
    OptionError
        If the bounds are for another thing, or too close together.
    """
    _require_no_group(call, "(lower, upper)")
    bounds = call.bounds(PER_ROW)
    if bounds is not None:
        _require_wide(call.name, bounds)
    return Aggregate(VARIANCE_CALLS[call.name], name, expression, row_bounds=bounds)


def read_covariance(call: Call, name: str, columns: tuple[Expression, Expression]) -> Aggregate:
    """Read a call of two columns.

    Bounds are written ``contribution_bounds_per_row => ((lower, upper), (lower, upper))``, or for neither.

    Rows without a value of either column do not count.

    Raises
    ------
    OptionError
        As for one column.
    """
    form = "((lower, upper), (lower, upper))"
    _require_no_group(call, form)
    first, second = _pair(call, form) if PER_ROW in call.named else (None, None)
    one, other = columns
    return Aggregate(
        VARIANCE_CALLS[call.name],
        name,
        _where_present(one, other),
        row_bounds=first,
        second=_where_present(other, one),
        second_bounds=second,
    )


def _pair(call: Call, form: str) -> tuple[Bounds, Bounds]:
    """Return the bounds of each of two columns."""
    node = call.named[PER_ROW]
    parts = node.expressions if isinstance(node, exp.Tuple) else []
    if len(parts) != 2 or not all(isinstance(part, exp.Tuple) for part in parts):
        raise OptionError(
            f"{PER_ROW} of {call.name} must be bounds for each column; write {PER_ROW} => {form}"
        )
    first, second = (as_bounds(PER_ROW, part) for part in parts)
    for bounds in (first, second):
        _require_wide(call.name, bounds)
    return first, second


def _require_no_group(call: Call, form: str) -> None:
    if PER_GROUP in call.named:
        raise OptionError(f"{call.name} must be bounded per row, got {PER_GROUP}; write {PER_ROW} => {form}")


def _require_wide(name: str, bounds: Bounds) -> None:
    lower, upper = bounds
    if upper > lower and (upper - lower) * _THINNEST < max(abs(lower), abs(upper)):
        raise OptionError(
            f"{PER_ROW} of {name} must not lie closer together than 1e-10 of their size, got ({lower!r}, "
            f"{upper!r}); subtract a constant from the column"
        )


def _where_present(value: Expression, other: Expression) -> Expression:
    """Return a value where the other column has one, too."""
    if value == other:
        return value
    there = exp.Not(
        this=exp.Paren(this=exp.Is(this=operand(TypedTree(other.tree, other.type)), expression=exp.Null()))
    )
    tree = exp.Case(ifs=[exp.If(this=there, true=value.tree)], default=exp.Null())
    return Expression(tree, value.type)
