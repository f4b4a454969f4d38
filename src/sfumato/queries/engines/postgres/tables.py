"""A PostgreSQL database as a position for private work: its sessions, and the tables that can be read.

Read are ordinary tables, partitioned ones and materialized views, which are rows like theirs. Other views
are refused, for their expressions could fail over some rows, or make rows of several units into one; so are
foreign tables, and tables whose rows a policy would choose. Columns that are computed when they are read
(virtual ones) are left out, for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sfumato._check import refuse
from sfumato.errors import SourceError
from sfumato.frames.sources import check_names
from sfumato.queries.engines.dialects.base import StoredColumn, StoredTable
from sfumato.queries.engines.named_columns import columns_of, named_columns
from sfumato.queries.engines.postgres.connection import library
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.engines.postgres.source import PostgresSource

if TYPE_CHECKING:
    import psycopg

__all__ = ["check_server", "find_tables", "may_make_tables", "stamp"]

_OLDEST: Final = 150_000
_DESCENDANTS: Final = """
WITH RECURSIVE family AS (
    SELECT %s::pg_catalog.oid AS oid
    UNION
    SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN family AS f ON i.inhparent = f.oid)
SELECT count(*) FROM family AS f JOIN pg_catalog.pg_class AS c ON c.oid = f.oid
WHERE c.relkind NOT IN ('r', 'p', 'm') OR c.relpersistence = 't'
"""
_FILES: Final = (
    "SELECT r::pg_catalog.oid, pg_catalog.pg_relation_filenode(r) FROM (SELECT %s::regclass AS r) AS t"
)
_TABLES: Final = """
SELECT c.oid, c.relname, c.relkind, c.relispopulated FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY c.relname
"""
_COLUMNS: Final = """
WITH RECURSIVE base AS (
    SELECT a.attnum, a.attname, a.atttypid AS type, a.atttypmod AS size FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v'
    UNION
    SELECT b.attnum, b.attname, t.typbasetype, t.typtypmod FROM base AS b
    JOIN pg_catalog.pg_type AS t ON t.oid = b.type WHERE t.typtype = 'd')
SELECT b.attname, pg_catalog.has_column_privilege(%s::pg_catalog.oid, b.attnum, 'SELECT'),
    CASE WHEN t.typtype = 'e' THEN 'enum'
    WHEN t.oid = 'pg_catalog.numeric'::pg_catalog.regtype THEN pg_catalog.format_type(t.oid, b.size)
    WHEN n.nspname = 'pg_catalog' THEN t.typname ELSE n.nspname || '.' || t.typname END
FROM base AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.type
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
WHERE t.typtype <> 'd' ORDER BY b.attnum
"""


def check_server(connection: psycopg.Connection[Any]) -> PostgreSQL:
    """Return the dialect of a server that can be asked.

    Raises
    ------
    SourceError
        If it is too old, or holds texts in another encoding than UTF-8.
    """
    if connection.info.server_version < _OLDEST:
        raise SourceError("a PostgreSQL source must be of version 15 or later; upgrade the server")
    encoding, letters = connection.execute(
        "SELECT current_setting('server_encoding'), "
        "EXISTS (SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu')"
    ).fetchall()[0]
    if encoding != "UTF8":
        raise SourceError(
            f"a PostgreSQL source must hold its texts in UTF8, got {encoding}; copy the tables to a database "
            "in UTF8"
        )
    return PostgreSQL() if letters else PostgreSQL(letters="C")


def may_make_tables(connection: psycopg.Connection[Any]) -> bool:
    """Return whether temporary tables can be made.

    That takes a primary server, the right to make them, and transactions that may write by default.
    """
    ((able,),) = connection.execute(
        "SELECT has_database_privilege(current_database(), 'TEMPORARY') AND NOT pg_is_in_recovery() "
        "AND current_setting('default_transaction_read_only') = 'off'"
    ).fetchall()
    return bool(able)


def find_tables(
    connection: psycopg.Connection[Any], source: PostgresSource, dialect: PostgreSQL
) -> dict[str, StoredTable]:
    """Return the tables that a source means, by name, with the columns that it means.

    Raises
    ------
    SourceError
        If one is missing, is no table, has columns that differ in case alone, or may not be read.
    ParameterError
        If columns are named that a table does not have, or for none of several tables.
    """
    rows = connection.execute(_TABLES, [source.schema]).fetchall()
    found = {name: (oid, kind, filled) for oid, name, kind, filled in rows}
    wanted = source.tables or tuple(name for name, (_, kind, _) in found.items() if kind in "rp")
    if not wanted:
        raise SourceError(f"the schema {source.schema!r} must hold a table, got none; name another schema")
    named_columns(source.columns, wanted)
    tables = {}
    for name in wanted:
        oid, kind, filled = found.get(name, (0, "", False))
        if not kind:
            raise SourceError(
                f"the schema {source.schema!r} must hold the table {name!r}, got {_names(list(found))}; "
                "name one of them as it is spelled"
            )
        (strangers,) = connection.execute(_DESCENDANTS, [oid]).fetchall()[0]
        if kind not in "rpm" or strangers:
            raise SourceError(
                f"{name!r} must be an ordinary table or a materialized view, without foreign parts, got "
                "another relation; copy what it shows to a table, or CREATE MATERIALIZED VIEW"
            )
        if not filled:
            raise SourceError(f"{name!r} must hold its rows, got none yet; REFRESH MATERIALIZED VIEW first")
        tables[name] = _table(connection, source, dialect, name, oid)
    _check_tables(list(tables))
    return tables


def _table(
    connection: psycopg.Connection[Any], source: PostgresSource, dialect: PostgreSQL, name: str, oid: int
) -> StoredTable:
    """Return a table that can be read, with the columns that are meant, in the table's order."""
    rows = connection.execute(_COLUMNS, [oid, oid]).fetchall()
    check_names(name, [column for column, _, _ in rows])
    meant = columns_of(source.columns, name)
    for column in meant or ():
        if column not in [each for each, _, _ in rows]:
            has = _names([each for each, _, _ in rows])
            refuse("columns", f"be columns of table {name!r}", column, f"name some of {has}")
    if meant is not None:
        rows = [row for row in rows if row[0] in meant]
    closed = [column for column, readable, _ in rows if not readable]
    stored = tuple(
        StoredColumn(column, type_, dialect.column_type(type_), element=dialect.element_type(type_))
        for column, _, type_ in rows
    )
    inside = f"{dialect.identifier(source.schema)}.{dialect.identifier(name)}"
    table = StoredTable(inside, stored)
    if closed or not _is_readable(connection, table, dialect):
        held = f", got no right to {_names(closed)}" if closed else ""
        raise SourceError(
            f"table {name!r} must be readable in the columns that are meant{held}; grant SELECT on them and "
            "USAGE on the schema, let no row security policy apply, or name what to read by columns="
        )
    return table


def stamp(
    connection: psycopg.Connection[Any], tables: Mapping[str, StoredTable], dialect: PostgreSQL
) -> tuple[object, ...]:
    """Lock tables against being altered, until the transaction ends, and return what tells that they were.

    A snapshot outlives changes of rows, but neither TRUNCATE nor DROP nor a new name of a table or column,
    nor a partition that comes or goes: what is looked at is what the server's planner sees now, not the
    catalogs' rows of the snapshot. Nothing is returned for tables that are gone. Planning a SELECT locks the
    table and all its parts; a LOCK would need a right to all columns.
    """
    found: list[object] = []
    try:
        for table in tables.values():
            items = ", ".join(dialect.identifier(column.name) for column in table.columns)
            columns = connection.execute(f"SELECT {items} FROM {table.name} LIMIT 0").pgresult
            if columns is not None:
                found += [(columns.ftable(i), columns.ftablecol(i)) for i in range(columns.nfields)]
                found += [(columns.ftype(i), columns.fmod(i)) for i in range(columns.nfields)]
            plan = connection.execute(f"EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) SELECT FROM {table.name}")
            for name in sorted(_relations(plan.fetchall()[0][0], dialect)):
                found += connection.execute(_FILES, [name]).fetchall()
    except library().ProgrammingError:
        return ()
    return tuple(found)


def _relations(plan: object, dialect: PostgreSQL) -> set[str]:
    """Return the tables and partitions that a plan reads."""
    if isinstance(plan, list):
        return {name for part in plan for name in _relations(part, dialect)}
    if not isinstance(plan, dict):
        return set()
    here = {name for part in plan.values() for name in _relations(part, dialect)}
    if "Relation Name" in plan:
        here.add(".".join(dialect.identifier(str(plan[key])) for key in ("Schema", "Relation Name")))
    return here


def _is_readable(connection: psycopg.Connection[Any], table: StoredTable, dialect: PostgreSQL) -> bool:
    items = ", ".join(dialect.identifier(column.name) for column in table.columns)
    try:
        connection.execute(f"SELECT {items} FROM {table.name} LIMIT 0")
    except library().ProgrammingError:
        return False
    return True


def _check_tables(names: Sequence[str]) -> None:
    if len({name.casefold() for name in names}) < len(names):
        raise SourceError("the tables of a source must have names that differ beyond case; name those meant")


def _names(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names) or "nothing"
