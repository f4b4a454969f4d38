"""The aggregates of a private SELECT and their contribution bounds.

VAR, STDDEV, COVAR and CORR are of rows, not of units: a unit with several rows in a group counts several
times, up to the maximum number of rows that it may have there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

from sqlglot import exp

from sfumato.errors import OptionError, UnsupportedSql
from sfumato.queries.plan.query import Aggregate, AggregateKind, ColumnType, Expression
from sfumato.queries.plan.typed_expressions import NUMERIC, TypedTree, cast, coerced, operand, require
from sfumato.queries.pricing.quantile_bins import MAXIMUM_ORDER, MINIMUM_ORDER, quantile_bins
from sfumato.queries.sql.aggregates.arguments import (
    INTERVAL_EPSILON,
    PER_GROUP,
    PER_ROW,
    Bounds,
    Call,
    Signature,
    as_bounds,
    read_call,
)
from sfumato.queries.sql.aggregates.rewritten_aggregates import plain_call
from sfumato.queries.sql.catalog import Rows
from sfumato.queries.sql.expressions.scalar import read_expression

__all__ = ["read_aggregate"]

_HINTS: Final = MappingProxyType(
    {
        "ANY_VALUE": "a single row's value is not private; GROUP BY it, or write MAX(x, ...)",
        "APPROX_TOP_COUNT": "session.sql alone writes it out; here GROUP BY the value too, with COUNT(*)",
        "APPROX_TOP_K": "write APPROX_TOP_COUNT(x, 10)",
        "APPROX_TOP_SUM": "GROUP BY the value too, and write SUM(x, ...) and ORDER BY it; for the most rows "
        "write APPROX_TOP_COUNT(x, 10)",
        "ARRAY_AGG": "a list of values is not private; GROUP BY them",
        "BIT_AND": "write COUNTIF(condition), and compare it in HAVING",
        "COUNT_IF": "write COUNTIF(condition)",
        "FIRST_VALUE": "write MIN(x, ...), or MAX(x, ...)",
        "GROUP_CONCAT": "a list of values is not private; GROUP BY them",
        "LOGICAL_AND": "write COUNTIF(NOT condition), and compare it in HAVING",
        "LOGICAL_OR": "write COUNTIF(condition), and compare it in HAVING",
        "MODE": "GROUP BY the value, and write ORDER BY COUNT(*) DESC LIMIT 1",
        "PERCENTILE_DISC": "write PERCENTILE_CONT(x, 0.5)",
        "QUANTILE_CONT": "write PERCENTILE_CONT(x, 0.5)",
        "STRING_AGG": "a list of values is not private; GROUP BY them",
        "GROUPING": "there is one grouping only, so leave it out",
        "max_contributions_per_group": "write max_rows_per_group in OPTIONS; leave it out",
        "contribution_bounding_strategy": "units above the bounds are sampled; leave it out",
    }
)

_VARIANCES: Final = MappingProxyType(
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

_MAX_PARTS = 100  # of APPROX_QUANTILES: its ends, LEAST and LARGEST, are then no nearer than the others
_MAX_VALUES = "max_contributions_per_group"
_VALUES_BY_DEFAULT = 5  # of one unit in one group
_STRATEGY = "contribution_bounding_strategy"
_STRATEGIES = ("AUTO", "SAMPLING")
_MAX_RATIO = 1e10  # a grid over the range must reach from zero to it in 64 bits


@dataclass(frozen=True, slots=True)
class _Context:
    """What a call is read in: its column's name, the rows, and a unit's maximum of rows in one group."""

    name: str
    rows: Rows
    max_rows: int | None


_Reader: TypeAlias = Callable[[Call, _Context], Aggregate]


def read_aggregate(node: exp.Expr, name: str, rows: Rows, *, max_rows: int | None) -> Aggregate:
    """Read a call of an aggregate.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        The call.
    name : str
        The name of its column in the answer.
    rows : Rows
        What its argument may name.
    max_rows : int or None
        The maximum number of rows of one unit in one group, where that is known.

    Raises
    ------
    UnsupportedSql
        If the aggregate or a form of its call is not supported.
    OptionError
        If bounds are reversed, or not literals, or row bounds alone leave a total without any.
    SchemaError
        If the argument names an unknown column or has a wrong type.
    """
    call = read_call(plain_call(node, rows.names_unit), _SIGNATURES, _HINTS)
    _, reader = _AGGREGATES[call.name]
    read = replace(reader(call, _Context(name, rows, max_rows)), epsilon=call.epsilon(), report=call.report())
    if read.report and read.kind is AggregateKind.QUANTILES:
        raise OptionError(
            f"{call.name} has no report_format; write to_arrow(intervals=True) for its intervals"
        )
    return read


def _number(call: Call, rows: Rows, index: int = 0) -> Expression:
    argument = call.plain[index]
    if isinstance(argument, exp.Distinct):
        raise UnsupportedSql(f"{call.name}(DISTINCT x) mixes the values of several units; leave DISTINCT out")
    what = f"the argument of {call.name}"
    return require(coerced(read_expression(argument, rows, what)), NUMERIC, what)


def _number_or_truth(call: Call, rows: Rows) -> tuple[Expression, bool]:
    """Return the argument of AVG, and whether it was a condition: its mean is the share of rows."""
    if not isinstance(call.plain[0], exp.Distinct):
        read = read_expression(call.plain[0], rows, "the argument of AVG")
        if read.type is ColumnType.BOOLEAN:
            made = cast(TypedTree(read.tree, read.type), ColumnType.INTEGER)
            return Expression(made.tree, ColumnType.INTEGER), True
    return _number(call, rows), False


def _sum(call: Call, context: _Context) -> Aggregate:
    expression = _number(call, context.rows)
    group_bounds, row_bounds = call.bounds(PER_GROUP), call.bounds(PER_ROW)
    if group_bounds is None and row_bounds is not None and context.max_rows is None:
        raise OptionError(
            f"SUM with {PER_ROW} must know how many rows a unit may have, got no max_rows_per_group; "
            f"add it to OPTIONS, or write {PER_GROUP} => (lower, upper)"
        )
    return Aggregate(
        AggregateKind.SUM, context.name, expression, group_bounds=group_bounds, row_bounds=row_bounds
    )


def _average(call: Call, context: _Context) -> Aggregate:
    expression, truth = _number_or_truth(call, context.rows)
    if PER_ROW in call.named:
        raise OptionError(
            f"AVG must be bounded per group, got {PER_ROW}; write {PER_GROUP} => (lower, upper)"
        )
    bounds = call.bounds(PER_GROUP)
    if bounds is not None:
        _require_wide("AVG", PER_GROUP, bounds)
    elif truth:
        bounds = (0.0, 1.0)  # they follow from the type
    return Aggregate(AggregateKind.AVG, context.name, expression, group_bounds=bounds)


def _variance(call: Call, context: _Context) -> Aggregate:
    """Read a call of one column, with ``contribution_bounds_per_row => (lower, upper)`` or without."""
    expression = _number(call, context.rows)
    _refuse_group_bounds(call, "(lower, upper)")
    bounds = call.bounds(PER_ROW)
    if bounds is not None:
        _require_wide(call.name, PER_ROW, bounds)
    return Aggregate(_VARIANCES[call.name], context.name, expression, row_bounds=bounds)


def _covariance(call: Call, context: _Context) -> Aggregate:
    """Read a call of two columns, with ``contribution_bounds_per_row => ((lower, upper), (lower, upper))``.

    Rows without a value of either column do not count.
    """
    one, other = _number(call, context.rows), _number(call, context.rows, 1)
    form = "((lower, upper), (lower, upper))"
    _refuse_group_bounds(call, form)
    first = second = None
    if PER_ROW in call.named:
        node = call.named[PER_ROW]
        parts = node.expressions if isinstance(node, exp.Tuple) else []
        if len(parts) != 2 or not all(isinstance(part, exp.Tuple) for part in parts):
            raise OptionError(
                f"{PER_ROW} of {call.name} must be bounds for each column; write {PER_ROW} => {form}"
            )
        first, second = (as_bounds(PER_ROW, part) for part in parts)
        for bounds in (first, second):
            _require_wide(call.name, PER_ROW, bounds)
    return Aggregate(
        _VARIANCES[call.name],
        context.name,
        _where_present(one, other),
        row_bounds=first,
        second=_where_present(other, one),
        second_bounds=second,
    )


def _refuse_group_bounds(call: Call, form: str) -> None:
    if PER_GROUP in call.named:
        raise OptionError(f"{call.name} must be bounded per row, got {PER_GROUP}; write {PER_ROW} => {form}")


def _where_present(value: Expression, other: Expression) -> Expression:
    """Return a value where the other column has one, too."""
    if value == other:
        return value
    there = exp.Not(this=exp.Paren(this=exp.Is(this=operand(other), expression=exp.Null())))
    tree = exp.Case(ifs=[exp.If(this=there, true=value.tree)], default=exp.Null())
    return Expression(tree, value.type)


def _require_wide(name: str, key: str, bounds: Bounds) -> None:
    lower, upper = bounds
    if upper > lower and (upper - lower) * _MAX_RATIO < max(abs(lower), abs(upper)):
        raise OptionError(
            f"{key} of {name} must not lie closer together than 1e-10 of their size, got ({lower!r}, "
            f"{upper!r}); subtract a constant from the column"
        )


def _quantiles(
    call: Call, context: _Context, orders: tuple[float, ...], kind: AggregateKind = AggregateKind.QUANTILE
) -> Aggregate:
    expression, bounds = _number(call, context.rows), call.bounds(PER_ROW)
    if bounds is not None:
        _require_wide(call.name, PER_ROW, bounds)
        quantile_bins(bounds, whole=expression.type is ColumnType.INTEGER)
    part = call.epsilon(INTERVAL_EPSILON)
    return Aggregate(
        kind, context.name, expression, row_bounds=bounds, quantiles=orders, interval_epsilon=part
    )


def _percentile(call: Call, context: _Context) -> Aggregate:
    order = call.second("write PERCENTILE_CONT(x, 0.5)")
    if isinstance(order, bool) or not isinstance(order, int | float) or not 0 <= order <= 1:
        raise OptionError(
            f"the second argument of PERCENTILE_CONT must be from 0 to 1, got {order!r}; write 0.5, say"
        )
    return _quantiles(call, context, (float(order),))


def _approx_quantiles(call: Call, context: _Context) -> Aggregate:
    parts = call.second("write APPROX_QUANTILES(x, 4)")
    if isinstance(parts, bool) or not isinstance(parts, int) or not 1 <= parts <= _MAX_PARTS:
        raise OptionError(
            f"the second argument of APPROX_QUANTILES must be a whole number from 1 to {_MAX_PARTS}, got "
            f"{parts!r}; write 4 for quartiles"
        )
    inner = (part / parts for part in range(1, parts))
    return _quantiles(call, context, (MINIMUM_ORDER, *inner, MAXIMUM_ORDER), AggregateKind.QUANTILES)


def _count(call: Call, context: _Context) -> Aggregate:
    if PER_ROW in call.named:
        raise OptionError(f"COUNT must be bounded per group, got {PER_ROW}; write {PER_GROUP} => (0, upper)")
    bounds = call.bounds(PER_GROUP)
    if bounds is not None and not all(bound.is_integer() for bound in bounds):
        raise OptionError(
            f"{PER_GROUP} of COUNT must be whole numbers, got ({bounds[0]:g}, {bounds[1]:g}); "
            "write (0, upper)"
        )
    if bounds is not None:
        bounds = max(bounds[0], 0.0), bounds[1]  # a unit's count is never below zero
    if bounds is not None and not 1 <= bounds[1] <= 2**40:
        raise OptionError(
            f"{PER_GROUP} of COUNT must reach from 1 to 2**40, got {bounds[1]:g}; write (0, upper)"
        )
    if isinstance(call.plain[0], exp.Distinct):
        return _count_distinct(call, context)
    if isinstance(call.plain[0], exp.Star):
        if any(call.plain[0].args.values()):
            raise UnsupportedSql("COUNT(*) must not carry EXCEPT or REPLACE; write COUNT(*)")
        return Aggregate(AggregateKind.COUNT_ROWS, context.name, group_bounds=bounds)
    expression = read_expression(call.plain[0], context.rows, "the argument of COUNT")
    return Aggregate(AggregateKind.COUNT_VALUES, context.name, expression, group_bounds=bounds)


def _count_distinct(call: Call, context: _Context) -> Aggregate:
    rows, names = context.rows, call.plain[0].expressions
    if len(names) != 1:
        raise UnsupportedSql(
            f"COUNT(DISTINCT ...) must name one value, got {len(names)}; write COUNT(DISTINCT x)"
        )
    if rows.names_unit(names[0].unnest()):
        return _count_units(call, context)
    return _distinct(call, names[0], context)


def _approximate_distinct(call: Call, context: _Context) -> Aggregate:
    strategy = call.word(_STRATEGY) or "AUTO"
    if strategy not in _STRATEGIES:
        raise OptionError(
            f"contribution_bounding_strategy must be 'AUTO' or 'SAMPLING', got {strategy!r}; a unit's values "
            "are chosen at random, so write 'SAMPLING'"
        )
    if isinstance(call.plain[0], exp.Distinct):
        raise UnsupportedSql("APPROX_COUNT_DISTINCT counts distinct values anyway; leave DISTINCT out")
    if context.rows.names_unit(call.plain[0].unnest()):
        return _count_units(call, context)
    return _distinct(call, call.plain[0], context)


def _distinct(call: Call, argument: exp.Expr, context: _Context) -> Aggregate:
    """Count the distinct values of a column, of which a unit brings at most so many to a group."""
    if PER_GROUP in call.named:
        raise OptionError(
            f"the values of a unit are bounded by their number, got {PER_GROUP}; write "
            f"APPROX_COUNT_DISTINCT(x, {_MAX_VALUES} => 5)"
        )
    expression = read_expression(argument, context.rows, f"the argument of {call.name}")
    given = call.whole(_MAX_VALUES, maximum=2**40)
    count = 1 if context.rows.relation.unit is None else given or context.max_rows or _VALUES_BY_DEFAULT
    return Aggregate(AggregateKind.COUNT_DISTINCT, context.name, expression, group_bounds=(0.0, float(count)))


def _count_units(call: Call, context: _Context) -> Aggregate:
    if PER_GROUP in call.named or _MAX_VALUES in call.named:
        raise OptionError(
            f"{call.name} of the unit takes no bounds: it counts once in a group; leave them out"
        )
    return Aggregate(AggregateKind.COUNT_UNITS, context.name)


_OF_TWO = ("COVAR_POP", "COVAR_SAMP", "CORR")
_OF_ONE = tuple(name for name in _VARIANCES if name not in _OF_TWO)

_AGGREGATES: Final[MappingProxyType[str, tuple[Signature, _Reader]]] = MappingProxyType(
    {
        "COUNT": (Signature(1, (PER_GROUP, PER_ROW)), _count),
        "SUM": (Signature(1, (PER_GROUP, PER_ROW)), _sum),
        "AVG": (Signature(1, (PER_GROUP, PER_ROW)), _average),
        "APPROX_COUNT_DISTINCT": (Signature(1, (_MAX_VALUES, _STRATEGY, PER_GROUP)), _approximate_distinct),
        "PERCENTILE_CONT": (Signature(2, (PER_ROW, INTERVAL_EPSILON), "x, 0.5"), _percentile),
        "MEDIAN": (Signature(1, (PER_ROW, INTERVAL_EPSILON)), partial(_quantiles, orders=(0.5,))),
        "MIN": (Signature(1, (PER_ROW, INTERVAL_EPSILON)), partial(_quantiles, orders=(MINIMUM_ORDER,))),
        "MAX": (Signature(1, (PER_ROW, INTERVAL_EPSILON)), partial(_quantiles, orders=(MAXIMUM_ORDER,))),
        "APPROX_QUANTILES": (Signature(2, (PER_ROW, INTERVAL_EPSILON), "x, 4"), _approx_quantiles),
        **dict.fromkeys(_OF_ONE, (Signature(1, (PER_ROW, PER_GROUP)), _variance)),
        **dict.fromkeys(_OF_TWO, (Signature(2, (PER_ROW, PER_GROUP)), _covariance)),
    }
)
"""Each aggregate's signature and reader."""

_SIGNATURES: Final = MappingProxyType({name: signature for name, (signature, _) in _AGGREGATES.items()})
