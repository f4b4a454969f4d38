"""The content of Spark tables as one keyed digest that depends on no order of rows."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pyarrow as pa

from sfumato.queries.engines.dialects.base import StoredColumn, StoredTable
from sfumato.queries.engines.spark.dialect import SPARK
from sfumato.queries.engines.stored_tables import digest_tables
from sfumato.queries.plan.query import ColumnType

__all__ = ["content"]

_FORMAT: Final = b"sfumato.content.spark 1"
"""What is digested first: the name and version of what follows."""
_WORDS: Final = 4
_LIMBS: Final = (0, 21, 42)  # bits below a part of a word: sums fit in 64 bits up to 2**41 rows
_BITS: Final = 21
_MODULUS: Final = 1 << 64


def content(run: Callable[[str], pa.Table], tables: Mapping[str, StoredTable], key: bytes) -> str:
    """Return a keyed digest of all rows of all tables, in hexadecimal.

    Every table is read once, by the workers; what comes back is a dozen integers. Columns of a type that no
    query can use count by name and type alone.

    Parameters
    ----------
    run : callable
        Gives the rows of a SELECT.
    tables : mapping of str to StoredTable
    key : bytes

    Notes
    -----
    Guarantee: a table counts as its number of rows, and as four sums modulo 2**64 over its rows of words made
    of SHA-256(row key, row); the digest is the HMAC-SHA-256 of names, types and these. The row key is an HMAC
    of ``key``, of fixed length, and a row is written so that none is the beginning of another: so the rows'
    digests are pseudo-random as SHA-256's compression is (Bellare, Canetti and Krawczyk 1996), and two
    different multisets of rows have one digest with negligible probability (Clarke et al. 2003, the additive
    multiset hash). A word is XXH64 of the digest: not one-to-one, but of what looks random.

    References
    ----------
    Bellare, Canetti, Krawczyk. "Pseudorandom functions revisited: the cascade construction." FOCS 1996.
    Clarke, Devadas, van Dijk, Gassend, Suh. "Incremental multiset hash functions and their application to
    memory integrity checking." ASIACRYPT 2003, section 5.
    """
    row_key = hmac.digest(key, b"spark rows", hashlib.sha256).hex()

    def rows(table: StoredTable) -> Iterator[bytes]:
        row = run(_sums(table, row_key)).to_pylist()[0]
        yield int(row["n"]).to_bytes(8, "big")
        for word in range(_WORDS):
            parts = (int(row[f"w{word}_{bits}"] or 0) << bits for bits in _LIMBS)
            yield (sum(parts) % _MODULUS).to_bytes(8, "big")

    return digest_tables(key, _FORMAT, tables, rows)


def _sums(table: StoredTable, row_key: str) -> str:
    """Return the SELECT of the number of rows and of the sums of parts of the words."""
    columns = [_written(column) for column in table.columns if column.type is not None]
    columns += [_elements(column) for column in table.columns if column.element is not None]
    digests = (
        f"SELECT sha2(concat({', '.join((SPARK.string(row_key), *columns))}), 256) AS h FROM {table.name}"
    )
    words = ", ".join(f"xxhash64(h, {word}) AS w{word}" for word in range(_WORDS))
    mask = (1 << _BITS) - 1
    sums = [
        f"sum(shiftright(w{word}, {bits}){f' & {mask}' if bits < _LIMBS[-1] else ''}) AS w{word}_{bits}"
        for word in range(_WORDS)
        for bits in _LIMBS
    ]
    return f"SELECT count(*) AS n, {', '.join(sums)} FROM (SELECT {words} FROM ({digests}) AS r) AS r"


def _written(column: StoredColumn) -> str:
    """Return a value as a text behind its length; ``-`` where it is NULL.

    XXH64 of eight bytes is one-to-one: it stands for a float or a moment, whose texts depend on versions and
    settings. It takes -0.0 for 0.0, as every query does.
    """
    sql = SPARK.identity(column) if column.type is ColumnType.TEXT else SPARK.identifier(column.name)
    if column.stored.startswith("decimal("):
        sql = SPARK.digits(column)
    binary = column.stored in ("float", "double") or column.type in (ColumnType.DATE, ColumnType.TIMESTAMP)
    text = f"CAST({f'xxhash64({sql})' if binary else sql} AS STRING)"
    return f"CASE WHEN {sql} IS NULL THEN '-' ELSE concat(octet_length({text}), ':', {text}) END"


def _elements(column: StoredColumn) -> str:
    """Return an array as the number of its elements, and each of them as `_written` has it."""
    sql = SPARK.identifier(column.name)
    each = StoredColumn("e", SPARK.element_of(column.stored), column.element)
    values = f"array_join(transform({sql}, {SPARK.identifier('e')} -> {_written(each)}), '')"
    return f"CASE WHEN {sql} IS NULL THEN '-' ELSE concat(size({sql}), ':', {values}) END"
