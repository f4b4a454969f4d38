"""What a failure of PostgreSQL is called: a fixed sentence by the kind of its SQLSTATE, with no value in it.

Of a query that was charged only two kinds have a sentence of their own, for they say nothing of the rows but
how long it took, which is outside the guarantee: that the curator's limit on time was reached, and that a
standby cancelled it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sfumato.queries.engines.postgres.connection import library
from sfumato.queries.engines.postgres.source import PostgresSource

if TYPE_CHECKING:
    import psycopg

__all__ = ["LOCK_WAIT", "before_charge", "holders_of_locks", "in_query"]

LOCK_WAIT: Final = "30s"
"""How long a table may be locked by others, before a charge."""
_HOLDERS: Final = """
SELECT DISTINCT l.pid, coalesce(a.application_name, '') FROM pg_catalog.pg_locks AS l
LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.granted AND l.mode = 'AccessExclusiveLock' AND l.pid <> pg_catalog.pg_backend_pid()
    AND l.relation IN (SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n
    ON n.oid = c.relnamespace WHERE n.nspname = %s) ORDER BY l.pid LIMIT 3
"""
_LOST: Final = (
    "a PostgreSQL source must keep its connection while it is open, got one that ended; nothing was charged; "
    "connect again"
)
_CONFLICT: Final = "got a standby that cancelled it to go on with what its primary sent"
_FEEDBACK: Final = "set hot_standby_feedback = on there, or a longer max_standby_streaming_delay"


def before_charge(error: Exception, source: PostgresSource, holders: str) -> str:
    """Return the message of a failure before anything is charged."""
    state = getattr(error, "sqlstate", None)
    if state == "57014" and source.statement_timeout is not None:
        return (
            f"a PostgreSQL source must answer within statement_timeout={source.statement_timeout:g} seconds, "
            "got no answer by then; nothing was charged; raise statement_timeout"
        )
    if state == "55P03":
        return (
            f"a PostgreSQL source must be free to read, got a table locked by another session{holders}; "
            "nothing was charged; try again when that session is done"
        )
    if state == "40001":
        return (
            f"a PostgreSQL source must keep its snapshot while it is open, {_CONFLICT}; nothing was charged; "
            f"{_FEEDBACK}, and connect again"
        )
    if state == "42501":
        return (
            "a PostgreSQL source must stay readable while it is open, got a right withdrawn; nothing was "
            "charged; grant it and connect again"
        )
    return _LOST


def in_query(error: Exception, source: PostgresSource, usual: str) -> str:
    """Return the message of a failure after the charge."""
    state = getattr(error, "sqlstate", None)
    if state == "57014" and source.statement_timeout is not None:
        return (
            f"the engine must finish within statement_timeout={source.statement_timeout:g} seconds, got no "
            "answer by then; the charge stays: raise statement_timeout, then ask again"
        )
    if state == "40001":
        return f"the engine must finish what was charged, {_CONFLICT}; the charge stays: {_FEEDBACK}"
    return usual


def holders_of_locks(connection: psycopg.Connection[Any], source: PostgresSource) -> str:
    """Return who keeps tables of a schema from being read, in brackets, as far as this user may see."""
    try:
        rows = connection.execute(_HOLDERS, [source.schema]).fetchall()
    except library().Error:
        return ""
    found = ", ".join(f"process {pid}" + (f", {name!r}" if name else "") for pid, name in rows)
    return f" ({found})" if found else ""
