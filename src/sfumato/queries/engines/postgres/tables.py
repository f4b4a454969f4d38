"""A PostgreSQL database as a position for private work: its sessions, and the tables that can be read.

Read are ordinary and partitioned tables. Views are refused, for their expressions could fail over some
rows, or make rows of several units into one; so are foreign tables, and tables whose rows a policy would
choose. Columns that are computed when they are read (virtual ones) are left out, for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import MissingExtra, SourceError
from sfumato.frames.sources import check_names
from sfumato.queries.engines.dialects.base import StoredColumn, StoredTable
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.engines.postgres.source import PostgresSource

if TYPE_CHECKING:
    import psycopg

__all__ = ["check_server", "find_tables", "library", "open_connection", "settle", "stamp"]

_OLDEST: Final = 150_000
_SETTINGS: Final = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "client_encoding": "UTF8",
    "search_path": "pg_catalog",
    "row_security": "off",
    "xmloption": "content",
    "bytea_output": "hex",
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
    "jit": "off",
    "application_name": "sfumato",
}
_DESCENDANTS: Final = """
WITH RECURSIVE family AS (
    SELECT %s::pg_catalog.oid AS oid
    UNION
    SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN family AS f ON i.inhparent = f.oid)
SELECT count(*) FROM family AS f JOIN pg_catalog.pg_class AS c ON c.oid = f.oid
WHERE c.relkind NOT IN ('r', 'p') OR c.relpersistence = 't'
"""
_FILES: Final = (
    "SELECT r::pg_catalog.oid, pg_catalog.pg_relation_filenode(r) FROM (SELECT %s::regclass AS r) AS t"
)
_TABLES: Final = """
SELECT c.oid, c.relname, c.relkind FROM pg_catalog.pg_class AS c
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
SELECT b.attname, CASE WHEN t.typtype = 'e' THEN 'enum'
    WHEN t.oid = 'pg_catalog.numeric'::pg_catalog.regtype THEN pg_catalog.format_type(t.oid, b.size)
    WHEN n.nspname = 'pg_catalog' THEN t.typname ELSE n.nspname || '.' || t.typname END
FROM base AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.type
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
WHERE t.typtype <> 'd' ORDER BY b.attnum
"""


def library() -> Any:
    """Return psycopg.

    Raises
    ------
    MissingExtra
        If it is not installed.
    """
    try:
        import psycopg  # noqa: PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra("a PostgreSQL source needs psycopg; pip install 'sfumato[postgres]'") from missing
    return psycopg


def open_connection(source: PostgresSource) -> psycopg.Connection[Any]:
    """Return a new connection on which each statement is its own transaction, unless one is begun.

    Raises
    ------
    SourceError
        If there is none to be had; the message is fixed, for libpq's may hold the address.
    """
    driver = library()
    made: psycopg.Connection[Any] | None = None
    try:
        made = driver.connect(source.url, autocommit=True)
        made.prepare_threshold = None
        settle(made, local=False)
    except driver.Error:
        if made is not None:
            made.close()
        made = None
    if made is None:
        raise SourceError(
            "a PostgreSQL source must accept connections; check that the server runs, and the address, the "
            "user and the password"
        )
    return made


def settle(connection: psycopg.Connection[Any], *, local: bool) -> None:
    """Make the settings that texts rely on, for the transaction or for the session.

    Behind a pool of connections only a transaction is sure to stay on one session of the server.
    """
    calls = ", ".join("pg_catalog.set_config(%s, %s, %s)" for _ in _SETTINGS)
    arguments = [word for name, value in _SETTINGS.items() for word in (name, value, local)]
    connection.execute(f"SELECT {calls}", arguments)


def check_server(connection: psycopg.Connection[Any]) -> PostgreSQL:
    """Return the dialect of a server that can be asked.

    Raises
    ------
    SourceError
        If it is too old, holds texts in another encoding than UTF-8, or does not let this user make temporary
        tables, for want of a right or because transactions are read-only.
    """
    if connection.info.server_version < _OLDEST:
        raise SourceError("a PostgreSQL source must be of version 15 or later; upgrade the server")
    encoding, temporary, recovering, reading, letters = connection.execute(
        "SELECT current_setting('server_encoding'), "
        "has_database_privilege(current_database(), 'TEMPORARY'), pg_is_in_recovery(), "
        "current_setting('transaction_read_only') = 'on', "
        "EXISTS (SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu')"
    ).fetchall()[0]
    if encoding != "UTF8":
        raise SourceError(
            f"a PostgreSQL source must hold its texts in UTF8, got {encoding}; copy the tables to a database "
            "in UTF8"
        )
    if recovering or not temporary:
        raise SourceError(
            "a PostgreSQL source must let its user make temporary tables; connect to the primary server, and "
            "grant TEMPORARY on the database"
        )
    if reading:
        raise SourceError(
            "a PostgreSQL source must let its user make temporary tables, got transactions that are "
            "read-only by default; set default_transaction_read_only = off for the user, or add "
            "?options=-cdefault_transaction_read_only%3Doff to the address: nothing else is ever written"
        )
    return PostgreSQL() if letters else PostgreSQL(letters="C")


def find_tables(
    connection: psycopg.Connection[Any], source: PostgresSource, dialect: PostgreSQL
) -> dict[str, StoredTable]:
    """Return the tables that a source means, by name.

    Raises
    ------
    SourceError
        If one is missing, is no ordinary table, has columns that differ in case alone, or may not be read.
    """
    rows = connection.execute(_TABLES, [source.schema]).fetchall()
    found = {name: (oid, kind) for oid, name, kind in rows}
    wanted = source.tables or tuple(name for name, (_, kind) in found.items() if kind in "rp")
    if not wanted:
        raise SourceError(f"the schema {source.schema!r} must hold a table, got none; name another schema")
    tables = {}
    for name in wanted:
        oid, kind = found.get(name, (0, ""))
        if not kind:
            raise SourceError(
                f"the schema {source.schema!r} must hold the table {name!r}, got {_names(list(found))}; "
                "name one of them as it is spelled"
            )
        (strangers,) = connection.execute(_DESCENDANTS, [oid]).fetchall()[0]
        if kind not in "rp" or strangers:
            raise SourceError(
                f"{name!r} must be an ordinary table, without foreign parts, got another relation; copy what "
                "it shows to a table"
            )
        columns = connection.execute(_COLUMNS, [oid]).fetchall()
        check_names(name, [column for column, _ in columns])
        stored = tuple(StoredColumn(column, type_, dialect.column_type(type_)) for column, type_ in columns)
        inside = f"{dialect.identifier(source.schema)}.{dialect.identifier(name)}"
        tables[name] = StoredTable(inside, stored)
        _check_readable(connection, name, tables[name], dialect)
    _check_tables(list(tables))
    return tables


def stamp(
    connection: psycopg.Connection[Any], tables: Mapping[str, StoredTable], dialect: PostgreSQL
) -> tuple[object, ...]:
    """Lock tables against being altered, until the transaction ends, and return what tells that they were.

    A snapshot outlives changes of rows, but neither TRUNCATE nor DROP nor a new name of a table or column,
    nor a partition that comes or goes: what is looked at is what the server's planner sees now, not the
    catalogs' rows of the snapshot. Nothing is returned for tables that are gone.
    """
    found: list[object] = []
    try:
        for table in tables.values():
            connection.execute(f"LOCK TABLE {table.name} IN ACCESS SHARE MODE")
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


def _check_readable(
    connection: psycopg.Connection[Any], name: str, table: StoredTable, dialect: PostgreSQL
) -> None:
    items = ", ".join(dialect.identifier(column.name) for column in table.columns)
    readable = False
    try:
        connection.execute(f"SELECT {items} FROM {table.name} LIMIT 0")
        readable = True
    except library().Error:
        pass
    if not readable:
        raise SourceError(
            f"table {name!r} must be readable as a whole; grant SELECT on it and USAGE on its schema, and "
            "let no row security policy apply"
        )


def _check_tables(names: Sequence[str]) -> None:
    if len({name.casefold() for name in names}) < len(names):
        raise SourceError("the tables of a source must have names that differ beyond case; name those meant")


def _names(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names) or "nothing"
