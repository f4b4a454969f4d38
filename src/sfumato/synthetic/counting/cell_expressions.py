"""The cell of a row as an expression that every engine computes, the same that `TableDomain.encode` gives."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp

from sfumato import _check
from sfumato.queries.plan.constants import literal
from sfumato.queries.plan.schema import Column, ColumnType, Expression
from sfumato.queries.plan.typed_expressions import TypedTree, advice, cast, column
from sfumato.synthetic.domain.attributes import Attribute, Categorical, Ordered

__all__ = ["INTEGER", "both", "cell_among", "cell_of", "comparable", "is_null", "listed_cells", "whole"]

INTEGER: Final = ColumnType.INTEGER
_IN_TEXT: Final = 64
"""Categories up to which an expression lists them; a join finds more of them in less time."""
_MOST_CATEGORIES: Final = 1 << 16
_MOST_BINS: Final = 1 << 11
_NUMBERS: Final = frozenset({ColumnType.INTEGER, ColumnType.FLOAT, ColumnType.DECIMAL})
_MOMENTS: Final = frozenset({ColumnType.DATE, ColumnType.TIMESTAMP})
_WORDS: Final = {str: "texts", int: "whole numbers", bool: "truth values"}
_TYPES: Final = {
    str: frozenset({ColumnType.TEXT}),
    int: frozenset({ColumnType.INTEGER, ColumnType.DECIMAL}),
    bool: frozenset({ColumnType.BOOLEAN}),
}


def comparable(attribute: Attribute, known: Column) -> Expression:
    """Return a column in the type that its cells are compared in.

    Parameters
    ----------
    attribute : Categorical or Ordered
    known : Column
        Of the relation.

    Returns
    -------
    Expression
        Numbers in bins are floats, as in `Ordered.encode`, but for whole ones in cells of whole numbers.

    Raises
    ------
    ParameterError
        If the column is of another type than the cells, or they are too many for an expression.
    """
    term = column(known.name, known.type, known.declare)
    kind = known.type
    if isinstance(attribute, Categorical):
        values = type(attribute.values[0])
        if kind not in _TYPES[values]:
            _refuse_type(known, f"a column of {_WORDS[values]}, as its declared values are", _NAMES[values])
        if len(attribute.values) > _MOST_CATEGORIES and not _run(attribute, known.type or INTEGER):
            rule = f"have at most {_MOST_CATEGORIES} values where an engine counts, or whole numbers in a row"
            many, remedy = len(attribute.values), "declare groups of them, or number them in a public table"
            _check.refuse(f"values of {known.name!r}", rule, many, remedy)
        return _typed(term)
    if kind not in (_MOMENTS if attribute.dated else _NUMBERS):
        words = "dates" if attribute.dated else "numbers"
        _refuse_type(known, f"of {words}, as its edges are", "DATE" if attribute.dated else "INT64")
    if not attribute.whole and len(attribute.numbers) > _MOST_BINS:
        rule = f"have at most {_MOST_BINS} edges where an engine counts, unless each cell is a whole number"
        _check.refuse(f"edges of {known.name!r}", rule, len(attribute.numbers), "take fewer bins")
    if attribute.dated or kind is ColumnType.FLOAT or (attribute.whole and kind is INTEGER):
        return _typed(term)
    return _typed(cast(term, ColumnType.FLOAT))


_NAMES: Final = {str: "STRING", int: "INT64", bool: "BOOL"}


def _refuse_type(known: Column, rule: str, wanted: str) -> None:
    found = "of a type that no query computes with" if known.type is None else f"of {known.type.value}"
    hint = advice(column(known.name, known.type, known.declare), wanted)
    remedy = f"{hint}use with_columns() to cast it"
    _check.refuse_state(f"column {known.name!r}", f"be {rule}", f"it is {found}", remedy)


def listed_cells(attribute: Attribute, kind: ColumnType) -> list[tuple[Expression, Expression]] | None:
    """Return values and their cells, where these are so many that rows are joined with them; else None.

    Parameters
    ----------
    attribute : Categorical or Ordered
    kind : ColumnType
        In which they are compared.

    Returns
    -------
    list of (Expression, Expression) or None
    """
    if not isinstance(attribute, Categorical) or len(attribute.values) <= _IN_TEXT or _run(attribute, kind):
        return None
    pairs = enumerate(attribute.values)
    return [(_constant(v, kind), _typed(whole(cell))) for cell, v in pairs if _storable(v, kind)]


def cell_of(attribute: Attribute, name: str, kind: ColumnType, found: str | None = None) -> Expression:
    """Return the cell of a row, NULL where it is not counted.

    Parameters
    ----------
    attribute : Categorical or Ordered
    name : str
        The column that `comparable` made.
    kind : ColumnType
        Its type.
    found : str, optional
        The column of the cell of a listed value, where rows were joined with those.

    Returns
    -------
    Expression
    """
    value = column(name, kind)
    absent = whole(attribute.size - 1) if attribute.missing else _nothing()
    if isinstance(attribute, Ordered):
        inside = _whole_cell(attribute, value) if attribute.whole else _bin(attribute, value)
    else:
        other = whole(len(attribute.values)) if attribute.other else _nothing()
        if found is not None:
            inside = TypedTree(
                exp.Coalesce(this=column(found, INTEGER).tree, expressions=[other.tree]), INTEGER
            )
        else:
            inside = _category(attribute, value, other)
    return _typed(_case([(is_null(value), absent)], inside))


def _category(attribute: Categorical, value: TypedTree, other: TypedTree) -> TypedTree:
    kind = value.type or INTEGER
    if _run(attribute, kind):
        first, last = attribute.values[0], attribute.values[-1]
        less = TypedTree(exp.Sub(this=value.tree, expression=whole(first).tree), INTEGER)
        return _case([(_between(value.tree, first, last), less)], other)
    pairs = [(cell, each) for cell, each in enumerate(attribute.values) if _storable(each, kind)]
    tests = [(_compared(exp.EQ, value, _constant(each, kind)), whole(cell)) for cell, each in pairs]
    return _case(tests, other) if tests else other


def _run(attribute: Categorical, kind: ColumnType) -> bool:
    """Return whether the values are whole numbers one after the other, of 64 bits."""
    values = attribute.values
    if type(values[0]) is not int or kind is not INTEGER:
        return False
    return tuple(values) == tuple(range(values[0], values[0] + len(values))) and _storable(values[-1], kind)


def _whole_cell(attribute: Ordered, value: TypedTree) -> TypedTree:
    """Return the cell of a number on a scale of whole numbers."""
    first, size = int(attribute.numbers[0]), len(attribute.numbers) - 1
    kind = value.type or INTEGER
    low, high = _constant(first + 1, kind), _constant(first + size - 1, kind)
    if size == 1:
        return whole(0)
    number = value
    if kind is ColumnType.FLOAT:
        number = cast(TypedTree(exp.Floor(this=value.tree), kind), INTEGER)
    less = TypedTree(exp.Sub(this=number.tree, expression=whole(first).tree), INTEGER)
    ends = [(_compared(exp.LT, value, low), whole(0)), (_compared(exp.GTE, value, high), whole(size - 1))]
    return _case(ends, less)


def _bin(attribute: Ordered, value: TypedTree) -> TypedTree:
    """Return the bin of a number or moment: a search by halves among the inner edges."""
    edges: Sequence[Any] = attribute.edges or ()

    def search(first: int, last: int) -> TypedTree:
        if first == last:
            return whole(first)
        middle = (first + last + 1) // 2
        edge = edges[middle]
        if value.type is ColumnType.TIMESTAMP:
            edge = dt.datetime(edge.year, edge.month, edge.day)  # in UTC, as all timestamps
        below = _compared(exp.LT, value, _constant(edge, value.type or ColumnType.FLOAT))
        return _case([(below, search(first, middle - 1))], search(middle, last))

    return search(0, len(edges) - 2)


def cell_among(name: str, cells: Sequence[int]) -> exp.Expression:
    """Return the condition that a column of cells has one of some.

    Parameters
    ----------
    name : str
    cells : sequence of int
        Rising.

    Returns
    -------
    sqlglot.exp.Expression
    """
    runs: list[list[int]] = []
    for cell in cells:
        if runs and runs[-1][1] == cell - 1:
            runs[-1][1] = cell
        else:
            runs.append([cell, cell])
    return _joined([_between(column(name, INTEGER).tree, low, high) for low, high in runs], exp.Or)


def both(tests: Sequence[exp.Expression]) -> exp.Expression:
    """Return the condition that all of some hold, at least one."""
    return _joined(tests, exp.And)


def _joined(tests: Sequence[exp.Expression], kind: type[exp.And | exp.Or]) -> exp.Expression:
    """Return tests joined in halves: what is nested for each of thousands is too deep for all who read it."""
    if len(tests) == 1:
        return tests[0]
    half = (len(tests) + 1) // 2
    one, two = (exp.Paren(this=_joined(each, kind)) for each in (tests[:half], tests[half:]))
    return kind(this=one, expression=two)


def is_null(term: TypedTree) -> exp.Expression:
    """Return the condition that there is no value."""
    return exp.Is(this=term.tree.copy(), expression=exp.Null())


def whole(value: int) -> TypedTree:
    """Return a whole number."""
    return TypedTree(literal(value, INTEGER), INTEGER)


def _nothing() -> TypedTree:
    return TypedTree(exp.Null(), None)


def _typed(term: TypedTree) -> Expression:
    return Expression(term.tree, term.type or INTEGER)


def _storable(value: Any, kind: ColumnType) -> bool:
    """Return whether a column of that type can have a declared value."""
    return kind is not INTEGER or -(2**63) <= value < 2**63


def _constant(value: Any, kind: ColumnType) -> Expression:
    if kind is ColumnType.DECIMAL:
        return _typed(cast(TypedTree(literal(str(value), ColumnType.TEXT), ColumnType.TEXT), kind))
    return Expression(literal(value, kind), kind)


def _compared(sign: Any, left: TypedTree, right: Expression) -> exp.Expression:
    made: exp.Expression = sign(this=left.tree.copy(), expression=right.tree)
    return made


def _between(tree: exp.Expression, low: int, high: int) -> exp.Expression:
    return exp.Between(this=tree.copy(), low=whole(low).tree, high=whole(high).tree)


def _case(branches: Sequence[tuple[exp.Expression, TypedTree]], default: TypedTree) -> TypedTree:
    ifs = [exp.If(this=test, true=value.tree) for test, value in branches]
    return TypedTree(exp.Case(ifs=ifs, default=default.tree), INTEGER)
