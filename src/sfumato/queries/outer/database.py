"""The locked database in which the SQL around private SELECTs runs: it holds released and public tables only.

It lies in memory, apart from the engine of the session, and has no way to files, to the network, to
extensions or to settings. What runs there was released before, so it may take its time, up to a limit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final, NoReturn

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import ErrorLevel, exp

from sfumato.errors import EngineError, SchemaError, UnsupportedSql
from sfumato.queries.engines.duckdb.connection import connect, lock
from sfumato.queries.engines.duckdb.thread_database import ThreadDatabase
from sfumato.queries.plan.schema import ARROW_TYPES

__all__ = ["check", "columns_of", "opened", "refuse", "run", "text_of"]

NUMERIC_TYPE: Final = pa.decimal128(38, 9)
"""What a NUMERIC of an answer is in Arrow."""
_MEMORY: Final = "1GB"
_SECONDS: Final = 60.0
_SETTINGS: Final = (
    "TimeZone = 'UTC'",  # of all connections, as what follows
    "preserve_insertion_order = true",  # the order of an answer stays where nothing else is asked for
    "error_on_division_by_zero = false",
)
_SHOWN: Final = 160
_NUMERIC: Final = "numeric_of"
_NUMERIC_MACRO: Final = f"""CREATE MACRO {_NUMERIC}(x) AS list_transform([x], lambda v: CASE
    WHEN typeof(v) = 'DOUBLE' THEN TRY_CAST(format('{{:.50f}}', TRY_CAST(v AS DOUBLE)) AS DECIMAL(38, 9))
    ELSE TRY_CAST(v AS DECIMAL(38, 9)) END)[1]"""
"""A cast to NUMERIC: the nearest number with 9 digits behind the point, halves away from zero.

Of a float it is read from 50 digits. A float that is a half of 1e-9 has ten; any other one above 1e-10 is at
least 1e-35 away from these, so that no rounding to 50 digits moves it there.
"""
_FAILED: Final = (
    "the SQL around the private SELECTs must finish on their answers, got a failure: a number beyond 64 "
    "bits, a subquery of several rows, or more than {seconds:g} seconds or {memory} of memory; the answers "
    "are stored, and asking again with other SQL around the same private SELECTs costs nothing"
)


def text_of(tree: exp.Expr) -> str:
    """Return a tree as a statement of DuckDB.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        Of nodes on the whitelist.

    Raises
    ------
    UnsupportedSql
        If it cannot be written.
    """
    written = None
    casts = tree.copy()
    for node in reversed(list(casts.find_all(exp.TryCast))):
        if node.args["to"].this is exp.DataType.Type.DECIMAL:
            node.replace(exp.Anonymous(this=_NUMERIC, expressions=[node.this]))
    with suppress(Exception):  # whatever a generator trips over
        written = casts.sql(
            dialect="duckdb", identify=True, comments=False, unsupported_level=ErrorLevel.IGNORE
        )
    if not written:
        raise UnsupportedSql("the SQL around private SELECTs cannot be written for DuckDB; simplify it")
    return str(written)


def check(sql: str, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """Run a statement over tables without rows, and return the columns that it makes.

    Parameters
    ----------
    sql : str
        Of `text_of`.
    schemas : mapping of str to pyarrow.Schema
        The tables.

    Raises
    ------
    SchemaError
        If the statement does not suit the tables, by DuckDB's words about their schemas, or makes columns of
        other types than those of queries, or several of one name.

    Examples
    --------
    >>> check('SELECT "n" + 1 AS "more" FROM "answer"', {"answer": pa.schema([("n", pa.int64())])})
    more: int64
    """
    with opened({name: schema.empty_table() for name, schema in schemas.items()}, shared=True) as connection:
        return columns_of(connection, sql)


def columns_of(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Schema:
    """Run a statement over the tables of an open database, which have no rows; as `check`.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    sql : str

    Returns
    -------
    pyarrow.Schema
    """
    found: pa.Table | None = None
    said = ""
    try:
        found = connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        said = str(error)
    except Exception:  # a name that cannot be stored, say
        said = "a name or a constant that cannot be stored"
    if found is None:
        refuse(said)
    names = [name.casefold() for name in found.column_names]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise SchemaError(f"columns must have different names, got {name!r} twice; name one with AS")
        if not name.isprintable() or len(name) > 300:
            raise SchemaError("a column's name must be printable and at most 300 long; choose one with AS")
    return pa.schema([_column(each) for each in found.schema])


def refuse(said: object) -> NoReturn:
    """Refuse a statement before any charge, by what DuckDB said in its first line.

    Parameters
    ----------
    said : object
        Its message, or its error.

    Raises
    ------
    SchemaError
        Always.
    """
    words = " ".join(str(said).split("\n", maxsplit=1)[0].split())
    shown = words if len(words) <= _SHOWN else words[: _SHOWN - 3] + "..."
    raise SchemaError(
        f"the SQL around private SELECTs must suit their answers, got {shown!r}; nothing was charged: "
        "correct it"
    )


def run(
    sql: str, tables: Mapping[str, pa.Table], schema: pa.Schema, *, seconds: float = _SECONDS
) -> pa.Table:
    """Run a statement over released and public tables.

    Parameters
    ----------
    sql : str
        As `check` accepted it.
    tables : mapping of str to pyarrow.Table
    schema : pyarrow.Schema
        What `check` returned.
    seconds : float
        After which the statement is given up.

    Raises
    ------
    EngineError
        If it fails; the message is fixed.
    """
    found: pa.Table | None = None
    with suppress(Exception), opened(tables, seconds=seconds) as connection:
        found = _rounded(connection.sql(sql).to_arrow_table()).cast(schema)
    if found is None:
        raise EngineError(_FAILED.format(seconds=seconds, memory=_MEMORY))
    return found


@contextmanager
def opened(
    tables: Mapping[str, pa.Table],
    *,
    seconds: float = _SECONDS,
    settings: Sequence[str] = (),
    shared: bool = False,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the locked database over tables, for some seconds.

    Parameters
    ----------
    tables : mapping of str to pyarrow.Table
    seconds : float
        After which what runs there is given up.
    settings : sequence of str
        Further settings.
    shared : bool
        Whether the database is the thread's own, made once: for statements over tables without released
        rows, which would otherwise wait for a new database each time. Else it is made for these tables.

    Yields
    ------
    duckdb.DuckDBPyConnection
    """
    with _shared(tuple(settings)).cursor() if shared else _locked(settings) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        timer = threading.Timer(seconds, connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield connection
        finally:
            timer.cancel()


def _locked(settings: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """Make a locked database without tables."""
    connection = connect("", memory_limit=_MEMORY, threads=1)
    for setting in (*_SETTINGS, *settings):
        connection.execute(f"SET GLOBAL {setting}")
    connection.execute(_NUMERIC_MACRO)
    lock(connection, {})
    return connection


@cache
def _shared(settings: tuple[str, ...]) -> ThreadDatabase:
    """Return the database that a thread opens once with these settings."""
    return ThreadDatabase(lambda: _locked(settings))


def _rounded(table: pa.Table) -> pa.Table:
    """Round products of NUMERICs, which have more digits behind the point, halves away from zero."""
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and field.type.scale > NUMERIC_TYPE.scale:
            values = pc.round(table[index], NUMERIC_TYPE.scale, "half_towards_infinity")
            table = table.set_column(index, field.name, values)
    return table


def _column(field: pa.Field) -> pa.Field:
    """Return a column in the type that it has here: one of queries, or a list of such values or structs."""
    if not pa.types.is_list(field.type):
        return pa.field(field.name, _single(field.name, field.type))
    kind = field.type.value_type
    if not pa.types.is_struct(kind):
        return pa.field(field.name, pa.list_(_single(field.name, kind)))
    parts = [pa.field(part.name, _single(field.name, part.type)) for part in kind]
    return pa.field(field.name, pa.list_(pa.struct(parts)))


def _single(name: str, kind: pa.DataType) -> pa.DataType:
    """Return the type of queries that values have: sums of whole numbers come as decimals."""
    found = kind
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        found = pa.int64()
    elif pa.types.is_decimal(kind):
        return NUMERIC_TYPE
    elif pa.types.is_floating(kind):
        found = pa.float64()
    elif pa.types.is_timestamp(kind):
        found = pa.timestamp("us")
    elif pa.types.is_large_string(kind) or pa.types.is_string(kind):
        found = pa.string()
    elif pa.types.is_null(kind):
        found = pa.int64()
    if found not in set(ARROW_TYPES.values()):
        raise SchemaError(
            f"the column {name!r} must be of a type of queries, got {kind}; select single values"
        )
    return found
