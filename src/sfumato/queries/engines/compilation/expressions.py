"""Expressions as SQL that is total: no row can raise, and no row touches another row's value.

One rule holds for everything that has no value: it is NULL. That is an integer that overflows, a division by
zero, a logarithm of what is not positive, a root of a negative number, a cast that fails, a moment out of
range, text joined to more than 16 KiB. Floats follow IEEE 754: too large is infinity. The engine then reads
NaN as NULL and clamps infinity to a bound. Each dialect keeps that rule by means of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sfumato.queries.engines.compilation.calendar import between, moved, moved_by
from sfumato.queries.engines.compilation.decimals import as_decimal, as_unsigned
from sfumato.queries.engines.compilation.terms import Rule, Terms, TypedSql
from sfumato.queries.engines.compilation.text_expressions import TEXT_RULES
from sfumato.queries.engines.dialects.base import Dialect
from sfumato.queries.plan.constants import is_constant
from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.plan.typed_expressions import TEMPORAL, UNSIGNED, TypedTree

__all__ = ["render"]


def render(expression: Expression, columns: Mapping[str, TypedSql], dialect: Dialect) -> str:
    """Return the text of a checked expression, in the type the plan gives it.

    Parameters
    ----------
    expression : Expression
        Whitelisted nodes only.
    columns : mapping of str to TypedSql
        The columns below, by case-folded name.
    dialect : Dialect

    Raises
    ------
    UnsupportedSql
        If a node is not on the list, or the text would be too long: guards repeat their operand.
    """
    terms = Terms(columns, dialect, _RULES)
    return terms.cast(terms(expression.tree), expression.type)


def _literal(node: exp.Expr, term: Terms) -> TypedSql:
    if node.is_string:
        return TypedSql(term.dialect.text(node.name), ColumnType.TEXT)
    return _number(node.name, term.dialect)


def _number(digits: str, dialect: Dialect) -> TypedSql:
    if digits.lstrip("-").isdigit():
        return TypedSql(dialect.integer(int(digits)), ColumnType.INTEGER)
    return TypedSql(dialect.real(float(digits)), ColumnType.FLOAT)


def _boolean(node: exp.Expr, _: Terms) -> TypedSql:
    return TypedSql("TRUE" if node.this else "FALSE", ColumnType.BOOLEAN)


def _null(_node: exp.Expr, _: Terms) -> TypedSql:
    return TypedSql("NULL", None)


def _negative(node: exp.Expr, term: Terms) -> TypedSql:
    if isinstance(node.this, exp.Literal):
        return _number("-" + node.this.name, term.dialect)
    inner = term(node.this)
    if inner.type is ColumnType.FLOAT:
        return TypedSql(f"(-({inner.sql}))", inner.type)
    # the minus sign before a constant would widen the type instead of overflowing
    zero = term.dialect.integer(0)
    return TypedSql(term.dialect.arithmetic("-", zero, inner.sql, inner.type), inner.type)


def _arithmetic(sign: str) -> Rule:
    def rule(node: exp.Expr, term: Terms) -> TypedSql:
        (left, right), type_ = term.unified([term(node.this), term(node.expression)])
        return TypedSql(term.dialect.arithmetic(sign, left, right, type_), type_)

    return rule


def _divide(node: exp.Expr, term: Terms) -> TypedSql:
    return TypedSql(term.dialect.divided(term.real(node.this), term.real(node.expression)), ColumnType.FLOAT)


def _modulo(node: exp.Expr, term: Terms) -> TypedSql:
    (left, right), type_ = term.unified([term(node.this), term(node.expression)])
    return TypedSql(term.dialect.remainder(left, right, type_), type_)


def _comparison(sign: str) -> Rule:
    def rule(node: exp.Expr, term: Terms) -> TypedSql:
        (left, right), _ = term.unified([term(node.this), term(node.expression)])
        return TypedSql(f"({left} {sign} {right})", ColumnType.BOOLEAN)

    return rule


def _connective(word: str) -> Rule:
    def rule(node: exp.Expr, term: Terms) -> TypedSql:
        sql = f"({term(node.this).sql} {word} {term(node.expression).sql})"
        return TypedSql(sql, ColumnType.BOOLEAN)

    return rule


def _not(node: exp.Expr, term: Terms) -> TypedSql:
    return TypedSql(f"(NOT {term(node.this).sql})", ColumnType.BOOLEAN)


def _is_null(node: exp.Expr, term: Terms) -> TypedSql:
    return TypedSql(f"({term(node.this).sql} IS NULL)", ColumnType.BOOLEAN)


def _in(node: exp.Expr, term: Terms) -> TypedSql:
    (subject, *members), _ = term.unified([term(part) for part in (node.this, *node.expressions)])
    return TypedSql(f"({subject} IN ({', '.join(members)}))", ColumnType.BOOLEAN)


def _between(node: exp.Expr, term: Terms) -> TypedSql:
    parts = (node.this, node.args["low"], node.args["high"])
    (subject, low, high), _ = term.unified([term(part) for part in parts])
    return TypedSql(f"({subject} BETWEEN {low} AND {high})", ColumnType.BOOLEAN)


def _case(node: exp.Expr, term: Terms) -> TypedSql:
    branches = node.args["ifs"]
    tests = [term(branch.this) for branch in branches]
    if node.args.get("this") is not None:
        (subject, *values), _ = term.unified([term(node.this), *tests])
        conditions = [f"{subject} = {value}" for value in values]
    else:
        conditions = [test.sql for test in tests]
    default = node.args.get("default")
    results = [term(branch.args["true"]) for branch in branches]
    results.append(TypedSql("NULL", None) if default is None else term(default))
    (*thens, otherwise), type_ = term.unified(results)
    whens = " ".join(f"WHEN {c} THEN {t}" for c, t in zip(conditions, thens, strict=True))
    return TypedSql(f"(CASE {whens} ELSE {otherwise} END)", type_)


def _coalesce(node: exp.Expr, term: Terms) -> TypedSql:
    values, type_ = term.unified([term(part) for part in (node.this, *node.expressions)])
    return TypedSql(f"COALESCE({', '.join(values)})", type_)


def _extreme(name: str) -> Rule:
    def rule(node: exp.Expr, term: Terms) -> TypedSql:
        values, type_ = term.unified([term(part) for part in (node.this, *node.expressions)])
        # DuckDB's LEAST and GREATEST skip NULLs; the plan's are NULL if any argument is
        absent = " OR ".join(f"{value} IS NULL" for value in values)
        return TypedSql(f"(CASE WHEN {absent} THEN NULL ELSE {name}({', '.join(values)}) END)", type_)

    return rule


def _nullif(node: exp.Expr, term: Terms) -> TypedSql:
    first, second = term(node.this), term(node.expression)
    (left, right), _ = term.unified([first, second])
    return TypedSql(f"(CASE WHEN {left} = {right} THEN NULL ELSE {first.sql} END)", first.type)


def _absolute(node: exp.Expr, term: Terms) -> TypedSql:
    inner = term(node.this)
    return TypedSql(term.dialect.absolute(inner.sql, inner.type), inner.type)


def _sign(node: exp.Expr, term: Terms) -> TypedSql:
    inner = term(node.this)
    type_ = ColumnType.INTEGER if inner.type is None else inner.type
    return TypedSql(f"CAST(sign({inner.sql}) AS {term.dialect.types[type_]})", inner.type)


def _real(name: str) -> Rule:
    """Make the rule of a function of one float; outside its domain it is NULL."""

    def rule(node: exp.Expr, term: Terms) -> TypedSql:
        return TypedSql(term.dialect.real_function(name, term.real(node.this)), ColumnType.FLOAT)

    return rule


def _log10(node: exp.Expr, term: Terms) -> TypedSql:
    return TypedSql(term.dialect.real_function("log10", term.real(node.expression)), ColumnType.FLOAT)


def _power(node: exp.Expr, term: Terms) -> TypedSql:
    return TypedSql(term.dialect.power(term.real(node.this), term.real(node.expression)), ColumnType.FLOAT)


def _round(node: exp.Expr, term: Terms) -> TypedSql:
    decimals = node.args.get("decimals")
    decimal_places = None if decimals is None else int(decimals.name)
    return TypedSql(term.dialect.rounded(term.real(node.this), decimal_places), ColumnType.FLOAT)


_TARGETS = {
    exp.DataType.Type.BOOLEAN: ColumnType.BOOLEAN,
    exp.DataType.Type.BIGINT: ColumnType.INTEGER,
    exp.DataType.Type.DOUBLE: ColumnType.FLOAT,
    exp.DataType.Type.TEXT: ColumnType.TEXT,
    exp.DataType.Type.DATE: ColumnType.DATE,
    exp.DataType.Type.TIMESTAMP: ColumnType.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: ColumnType.TIMESTAMP,
    exp.DataType.Type.DECIMAL: ColumnType.DECIMAL,
    UNSIGNED.this: ColumnType.DECIMAL,
}


def _cast(node: exp.Expr, term: Terms) -> TypedSql:
    inner, target = term(node.this), _TARGETS[node.args["to"].this]
    if target is ColumnType.DECIMAL:
        made = as_unsigned if node.args["to"].this == UNSIGNED.this else as_decimal
        return TypedSql(made(inner.sql, inner.type, term.dialect), target)
    if target in TEMPORAL and isinstance(node, exp.TryCast) and is_constant(TypedTree(node, target)):
        return TypedSql(term.dialect.moment(node.this.name, target), target)
    return TypedSql(term.dialect.cast(inner.sql, inner.type, target), target)


def _extract(node: exp.Expr, term: Terms) -> TypedSql:
    moment = term(node.expression)
    return TypedSql(term.dialect.part(node.this.name, moment.sql, moment.type), ColumnType.INTEGER)


def _truncate(node: exp.Expr, term: Terms) -> TypedSql:
    moment = term(node.this)
    return TypedSql(term.dialect.truncated(node.args["unit"].name, moment.sql, moment.type), moment.type)


def _whole_part(node: exp.Expr, term: Terms) -> TypedSql:
    # of a number that is not negative, by one that is not zero
    made = term.dialect.quotient(term(node.this).sql, term(node.expression).sql)
    return TypedSql(term.dialect.converted(made, ColumnType.INTEGER), ColumnType.INTEGER)


def _moved(node: exp.Expr, term: Terms) -> TypedSql:
    moment = term(node.this)
    if isinstance(node.expression, exp.Paren):  # an amount that a column says
        count = term.cast(term(node.expression), ColumnType.INTEGER)
        return TypedSql(moved_by(moment.sql, count, term.dialect), moment.type)
    return TypedSql(moved(node, moment.sql, term.dialect), moment.type)


def _between_moments(node: exp.Expr, term: Terms) -> TypedSql:
    later, earlier = term(node.this).sql, term(node.expression).sql
    return TypedSql(between(node, later, earlier, term.dialect), ColumnType.INTEGER)


_RULES: dict[type[exp.Expr], Rule] = {
    **TEXT_RULES,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Neg: _negative,
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _divide,
    exp.Mod: _modulo,
    exp.EQ: _comparison("="),
    exp.NEQ: _comparison("<>"),
    exp.GT: _comparison(">"),
    exp.GTE: _comparison(">="),
    exp.LT: _comparison("<"),
    exp.LTE: _comparison("<="),
    exp.And: _connective("AND"),
    exp.Or: _connective("OR"),
    exp.Not: _not,
    exp.Is: _is_null,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.Coalesce: _coalesce,
    exp.Greatest: _extreme("greatest"),
    exp.Least: _extreme("least"),
    exp.Nullif: _nullif,
    exp.Abs: _absolute,
    exp.Sign: _sign,
    exp.Sqrt: _real("sqrt"),
    exp.Ln: _real("ln"),
    exp.Log: _log10,
    exp.Exp: _real("exp"),
    exp.Floor: _real("floor"),
    exp.Ceil: _real("ceil"),
    exp.Pow: _power,
    exp.Round: _round,
    exp.IntDiv: _whole_part,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    **dict.fromkeys((exp.DateAdd, exp.DateSub, exp.TimestampAdd, exp.TimestampSub), _moved),
    **dict.fromkeys((exp.DateDiff, exp.TimestampDiff), _between_moments),
    exp.DateTrunc: _truncate,
    exp.TimestampTrunc: _truncate,
}
