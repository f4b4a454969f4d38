"""What a PostgreSQL server and the way to it report, said as one of the ledger's errors with its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.failures import NOTHING_CHARGED, unavailable

__all__ = ["BEFORE_COMMIT", "explained", "sqlstate_of"]

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
    "55P03": ("be free", "a lock held by another process", "try again when it is done"),
    "57014": ("not be interrupted", "an interrupt", "try again"),
    "57P": ("be reachable", "a server that stops or starts", "try again when it runs"),
    "58": ("be readable and writable", "an input or output error of the server", "check the server's disk"),
}
"""By the server's code of the error, or the beginning of it; the longest that fits counts."""

NO_CODE = (
    "be reachable",
    "a connection that was lost or never made",
    "check the address, the password and the server",
)
BEFORE_COMMIT = ("23", "40", "55")
"""Codes of a commit that did not happen; any other, and a lost connection, may have come after it."""


def sqlstate_of(error: BaseException) -> str | None:
    """Return the server's code of an error; None where the connection failed and no server spoke."""
    # SQLAlchemy wraps the driver's error.
    state: Any = getattr(getattr(error, "orig", error), "sqlstate", None)
    return state if isinstance(state, str) else None


@contextmanager
def explained(name: str, own: tuple[type[BaseException], ...]) -> Iterator[None]:
    """Turn the errors of ``own`` into `LedgerUnavailable` or `LedgerCorrupt`."""
    try:
        yield
    except own as error:
        # The server's own words may hold what was written; they go no further than the cause.
        raise _of_server(sqlstate_of(error), name) from error
    except UnicodeDecodeError as error:
        raise _damaged(name) from error


def _of_server(state: str | None, name: str) -> LedgerUnavailable | LedgerCorrupt:
    if state is None:
        rule, got, remedy = NO_CODE
    elif state.startswith(("23", "XX")):
        return _damaged(name)
    else:
        known = [code for code in UNAVAILABLE if state.startswith(code)]
        other = ("be usable", f"the server's error {state}", "see the server's log")
        rule, got, remedy = UNAVAILABLE[max(known, key=len)] if known else other
    return unavailable(rule, got, name, remedy)


def _damaged(name: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"ledger must be undamaged, got damaged or altered tables at {name}; {NOTHING_CHARGED}; "
        "restore them from a backup and compare with the latest exported head"
    )
