"""A copy of a session's tables without their rows, to plan on: whatever is read there, no row can be.

An engine computes one job at a time, and whoever asks it to check a query waits until then. How long that
takes depends on rows. On an engine of its own a page answers at once, and what it says cannot depend on
private rows, for there are none: the private tables have their columns only. Public tables are copied whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.schema import ARROW_TYPES, Column, ColumnType, Schema
from sfumato.session.session import Session

__all__ = ["column_type", "planning_session", "public_tables", "same_columns"]

_DECIMAL: Final = pa.decimal128(38, 9)
_UNUSABLE: Final = pa.binary()


def planning_session(session: Session) -> Session:
    """Return a session over the same ledger whose private tables have no rows.

    Parameters
    ----------
    session : Session
        Of files or frames, the curator's.

    Returns
    -------
    Session
        With an engine of its own, which is to be closed by `Engine.close` of `Session.engine`.

    Raises
    ------
    SourceError
        If the tables cannot be copied.
    """
    private = {name: scan.schema for name, scan in session.catalog.private.items()}
    tables = {name: schema_of(schema).empty_table() for name, schema in private.items()}
    engine = DuckDBEngine(open_source(tables | public_tables(session)))
    wanted = private | dict(session.catalog.public)
    if not same_columns(engine.schemas, wanted):
        engine.close()
        raise SourceError(
            "the tables must have types that DuckDB has to be planned on without rows, got others; pass a "
            "second session of the same tables as planning="
        )
    account = session.account
    return session.as_analyst(account.analyst, period=account.period, engine=engine)


def schema_of(schema: Schema) -> pa.Schema:
    """Return the columns of a table as Arrow's, each of a type that a query computes with in the same way."""
    return pa.schema([(column.name, column_type(column)) for column in schema.columns])


def column_type(column: Column) -> pa.DataType:
    """Return a type of Arrow for a column; one that no query can use for a column that none can."""
    if column.type is ColumnType.DECIMAL:
        return _DECIMAL
    if column.type is not None:
        return ARROW_TYPES[column.type]
    if column.element is not None:
        element = Column(column.name, column.element)
        return pa.list_(column_type(element))
    return _UNUSABLE


def public_tables(session: Session) -> dict[str, pa.Table]:
    """Return the rows of the public tables, with a column of nothing for each that no query can use."""
    made = {}
    for name, schema in session.catalog.public.items():
        rows = session.engine.public_rows(name)
        columns: dict[str, Any] = {}
        for column in schema.columns:
            known = column.name in rows.column_names
            wanted = column_type(column)
            columns[column.name] = rows[column.name].cast(wanted) if known else pa.nulls(len(rows), wanted)
        made[name] = pa.table(columns)
    return made


def same_columns(one: Mapping[str, Schema], other: Mapping[str, Schema]) -> bool:
    """Return whether two sets of tables have the same names, columns and types."""
    return {name: schema.columns for name, schema in one.items()} == {
        name: schema.columns for name, schema in other.items()
    }
