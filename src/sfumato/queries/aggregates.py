"""The aggregates of a private SELECT and their contribution bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import OptionError, QueryError, UnsupportedSql
from sfumato.queries.expressions import function_name, read_constant, read_expression
from sfumato.queries.literals import python_value
from sfumato.queries.plan import Aggregate, AggregateKind
from sfumato.queries.relations import Rows
from sfumato.queries.terms import NUMERIC, Term, require

__all__ = ["read_aggregate"]

_PER_GROUP = "contribution_bounds_per_group"
_PER_ROW = "contribution_bounds_per_row"
_LATER = {
    "epsilon": "the planner divides the query's epsilon among its aggregates",
    "report_format": "every answer carries its interval",
    "max_contributions_per_group": "write max_rows_per_group in OPTIONS",
    "contribution_bounding_strategy": "units above the bounds are sampled",
}

_INSTEAD = {
    "COUNTIF": "write COUNT(IF(condition, 1, NULL))",
    "GROUPING": "there is one grouping only, so leave it out",
}

_Bounds = tuple[float, float]

_THINNEST = 1e10  # a grid over the range must reach from zero to it in 64 bits
_FARTHEST = 1e150  # with room for the rows of a unit and for the noise, so that an answer is always a number


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with its named arguments set apart."""

    name: str
    argument: exp.Expr
    bounds: Mapping[str, _Bounds]


def read_aggregate(node: exp.Expr, name: str, rows: Rows, *, max_rows: int | None) -> Aggregate:
    """Read COUNT, SUM or AVG.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        The call.
    name : str
        The name of its column in the answer.
    rows : Rows
        What its argument may name.
    max_rows : int or None
        The most rows of one unit in one group, where that is known.

    Raises
    ------
    UnsupportedSql
        If the aggregate or a form of its call is not supported.
    OptionError
        If bounds are missing, reversed, or not literals.
    SchemaError
        If the argument names an unknown column or has a wrong type.
    """
    call = _call(node)
    if call.name == "COUNT":
        return _count(call, name, rows)
    if isinstance(call.argument, exp.Distinct):
        raise UnsupportedSql(f"{call.name}(DISTINCT x) mixes the values of several units; leave DISTINCT out")
    what = f"the argument of {call.name}"
    expression = read_expression(call.argument, rows, what)
    require(Term(expression.tree, expression.type), NUMERIC, what)
    if call.name == "AVG":
        return Aggregate(AggregateKind.AVG, name, expression, group_bounds=_average_bounds(call))
    if not call.bounds:
        raise OptionError(
            f"SUM must have bounds, got none; write SUM(x, {_PER_GROUP} => (lower, upper)) "
            "with public numbers, never read off the data"
        )
    if _PER_GROUP not in call.bounds and max_rows is None:
        raise OptionError(
            f"SUM with {_PER_ROW} must know how many rows a unit may have, got no max_rows_per_group; "
            f"add it to OPTIONS, or write {_PER_GROUP} => (lower, upper)"
        )
    return Aggregate(
        AggregateKind.SUM,
        name,
        expression,
        group_bounds=call.bounds.get(_PER_GROUP),
        row_bounds=call.bounds.get(_PER_ROW),
    )


def _call(node: exp.Expr) -> _Call:
    name = function_name(node)
    if name not in ("COUNT", "SUM", "AVG"):
        hint = _INSTEAD.get(name, "use COUNT, SUM or AVG")
        raise UnsupportedSql(f"the aggregate {name} is not supported; {hint}")
    named = [argument for argument in node.expressions if isinstance(argument, exp.Kwarg)]
    plain = [argument for argument in node.expressions if not isinstance(argument, exp.Kwarg)]
    if len(plain) != 1:
        raise UnsupportedSql(
            f"{name} must have one argument besides its bounds, got {len(plain)}; write {name}(x)"
        )
    bounds: dict[str, _Bounds] = {}
    for argument in named:
        key = argument.this.name.lower()
        if key not in (_PER_GROUP, _PER_ROW):
            hint = (
                f"{_LATER[key]}; leave it out" if key in _LATER else f"write {_PER_GROUP} => (lower, upper)"
            )
            raise OptionError(f"{name} has no argument {key!r}; {hint}")
        if key in bounds:
            raise OptionError(f"{key} must be given once, got it twice; leave one out")
        bounds[key] = _pair(key, argument.expression)
    return _Call(name, plain[0], bounds)


def _pair(key: str, node: exp.Expr) -> _Bounds:
    remedy = "write public numbers, as in (0, 100)"
    if not isinstance(node, exp.Tuple) or len(node.expressions) != 2:
        raise OptionError(f"{key} must be a pair of literals (lower, upper); {remedy}")
    try:
        terms = [read_constant(bound, "a bound") for bound in node.expressions]
    except QueryError as error:
        raise OptionError(f"{key} must be a pair of finite literals: {error}") from None
    if any(term.type not in NUMERIC for term in terms):
        raise OptionError(f"{key} must be a pair of numbers; {remedy}")
    lower, upper = (float(str(python_value(term))) for term in terms)
    if lower > upper:
        raise OptionError(f"{key} must have its lower bound first, got ({lower:g}, {upper:g}); swap them")
    reach = max(abs(lower), abs(upper))
    if reach > _FARTHEST or 0 < reach < 1 / _FARTHEST:
        raise OptionError(
            f"{key} must reach from 1e-150 to 1e150, or be (0, 0), got ({lower:g}, {upper:g}); "
            "bring the column to another unit"
        )
    return lower, upper


def _average_bounds(call: _Call) -> _Bounds:
    if _PER_ROW in call.bounds:
        raise OptionError(
            f"AVG must be bounded per group, got {_PER_ROW}; write {_PER_GROUP} => (lower, upper)"
        )
    if _PER_GROUP not in call.bounds:
        raise OptionError(
            f"AVG must have bounds, got none; write AVG(x, {_PER_GROUP} => (lower, upper)) "
            "with public numbers, never read off the data"
        )
    lower, upper = call.bounds[_PER_GROUP]
    if upper > lower and (upper - lower) * _THINNEST < max(abs(lower), abs(upper)):
        raise OptionError(
            f"{_PER_GROUP} of AVG must not lie closer together than 1e-10 of their size, got ({lower!r}, "
            f"{upper!r}); subtract a constant from the column"
        )
    return lower, upper


def _count(call: _Call, name: str, rows: Rows) -> Aggregate:
    if _PER_ROW in call.bounds:
        raise OptionError(
            f"COUNT must be bounded per group, got {_PER_ROW}; write {_PER_GROUP} => (0, upper)"
        )
    bounds = call.bounds.get(_PER_GROUP)
    if bounds is not None and not (bounds[0] >= 0 and all(bound.is_integer() for bound in bounds)):
        raise OptionError(
            f"{_PER_GROUP} of COUNT must be whole numbers from 0, got ({bounds[0]:g}, {bounds[1]:g}); "
            "write (0, upper)"
        )
    if bounds is not None and not 1 <= bounds[1] <= 2**40:
        raise OptionError(
            f"{_PER_GROUP} of COUNT must reach from 1 to 2**40, got {bounds[1]:g}; write (0, upper)"
        )
    if isinstance(call.argument, exp.Distinct):
        return _count_units(call, name, rows)
    if isinstance(call.argument, exp.Star):
        if any(call.argument.args.values()):
            raise UnsupportedSql("COUNT(*) must not carry EXCEPT or REPLACE; write COUNT(*)")
        return Aggregate(AggregateKind.COUNT_ROWS, name, group_bounds=bounds)
    expression = read_expression(call.argument, rows, "the argument of COUNT")
    return Aggregate(AggregateKind.COUNT_VALUES, name, expression, group_bounds=bounds)


def _count_units(call: _Call, name: str, rows: Rows) -> Aggregate:
    unit = rows.relation.unit
    remedy = "write COUNT(*): each row is a unit" if unit is None else f"write COUNT(DISTINCT {unit})"
    names = call.argument.expressions
    counts_unit = (
        unit is not None
        and len(names) == 1
        and isinstance(names[0], exp.Column)
        and names[0].name.casefold() == unit.casefold()
        and (not names[0].table or rows.answers_to(names[0].table))
    )
    if not counts_unit:
        raise UnsupportedSql(f"COUNT(DISTINCT x) is supported for the privacy unit only; {remedy}")
    if call.bounds:
        raise OptionError(
            "COUNT(DISTINCT unit) takes no bounds: a unit counts once in a group; leave them out"
        )
    return Aggregate(AggregateKind.COUNT_UNITS, name)
