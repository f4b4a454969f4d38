"""The fluent builder: a private query written in Python, step by step, that asks the same as its SQL.

Every step returns a new value and touches nothing. At the end stands SQL text (:attr:`PrivateQuery.sql`),
which goes through the very same front door: the same checks, the same plan, and the same answer for one and
the same query, whichever way it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

from sfumato._check import refuse, refuse_state
from sfumato.errors import SchemaError
from sfumato.queries.builder.aggregate_call import AggregateCall
from sfumato.queries.builder.columns import Expressible, expression_sql, require_call
from sfumato.queries.builder.key_set import KeySet
from sfumato.queries.builder.query_session import PublicValues, QuerySession
from sfumato.queries.plan.query import Scan, Schema
from sfumato.queries.plan.sql_text import literal_sql, name_sql
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.catalog import PublicSource, Tables

__all__ = ["Grouped", "PrivateQuery", "Table", "begin"]


def _columns(session: QuerySession[TableRelease], table: str) -> tuple[str, ...]:
    """Return the columns of a table that a query can use.

    Raises
    ------
    SchemaError
        If the session has no such table.
    """
    found = Tables(session.catalog).find(table)
    schema = found.schema if isinstance(found, (Scan, PublicSource)) else Schema(())
    return tuple(column.name for column in schema.columns if column.type is not None)


def begin(session: QuerySession[TableRelease], name: str | None) -> Table:
    """Return the builder over a private table; its name may be left out where there is one only.

    Raises
    ------
    SchemaError
        If there is no such private table.
    """
    private = session.catalog.private
    if name is None and len(private) == 1:
        name = next(iter(private))
    scan = None if name is None else Tables(session.catalog).find(name)
    if name is None or not isinstance(scan, Scan):
        names = ", ".join(sorted(private))
        raise SchemaError(f"a query must begin with a private table, got {name!r}; name one of {names}")
    return Table(session, scan.unit, name_sql(name), _columns(session, name))


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a table, filtered and with computed columns; made by ``session.table``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(1000), "age": [20, 40] * 500, "pay": [10.0, 30.0] * 500})
    >>> with sf.connect(people, privacy_unit="person", epsilon=3, delta=1e-6, rng=7) as session:
    ...     query = session.table().filter("age >= 18").group_by("age").agg(sf.mean("pay", bounds=(0, 50)))
    ...     release = query.release(epsilon=2, delta=1e-7, max_groups_contributed=1)
    >>> release.to_arrow().column_names
    ['age', 'mean_pay']
    """

    _session: QuerySession[TableRelease]
    unit: str | None
    _source: str
    _columns: tuple[str, ...]
    _conditions: tuple[str, ...] = ()

    def filter(self, *conditions: Expressible) -> Table:
        """Keep the rows for which every condition is true."""
        written = tuple(expression_sql(condition, "a condition") for condition in conditions)
        return replace(self, _conditions=self._conditions + written)

    def with_columns(self, **expressions: Expressible) -> Table:
        """Add columns computed row by row; a name that is there already gets the new meaning."""
        if not expressions:
            refuse("expressions", "name at least one column", expressions, "write decade='FLOOR(age / 10)'")
        folded = {name.casefold() for name in expressions}
        others = [name for name in self._columns if name.casefold() not in folded]
        items = [name_sql(name) for name in others]
        items += [f"{expression_sql(e, name)} AS {name_sql(name)}" for name, e in expressions.items()]
        source = f"(SELECT {', '.join(items)} FROM {self._rows()}) AS t"  # noqa: S608 - read by the front door
        return replace(self, _source=source, _columns=(*others, *expressions), _conditions=())

    def join(self, table: str, on: str | Sequence[str], *, how: Literal["inner", "left"] = "inner") -> Table:
        """Add the columns of another table of the session where columns of one name are equal.

        With a public table any columns may be compared; with a private one the privacy unit must be among
        them.
        """
        if how not in ("inner", "left"):
            refuse("how", "be 'inner' or 'left'", how, "swap the tables for the other side")
        names = (on,) if isinstance(on, str) else tuple(on)
        folded = {name.casefold() for name in (*self._columns, *names)}
        other = [name for name in _columns(self._session, table) if name.casefold() not in folded]
        shared = {name.casefold() for name in names}
        columns = [name for name in self._columns if name.casefold() not in shared]
        items = [*map(name_sql, names), *(f"l.{name_sql(name)}" for name in columns)]
        items += [f"r.{name_sql(name)}" for name in other]
        using = ", ".join(map(name_sql, names))
        left = f"(SELECT * FROM {self._rows()}) AS l" if self._conditions else f"{self._named()} AS l"  # noqa: S608
        joined = f"{left} {how.upper()} JOIN {name_sql(table)} AS r USING ({using})"
        source = f"(SELECT {', '.join(items)} FROM {joined}) AS t"  # noqa: S608
        return replace(self, _source=source, _columns=(*names, *columns, *other), _conditions=())

    def group_by(
        self, *keys: Expressible | KeySet, public_groups: PublicValues | None = None, **named: Expressible
    ) -> Grouped:
        """Group by columns or expressions; a keyword names an expression.

        Parameters
        ----------
        *keys, **named
            A `KeySet` stands for its columns, of which it lists the groups; of several for their product.
        public_groups : mapping or KeySet, optional
            Groups known without the data, as in ``session.sql``.

        Raises
        ------
        ParameterError
            If there is no key, or groups are listed both by a `KeySet` and by ``public_groups``.
        """
        items: list[str] = []
        listed: KeySet | None = None
        for key in keys:
            if isinstance(key, KeySet):
                items += [name_sql(name) for name in key.columns]
                listed = key if listed is None else listed * key
            else:
                items.append(expression_sql(key, "a key"))
        items += [f"{expression_sql(key, name)} AS {name_sql(name)}" for name, key in named.items()]
        if not items:
            refuse("keys", "name at least one column", keys, "call agg alone for one group of all rows")
        if listed is not None and public_groups is not None:
            refuse_state("public_groups", "be left out", "a KeySet lists the groups", "pass one of them")
        return Grouped(self, tuple(items), public_groups if listed is None else listed)

    def agg(self, *aggregates: AggregateCall, **named: AggregateCall) -> PrivateQuery:
        """Ask for aggregates of all rows as one group; a keyword names its aggregate."""
        return _asked(self, (), None, aggregates, named)

    @property
    def session(self) -> QuerySession[TableRelease]:
        """The session that the query is asked of."""
        return self._session

    @property
    def rows(self) -> str:
        """The SQL of the rows, after FROM."""
        return self._rows()

    def _named(self) -> str:
        return self._source.removesuffix(" AS t")

    def _rows(self) -> str:
        where = f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""
        return self._source + where


@final
@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows in groups, to be aggregated."""

    _table: Table
    _keys: tuple[str, ...]
    _public: PublicValues | None

    def agg(self, *aggregates: AggregateCall, **named: AggregateCall) -> PrivateQuery:
        """Ask for aggregates of each group; a keyword names its aggregate."""
        return _asked(self._table, self._keys, self._public, aggregates, named)


@final
@dataclass(frozen=True, slots=True)
class PrivateQuery:
    """A whole private query: to look at, to explain, and to release under a session's ledger."""

    table: Table
    _select: tuple[str, ...]
    _keys: int
    _public: PublicValues | None
    _options: tuple[tuple[str, object], ...] = ()
    _having: tuple[str, ...] = ()
    _order: tuple[str, ...] = ()
    _limit: int | None = None

    def __repr__(self) -> str:
        return f"PrivateQuery({self.sql})"

    def options(self, **options: object) -> PrivateQuery:
        """Set what stands in OPTIONS, such as ``epsilon=0.5, delta=1e-8, max_groups_contributed=1``."""
        for name in options:
            if not (name.isascii() and name.isidentifier()):
                refuse("options", "have names of letters and underscores", name, "write epsilon=0.5, say")
        return replace(self, _options=tuple({**dict(self._options), **options}.items()))

    def having(self, *conditions: Expressible) -> PrivateQuery:
        """Keep the released groups for which conditions over released columns hold; it costs no privacy."""
        written = tuple(expression_sql(condition, "a condition") for condition in conditions)
        return replace(self, _having=self._having + written)

    def order_by(self, *columns: Expressible, descending: bool = False) -> PrivateQuery:
        """Order the released table; it costs no privacy."""
        direction = " DESC" if descending else ""
        written = tuple(expression_sql(column, "a column") + direction for column in columns)
        return replace(self, _order=self._order + written)

    def limit(self, count: int) -> PrivateQuery:
        """Show so many rows of the released table; it costs no privacy."""
        return replace(self, _limit=count)

    @property
    def sql(self) -> str:
        """The query as private SQL, without the caller's public groups."""
        options = ", ".join(f"{name}={_option(value)}" for name, value in self._options)
        parts = [
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options})" if options else "SELECT",
            ", ".join(self._select),
            f"FROM {self.table.rows}",
        ]
        if self._keys:
            parts.append("GROUP BY " + ", ".join(str(index + 1) for index in range(self._keys)))
        if self._having:
            parts.append("HAVING " + " AND ".join(self._having))
        if self._order:
            parts.append("ORDER BY " + ", ".join(self._order))
        if self._limit is not None:
            parts.append(f"LIMIT {literal_sql(self._limit)}")
        return " ".join(parts)

    def over(self, table: Table) -> PrivateQuery:
        """Ask the same of other rows, which must have the same columns."""
        return replace(self, table=table)

    @property
    def public_groups(self) -> PublicValues | None:
        """The groups that were listed as known without the data."""
        return self._public

    def explain(self, **options: object) -> str:
        """Say what the query would do and cost; nothing is charged and no row is read."""
        return self.table.session.explain(self.options(**options).sql, public_groups=self._public)

    def release(self, **options: object) -> TableRelease:
        """Answer the query, charging the session's ledger before any row is read.

        Parameters
        ----------
        **options
            As for :meth:`options`; what is left out comes from the session's defaults.

        Raises
        ------
        QueryError, BudgetExceeded, EngineError
            As from ``session.sql``.
        """
        return self.table.session.sql(self.options(**options).sql, public_groups=self._public)


def _asked(
    table: Table,
    keys: tuple[str, ...],
    public: PublicValues | None,
    aggregates: Sequence[AggregateCall],
    named: Mapping[str, AggregateCall],
) -> PrivateQuery:
    calls = [*aggregates, *(call.alias(name) for name, call in named.items() if _is_call(call))]
    for call in calls:
        if _is_call(call):
            require_call(call.sql, "an aggregate")
    items = (*keys, *(f"{call.sql} AS {name_sql(call.name)}" for call in calls))
    if not items:
        refuse("aggregates", "hold at least one", aggregates, "write sf.count(), say")
    return PrivateQuery(table, items, len(keys), public)


def _is_call(call: object) -> bool:
    if not isinstance(call, AggregateCall):
        refuse("an aggregate", "be one of sf.count, sf.sum, sf.mean and the like", call, "write sf.count()")
    return True


def _option(value: object) -> str:
    if isinstance(value, str) and value.isidentifier() and value.isupper():
        return value  # the name of a strategy
    return literal_sql(value)
