"""The content of PostgreSQL tables as one keyed digest that depends on no order of rows."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sfumato.queries.engines.dialects.base import StoredColumn, StoredTable
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.engines.stored_tables import digest_tables

if TYPE_CHECKING:
    import psycopg

__all__ = ["content"]

_FORMAT: Final = b"sfumato.content.postgresql 2"
"""What is digested first: the name and version of what follows."""
_BLOCK: Final = 64  # bytes that SHA-256 takes at once
_RECORD_HEAD: Final = 12  # bytes of a record before its first field: how many there are, its type and length
_WORDS: Final = (0, 8)
"""Where the words of a digest begin, each of 8 bytes."""


def content(
    connection: psycopg.Connection[Any], tables: Mapping[str, StoredTable], dialect: PostgreSQL, key: bytes
) -> str:
    """Return a keyed digest of all rows of all tables, in hexadecimal.

    The server reads every table once; what comes back is three integers for each. It does not depend on where
    rows lie in the table, for the server moves them at will. Columns of a type that no query can use count by
    name and type alone.

    Notes
    -----
    Guarantee: a table counts as its number of rows, and as two sums, of exact integers, over its rows of
    words of 64 bits of SHA-256(row key, row); the digest is the HMAC-SHA-256 of names, types and these. The
    row key is an HMAC of ``key`` and the table's name. It fills SHA-256's first block together with the head
    of the record, which is the same for all rows; every field after it is preceded by its length, so no row
    is the beginning of another. So the rows' digests are pseudo-random as SHA-256's compression is (Bellare,
    Canetti and Krawczyk 1996). Two different multisets of rows then have one digest with probability at most
    2**-128, beyond what distinguishes these functions from random ones: some row is in one of them more often
    than in the other, and whatever the other rows' words are, at most one value of each of its two words
    makes the sums equal (an additive multiset hash as of Clarke et al. 2003, without a modulus). What the
    server sees, the row key, does not suffice to test a guess at the content: that takes ``key``.

    References
    ----------
    Bellare, Canetti, Krawczyk. "Pseudorandom functions revisited: the cascade construction." FOCS 1996.
    Clarke, Devadas, van Dijk, Gassend, Suh. "Incremental multiset hash functions and their application to
    memory integrity checking." ASIACRYPT 2003, section 5.
    """
    names = {table.name: name for name, table in tables.items()}

    def rows(table: StoredTable) -> list[bytes]:
        row_key = hmac.digest(key, b"postgresql rows " + names[table.name].encode(), hashlib.sha256)
        ((count, *sums),) = connection.execute(_sums(table, dialect, row_key)).fetchall()
        return [b"%d" % int(number) for number in (count, *sums)]

    return digest_tables(key, _FORMAT, tables, rows)


def _sums(table: StoredTable, dialect: PostgreSQL, row_key: bytes) -> str:
    """Return the SELECT of the number of rows and of the sums of words.

    OFFSET 0 has the digest of a row computed once; the server may still share the rows between processes.
    """
    block = row_key.ljust(_BLOCK - _RECORD_HEAD, b"\0").hex()
    fields = [_field(column, dialect) for column in table.columns if column.type is not None]
    record = ", ".join([f"CAST('\\x{block}' AS bytea)", *fields])
    digests = f"SELECT sha256(record_send(ROW({record}))) AS h FROM {table.name} OFFSET 0"
    sums = ", ".join(f"coalesce(sum({_word(start)}), 0)" for start in _WORDS)
    return f"SELECT count(*), {sums} FROM ({digests}) AS r"


def _word(start: int) -> str:
    """Return eight bytes of a digest as a signed integer."""
    parts = (f"(CAST(get_byte(h, {start + i}) AS bigint) << {8 * i})" for i in range(8))
    return f"({' | '.join(parts)})"


def _field(column: StoredColumn, dialect: PostgreSQL) -> str:
    """Return a column as it is sent: of a type of pg_catalog, whose number is the same in all databases."""
    sql = dialect.identifier(column.name)
    return f"CAST({sql} AS {'text' if column.stored == 'enum' else _base(column.stored)})"


def _base(stored: str) -> str:
    """Return the name of a type that a cast leaves every value of as it is."""
    return f"{stored[1:]}[]" if stored.startswith("_") else stored
