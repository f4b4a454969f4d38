"""Databases as sources: where the tables lie, and which of them are meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, final

from sfumato._check import positive, refuse, refuse_state
from sfumato.queries.engines.named_columns import Columns, NamedColumns, named_columns

__all__ = ["SCHEMES", "PostgresSource", "as_database"]

SCHEMES: Final = ("postgresql://", "postgres://")
"""How the address of a PostgreSQL database begins."""
_LONGEST_TIMEOUT: Final = 2e6  # seconds: the server counts milliseconds in 31 bits


@final
@dataclass(frozen=True, slots=True)
class PostgresSource:
    """Tables of one schema of a PostgreSQL database, which stay where they are.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host:port/database``, as libpq reads it. It is never shown.
    tables : iterable of str, optional
        The tables that are meant, by name. Default: all ordinary tables of the schema.
    schema : str
        The schema they are in.
    columns : iterable of str, or mapping of str to these, optional
        The columns that are meant, of the only table or table by table; no other is read, so that a user
        needs no right to it. Default: all columns.
    statement_timeout : float, optional
        Seconds after which the server ends a statement. A query that reaches it ends with `EngineError` and
        its charge stays. Default: no limit, whatever the server's or the user's own is.

    Raises
    ------
    ParameterError
        If the address is none of PostgreSQL, a name is no text, columns are named twice or of a table that is
        not meant, or the seconds are out of range.

    Examples
    --------
    >>> PostgresSource("postgresql://analyst@db.example/shop", tables=["people"])
    PostgresSource(tables=('people',), schema='public', columns=None, statement_timeout=None)
    """

    url: str = field(repr=False)
    tables: tuple[str, ...] | None = None
    schema: str = "public"
    columns: NamedColumns = field(default=None, hash=False)
    statement_timeout: float | None = None

    def __init__(
        self,
        url: str,
        *,
        tables: Iterable[str] | None = None,
        schema: str = "public",
        columns: Columns | None = None,
        statement_timeout: float | None = None,
    ) -> None:
        if not str(url).startswith(SCHEMES):
            # the value is not shown: it may hold a password
            rule, remedy = "be the address of a PostgreSQL database", "pass postgresql://user@host/db"
            refuse_state("url", rule, "it begins otherwise", remedy)
        chosen = None if tables is None else (tables,) if isinstance(tables, str) else tuple(tables)
        names: tuple[object, ...] = (schema, *(chosen or ()))
        for name in names:
            if not isinstance(name, str) or not name or "\0" in name:
                refuse("tables and schema", "be names", name, "pass tables=['people'], schema='public'")
        if chosen is not None and len(set(chosen)) < max(len(chosen), 1):
            refuse(
                "tables", "name each table once", chosen, "pass tables=['people'], or leave it out for all"
            )
        object.__setattr__(self, "url", str(url))
        object.__setattr__(self, "tables", chosen)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "columns", named_columns(columns, chosen))
        object.__setattr__(self, "statement_timeout", _seconds(statement_timeout))

    def restricted(self, columns: Columns | None, statement_timeout: float | None) -> PostgresSource:
        """Return this source with what was stated beside it.

        Parameters
        ----------
        columns : iterable of str, or mapping of str to these, or None
        statement_timeout : float or None

        Returns
        -------
        PostgresSource

        Raises
        ------
        ParameterError
            If the source states the same itself, or they are refused as for `PostgresSource`.
        """
        given = {"columns": columns, "statement_timeout": statement_timeout}
        for name, value in given.items():
            if value is not None and getattr(self, name) is not None:
                found = "the PostgresSource states it as well"
                refuse_state(name, "be stated once", found, "leave one of them out")
        return PostgresSource(
            self.url,
            tables=self.tables,
            schema=self.schema,
            columns=self.columns if columns is None else columns,
            statement_timeout=self.statement_timeout if statement_timeout is None else statement_timeout,
        )


def _seconds(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    remedy = "pass seconds, such as statement_timeout=600"
    if positive("statement_timeout", timeout, remedy) > _LONGEST_TIMEOUT:
        refuse("statement_timeout", f"be at most {_LONGEST_TIMEOUT:.0f} seconds", timeout, remedy)
    return float(timeout)


def as_database(source: object) -> PostgresSource | None:
    """Return the database that a source names; None for any other source.

    Examples
    --------
    >>> as_database({"people": "postgresql://db.example/shop", "visits": "postgresql://db.example/shop"})
    PostgresSource(tables=('people', 'visits'), schema='public', columns=None, statement_timeout=None)
    >>> as_database("people.parquet") is None
    True
    """
    if isinstance(source, PostgresSource):
        return source
    if isinstance(source, Mapping):
        addresses = [
            address for address in source.values() if isinstance(address, str) and address.startswith(SCHEMES)
        ]
        if not addresses:
            return None
        if len(addresses) < len(source) or len(set(addresses)) > 1:
            refuse_state("source", "lie in one database", "it names several", "load the tables into one")
        return PostgresSource(addresses[0], tables=source)
    return PostgresSource(source) if isinstance(source, str) and source.startswith(SCHEMES) else None
