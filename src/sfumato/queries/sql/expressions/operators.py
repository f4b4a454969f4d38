"""The operators of scalar expressions: literals, arithmetic, comparisons, logic, IN, BETWEEN, LIKE, CASE."""

from __future__ import annotations

import re

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.constants import common, is_constant, number, text
from sfumato.queries.plan.date_arithmetic import read_span
from sfumato.queries.plan.query import ColumnType
from sfumato.queries.plan.typed_expressions import (
    NUMERIC,
    Compile,
    TypedTree,
    only,
    operand,
    require,
    require_order,
)
from sfumato.queries.sql.expressions.functions import Reader
from sfumato.queries.sql.expressions.rewrites import join_text, read_same, read_truth

__all__ = ["OPERATORS", "chain"]

_BOOLEAN = frozenset({ColumnType.BOOLEAN})
_TEXT = frozenset({ColumnType.TEXT})
_DIGITS = re.compile(r"[+-]?[0-9]{1,38}(\.[0-9]{0,38})?")
_MAX_LISTED = 4_000  # more would make a text too long for an engine


def _negative(node: exp.Expr, compile_: Compile) -> TypedTree:
    inner = node.this.unnest()
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return number(inner.name, negative=True)
    term = require(compile_(inner), NUMERIC, "the operand of -")
    return TypedTree(exp.Neg(this=operand(term)), term.type)


def _arithmetic(make: type[exp.Expression], sign: str) -> Reader:
    def read(node: exp.Expr, compile_: Compile) -> TypedTree:
        only(node, "this", "expression", "typed", "safe", what=sign)
        span = node.expression.unnest()
        if isinstance(span, exp.Interval) and make is not exp.Div and make is not exp.Mul:
            return read_span(compile_(node.this), span, 1 if make is exp.Add else -1, compile_)
        sides = [
            require(compile_(side), NUMERIC, f"an operand of {sign}") for side in (node.this, node.expression)
        ]
        _, type_ = common(sides, sign)
        left, right = (operand(side) for side in sides)
        if make is exp.Div:
            return TypedTree(exp.Div(this=left, expression=right, typed=False, safe=False), ColumnType.FLOAT)
        return TypedTree(make(this=left, expression=right), type_)

    return read


def _comparison(make: type[exp.Expression], sign: str) -> Reader:
    def read(node: exp.Expr, compile_: Compile) -> TypedTree:
        only(node, "this", "expression", what=sign)
        sides = [_not_null(compile_(side), sign) for side in (node.this, node.expression)]
        if make not in (exp.EQ, exp.NEQ):
            require_order(sides, f"the comparison {sign}")
        (left, right), _ = common(sides, f"the comparison {sign}")
        return TypedTree(make(this=operand(left), expression=operand(right)), ColumnType.BOOLEAN)

    return read


def _not_null(term: TypedTree, sign: str) -> TypedTree:
    if term.type is None:
        raise SchemaError(f"{sign} with NULL is never true; write IS NULL or IS NOT NULL")
    return term


def _connective(make: type[exp.And] | type[exp.Or], word: str) -> Reader:
    def read(node: exp.Expr, compile_: Compile) -> TypedTree:
        only(node, "this", "expression", what=word)
        terms = [require(compile_(part), _BOOLEAN, f"an operand of {word}") for part in chain(node, make)]
        return TypedTree(_balanced(make, [operand(term) for term in terms]), ColumnType.BOOLEAN)

    return read


def chain(node: exp.Expr, make: type[exp.And] | type[exp.Or]) -> list[exp.Expr]:
    """Return the operands of a AND b AND c ...; a loop, for chains may be long."""
    operands: list[exp.Expr] = []
    pending = [node]
    while pending:
        part = pending.pop().unnest()
        if type(part) is make:
            pending += (part.expression, part.this)
        else:
            operands.append(part)
    return operands


def _balanced(make: type[exp.And] | type[exp.Or], trees: list[exp.Expression]) -> exp.Expression:
    """Connect the trees to a tree of logarithmic depth; AND and OR are associative."""
    if len(trees) == 1:
        return trees[0]
    half = len(trees) // 2
    return make(this=_balanced(make, trees[:half]), expression=_balanced(make, trees[half:]))


def _not(node: exp.Expr, compile_: Compile) -> TypedTree:
    return _negated(require(compile_(node.this), _BOOLEAN, "the operand of NOT"))


def _negated(term: TypedTree) -> TypedTree:
    return TypedTree(exp.Not(this=operand(term)), ColumnType.BOOLEAN)


def _perhaps_negated(node: exp.Expr, tree: exp.Expression) -> TypedTree:
    # NOT LIKE, NOT IN and NOT BETWEEN come as a flag or as a Not above, by the parser's version
    term = TypedTree(tree, ColumnType.BOOLEAN)
    return _negated(term) if node.args.get("negate") else term


def _is(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "expression", "negate", what="IS")
    if isinstance(node.expression, exp.Boolean):
        return read_truth(node, compile_)
    if not isinstance(node.expression, exp.Null):
        raise UnsupportedSql("IS must be followed by NULL, NOT NULL, TRUE or FALSE; write x = y instead")
    return _perhaps_negated(node, exp.Is(this=operand(compile_(node.this)), expression=exp.Null()))


def _in(node: exp.Expr, compile_: Compile) -> TypedTree:
    if node.args.get("query") is not None:
        raise UnsupportedSql(
            "IN with a subquery must be a condition of its own in WHERE, joined by AND, over a public table; "
            "else list the values"
        )
    only(node, "this", "expressions", "negate", "unnest", what="IN")
    written = _listed(node)
    if len(written) > _MAX_LISTED:
        raise UnsupportedSql(
            f"IN must list at most {_MAX_LISTED} values, got {len(written)}; put them into a public table, "
            "and name it in the parentheses, as a subquery"
        )
    values = [compile_(value) for value in written]
    if not values or not all(is_constant(value) or _is_numeric(value) for value in values):
        raise UnsupportedSql("IN must list literals; write x IN ('a', 'b'), and IS NULL for NULL")
    (subject, *members), _ = common([_not_null(compile_(node.this), "IN"), *values], "IN")
    return _perhaps_negated(
        node, exp.In(this=operand(subject), expressions=[member.tree for member in members])
    )


def _is_numeric(term: TypedTree) -> bool:
    """Return whether a term is a literal such as NUMERIC '0.5'."""
    tree = term.tree
    digits = tree.this if isinstance(tree, exp.TryCast) and term.type is ColumnType.DECIMAL else None
    return isinstance(digits, exp.Literal) and _DIGITS.fullmatch(digits.name) is not None


def _listed(node: exp.Expr) -> list[exp.Expr]:
    """Return what IN lists, in parentheses or as UNNEST of an array of literals."""
    unnest = node.args.get("unnest")
    if unnest is None:
        return list(node.expressions)
    arrays = unnest.expressions
    if len(arrays) != 1 or not isinstance(arrays[0], exp.Array):
        raise UnsupportedSql("IN UNNEST must have an array of literals; write x IN UNNEST([1, 2])")
    return list(arrays[0].expressions)


def _between(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "low", "high", "negate", what="BETWEEN")
    parts = [
        _not_null(compile_(part), "BETWEEN") for part in (node.this, node.args["low"], node.args["high"])
    ]
    require_order(parts, "BETWEEN")
    (subject, low, high), _ = common(parts, "BETWEEN")
    tree = exp.Between(this=operand(subject), low=operand(low), high=operand(high))
    return _perhaps_negated(node, tree)


def _like(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "expression", "negate", what="LIKE")
    subject = require(compile_(node.this), _TEXT, "the left side of LIKE")
    pattern = node.expression.unnest()
    if not isinstance(pattern, exp.Literal) or not pattern.is_string or "\\" in pattern.name:
        raise UnsupportedSql(
            "the pattern of LIKE must be a string literal without backslash; write LIKE 'ab%'"
        )
    return _perhaps_negated(node, exp.Like(this=operand(subject), expression=text(pattern.name).tree))


def _pipes(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "expression", "safe", what="||")
    return join_text(
        [require(compile_(side), _TEXT, "an operand of ||") for side in (node.this, node.expression)]
    )


def _case(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "ifs", "default", what="CASE")
    branches = node.args["ifs"]
    subject = node.args.get("this")
    tests = [compile_(branch.this) for branch in branches]
    if subject is None:
        tests = [require(test, _BOOLEAN, "a condition of CASE") for test in tests]
    else:
        value, *tests = common([compile_(subject), *(_not_null(test, "WHEN") for test in tests)], "CASE")[0]
        subject = value.tree
    default = node.args.get("default")
    results = [compile_(branch.args["true"]) for branch in branches]
    results.append(TypedTree(exp.Null(), None) if default is None else compile_(default))
    (*thens, otherwise), type_ = common(results, "CASE")
    ifs = [exp.If(this=test.tree, true=then.tree) for test, then in zip(tests, thens, strict=True)]
    return TypedTree(exp.Case(this=subject, ifs=ifs, default=otherwise.tree), type_)


OPERATORS: dict[type[exp.Expr], Reader] = {
    exp.Literal: lambda node, _: text(node.name) if node.is_string else number(node.name),
    exp.RawString: lambda node, _: text(str(node.this)),
    exp.Boolean: lambda node, _: TypedTree(exp.Boolean(this=bool(node.this)), ColumnType.BOOLEAN),
    exp.Null: lambda _node, _: TypedTree(exp.Null(), None),
    exp.Neg: _negative,
    exp.Add: _arithmetic(exp.Add, "+"),
    exp.Sub: _arithmetic(exp.Sub, "-"),
    exp.Mul: _arithmetic(exp.Mul, "*"),
    exp.Div: _arithmetic(exp.Div, "/"),
    exp.EQ: _comparison(exp.EQ, "="),
    exp.NEQ: _comparison(exp.NEQ, "<>"),
    exp.GT: _comparison(exp.GT, ">"),
    exp.GTE: _comparison(exp.GTE, ">="),
    exp.LT: _comparison(exp.LT, "<"),
    exp.LTE: _comparison(exp.LTE, "<="),
    exp.And: _connective(exp.And, "AND"),
    exp.Or: _connective(exp.Or, "OR"),
    exp.Not: _not,
    exp.Is: _is,
    exp.NullSafeEQ: read_same(negated=False),
    exp.NullSafeNEQ: read_same(negated=True),
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.DPipe: _pipes,
    exp.Case: _case,
}
"""How each operator of the parser's tree is read."""
