"""What a query computes over the rows, as SQL for a database that this process does not reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sfumato._check import refuse
from sfumato.errors import OptionError, SchemaError
from sfumato.frames.sources import check_names
from sfumato.numerics.randomness.source import random_source
from sfumato.queries.engines.compilation.job import as_one_statement, compile_job
from sfumato.queries.engines.dialects.base import Dialect, StoredColumn, StoredTable
from sfumato.queries.engines.dialects.bigquery import BIGQUERY
from sfumato.queries.engines.dialects.snowflake import SNOWFLAKE
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.plan.query import AggregationJob, Query, Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from sfumato.session.units import ROW, Row, require_unit

__all__ = ["DIALECTS", "render_sql"]

DIALECTS: Final[Mapping[str, Dialect]] = {
    each.name: each for each in (BIGQUERY, SNOWFLAKE, PostgreSQL(), DUCKDB)
}
"""The dialects of SQL that queries are rendered in, by name."""


def render_sql(
    text: str,
    dialect: str,
    *,
    tables: Mapping[str, Mapping[str, str]],
    privacy_unit: str | Row,
    public: Mapping[str, Mapping[str, str]] | None = None,
    places: Mapping[str, str] | None = None,
    defaults: Mapping[str, object] | None = None,
    public_groups: Mapping[str, Sequence[object]] | None = None,
    secret: bytes | None = None,
) -> tuple[str, ...]:
    """Write the bounded, exact sums of a private query in the SQL of a warehouse.

    What the statements return is exact and private: noise, thresholds and the ledger's charge come after
    them, and only in sfumato. Nothing is executed here, and nothing is charged.

    Parameters
    ----------
    text : str
        The query: ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...) ...``.
    dialect : str
        One of ``"bigquery"``, ``"snowflake"``, ``"postgres"``, ``"duckdb"``.
    tables, public : mapping of str to mapping of str to str
        Private and public tables: the columns of each, with the types that the warehouse gives them, such as
        ``INT64`` in BigQuery and ``NUMBER(38,0)`` in Snowflake. Columns of other types stay unused.
    privacy_unit : str or ROW
        The unit column of every private table.
    places : mapping of str to str, optional
        Where tables lie, such as ``{"people": "project.dataset.people"}``. Default: their own names.
    defaults : mapping of str to object, optional
        Values of OPTIONS that the query leaves out.
    public_groups : mapping, optional
        Groups known without the data, as for :meth:`sfumato.session.session.Session.sql`.
    secret : bytes, optional
        Keys the choice of rows and groups, and stands in the text. Default: 32 fresh bytes.

    Returns
    -------
    tuple of str
        One statement of the sums per group, then one for each aggregate that reads a quantile: its counts by
        bin.

    Raises
    ------
    QueryError
        If the query is refused, also for bounds that it leaves to be found, and a report of its limits.
    ParameterError
        If there is no such dialect, or tables and places are not given as above.

    Notes
    -----
    The texts for BigQuery and Snowflake are parsed by the tests, not run by them.

    Examples
    --------
    >>> query = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(*) AS n FROM people"
    >>> columns = {"people": {"person": "INT64", "age": "INT64"}}
    >>> (sql,) = render_sql(query, "bigquery", tables=columns, privacy_unit="person", secret=bytes(32))
    >>> print(sql[:40])
    WITH parts AS (
    SELECT u, count(*) AS n
    """
    written = DIALECTS.get(dialect)
    if written is None:
        refuse("dialect", f"be one of {', '.join(DIALECTS)}", dialect, "name one of them")
    _check_tables("tables", tables)
    _check_tables("public", public or {})
    _check_places(places or {}, {*tables, *(public or {})})
    stored = {name: _stored(written, name, columns, places or {}) for name, columns in tables.items()}
    listed = {name: _stored(written, name, columns, places or {}) for name, columns in (public or {}).items()}
    unit = None if privacy_unit is ROW else str(privacy_unit)
    if unit is not None:
        _check_unit(stored, unit, dialect)
    private = {
        name: Scan(name, table.schema, None if unit is None else require_unit(table.schema, name, unit))
        for name, table in stored.items()
    }
    catalog = Catalog(private, {name: table.schema for name, table in listed.items()})
    job = _stated(read(text, catalog, defaults=defaults or {}, public_groups=public_groups))
    key = random_source(None).bytes(32) if secret is None else secret
    return as_one_statement(compile_job(job, {**stored, **listed}, written), key)


def _stated(query: Query) -> AggregationJob:
    """Return the job of a query that states its bounds: what a search finds is known after its own text."""
    missing = [aggregate for aggregate in query.aggregates if aggregate.unbounded]
    if missing:
        raise OptionError(
            f"a query that is rendered must state its bounds, got none for {missing[0].name!r}; bounds are "
            "found by a query of their own, whose noise comes before the next: add contribution_bounds_per_"
            "group or contribution_bounds_per_row, or connect to the database"
        )
    if query.options.truncation_epsilon is not None:
        raise OptionError(
            "truncation_epsilon must be left out of a query that is rendered, got "
            f"{query.options.truncation_epsilon!r}; connect to the database, which answers it, too"
        )
    return price(query).job


def _check_tables(what: str, tables: object) -> None:
    """Refuse what is no mapping of tables to their columns' types."""
    given = list(tables.values()) if isinstance(tables, Mapping) else [tables]
    for columns in given:
        texts = isinstance(columns, Mapping) and all(isinstance(type_, str) for type_ in columns.values())
        if not texts:
            refuse(what, "map tables to columns and their types", columns, "pass {'people': {'id': 'INT64'}}")


def _check_places(places: Mapping[str, str], tables: set[str]) -> None:
    """Refuse places of no table, which would be left aside unseen."""
    unknown = sorted(set(places) - tables)
    if unknown:
        listing = ", ".join(sorted(tables))
        refuse("places", "name tables that are given", unknown[0], f"the tables are {listing}")


def _check_unit(tables: Mapping[str, StoredTable], unit: str, dialect: str) -> None:
    """Refuse a unit whose type the dialect does not have, in words that say so."""
    for name, table in tables.items():
        for column in table.columns:
            if column.name.casefold() == unit.casefold() and column.type is None:
                raise SchemaError(
                    f"privacy_unit must be a plain column of a type of {dialect}, got {column.stored!r} for "
                    f"{unit!r} of table {name!r}; write the type that the warehouse gives it"
                )


def _stored(
    dialect: Dialect, name: str, columns: Mapping[str, str], places: Mapping[str, str]
) -> StoredTable:
    check_names(name, list(columns))
    place = ".".join(dialect.identifier(part) for part in places.get(name, name).split("."))
    items = (StoredColumn(column, type_, dialect.column_type(type_)) for column, type_ in columns.items())
    return StoredTable(place, tuple(items))
