"""Connections to a PostgreSQL server: the settings that texts rely on, and why there may be no connection.

What libpq says of a failed attempt is never shown: it may hold the address, the user and the host.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import MissingExtra, SourceError
from sfumato.ledger.store.refused_connection import reason_of
from sfumato.queries.engines.postgres.source import PostgresSource

if TYPE_CHECKING:
    import psycopg

__all__ = ["library", "open_connection", "settings_of", "settle"]

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
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    "lock_timeout": "0",
    "jit": "off",
    "application_name": "sfumato",
    # whether a sort is larger than the limit depends on the rows: so would the failure
    "temp_file_limit": "-1",
}
_APPLY: Final = """SELECT CASE WHEN pg_catalog.current_setting(name, TRUE) <> value
    THEN pg_catalog.set_config(name, value, %s) END
FROM unnest(%s::pg_catalog.text[], %s::pg_catalog.text[]) AS settings (name, value)"""
"""A setting that the server does not have is passed over, and one that is right already is not touched."""
_NOTICE_LOST_CLIENT: Final = "SELECT pg_catalog.set_config('client_connection_check_interval', '5s', false)"


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


def settings_of(source: PostgresSource, *, limited: bool = True) -> dict[str, str]:
    """Return the settings of every transaction over a source, by name; the limit on time is for rows only."""
    limit = math.ceil(1000 * (source.statement_timeout or 0)) if limited else 0
    return {**_SETTINGS, "statement_timeout": f"{limit}ms" if limit else "0"}


def open_connection(source: PostgresSource) -> psycopg.Connection[Any]:
    """Return a new connection on which each statement is its own transaction, unless one is begun.

    Raises
    ------
    SourceError
        If there is none to be had, by its kind of reason; the message is fixed, for libpq's may hold the
        address. Also if the user's temporary files are limited, and the limit is not the user's to lift.
    """
    driver = library()
    made: psycopg.Connection[Any] | None = None
    reason = ""
    try:
        made = driver.connect(source.url, autocommit=True)
        made.prepare_threshold = None
    except driver.Error as error:
        reason = _reason(str(error))
    if made is None:
        raise SourceError(reason)
    try:
        settle(made, source, local=False, limited=False)
    except driver.errors.InsufficientPrivilege:
        reason = (
            "a PostgreSQL source must let its user write temporary files without a limit, for a query that "
            "reaches one fails by the rows, after its charge; ALTER ROLE ... SET temp_file_limit = -1, or "
            "GRANT SET ON PARAMETER temp_file_limit TO the user"
        )
    except driver.Error:
        reason = _reason("")
    if reason:
        made.close()
        raise SourceError(reason)
    with suppress(driver.Error):  # not on every system: there a query runs on when its client was killed
        made.execute(_NOTICE_LOST_CLIENT)
    return made


def settle(
    connection: psycopg.Connection[Any], source: PostgresSource, *, local: bool, limited: bool
) -> None:
    """Make the settings that texts rely on, for the transaction or for the session.

    Behind a pool of connections only a transaction is sure to stay on one session of the server.
    """
    settings = settings_of(source, limited=limited)
    connection.execute(_APPLY, [local, list(settings), list(settings.values())])


def _reason(words: str) -> str:
    """Return what is said of a connection that could not be made."""
    got, remedy = reason_of(words)
    return f"a PostgreSQL source must accept connections, got {got}; {remedy}"
