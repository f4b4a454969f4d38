"""What a query may name: the session's tables, common table expressions, and columns of rows.

`Tables` finds the tables that a SELECT may name, `Rows` the columns of what its FROM clause reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import QueryError, SchemaError, UnsupportedSql
from sfumato.queries.plan.query import Column, Expression, Filter, Named, Relation, Scan, Schema
from sfumato.queries.plan.typed_expressions import TypedTree, closest_name, column, only

__all__ = [
    "Catalog",
    "CommonTable",
    "PublicSource",
    "Rows",
    "ScopeColumn",
    "ScopeTable",
    "Source",
    "Tables",
    "Visits",
    "free_name",
    "listed_position",
    "named_item",
    "output_name",
    "suggestion",
]

_MAX_NESTING = 16
_MAX_TABLES = 256


@dataclass(frozen=True, slots=True)
class Catalog:
    """The tables that a session owns.

    Parameters
    ----------
    private : mapping of str to Scan
        Tables whose rows belong to privacy units.
    public : mapping of str to Schema
        Tables that anyone may see; they may list groups.
    within : mapping of str to Expression
        Conditions on the rows of private tables that hold for every query: those of one period, say.
    """

    private: Mapping[str, Scan]
    public: Mapping[str, Schema] = field(default_factory=dict)
    within: Mapping[str, Expression] = field(default_factory=dict)

    def rows_of(self, scan: Scan) -> Relation:
        """Return the rows of a private table that queries may read."""
        condition = self.within.get(scan.table)
        return scan if condition is None else Filter(scan, condition)


@dataclass(frozen=True, slots=True)
class PublicSource:
    """A public table, by the name the session knows it by."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A common table expression: its SELECT, and the tables that it may name."""

    select: exp.Expr
    tables: Tables


Source: TypeAlias = Scan | PublicSource | CommonTable


@dataclass(slots=True)
class Visits:
    """How many tables and subqueries have been read."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class Tables:
    """The names in reach of a SELECT: its common table expressions, then the catalog."""

    catalog: Catalog
    common: tuple[tuple[str, CommonTable], ...] = ()
    depth: int = 0
    visits: Visits = field(default_factory=Visits, compare=False)

    def deeper(self) -> Tables:
        """Count one more table or subquery, inside of those before.

        Raises
        ------
        UnsupportedSql
            If they are too many, or too deep: a name can stand for a tree that doubles at each step.
        """
        self.visits.count += 1
        if self.depth >= _MAX_NESTING:
            raise UnsupportedSql(f"subqueries must be nested at most {_MAX_NESTING} deep; simplify the query")
        if self.visits.count > _MAX_TABLES:
            raise UnsupportedSql(
                f"a query must read at most {_MAX_TABLES} tables and subqueries; simplify the query"
            )
        return replace(self, depth=self.depth + 1)

    def at(self, reader: Tables) -> Tables:
        """Return the same names as another SELECT reads them, where their tables count."""
        return replace(self, depth=reader.depth, visits=reader.visits)

    def find(self, name: str) -> Source:
        """Return the table of that name.

        Raises
        ------
        SchemaError
            If there is none; a file, a path or another database is never opened.
        """
        for common, table in reversed(self.common):
            if common.casefold() == name.casefold():
                return table
        private, public = self.catalog.private, self.catalog.public
        for tables in (private, public):
            same = [known for known in tables if known.casefold() == name.casefold()]
            known = name if name in same else next(iter(same), None)
            if known is not None:
                return private[known] if tables is private else PublicSource(known, public[known])
        names = [*private, *public]
        raise SchemaError(
            f"the table {name!r} is not part of this session; {suggestion(name, names, 'tables')}"
        )

    def with_common(self, clause: exp.Expr | None) -> Tables:
        """Add the expressions of a WITH clause; each sees the ones before it."""
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise UnsupportedSql("WITH RECURSIVE is not supported; write a plain WITH or a subquery")
        tables = self
        for cte in clause.expressions:
            only(cte, "this", "alias", what="WITH")
            only(cte.args["alias"], "this", what="a name in WITH")
            if not isinstance(cte.this, exp.Query):
                raise UnsupportedSql(f"{cte.alias!r} in WITH must be a SELECT; write name AS (SELECT ...)")
            tables = replace(tables, common=(*tables.common, (cte.alias, CommonTable(cte.this, tables))))
        return tables


def suggestion(name: str, known: Iterable[str], what: str) -> str:
    """Say what may have been meant: the closest name, else the names there are."""
    names = sorted(set(known))
    close = closest_name(name, names)
    if close is not None:
        return f"did you mean {close!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"the {what} are {shown}" if names else f"there are no {what}"


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column in reach: as it is written, and as the relation calls it.

    A ``merged`` one was joined by USING: without its table's name the other side's column is meant.
    """

    written: str
    column: str
    merged: bool = False


@dataclass(frozen=True, slots=True)
class ScopeTable:
    """A table or subquery of a FROM clause: what qualifies its columns, and these."""

    qualifier: str | None
    columns: tuple[ScopeColumn, ...]

    def answers_to(self, qualifier: str) -> bool:
        """Return whether a qualifier means this member."""
        return self.qualifier is not None and self.qualifier.casefold() == qualifier.casefold()


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, and the members of FROM that their columns come from.

    Parameters
    ----------
    relation : Relation
    members : tuple of ScopeTable
    private : bool
        Whether a private table is read; else every column is public.
    """

    relation: Relation
    members: tuple[ScopeTable, ...]
    private: bool = True

    @classmethod
    def of(cls, relation: Relation, qualifier: str | None, *, private: bool = True) -> Rows:
        """Return the rows of one table or subquery."""
        columns = tuple(ScopeColumn(known.name, known.name) for known in relation.schema.columns)
        return cls(relation, (ScopeTable(qualifier, columns),), private)

    @property
    def schema(self) -> Schema:
        """The relation's columns."""
        return self.relation.schema

    def column(self, node: exp.Column) -> Column:
        """Return the column that a node of the query's tree names, of whatever type, or refuse it."""
        table = node.args.get("table")
        return self._find(None if table is None else table.name, node.name)

    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        """Return the column as a term, or refuse it."""
        found = self._find(qualifier, name)
        if found.type is None:
            raise SchemaError(
                f"the column {found.name!r} has a type that a query cannot use; {_otherwise(found)}"
            )
        return column(found.name, found.type, found.declare)

    def _find(self, qualifier: str | None, name: str) -> Column:
        members = [m for m in self.members if qualifier is None or m.answers_to(qualifier)]
        if not members:
            known = [member.qualifier for member in self.members if member.qualifier is not None]
            raise SchemaError(
                f"the qualifier {qualifier!r} names no table of the query; "
                f"{suggestion(str(qualifier), known, 'qualifiers')}"
            )
        seen = [v for member in members for v in member.columns if qualifier is not None or not v.merged]
        columns = {v.column for v in seen if v.written.casefold() == name.casefold()}
        if len(columns) > 1:
            raise SchemaError(f"the column {name!r} is in both tables; write its table in front of it")
        found = self.schema.find(columns.pop()) if columns else None
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


def _otherwise(found: Column) -> str:
    if found.element is None:
        return "convert it before connecting"
    return f"write FROM table, UNNEST({found.name}) AS x for the elements of the array"


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


def named_item(item: exp.Expr) -> tuple[exp.Expr, str | None]:
    """Return an item of a SELECT list and its alias."""
    node: exp.Expr = item.this if isinstance(item, exp.Alias) else item
    return node.unnest(), output_name(item.alias) if isinstance(item, exp.Alias) else None


def listed_position(node: exp.Expr, count: int) -> int | None:
    """Return the index in a SELECT list that a GROUP BY item names by a number; None if it is no number."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    position = int(node.name) if node.name.isdigit() and len(node.name) < 9 else 0
    if not 1 <= position <= count:
        raise SchemaError(f"a position in GROUP BY must be from 1 to {count}, got {node.name}; correct it")
    return position - 1
