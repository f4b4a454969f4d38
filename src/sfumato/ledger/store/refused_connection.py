"""Why a PostgreSQL server lets nobody in: the password, the database, TLS, its rules, or no server at all.

A failed attempt has no SQLSTATE (libpq does not pass it on), so its reason is found in libpq's own words, and
these are never shown: they may hold the address, the user and the host. Of a server that speaks another
language than English the last reason is given, which names all of them.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["reason_of"]

REASONS: Final = (
    (
        "no password supplied",
        "a server that asks for a password, and none was given",
        "store it in ~/.pgpass or PGPASSWORD",
    ),
    (
        'invalid (URI|connection option|sslmode|integer|port|percent)|missing "="|unterminated|unexpected',
        "an address that libpq cannot read",
        "pass postgresql://user@host:port/database, with parameters of libpq alone after the ?",
    ),
    (
        "FATAL: +(password|role )|authentication failed",
        "a refused user or password",
        "check both, and the server's pg_hba.conf",
    ),
    (
        "no pg_hba.conf entry|pg_hba.conf rejects",
        "a server that does not let in this user, from this host and with or without TLS",
        "add a line to its pg_hba.conf, or ask for TLS with ?sslmode=require",
    ),
    (
        "FATAL: +database .* does not exist",
        "a database that the server does not have",
        "check the name at the end of the address",
    ),
    (
        "FATAL: +permission denied for database",
        "a user without CONNECT on the database",
        "grant it",
    ),
    (
        "(?i)ssl|certificate|tls",
        "no agreement on TLS",
        "check sslmode and sslrootcert in the address, and the server's certificate",
    ),
    (
        "FATAL: +(sorry, )?(too many|remaining connection slots)",
        "a server with no connection left",
        "close one, or raise max_connections or the user's limit: a session needs two",
    ),
    (
        "FATAL: +the database system is",
        "a server that starts, stops or recovers",
        "try again when it runs",
    ),
    (
        "(?i)resolve|translate host|refused|time(d )?out|unreachable|no route|no such file|closed the|reset",
        "no answer from a server",
        "check the host and the port in the address, the network and that the server runs",
    ),
    ("", "a refusal", "check that the server runs, and the address, the user and the password"),
)
"""What libpq's words hold, in the order of looking; what is said was got instead, and its remedy."""


def reason_of(words: str) -> tuple[str, str]:
    """Return what was got instead of a connection, and the remedy; nothing of the words is in them.

    Parameters
    ----------
    words : str
        What libpq or psycopg says.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> reason_of('connection failed: FATAL:  database "people" does not exist')[0]
    'a database that the server does not have'
    """
    return next((got, remedy) for pattern, got, remedy in REASONS if re.search(pattern, words))
