"""Scalar expressions over one row: read node by node against a whitelist, typed, and built afresh.

Only the node types in :data:`~sfumato.queries.sql.expressions.operators.OPERATORS` and
:data:`~sfumato.queries.sql.expressions.functions.FUNCTIONS` are read; the parser's other nodes are refused by
name. The trees that come out hold these sqlglot nodes and no others: Column (unqualified, quoted), Literal (a
number is INT64 exactly where its text is digits alone), Boolean, Null, Paren, Neg, Add, Sub, Mul, Div (of
floats), Mod,
 EQ, NEQ, GT, GTE, LT, LTE, And, Or, Not, Is (NULL only), In (constants only), Between, Like (a literal
pattern without backslash), DPipe, Case with If branches, TryCast, and the nodes that the functions make.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.constants import is_constant
from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.plan.typed_expressions import ZONED, TypedTree, closest_name, only, require
from sfumato.queries.sql.expressions.functions import FUNCTION_NAMES, FUNCTIONS, VOLATILE
from sfumato.queries.sql.expressions.operators import OPERATORS
from sfumato.queries.sql.expressions.other_forms import ELSEWHERE, WINDOW_REFUSAL
from sfumato.queries.sql.parser import AGGREGATE_NAMES, PrivateSql

__all__ = [
    "Scope",
    "function_name",
    "is_aggregate",
    "read_constant",
    "read_expression",
    "read_predicate",
    "read_term",
]

_MAX_DEPTH = 48


class Scope(Protocol):
    """What the columns of an expression may name."""

    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        """Return the column as a term, or refuse it."""


class _NoColumns:
    """The scope of constants."""

    def resolve(self, _qualifier: str | None, name: str) -> TypedTree:
        """Refuse every column."""
        raise UnsupportedSql(f"a literal is needed here, got the column {name!r}; write the value itself")


@dataclass(slots=True)
class _Reading:
    """One pass over an expression: the scope, what stands for a column as a whole, and how deep it is."""

    scope: Scope
    whole: Callable[[exp.Expr], TypedTree | None] | None = None
    depth: int = field(default=0)

    def term(self, node: exp.Expr) -> TypedTree:
        """Read one node and what is below it."""
        node = node.unnest()
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise UnsupportedSql(
                f"an expression must be at most {_MAX_DEPTH} deep; compute parts in a subquery"
            )
        try:
            found = None if self.whole is None else self.whole(node)
            if found is not None:
                return found
            if type(node) is exp.Column:
                return self._column(node)
            reader = OPERATORS.get(type(node)) or FUNCTIONS.get(type(node))
            return _refuse(node) if reader is None else reader(node, self.term)
        finally:
            self.depth -= 1

    def _column(self, node: exp.Column) -> TypedTree:
        if isinstance(node.this, exp.Star):
            raise UnsupportedSql("* must not stand in an expression; name the columns")
        only(node, "this", "table", what=f"the column {node.name!r}")
        table = node.args.get("table")
        return self.scope.resolve(None if table is None else table.name, node.name)


def read_expression(
    node: exp.Expr, scope: Scope, what: str, *, whole: Callable[[exp.Expr], TypedTree | None] | None = None
) -> Expression:
    """Read a scalar expression; ``whole`` may give the column that a part of it stands for.

    Raises
    ------
    UnsupportedSql
        If it holds a node that is not on the whitelist.
    SchemaError
        If a column is unknown or a type does not fit.
    """
    term = _Reading(scope, whole).term(node)
    if term.type is None:
        raise SchemaError(
            f"{what} must have a type, got a bare NULL; write CAST(NULL AS STRING) or another type"
        )
    return Expression(term.tree, term.type)


def read_predicate(node: exp.Expr, scope: Scope, what: str) -> Expression:
    """Read a condition."""
    term = require(_Reading(scope).term(node), {ColumnType.BOOLEAN}, what)
    return Expression(term.tree, ColumnType.BOOLEAN)


def read_term(node: exp.Expr, what: str) -> TypedTree:
    """Read an expression without columns; a bare NULL has no type."""
    try:
        return _Reading(_NoColumns()).term(node)
    except RecursionError:
        raise UnsupportedSql(f"{what} is nested too deep; simplify it") from None


def read_constant(node: exp.Expr, what: str) -> TypedTree:
    """Read a literal: a number with or without sign, a string, a boolean, a DATE or a TIMESTAMP."""
    term = _Reading(_NoColumns()).term(node)
    if not is_constant(term):
        raise UnsupportedSql(f"{what} must be a literal; write the value itself")
    return term


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is a call of an aggregate, perhaps with a FILTER."""
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    name = function_name(node)
    return isinstance(node, exp.AggFunc) or name in AGGREGATE_NAMES or name.startswith("ANON_")


def function_name(node: exp.Expr) -> str:
    """Return the name a function is called by, in capitals; empty for what is no function."""
    if isinstance(node, exp.Anonymous):
        return node.name.upper()
    return node.sql_name().upper() if isinstance(node, exp.Func) else ""


def _written_name(node: exp.Expr) -> str:
    """Return the name that the query has for a function, which the parser may know under another."""
    return str(node.meta.get(PrivateSql.ORIGINAL_NAME_META_KEY, "")).upper()


def _refuse(node: exp.Expr) -> NoReturn:
    """Name what is not on the whitelist, and what to write instead."""
    name = function_name(node.this if isinstance(node, exp.Filter) else node)
    if is_aggregate(node):
        raise UnsupportedSql(
            f"the aggregate {name} cannot stand here, inside of an aggregate or among rows; "
            "compute with it in the outermost SELECT list, HAVING or ORDER BY"
        )
    for kinds, message in _REFUSALS:
        if isinstance(node, kinds):
            raise UnsupportedSql(message)
    if name in VOLATILE:
        raise UnsupportedSql(
            f"{name} is not determined by the row, so its sensitivity is unknown; write a literal instead"
        )
    written = _written_name(node)
    for called in (written, name):
        if called in ELSEWHERE:
            raise UnsupportedSql(f"the function {called} is not supported; {ELSEWHERE[called]}")
    if name:
        close = closest_name(name, FUNCTION_NAMES)
        hint = f"did you mean {close}? " if close else ""
        raise UnsupportedSql(
            f"the function {written or name} is not supported; {hint}"
            f"the functions are {', '.join(FUNCTION_NAMES)}"
        )
    raise UnsupportedSql(
        f"the operator {node.key.upper()} is not supported; use arithmetic, comparisons, CASE or a function"
    )


_REFUSALS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    (
        (exp.Window, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls),
        WINDOW_REFUSAL,
    ),
    (
        (exp.Query, exp.SubqueryPredicate),
        "a subquery in an expression must be over rows, as in WHERE, and read public tables; put it there",
    ),
    (
        (exp.Parameter, exp.SessionParameter, exp.Placeholder),
        "a query parameter must be named; write @name, and pass params={'name': ...}",
    ),
    (
        (exp.Array, exp.Struct, exp.Tuple, exp.Bracket, exp.Dot, exp.JSONExtract, exp.JSONExtractScalar),
        "arrays, structs and JSON are not supported; bring their parts into columns before connecting",
    ),
    ((exp.Star,), "* must not stand in an expression; name the columns"),
    (
        (exp.Interval,),
        "an INTERVAL must be added to a DATE or TIMESTAMP, or stand in DATE_ADD; write d + INTERVAL",
    ),
    ((exp.Kwarg,), "a named argument belongs to an aggregate only; leave it out"),
    ((exp.Distinct,), "DISTINCT must not stand in an expression; only COUNT(DISTINCT unit) is answered"),
    ((exp.Filter,), "FILTER must stand behind an aggregate; write IF(condition, x, NULL)"),
    (
        (exp.RegexpReplace, exp.RegexpExtractAll, exp.RegexpInstr, exp.RegexpILike, exp.RegexpSplit),
        "of regular expressions only REGEXP_CONTAINS and REGEXP_EXTRACT are supported; write one of them",
    ),
    ((exp.AtTimeZone,), f"AT TIME ZONE is not supported; {ZONED}"),
    ((exp.ILike,), "ILIKE is not supported; write LOWER(x) LIKE 'ab%'"),
    ((exp.Escape,), "LIKE must not have an ESCAPE; use STARTS_WITH, SUBSTR or another pattern"),
    ((exp.Alias,), "AS must not stand inside an expression; name the whole column"),
)
