"""Typed SQL texts, and what renders the nodes of an expression as such."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.engines.dialects.base import Dialect
from sfumato.queries.plan.query import ColumnType

__all__ = ["Rule", "Terms", "TypedSql", "shared_type"]

_LONGEST_TEXT = 200_000


@dataclass(frozen=True, slots=True)
class TypedSql:
    """SQL text, closed (it can stand as an operand), and its type; None for a bare NULL."""

    sql: str
    type: ColumnType | None


@dataclass(frozen=True, slots=True)
class Terms:
    """Renders nodes over the columns below, by case-folded name, in a dialect."""

    columns: Mapping[str, TypedSql]
    dialect: Dialect
    rules: Mapping[type[exp.Expr], Rule]

    def __call__(self, node: exp.Expr) -> TypedSql:
        """Return the text of a node and its type."""
        if isinstance(node, exp.Paren):
            return self(node.this)
        if type(node) is exp.Column:
            return self.columns[node.name.casefold()]
        rule = self.rules.get(type(node))
        if rule is None:
            raise UnsupportedSql(
                f"{type(node).__name__} is not supported by this engine; rewrite the expression"
            )
        made = rule(node, self)
        if len(made.sql) > _LONGEST_TEXT:
            raise UnsupportedSql(
                "an expression must be less nested for this engine; compute parts in a subquery"
            )
        return made

    def cast(self, term: TypedSql, type_: ColumnType) -> str:
        """Return a term in a type that it has, or widens to."""
        return term.sql if term.type is type_ else self.dialect.converted(term.sql, type_)

    def real(self, node: exp.Expr) -> str:
        """Return a number as a float."""
        return self.cast(self(node), ColumnType.FLOAT)

    def unified(self, terms: list[TypedSql]) -> tuple[list[str], ColumnType | None]:
        """Return terms in the type they share."""
        type_ = shared_type(terms)
        if type_ is None:
            return [term.sql for term in terms], None
        return [self.cast(term, type_) for term in terms], type_


Rule: TypeAlias = Callable[[exp.Expr, Terms], TypedSql]


def shared_type(terms: list[TypedSql]) -> ColumnType | None:
    """Return the type of values that stand beside each other; only integers and floats ever mix."""
    types = {term.type for term in terms if term.type is not None}
    return ColumnType.FLOAT if len(types) > 1 else next(iter(types), None)
