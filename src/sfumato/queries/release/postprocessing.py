"""What is computed from released numbers: by the same total functions as rows, in an empty database.

No raw data is near: the only table in reach is the released one. What has no value (a division by zero, an
overflow) is NULL, and no released number can make it fail.

Intervals follow where a function is monotone in each part: if every part lies in its interval, so does the
result. Where that does not tell, there is no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sqlglot import exp, parse_one

from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.plan.typed_expressions import TypedTree, column
from sfumato.queries.sql.expressions.scalar import read_expression
from sfumato.queries.sql.parser import PrivateSql

__all__ = ["ends", "named_columns", "parsed"]


_Tree: TypeAlias = exp.Expression
_Ends: TypeAlias = tuple[_Tree, _Tree]
_Names: TypeAlias = Mapping[str, tuple[str, str]]


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
    """Return the least and the largest value of an expression while columns move in their intervals.

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
    **dict.fromkeys(
        (exp.Ceil, exp.Exp, exp.Floor, exp.Ln, exp.Log, exp.Round, exp.Sign, exp.Sqrt, exp.TryCast),
        _increasing,
    ),
}
