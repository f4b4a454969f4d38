"""The content of PostgreSQL tables as one keyed digest that depends on no order of rows."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sfumato.queries.engines.dialects.base import StoredTable
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.engines.stored_tables import digest_tables

if TYPE_CHECKING:
    import psycopg

__all__ = ["content"]

_FORMAT: Final = b"sfumato.content.postgresql 1"
"""What is digested first: the name and version of what follows."""
_WIDTH: Final = 64
_MODULUS: Final = 1 << (8 * _WIDTH)


def content(
    connection: psycopg.Connection[Any], tables: Mapping[str, StoredTable], dialect: PostgreSQL, key: bytes
) -> str:
    """Return a keyed digest of all rows of all tables, in hexadecimal.

    Every table is streamed once; no row is retained. It does not depend on where rows lie in the table, for
    the server moves them at will.

    Notes
    -----
    Guarantee: a table counts as the sum, modulo 2**512, of the keyed BLAKE2b digests of its rows as COPY
    writes them, and their number; the digest is the HMAC-SHA-256 of names, types and these. As long as both
    are pseudo-random functions it reveals nothing without the key, and two different multisets of rows have
    one digest with negligible probability (Clarke et al. 2003, the additive multiset hash).

    References
    ----------
    Clarke, Devadas, van Dijk, Gassend, Suh. "Incremental multiset hash functions and their application to
    memory integrity checking." ASIACRYPT 2003, section 5.
    """
    rows_key = hmac.digest(key, b"rows", hashlib.sha512)

    def rows(table: StoredTable) -> list[bytes]:
        total, count = _rows(connection, table, dialect, rows_key)
        return [total.to_bytes(_WIDTH, "big") + count.to_bytes(8, "big")]

    return digest_tables(key, _FORMAT, tables, rows)


def _rows(
    connection: psycopg.Connection[Any], table: StoredTable, dialect: PostgreSQL, key: bytes
) -> tuple[int, int]:
    """Return the sum of the digests of the rows, and how many there are."""
    items = ", ".join(dialect.identifier(column.name) for column in table.columns)
    total = count = 0
    digest = hashlib.blake2b(key=key, digest_size=_WIDTH)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY (SELECT {items} FROM {table.name}) TO STDOUT") as copy,
    ):
        for row in copy:  # libpq hands over row by row
            each = digest.copy()
            each.update(row)
            total += int.from_bytes(each.digest(), "big")
            count += 1
    return total % _MODULUS, count
