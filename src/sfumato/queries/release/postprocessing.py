"""What is computed from released numbers: by the same total functions as rows, in an empty database.

No raw data is near: the only table in reach is the released one. What has no value (a division by zero, an
overflow) is NULL, and no released number can make it fail.

Intervals follow where a function is monotone in each part: if every part lies in its interval, so does the
result. Where nothing follows from that, there is no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa
from sqlglot import exp, parse_one

from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.terms import TypedSql
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.duckdb.thread_database import ThreadDatabase
from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.plan.schema import ARROW_TYPES
from sfumato.queries.plan.typed_expressions import TypedTree, column
from sfumato.queries.sql.expressions.scalar import read_expression
from sfumato.queries.sql.parser import PrivateSql

__all__ = ["column_types", "ends", "evaluate", "named_columns", "parsed"]

_Tree: TypeAlias = exp.Expression
_Ends: TypeAlias = tuple[_Tree, _Tree]
_Names: TypeAlias = Mapping[str, tuple[str, str]]

_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "threads": "1",
}
_DATABASE: Final = ThreadDatabase(lambda: duckdb.connect(":memory:", config=_CONFIG))


def column_types(table: pa.Table) -> dict[str, ColumnType]:
    """Return the types of a released table's columns; those that no expression can use are left out.

    Examples
    --------
    >>> column_types(pa.table({"state": ["CA"], "n": [3]}))
    {'state': <ColumnType.TEXT: 'STRING'>, 'n': <ColumnType.INTEGER: 'INT64'>}
    """
    # The digits of a NUMERIC are released as a text.
    kinds = {arrow: type_ for type_, arrow in ARROW_TYPES.items() if type_ is not ColumnType.DECIMAL}
    return {field.name: kinds[field.type] for field in table.schema if field.type in kinds}


def evaluate(table: pa.Table, expressions: Sequence[Expression]) -> list[pa.ChunkedArray]:
    """Compute expressions over the columns of a table, row by row.

    Parameters
    ----------
    table : pyarrow.Table
        Released columns in the types of :func:`column_types`.
    expressions : sequence of Expression
        Their columns are those of the table.

    Returns
    -------
    list of pyarrow.ChunkedArray
        One for each expression, in the order of the rows.

    Examples
    --------
    >>> total = parsed("`a` / `b`", {"a": ColumnType.INTEGER, "b": ColumnType.INTEGER})
    >>> evaluate(pa.table({"a": [3, 1], "b": [2, 0]}), [total])[0].to_pylist()
    [1.5, None]
    """
    if not expressions:
        return []
    types = column_types(table)
    place = {name: f"c{i}" for i, name in enumerate(table.column_names)}
    columns = {name.casefold(): TypedSql(place[name], type_) for name, type_ in types.items()}
    below = ", ".join(f"{render(e, columns, DUCKDB)} AS x{i}" for i, e in enumerate(expressions))
    above = ", ".join(f"{DUCKDB.canonical(f'x{i}', e.type)} AS p{i}" for i, e in enumerate(expressions))
    numbered = table.rename_columns(list(place.values())).append_column("i", pa.array(range(table.num_rows)))
    with _DATABASE.cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("answer", numbered)
        select = f"SELECT {above} FROM (SELECT {below}, i FROM answer) ORDER BY i"  # noqa: S608 - rendered
        made = connection.sql(select)
        found = made.to_arrow_table()
    return [found[f"p{i}"].cast(ARROW_TYPES[e.type]) for i, e in enumerate(expressions)]


def parsed(sql: str, types: Mapping[str, ColumnType]) -> Expression:
    """Read an expression back that a record holds as text."""
    return read_expression(parse_one(sql, dialect=PrivateSql()), _Columns(types), "a computed column")


@dataclass(frozen=True, slots=True)
class _Columns:
    types: Mapping[str, ColumnType]

    def resolve(self, _qualifier: str | None, name: str) -> TypedTree:
        return column(name, self.types[name])


def named_columns(expression: Expression) -> set[str]:
    """Return the names of the columns that an expression reads."""
    return {str(node.name) for node in expression.tree.find_all(exp.Column)}


def ends(expression: Expression, intervals: _Names) -> tuple[Expression, Expression] | None:
    """Return the smallest and the largest value of an expression while columns move in their intervals.

    Parameters
    ----------
    expression : Expression
        Over released columns.
    intervals : mapping of str to pair of str
        For each column that has an interval, the columns of its lower and upper end; others stay as they are.

    Returns
    -------
    pair of Expression, or None
        None where nothing follows. Where an end is NULL for some row, nothing follows for that row.

    Notes
    -----
    Rounding is monotone, so the ends hold the value as it is computed in floats, too.
    """
    found = _ends(expression.tree, intervals)
    return (
        None
        if found is None
        else (Expression(found[0], expression.type), Expression(found[1], expression.type))
    )


def _ends(tree: _Tree, names: _Names) -> _Ends | None:
    if not any(node.name in names for node in tree.find_all(exp.Column)):
        return tree, tree
    if isinstance(tree, exp.Column):
        low, high = names[tree.name]
        return column(low, None).tree, column(high, None).tree
    rule = _RULES.get(type(tree))
    return None if rule is None else rule(tree, names)


def _both(tree: _Tree, names: _Names) -> tuple[_Ends, _Ends] | None:
    left, right = _ends(tree.this, names), _ends(tree.expression, names)
    return None if left is None or right is None else (left, right)


def _closed(tree: _Tree) -> _Tree:
    return exp.Paren(this=tree.copy())


def _negated(tree: _Tree, names: _Names) -> _Ends | None:
    inner = _ends(tree.this, names)
    return None if inner is None else (exp.Neg(this=_closed(inner[1])), exp.Neg(this=_closed(inner[0])))


def _sum(tree: _Tree, names: _Names) -> _Ends | None:
    both = _both(tree, names)
    if both is None:
        return None
    left, right = both
    right = right[::-1] if isinstance(tree, exp.Sub) else right
    low, high = (type(tree)(this=_closed(a), expression=_closed(b)) for a, b in zip(left, right, strict=True))
    return low, high


def _corners(tree: _Tree, names: _Names) -> _Ends | None:
    """Return the ends of a product, or of a quotient whose divisor has one sign: they are at the corners."""
    both = _both(tree, names)
    if both is None:
        return None
    lefts, rights = ({id(end): end for end in ends_}.values() for ends_ in both)
    made = [_like(tree, a, b) for a in lefts for b in rights]
    low, high = made[0], made[0]
    if len(made) > 1:
        low, high = (
            make(this=made[0].copy(), expressions=[m.copy() for m in made[1:]], ignore_nulls=False)
            for make in (exp.Least, exp.Greatest)
        )
    if isinstance(tree, exp.Div):
        low_divisor, high_divisor = both[1]
        zero = exp.Literal.number("0")
        sign = exp.Or(
            this=exp.Paren(this=exp.GT(this=_closed(low_divisor), expression=zero)),
            expression=exp.Paren(this=exp.LT(this=_closed(high_divisor), expression=zero.copy())),
        )
        low, high = (
            exp.Case(ifs=[exp.If(this=sign.copy(), true=end)], default=exp.Null()) for end in (low, high)
        )
    return low, high


def _like(tree: _Tree, left: _Tree, right: _Tree) -> _Tree:
    made = tree.copy()
    made.set("this", _closed(left))
    made.set("expression", _closed(right))
    return made


def _increasing(tree: _Tree, names: _Names) -> _Ends | None:
    """Return the ends of a function that grows with its argument."""
    slot = "expression" if isinstance(tree, exp.Log) else "this"
    inner = _ends(tree.args[slot], names)
    if inner is None or (isinstance(tree, exp.TryCast) and tree.args["to"].this not in _NUMBERS):
        return None
    low, high = tree.copy(), tree.copy()
    low.set(slot, inner[0].copy())
    high.set(slot, inner[1].copy())
    return low, high


def _moved_date(tree: _Tree, names: _Names) -> _Ends | None:
    """Return the ends of a date that is moved by days or months: it grows with the date and with the days."""
    date = _ends(tree.this, names)
    fixed = not isinstance(tree.expression, exp.Paren)
    days = (tree.expression, tree.expression) if fixed else _ends(tree.expression, names)
    if date is None or days is None:
        return None
    low, high = tree.copy(), tree.copy()
    for made, at, by in ((low, date[0], days[0]), (high, date[1], days[1])):
        made.set("this", at.copy())
        made.set("expression", by.copy() if fixed else _closed(by))
    return low, high


def _extreme(tree: _Tree, names: _Names) -> _Ends | None:
    parts = [_ends(part, names) for part in (tree.this, *tree.expressions)]
    if any(part is None for part in parts):
        return None
    low, high = (
        type(tree)(this=side[0].copy(), expressions=[s.copy() for s in side[1:]], ignore_nulls=False)
        for side in zip(*(part for part in parts if part is not None), strict=True)
    )
    return low, high


_NUMBERS: Final = frozenset({exp.DataType.Type.BIGINT, exp.DataType.Type.DOUBLE})

_RULES: Final[dict[type[exp.Expr], Callable[[Any, _Names], _Ends | None]]] = {
    exp.Paren: lambda tree, names: _ends(tree.this, names),
    exp.Neg: _negated,
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Mul: _corners,
    exp.Div: _corners,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.DateAdd: _moved_date,
    exp.DateSub: _moved_date,
    **dict.fromkeys(
        (exp.Ceil, exp.Exp, exp.Floor, exp.Ln, exp.Log, exp.Round, exp.Sign, exp.Sqrt, exp.TryCast),
        _increasing,
    ),
}
