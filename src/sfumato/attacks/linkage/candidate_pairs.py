"""Pairs of records that blocking leaves to compare, and the levels in which each pair agrees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.attacks.linkage.comparison_levels import ComparisonLevels

__all__ = ["CandidatePairs", "candidate_pairs"]

_RANDOM_PAIRS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePairs:
    """Compared pairs.

    Parameters
    ----------
    left, right : int32 arrays of shape (pairs,)
        The person, and the row of the table.
    pattern : int32 array of shape (pairs,)
        Which agreement pattern each pair has.
    random : int64 array of shape (patterns,)
        How many random pairs have each pattern.
    shape : tuple of int
        How many values each comparison has: its levels, and one for NULL, which is the last.
    people, rows : int
        How many persons and rows there are.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    pattern: NDArray[np.int32]
    random: NDArray[np.int64]
    shape: tuple[int, ...]
    people: int
    rows: int

    def levels(self) -> NDArray[np.int64]:
        """Return the level of each comparison for each pattern, an array of shape (comparisons, patterns)."""
        return np.stack(np.unravel_index(np.arange(math.prod(self.shape)), self.shape)).astype(np.int64)


def candidate_pairs(
    people: pa.Table,
    table: pa.Table,
    comparisons: Mapping[str, ComparisonLevels],
    blocking: Sequence[Sequence[str]],
    *,
    max_pairs: int,
    rng: int,
) -> CandidatePairs:
    """Return all pairs that blocking rules leave, with their agreement.

    Parameters
    ----------
    people, table : pyarrow.Table
    comparisons : mapping of str to ComparisonLevels
    blocking : sequence of sequences of str
        A pair is compared if it is equal in all columns of one of these.
    max_pairs : int
    rng : int
        Seed of the random pairs.

    Returns
    -------
    CandidatePairs

    Raises
    ------
    ParameterError
        If there would be more than ``max_pairs``, or types of columns cannot be compared.
    """
    shape = tuple(levels.count + 1 for levels in comparisons.values())
    if math.prod(shape) > 2**20:
        _check.refuse("comparisons", "make at most 2**20 patterns", math.prod(shape), "use fewer levels")
    with duckdb.connect(":memory:") as connection:
        _load(connection, "a", people, comparisons)
        _load(connection, "b", table, comparisons)
        _check_size(connection, list(comparisons), blocking, max_pairs)
        try:
            found = _pairs(connection, comparisons, blocking)
            random = _random(
                connection, comparisons, (people.num_rows, table.num_rows), rng, math.prod(shape)
            )
        except duckdb.BinderException:
            remedy = "compare texts with texts and numbers with numbers"
            _check.refuse_state("comparisons", "fit the types of their columns", "one does not", remedy)
    return CandidatePairs(
        found["i"], found["j"], found["pattern"], random, shape, people.num_rows, table.num_rows
    )


Connection = duckdb.DuckDBPyConnection


def _load(connection: Connection, name: str, table: pa.Table, columns: Mapping[str, Any]) -> None:
    """Store the compared columns as c0, c1, ... of a table with the row's number."""
    numbers = pa.array(np.arange(table.num_rows, dtype=np.int32))
    names = [f"c{place}" for place in range(len(columns))]
    frame = table.select(list(columns)).append_column("row", numbers).rename_columns([*names, "row"])
    connection.register("loaded", frame)
    connection.execute(f"CREATE TABLE {name} AS FROM loaded")
    connection.unregister("loaded")


def _rule(columns: list[str], rule: Sequence[str]) -> str:
    return " AND ".join(f"a.c{columns.index(name)} = b.c{columns.index(name)}" for name in rule)


def _check_size(
    connection: Connection, columns: list[str], blocking: Sequence[Sequence[str]], most: int
) -> None:
    total = 0
    for rule in blocking:
        keys = ", ".join(f"c{columns.index(name)}" for name in rule)
        sizes = "SELECT {keys}, count(*) AS n FROM {table} GROUP BY {keys}"
        left, right = (sizes.format(keys=keys, table=table) for table in "ab")
        query = f"SELECT sum(a.n * b.n) FROM ({left}) a JOIN ({right}) b ON {_rule(columns, rule)}"  # noqa: S608
        row = connection.execute(query).fetchone()
        total += int(row[0] or 0) if row else 0
    if total > most:
        remedy = "block on more columns, or raise max_pairs"
        _check.refuse_state("blocking", f"leave at most {most:,} pairs", "it leaves more", remedy)


def _pattern(comparisons: Mapping[str, ComparisonLevels]) -> str:
    """Return SQL for the number of a pair's pattern; NULL is the last value of each comparison."""
    number = "0"
    for place, levels in enumerate(comparisons.values()):
        level = levels.sql(f"a.c{place}", f"b.c{place}")
        number = f"({number}) * {levels.count + 1} + coalesce(nullif({level}, -1), {levels.count})"
    return f"CAST({number} AS INTEGER)"


def _pairs(
    connection: Connection, comparisons: Mapping[str, ComparisonLevels], blocking: Sequence[Sequence[str]]
) -> dict[str, NDArray[np.int32]]:
    """Return the pairs of all rules, each pair once."""
    columns = list(comparisons)
    parts = []
    for place, rule in enumerate(blocking):
        earlier = "".join(f" AND ({_rule(columns, other)}) IS NOT TRUE" for other in blocking[:place])
        query = (
            f"SELECT a.row AS i, b.row AS j, {_pattern(comparisons)} AS pattern "  # noqa: S608
            f"FROM a JOIN b ON {_rule(columns, rule)}{earlier}"
        )
        parts.append(connection.execute(query).fetchnumpy())
    return {
        name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in ("i", "j", "pattern")
    }


def _random(
    connection: Connection,
    comparisons: Mapping[str, ComparisonLevels],
    sizes: tuple[int, int],
    rng: int,
    patterns: int,
) -> NDArray[np.int64]:
    """Return how many random pairs have each pattern; nearly all of them are of two persons."""
    generator = np.random.default_rng(rng)
    count = min(_RANDOM_PAIRS, 20 * max(sizes) + 20_000)
    drawn = pa.table(
        {name: generator.integers(0, size, count) for name, size in zip("ij", sizes, strict=True)}
    )
    connection.register("drawn", drawn)
    query = (
        f"SELECT {_pattern(comparisons)} AS pattern, count(*) AS n "  # noqa: S608
        "FROM drawn JOIN a ON a.row = drawn.i JOIN b ON b.row = drawn.j GROUP BY 1"
    )
    found = connection.execute(query).fetchnumpy()
    counts = np.zeros(patterns, dtype=np.int64)
    counts[np.asarray(found["pattern"])] = np.asarray(found["n"])
    return counts
