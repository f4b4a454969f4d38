"""Databases as sources: where the tables lie, and which of them are meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, final

from sfumato._check import refuse, refuse_state

__all__ = ["SCHEMES", "PostgresSource", "as_database"]

SCHEMES: Final = ("postgresql://", "postgres://")
"""How the address of a PostgreSQL database begins."""


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

    Raises
    ------
    ParameterError
        If the address is none of PostgreSQL, or a name is no text.

    Examples
    --------
    >>> PostgresSource("postgresql://analyst@db.example/shop", tables=["people"])
    PostgresSource(tables=('people',), schema='public')
    """

    url: str = field(repr=False)
    tables: tuple[str, ...] | None = None
    schema: str = "public"

    def __init__(self, url: str, *, tables: Iterable[str] | None = None, schema: str = "public") -> None:
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


def as_database(source: object) -> PostgresSource | None:
    """Return the database that a source names; None for any other source.

    Examples
    --------
    >>> as_database({"people": "postgresql://db.example/shop", "visits": "postgresql://db.example/shop"})
    PostgresSource(tables=('people', 'visits'), schema='public')
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
