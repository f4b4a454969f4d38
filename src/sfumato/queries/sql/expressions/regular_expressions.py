"""REGEXP_CONTAINS and REGEXP_EXTRACT, with patterns that every engine reads alike."""

from __future__ import annotations

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan.constants import text
from sfumato.queries.plan.patterns import parse_pattern
from sfumato.queries.plan.schema import ColumnType
from sfumato.queries.plan.typed_expressions import Compile, TypedTree, only, require

__all__ = ["read_extracted_pattern", "read_matched_pattern"]


def read_matched_pattern(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read REGEXP_CONTAINS: whether a part of the text matches."""
    only(node, "this", "expression", "full_match", what="REGEXP_CONTAINS")
    subject = require(compile_(node.this), {ColumnType.TEXT}, "the argument of REGEXP_CONTAINS")
    pattern = _pattern(node.expression, compile_, "REGEXP_CONTAINS")
    parse_pattern(pattern)
    return TypedTree(exp.RegexpLike(this=subject.tree, expression=text(pattern).tree), ColumnType.BOOLEAN)


def read_extracted_pattern(node: exp.Expr, compile_: Compile) -> TypedTree:
    """Read REGEXP_EXTRACT: the first part of the text that matches, or what it captures there; else NULL."""
    for slot in ("position", "occurrence", "parameters"):
        if node.args.get(slot) is not None:
            raise UnsupportedSql("REGEXP_EXTRACT is of the first match; write REGEXP_EXTRACT(s, r'[0-9]+')")
    subject = require(compile_(node.this), {ColumnType.TEXT}, "the argument of REGEXP_EXTRACT")
    pattern = _pattern(node.expression, compile_, "REGEXP_EXTRACT")
    parse_pattern(pattern, extracts=True)
    return TypedTree(exp.RegexpExtract(this=subject.tree, expression=text(pattern).tree), ColumnType.TEXT)


def _pattern(node: exp.Expr, compile_: Compile, name: str) -> str:
    tree = compile_(node).tree
    if not isinstance(tree, exp.Literal) or not tree.is_string:
        raise UnsupportedSql(f"the pattern of {name} must be a string literal; write {name}(s, r'^[0-9]+$')")
    return str(tree.name)
