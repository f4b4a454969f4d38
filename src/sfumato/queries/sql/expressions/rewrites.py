"""Functions that are written with others: each becomes a tree of nodes that every engine has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan.constants import common, is_constant, number, python_value, text
from sfumato.queries.plan.schema import ColumnType, Expression
from sfumato.queries.plan.typed_expressions import (
    NUMERIC,
    Compile,
    TypedTree,
    cast,
    only,
    operand,
    require,
)

__all__ = [
    "buckets",
    "join_text",
    "read_ends_with",
    "read_left",
    "read_replace",
    "read_right",
    "read_same",
    "read_truth",
    "read_width_bucket",
]

_TEXT: Final = frozenset({ColumnType.TEXT})
_MAX_LENGTH: Final = 1_000_000
_MAX_BUCKETS: Final = 1_000_000
_BUCKETS: Final = "buckets"


def read_width_bucket(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read WIDTH_BUCKET: 0 below the bounds, n + 1 from the upper one on, else the position among n parts."""
    only(node, "this", "min_value", "max_value", "num_buckets", what="WIDTH_BUCKET")
    value = require(compile_(node.this), NUMERIC, "the argument of WIDTH_BUCKET")
    slots = ("min_value", "max_value", "num_buckets")
    bounds = [_number(node.args.get(slot), compile_) for slot in slots]
    lower, upper, count = bounds
    if not lower < upper or not float(count).is_integer() or not 1 <= count <= _MAX_BUCKETS:
        raise UnsupportedSql(
            f"WIDTH_BUCKET must have a lower bound below the upper one and 1 to {_MAX_BUCKETS} buckets; "
            "write WIDTH_BUCKET(x, 0, 100, 10)"
        )
    low, high, width = (_real(x) for x in (lower, upper, upper - lower))
    n = exp.Literal.number(str(int(count)))
    above = exp.Sub(this=operand(value), expression=operand(low))
    parts = exp.Mul(this=exp.Paren(this=above), expression=n)
    index = exp.Floor(
        this=exp.Div(this=exp.Paren(this=parts), expression=operand(width), typed=False, safe=False)
    )
    following = exp.Add(this=index, expression=exp.Literal.number("1"))
    last_part = exp.Least(this=following, expressions=[n.copy()], ignore_nulls=False)
    inside = cast(TypedTree(last_part, ColumnType.FLOAT), ColumnType.INTEGER)
    ifs = [
        exp.If(
            this=exp.LT(this=operand(value).copy(), expression=operand(low).copy()), true=number("0").tree
        ),
        exp.If(
            this=exp.GTE(this=operand(value).copy(), expression=operand(high)),
            true=number(str(int(count) + 1)).tree,
        ),
    ]
    tree = exp.Case(ifs=ifs, default=inside.tree)
    tree.meta[_BUCKETS] = int(count)
    return TypedTree(tree, ColumnType.INTEGER)


def buckets(expression: Expression) -> int | None:
    """Return n where an expression is a bare WIDTH_BUCKET into n parts, whose values are 0 to n + 1."""
    found = expression.tree.meta.get(_BUCKETS)
    return found if isinstance(found, int) else None


def _number(node: exp.Expr | None, compile_: Compile) -> float:
    term = None if node is None else compile_(node)
    if term is None or not is_constant(term) or term.type not in NUMERIC:
        raise UnsupportedSql("the bounds and the count of WIDTH_BUCKET must be literals; write the numbers")
    return float(str(python_value(term)))


def _real(value: float) -> TypedTree:
    return number(
        repr(abs(value)) if "." in repr(value) or "e" in repr(value) else f"{abs(value)}.0",
        negative=value < 0,
    )


def read_left(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read LEFT: the first characters."""
    subject, count = _cut(node, compile_, "LEFT")
    made = exp.Substring(this=subject.tree, start=exp.Literal.number("1"), length=count)
    return TypedTree(made, ColumnType.TEXT)


def read_right(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read RIGHT: the last characters."""
    subject, count = _cut(node, compile_, "RIGHT")
    return TypedTree(exp.Right(this=subject.tree, expression=count), ColumnType.TEXT)


def _cut(node: exp.Expr, compile_: Compile, name: str) -> tuple[TypedTree, exp.Expression]:
    only(node, "this", "expression", what=name)
    subject = require(compile_(node.this), _TEXT, f"the argument of {name}")
    count = compile_(node.expression).tree
    if not isinstance(count, exp.Literal) or count.is_string or not count.name.isdigit():
        raise UnsupportedSql(f"the length of {name} must be an integer literal from 0; write the number")
    if int(count.name) > _MAX_LENGTH:
        raise UnsupportedSql(f"the length of {name} must be at most {_MAX_LENGTH}; write a smaller number")
    return subject, count


def read_ends_with(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read ENDS_WITH a literal: its last characters are these."""
    only(node, "this", "expression", what="ENDS_WITH")
    subject = require(compile_(node.this), _TEXT, "the argument of ENDS_WITH")
    suffix = _literal(node.expression, compile_, "the ending of ENDS_WITH")
    last = exp.Right(this=subject.tree, expression=exp.Literal.number(str(len(suffix))))
    return TypedTree(exp.EQ(this=last, expression=text(suffix).tree), ColumnType.BOOLEAN)


def read_replace(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read REPLACE of a literal by one that is no longer: so no row's text can grow."""
    only(node, "this", "expression", "replacement", what="REPLACE")
    subject = require(compile_(node.this), _TEXT, "the argument of REPLACE")
    old = _literal(node.expression, compile_, "what REPLACE looks for")
    given = node.args.get("replacement")
    new = "" if given is None else _literal(given, compile_, "the replacement of REPLACE", empty=True)
    if len(new.encode()) > len(old.encode()):
        raise UnsupportedSql(
            "REPLACE must put in a text no longer than what it looks for, in bytes; write a shorter one"
        )
    made = exp.Replace(this=subject.tree, expression=text(old).tree, replacement=text(new).tree)
    return TypedTree(made, ColumnType.TEXT)


def _literal(node: exp.Expr, compile_: Compile, what: str, *, empty: bool = False) -> str:
    tree = compile_(node).tree
    if not isinstance(tree, exp.Literal) or not tree.is_string or not (tree.name or empty):
        raise UnsupportedSql(f"{what} must be a string literal that is not empty; write it in quotes")
    return str(tree.name)


def read_same(*, negated: bool) -> Callable[[exp.Expr, Compile], TypedTree]:
    """Make the reader of IS NOT DISTINCT FROM, or of IS DISTINCT FROM: NULL is equal to NULL."""

    def read(node: exp.Expr, compile_: Compile) -> TypedTree:
        only(node, "this", "expression", what="IS DISTINCT FROM")
        (left, right), type_ = common([compile_(node.this), compile_(node.expression)], "IS DISTINCT FROM")
        if type_ is None:
            raise UnsupportedSql("IS DISTINCT FROM must compare a column; write IS NULL")
        absent = [
            exp.Paren(this=exp.Is(this=operand(s).copy(), expression=exp.Null())) for s in (left, right)
        ]
        same = exp.Coalesce(
            this=exp.EQ(this=operand(left), expression=operand(right)),
            expressions=[exp.And(this=absent[0], expression=absent[1])],
        )
        return TypedTree(exp.Not(this=same) if negated else same, ColumnType.BOOLEAN)

    return read


def read_truth(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read IS TRUE and IS FALSE: a condition that is NULL is neither."""
    condition = require(compile_(node.this), {ColumnType.BOOLEAN}, "the left side of IS")
    wanted = bool(node.expression.this)
    meant = condition.tree if wanted else exp.Not(this=operand(condition))
    made = exp.Coalesce(this=meant, expressions=[exp.Boolean(this=False)])
    return TypedTree(exp.Not(this=made) if node.args.get("negate") else made, ColumnType.BOOLEAN)


def join_text(terms: list[TypedTree]) -> TypedTree:
    """Return the strings joined by ||."""
    joined = terms[0]
    for term in terms[1:]:
        left = joined.tree if isinstance(joined.tree, exp.DPipe) else operand(joined)
        joined = TypedTree(exp.DPipe(this=left, expression=operand(term), safe=True), ColumnType.TEXT)
    return joined
