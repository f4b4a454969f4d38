"""Expressions as DuckDB SQL that is total: no row can raise, and no row touches another row's value.

One rule holds for everything that has no value: it is NULL. That is an integer that overflows, a division by
zero, a logarithm of what is not positive, a root of a negative number, a cast that fails, a moment out of
range, text joined to more than 16 KiB. Floats follow IEEE 754: too large is infinity. The engine then reads
NaN as NULL and clamps infinity to a bound.

What fails often is guarded by CASE, which costs nothing; ``TRY`` guards what fails rarely, for it computes a
vector again row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan import ColumnType, Expression

__all__ = ["SQL_TYPES", "Rendered", "quoted_text", "render"]

SQL_TYPES = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INTEGER: "BIGINT",
    ColumnType.FLOAT: "DOUBLE",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}
"""The one DuckDB type that each type is computed in."""

_LONGEST_TEXT = 200_000
_LONGEST_JOINED = 1 << 14  # bytes; a thousand rows of such texts are still small
_WHITE_SPACE = "chr(32) || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"


@dataclass(frozen=True, slots=True)
class Rendered:
    """SQL text, closed (it can stand as an operand), and its type; None for a bare NULL."""

    sql: str
    type: ColumnType | None


_Render: TypeAlias = Callable[[exp.Expr], Rendered]
_Rule: TypeAlias = Callable[[exp.Expr, _Render], Rendered]


def render(expression: Expression, columns: Mapping[str, Rendered]) -> str:
    """Return the DuckDB text of a checked expression, in the type the plan gives it.

    Parameters
    ----------
    expression : Expression
        Whitelisted nodes only.
    columns : mapping of str to Rendered
        The columns below, by case-folded name.

    Raises
    ------
    UnsupportedSql
        If a node is not on the list, or the text would be too long: guards repeat their operand.
    """

    def term(node: exp.Expr) -> Rendered:
        if isinstance(node, exp.Paren):
            return term(node.this)
        if type(node) is exp.Column:
            return columns[node.name.casefold()]
        rule = _RULES.get(type(node))
        if rule is None:
            raise UnsupportedSql(
                f"{type(node).__name__} is not supported by this engine; rewrite the expression"
            )
        made = rule(node, term)
        if len(made.sql) > _LONGEST_TEXT:
            raise UnsupportedSql(
                "an expression must be less nested for this engine; compute parts in a subquery"
            )
        return made

    return _as(term(expression.tree), expression.type)


def quoted_text(value: str) -> str:
    """Return a string literal."""
    return "'" + value.replace("'", "''") + "'"


def _as(term: Rendered, type_: ColumnType) -> str:
    return term.sql if term.type is type_ else f"CAST({term.sql} AS {SQL_TYPES[type_]})"


def _shared(terms: list[Rendered]) -> ColumnType | None:
    """Return the type of values that stand beside each other; only integers and floats ever mix."""
    types = {term.type for term in terms if term.type is not None}
    return ColumnType.FLOAT if len(types) > 1 else next(iter(types), None)


def _unified(terms: list[Rendered]) -> tuple[list[str], ColumnType | None]:
    type_ = _shared(terms)
    if type_ is None:
        return [term.sql for term in terms], None
    return [_as(term, type_) for term in terms], type_


def _literal(node: exp.Expr, _: _Render) -> Rendered:
    if node.is_string:
        return Rendered(f"CAST({quoted_text(node.name)} AS VARCHAR)", ColumnType.TEXT)
    return _number(node.name)


def _number(digits: str) -> Rendered:
    if digits.lstrip("-").isdigit():
        return Rendered(f"CAST({quoted_text(digits)} AS BIGINT)", ColumnType.INTEGER)
    return Rendered(f"CAST({quoted_text(digits)} AS DOUBLE)", ColumnType.FLOAT)


def _boolean(node: exp.Expr, _: _Render) -> Rendered:
    return Rendered("TRUE" if node.this else "FALSE", ColumnType.BOOLEAN)


def _null(_node: exp.Expr, _: _Render) -> Rendered:
    return Rendered("NULL", None)


def _negative(node: exp.Expr, term: _Render) -> Rendered:
    if isinstance(node.this, exp.Literal):
        return _number("-" + node.this.name)
    inner = term(node.this)
    if inner.type is ColumnType.FLOAT:
        return Rendered(f"(-({inner.sql}))", inner.type)
    # the minus sign before a constant would widen the type instead of overflowing
    return Rendered(f"TRY({_number('0').sql} - {inner.sql})", inner.type)


def _guarded(sql: str, type_: ColumnType | None) -> str:
    """Integers overflow with an error, floats to infinity."""
    return f"({sql})" if type_ is ColumnType.FLOAT else f"TRY({sql})"


def _arithmetic(sign: str) -> _Rule:
    def rule(node: exp.Expr, term: _Render) -> Rendered:
        (left, right), type_ = _unified([term(node.this), term(node.expression)])
        return Rendered(_guarded(f"{left} {sign} {right}", type_), type_)

    return rule


def _divide(node: exp.Expr, term: _Render) -> Rendered:
    left, right = (_as(term(side), ColumnType.FLOAT) for side in (node.this, node.expression))
    return Rendered(f"(CASE WHEN {right} <> 0 THEN {left} / {right} END)", ColumnType.FLOAT)


def _modulo(node: exp.Expr, term: _Render) -> Rendered:
    (left, right), type_ = _unified([term(node.this), term(node.expression)])
    rest = _guarded(f"{left} % {right}", type_)
    return Rendered(f"(CASE WHEN {right} <> 0 THEN {rest} END)", type_)


def _comparison(sign: str) -> _Rule:
    def rule(node: exp.Expr, term: _Render) -> Rendered:
        (left, right), _ = _unified([term(node.this), term(node.expression)])
        return Rendered(f"({left} {sign} {right})", ColumnType.BOOLEAN)

    return rule


def _connective(word: str) -> _Rule:
    def rule(node: exp.Expr, term: _Render) -> Rendered:
        sql = f"({term(node.this).sql} {word} {term(node.expression).sql})"
        return Rendered(sql, ColumnType.BOOLEAN)

    return rule


def _not(node: exp.Expr, term: _Render) -> Rendered:
    return Rendered(f"(NOT {term(node.this).sql})", ColumnType.BOOLEAN)


def _is_null(node: exp.Expr, term: _Render) -> Rendered:
    return Rendered(f"({term(node.this).sql} IS NULL)", ColumnType.BOOLEAN)


def _in(node: exp.Expr, term: _Render) -> Rendered:
    (subject, *members), _ = _unified([term(part) for part in (node.this, *node.expressions)])
    return Rendered(f"({subject} IN ({', '.join(members)}))", ColumnType.BOOLEAN)


def _between(node: exp.Expr, term: _Render) -> Rendered:
    parts = (node.this, node.args["low"], node.args["high"])
    (subject, low, high), _ = _unified([term(part) for part in parts])
    return Rendered(f"({subject} BETWEEN {low} AND {high})", ColumnType.BOOLEAN)


def _like(node: exp.Expr, term: _Render) -> Rendered:
    pattern = quoted_text(node.expression.name)
    return Rendered(f"({term(node.this).sql} LIKE {pattern})", ColumnType.BOOLEAN)


def _case(node: exp.Expr, term: _Render) -> Rendered:
    branches = node.args["ifs"]
    tests = [term(branch.this) for branch in branches]
    if node.args.get("this") is not None:
        (subject, *values), _ = _unified([term(node.this), *tests])
        conditions = [f"{subject} = {value}" for value in values]
    else:
        conditions = [test.sql for test in tests]
    default = node.args.get("default")
    results = [term(branch.args["true"]) for branch in branches]
    results.append(Rendered("NULL", None) if default is None else term(default))
    (*thens, otherwise), type_ = _unified(results)
    whens = " ".join(f"WHEN {c} THEN {t}" for c, t in zip(conditions, thens, strict=True))
    return Rendered(f"(CASE {whens} ELSE {otherwise} END)", type_)


def _coalesce(node: exp.Expr, term: _Render) -> Rendered:
    values, type_ = _unified([term(part) for part in (node.this, *node.expressions)])
    return Rendered(f"COALESCE({', '.join(values)})", type_)


def _extreme(name: str) -> _Rule:
    def rule(node: exp.Expr, term: _Render) -> Rendered:
        values, type_ = _unified([term(part) for part in (node.this, *node.expressions)])
        # DuckDB's LEAST and GREATEST skip NULLs; the plan's are NULL if any argument is
        absent = " OR ".join(f"{value} IS NULL" for value in values)
        return Rendered(f"(CASE WHEN {absent} THEN NULL ELSE {name}({', '.join(values)}) END)", type_)

    return rule


def _nullif(node: exp.Expr, term: _Render) -> Rendered:
    first, second = term(node.this), term(node.expression)
    (left, right), _ = _unified([first, second])
    return Rendered(f"(CASE WHEN {left} = {right} THEN NULL ELSE {first.sql} END)", first.type)


def _absolute(node: exp.Expr, term: _Render) -> Rendered:
    inner = term(node.this)
    return Rendered(_guarded(f"abs({inner.sql})", inner.type), inner.type)


def _sign(node: exp.Expr, term: _Render) -> Rendered:
    inner = term(node.this)
    return Rendered(f"CAST(sign({inner.sql}) AS {_name(inner.type)})", inner.type)


def _name(type_: ColumnType | None) -> str:
    return SQL_TYPES[ColumnType.INTEGER if type_ is None else type_]


def _real(name: str, domain: str = "") -> _Rule:
    """Make the rule of a function of one float; outside its domain it is NULL."""

    def rule(node: exp.Expr, term: _Render) -> Rendered:
        x = _as(term(node.this), ColumnType.FLOAT)
        sql = f"(CASE WHEN {x} {domain} THEN {name}({x}) END)" if domain else f"{name}({x})"
        return Rendered(sql, ColumnType.FLOAT)

    return rule


def _log10(node: exp.Expr, term: _Render) -> Rendered:
    x = _as(term(node.expression), ColumnType.FLOAT)
    return Rendered(f"(CASE WHEN {x} > 0 THEN log10({x}) END)", ColumnType.FLOAT)


def _power(node: exp.Expr, term: _Render) -> Rendered:
    base, exponent = (_as(term(side), ColumnType.FLOAT) for side in (node.this, node.expression))
    return Rendered(f"TRY(pow({base}, {exponent}))", ColumnType.FLOAT)


def _round(node: exp.Expr, term: _Render) -> Rendered:
    x = _as(term(node.this), ColumnType.FLOAT)
    decimals = node.args.get("decimals")
    places = f", {int(decimals.name)}" if decimals is not None else ""
    return Rendered(f"round({x}{places})", ColumnType.FLOAT)


def _text(name: str, tail: str = "", type_: ColumnType = ColumnType.TEXT) -> _Rule:
    def rule(node: exp.Expr, term: _Render) -> Rendered:
        return Rendered(f"{name}({term(node.this).sql}{tail})", type_)

    return rule


def _substring(node: exp.Expr, term: _Render) -> Rendered:
    bounds = [node.args["start"], *([node.args["length"]] if node.args.get("length") is not None else [])]
    return Rendered(
        f"substr({term(node.this).sql}, {', '.join(str(int(b.name)) for b in bounds)})", ColumnType.TEXT
    )


def _starts_with(node: exp.Expr, term: _Render) -> Rendered:
    return Rendered(f"starts_with({term(node.this).sql}, {term(node.expression).sql})", ColumnType.BOOLEAN)


def _concatenate(node: exp.Expr, term: _Render) -> Rendered:
    # nothing else makes a text longer; without an end, doubling a text often enough would exhaust the memory
    # for some rows and not for others
    parts = [term(part).sql for part in node.flatten()]
    size = " + ".join(f"strlen({part})" for part in parts)
    return Rendered(f"(CASE WHEN {size} <= {_LONGEST_JOINED} THEN {' || '.join(parts)} END)", ColumnType.TEXT)


_TARGETS = {
    exp.DataType.Type.BOOLEAN: ColumnType.BOOLEAN,
    exp.DataType.Type.BIGINT: ColumnType.INTEGER,
    exp.DataType.Type.DOUBLE: ColumnType.FLOAT,
    exp.DataType.Type.TEXT: ColumnType.TEXT,
    exp.DataType.Type.DATE: ColumnType.DATE,
    exp.DataType.Type.TIMESTAMP: ColumnType.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: ColumnType.TIMESTAMP,
}


def _cast(node: exp.Expr, term: _Render) -> Rendered:
    inner, target = term(node.this), _TARGETS[node.args["to"].this]
    sql = inner.sql
    if inner.type is ColumnType.FLOAT and target is ColumnType.INTEGER:
        sql = f"round({sql})"
    if inner.type is ColumnType.TEXT and target is ColumnType.TIMESTAMP:
        # a text may carry an offset: read it as an instant, then as the clock of UTC
        return Rendered(f"TRY(CAST(TRY_CAST({sql} AS TIMESTAMPTZ) AS TIMESTAMP))", target)
    return Rendered(f"TRY_CAST({sql} AS {SQL_TYPES[target]})", target)


def _extract(node: exp.Expr, term: _Render) -> Rendered:
    part = {"DAYOFYEAR": "doy"}.get(node.this.name, node.this.name.lower())
    return Rendered(f"TRY(date_part('{part}', {term(node.expression).sql}))", ColumnType.INTEGER)


def _truncate(node: exp.Expr, term: _Render) -> Rendered:
    moment = term(node.this)
    sql = f"date_trunc('{node.args['unit'].name.lower()}', {moment.sql})"
    return Rendered(f"TRY(CAST({sql} AS {_name(moment.type)}))", moment.type)


_RULES: dict[type[exp.Expr], _Rule] = {
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
    exp.Like: _like,
    exp.Case: _case,
    exp.Coalesce: _coalesce,
    exp.Greatest: _extreme("greatest"),
    exp.Least: _extreme("least"),
    exp.Nullif: _nullif,
    exp.Abs: _absolute,
    exp.Sign: _sign,
    exp.Sqrt: _real("sqrt", ">= 0"),
    exp.Ln: _real("ln", "> 0"),
    exp.Log: _log10,
    exp.Exp: _real("exp"),
    exp.Floor: _real("floor"),
    exp.Ceil: _real("ceil"),
    exp.Pow: _power,
    exp.Round: _round,
    exp.Lower: _text("lower"),
    exp.Upper: _text("upper"),
    exp.Trim: _text("trim", f", {_WHITE_SPACE}"),
    exp.Length: _text("length", type_=ColumnType.INTEGER),
    exp.Substring: _substring,
    exp.StartsWith: _starts_with,
    exp.DPipe: _concatenate,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.DateTrunc: _truncate,
    exp.TimestampTrunc: _truncate,
}
