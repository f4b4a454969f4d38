"""The rows a SELECT reads, and what its columns are called: the scope of expressions over rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import QueryError, SchemaError
from sfumato.queries.plan.nodes import Relation
from sfumato.queries.plan.schema import Column, Expression, Named, Schema
from sfumato.queries.plan.typed_expressions import TypedTree, column
from sfumato.queries.sql.catalog import suggestion

__all__ = ["Rows", "ScopeColumn", "Visible", "free_name", "output_name"]


@dataclass(frozen=True, slots=True)
class Visible:
    """A column in reach: as it is written, and as the relation calls it.

    A ``merged`` one was joined by USING: without its table's name the other side's column is meant.
    """

    written: str
    column: str
    merged: bool = False


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A table or subquery of a FROM clause: what qualifies its columns, and these."""

    qualifier: str | None
    columns: tuple[Visible, ...]

    def answers_to(self, qualifier: str) -> bool:
        """Return whether a qualifier means this member."""
        return self.qualifier is not None and self.qualifier.casefold() == qualifier.casefold()


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, and the members of FROM that their columns come from.

    Parameters
    ----------
    relation : Relation
    members : tuple of ScopeColumn
    private : bool
        Whether a private table is read; else every column is public.
    """

    relation: Relation
    members: tuple[ScopeColumn, ...]
    private: bool = True

    @classmethod
    def of(cls, relation: Relation, qualifier: str | None, *, private: bool = True) -> Rows:
        """Return the rows of one table or subquery."""
        columns = tuple(Visible(known.name, known.name) for known in relation.schema.columns)
        return cls(relation, (ScopeColumn(qualifier, columns),), private)

    @property
    def schema(self) -> Schema:
        """The relation's columns."""
        return self.relation.schema

    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        """Return the column as a term, or refuse it."""
        found = self._found(qualifier, name)
        if found.type is None:
            raise SchemaError(
                f"the column {found.name!r} has a type that a query cannot use; convert it before connecting"
            )
        return column(found.name, found.type, found.declare)

    def _found(self, qualifier: str | None, name: str) -> Column:
        members = [m for m in self.members if qualifier is None or m.answers_to(qualifier)]
        if not members:
            known = [member.qualifier for member in self.members if member.qualifier is not None]
            raise SchemaError(
                f"the qualifier {qualifier!r} names no table of the query; "
                f"{suggestion(str(qualifier), known, 'qualifiers')}"
            )
        seen = [v for member in members for v in member.columns if qualifier is not None or not v.merged]
        places = {v.column for v in seen if v.written.casefold() == name.casefold()}
        if len(places) > 1:
            raise SchemaError(f"the column {name!r} is in both tables; write its table in front of it")
        found = self.schema.find(places.pop()) if places else None
        if found is None:
            names = [visible.written for visible in seen]
            raise SchemaError(f"the column {name!r} does not exist; {suggestion(name, names, 'columns')}")
        return found

    def has(self, name: str) -> bool:
        """Return whether a column can be named so, without a table in front."""
        seen = (visible for member in self.members for visible in member.columns if not visible.merged)
        return any(visible.written.casefold() == name.casefold() for visible in seen)

    def answers_to(self, qualifier: str) -> bool:
        """Return whether a qualifier means a member of these rows."""
        return any(member.answers_to(qualifier) for member in self.members)

    def is_unit(self, expression: Expression) -> bool:
        """Return whether an expression is the privacy unit itself."""
        unit, tree = self.relation.unit, expression.tree
        return unit is not None and isinstance(tree, exp.Column) and tree.name.casefold() == unit.casefold()

    def names_unit(self, node: exp.Expr) -> bool:
        """Return whether a node of the query's tree is the bare unit column."""
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return False
        table = node.args.get("table")
        try:
            term = self.resolve(None if table is None else table.name, node.name)
        except QueryError:
            return False
        return term.type is not None and self.is_unit(Expression(term.tree, term.type))

    def everything(self, qualifier: str | None = None) -> Iterator[Named]:
        """Yield the usable columns that * means, or those of one member."""
        for member in self.members:
            if qualifier is not None and not member.answers_to(qualifier):
                continue
            for visible in member.columns:
                found = self.schema.find(visible.column)
                if found is None or found.type is None or (visible.merged and qualifier is None):
                    continue
                term = column(found.name, found.type, found.declare)
                yield Named(visible.written, Expression(term.tree, found.type))


def output_name(name: str) -> str:
    """Return a name that a column may carry."""
    if not name or not name.isprintable() or len(name) > 300:
        raise SchemaError(
            "a column's name must be printable, not empty and at most 300 long; choose another with AS"
        )
    return name


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that no other column has, and take it.

    Examples
    --------
    >>> free_name("n", {"n", "n_2"})
    'n_3'
    """
    candidate, number = name, 2
    while candidate.casefold() in taken:
        candidate, number = f"{name}_{number}", number + 1
    taken.add(candidate.casefold())
    return candidate
