"""What a PostgreSQL server and the way to it report, said as one of the ledger's errors with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.failures import NOTHING_CHARGED, unavailable
from sfumato.ledger.store.postgres_schema import NO_CURATOR
from sfumato.ledger.store.refused_connection import reason_of

__all__ = ["BEFORE_COMMIT", "LOCK_HELD", "explained", "sqlstate_of"]

LOCK_HELD = "55P03"
"""The code of a lock that was waited for in vain."""

UNAVAILABLE: Mapping[str, tuple[str, str, str]] = {
    "08": ("be reachable", "a lost connection", "check the network and the server, and try again"),
    "25006": ("be writable", "a server that only reads", "connect to the primary server"),
    "25P03": ("be used without a stop", "a transaction that stood still for too long", "try again"),
    "28": ("let its user in", "a refused user or password", "check the address and the server's rules"),
    "3D000": ("be in a database of the server", "one that does not exist", "make it, or mend the address"),
    "3F000": ("be in a schema of its database", "none", "check the address: was the schema dropped?"),
    "40": ("be free", "another transaction in the way", "try again"),
    "42501": ("be readable and writable", "missing permission", "grant the user rights on the schema"),
    "42P01": (
        "be in a schema of its database",
        "no tables that its user may see",
        "check the address and the user's rights: was the schema dropped?",
    ),
    "53100": ("find room to grow", "a full disk", "free some space on the server and try again"),
    "53": ("find room on its server", "too many connections or too little memory", "try again later"),
    LOCK_HELD: ("be free", "a lock held by another process", "try again when it is done"),
    "57014": ("not be interrupted", "an interrupt", "try again"),
    "57P": ("be reachable", "a server that stops or starts", "try again when it runs"),
    NO_CURATOR: (
        "be changed by a curator",
        "a grant by a user without the right to grant",
        "connect as the ledger's owner, or GRANT EXECUTE ON FUNCTION may_grant() of its schema",
    ),
    "58": ("be readable and writable", "an input or output error of the server", "check the server's disk"),
}
"""By the server's code of the error, or the beginning of it; the longest that fits counts."""

NO_CODE = (
    "be reachable",
    "a connection that was lost or never made",
    "check the address, the password and the server",
)
NEVER_MADE = ("connection failed", "connection timeout", "failed to resolve", "invalid connection option")
"""How psycopg's words begin where a connection was not made."""
BEFORE_COMMIT = ("23", "40", "55")
"""Codes of a commit that did not happen; any other, and a lost connection, may have come after it."""


def sqlstate_of(error: BaseException) -> str | None:
    """Return the server's code of an error; None where the connection failed and no server spoke."""
    # SQLAlchemy wraps the driver's error.
    state: Any = getattr(getattr(error, "orig", error), "sqlstate", None)
    return state if isinstance(state, str) else None


@contextmanager
def explained(
    name: str, own: tuple[type[BaseException], ...], holders: Callable[[], str] = str
) -> Iterator[None]:
    """Turn the errors of ``own`` into `LedgerUnavailable` or `LedgerCorrupt`.

    Parameters
    ----------
    name : str
        Where the ledger is.
    own : tuple of types
        The library's errors.
    holders : callable
        Returns who holds the ledger's lock, in brackets, or nothing.
    """
    try:
        yield
    except own as error:
        # The server's own words may hold what was written; they go no further than the cause.
        raise _of_server(error, name, holders()) from error
    except UnicodeDecodeError as error:
        raise _damaged(name) from error


def _of_server(error: BaseException, name: str, holders: str) -> LedgerUnavailable | LedgerCorrupt:
    state = sqlstate_of(error)
    if state is None:
        words = str(getattr(error, "orig", error))
        refused = words.startswith(NEVER_MADE)
        rule, got, remedy = ("be reachable", *reason_of(words)) if refused else NO_CODE
    elif state.startswith(("23", "XX")):
        return _damaged(name)
    else:
        known = [code for code in UNAVAILABLE if state.startswith(code)]
        other = ("be usable", f"the server's error {state}", "see the server's log")
        rule, got, remedy = UNAVAILABLE[max(known, key=len)] if known else other
    return unavailable(rule, f"{got}{holders}" if state == LOCK_HELD else got, name, remedy)


def _damaged(name: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"ledger must be undamaged, got damaged or altered tables at {name}; {NOTHING_CHARGED}; "
        "restore them from a backup and compare with the latest exported head"
    )
