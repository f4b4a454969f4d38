"""Functions of texts, as SQL of a dialect."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from sfumato.queries.engines.compilation.terms import Rule, Terms, TypedSql
from sfumato.queries.engines.compilation.text_bounds import most_bytes
from sfumato.queries.engines.dialects.base import LONGEST_JOINED
from sfumato.queries.plan.patterns import parse_pattern
from sfumato.queries.plan.query import ColumnType

__all__ = ["TEXT_RULES"]


def _like(node: exp.Expr, term: Terms) -> TypedSql:
    return TypedSql(term.dialect.like(term(node.this).sql, node.expression.name), ColumnType.BOOLEAN)


def _text(name: str, type_: ColumnType = ColumnType.TEXT) -> Rule:
    def rule(node: exp.Expr, term: Terms) -> TypedSql:
        return TypedSql(term.dialect.text_function(name, term(node.this).sql), type_)

    return rule


def _substring(node: exp.Expr, term: Terms) -> TypedSql:
    bounds = [node.args["start"], *([node.args["length"]] if node.args.get("length") is not None else [])]
    return TypedSql(
        f"substr({term(node.this).sql}, {', '.join(str(int(b.name)) for b in bounds)})", ColumnType.TEXT
    )


def _starts_with(node: exp.Expr, term: Terms) -> TypedSql:
    return TypedSql(
        term.dialect.starts_with(term(node.this).sql, term(node.expression).sql), ColumnType.BOOLEAN
    )


def _concatenate(node: exp.Expr, term: Terms) -> TypedSql:
    # nothing else makes a text longer; without an end, doubling a text often enough would exhaust the memory
    # for some rows and not for others
    trees = list(node.flatten())
    parts = [term(part).sql for part in trees]
    bounds = [most_bytes(part) for part in trees]
    known = sum(bound for bound in bounds if bound is not None)
    if None not in bounds and known <= LONGEST_JOINED:
        return TypedSql(f"({' || '.join(parts)})", ColumnType.TEXT)
    size = " + ".join(term.dialect.bytes_of(part) for part in parts)
    return TypedSql(f"(CASE WHEN {size} <= {LONGEST_JOINED} THEN {' || '.join(parts)} END)", ColumnType.TEXT)


def _matched(node: exp.Expr, term: Terms) -> TypedSql:
    subject, pattern = term(node.this).sql, parse_pattern(node.expression.name)
    return TypedSql(_not_long(subject, term.dialect.matches(subject, pattern), term), ColumnType.BOOLEAN)


def _extracted(node: exp.Expr, term: Terms) -> TypedSql:
    subject, pattern = term(node.this).sql, parse_pattern(node.expression.name, extracts=True)
    return TypedSql(_not_long(subject, term.dialect.matched_part(subject, pattern), term), ColumnType.TEXT)


def _not_long(subject: str, sql: str, term: Terms) -> str:
    # an engine that backtracks takes time that grows with the square of the length
    return f"(CASE WHEN {term.dialect.bytes_of(subject)} <= {LONGEST_JOINED} THEN {sql} END)"


def _right(node: exp.Expr, term: Terms) -> TypedSql:
    return TypedSql(f"right({term(node.this).sql}, {int(node.expression.name)})", ColumnType.TEXT)


def _replace(node: exp.Expr, term: Terms) -> TypedSql:
    old, new = (term.dialect.text(node.args[slot].name) for slot in ("expression", "replacement"))
    return TypedSql(f"replace({term(node.this).sql}, {old}, {new})", ColumnType.TEXT)


TEXT_RULES: Final[dict[type[exp.Expr], Rule]] = {
    exp.Lower: _text("lower"),
    exp.Upper: _text("upper"),
    exp.Trim: _text("trim"),
    exp.Length: _text("length", type_=ColumnType.INTEGER),
    exp.Substring: _substring,
    exp.StartsWith: _starts_with,
    exp.DPipe: _concatenate,
    exp.RegexpExtract: _extracted,
    exp.RegexpLike: _matched,
    exp.Right: _right,
    exp.Replace: _replace,
    exp.Like: _like,
}
"""How each node of a function of texts is rendered."""
