"""Reasons of a refused connection, by the words of libpq and psycopg."""

from __future__ import annotations

from sfumato.ledger.store.refused_connection import REASONS, reason_of

_AT = 'connection failed: connection to server at "10.1.2.3", port 5432 failed: '
_WORDS = {
    _AT + 'FATAL:  password authentication failed for user "ada"': "a refused user or password",
    _AT + 'FATAL:  role "ada" does not exist': "a refused user or password",
    _AT + 'FATAL:  LDAP authentication failed for user "ada"': "a refused user or password",
    _AT + "fe_sendauth: no password supplied": "a server that asks for a password, and none was given",
    _AT + 'FATAL:  database "people" does not exist': "a database that the server does not have",
    _AT + 'FATAL:  permission denied for database "people"': "a user without CONNECT on the database",
    _AT + "server does not support SSL, but SSL was required": "no agreement on TLS",
    _AT + "SSL error: certificate verify failed": "no agreement on TLS",
    _AT
    + 'FATAL:  no pg_hba.conf entry for host "10.1.2.9", user "ada", database "people", SSL off': "a server "
    "that does not let in this user, from this host and with or without TLS",
    _AT + "FATAL:  sorry, too many clients already": "a server with no connection left",
    _AT + "FATAL:  the database system is starting up": "a server that starts, stops or recovers",
    _AT + "Connection refused\n\tIs the server running on that host": "no answer from a server",
    "failed to resolve host 'db.example': [Errno -2] Name or service not known": "no answer from a server",
    "connection timeout expired": "no answer from a server",
    'invalid URI query parameter: "no_such"': "an address that libpq cannot read",
    'invalid connection option "no_such"': "an address that libpq cannot read",
    _AT + "FATAL:  Passwort-Authentifizierung für Benutzer »ada« fehlgeschlagen": "a refusal",
    "": "a refusal",
}


def test_each_kind_of_refusal_is_named_without_a_value() -> None:
    for words, expected in _WORDS.items():
        got, remedy = reason_of(words)
        assert got == expected, words
        assert remedy
        for value in ("ada", "people", "10.1.2", "db.example", "5432"):
            assert value not in got + remedy


def test_every_reason_is_given() -> None:
    assert {got for _, got, _ in REASONS} == set(_WORDS.values())
