"""What a query may name: the session's tables, and the common table expressions written above a SELECT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.query import Expression, Filter, Relation, Scan, Schema
from sfumato.queries.plan.typed_expressions import closest_name, only

__all__ = ["Catalog", "CommonTable", "PublicSource", "Source", "Tables", "Visits", "suggestion"]

_DEEPEST_NESTING = 16
_MOST_TABLES = 256


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
        if self.depth >= _DEEPEST_NESTING:
            raise UnsupportedSql(
                f"subqueries must be nested at most {_DEEPEST_NESTING} deep; simplify the query"
            )
        if self.visits.count > _MOST_TABLES:
            raise UnsupportedSql(
                f"a query must read at most {_MOST_TABLES} tables and subqueries; simplify the query"
            )
        return replace(self, depth=self.depth + 1)

    def at(self, place: Tables) -> Tables:
        """Return the same names as they are read at another position, where their tables count."""
        return replace(self, depth=place.depth, visits=place.visits)

    def find(self, name: str) -> Source:
        """Return the table of that name.

        Raises
        ------
        SchemaError
            If there is none; a file, a path or another database is never opened.
        """
        for known, table in reversed(self.common):
            if known.casefold() == name.casefold():
                return table
        private = _lookup(self.catalog.private, name)
        if private is not None:
            return self.catalog.private[private]
        public = _lookup(self.catalog.public, name)
        if public is not None:
            return PublicSource(public, self.catalog.public[public])
        names = [*self.catalog.private, *self.catalog.public]
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


def _lookup(names: Iterable[str], name: str) -> str | None:
    """Find a name, exactly as written first, else without regard to case."""
    known = list(names)
    if name in known:
        return name
    return next((candidate for candidate in known if candidate.casefold() == name.casefold()), None)


def suggestion(name: str, known: Iterable[str], what: str) -> str:
    """Say what may have been meant: the closest name, else the names there are."""
    names = sorted(set(known))
    close = closest_name(name, names)
    if close is not None:
        return f"did you mean {close!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"the {what} are {shown}" if names else f"there are no {what}"
