"""Integers of PostgreSQL against Python's: none raises, and sums are exact whatever is added on the way."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

from sfumato.queries.engines.postgres import integers
from tests.postgres import Cluster

pytestmark = pytest.mark.postgres

_END = 2**62


def _connection(postgres: Cluster) -> psycopg.Connection[Any]:
    return psycopg.connect(postgres.database(), autocommit=True)


def test_arithmetic_is_null_beyond_64_bits(postgres: Cluster) -> None:
    marks = [0, 1, 2, 3, 2**31, 3_037_000_499, 3_037_000_500, 2**62, 2**63 - 1]
    values = sorted({sign * mark for mark in marks for sign in (1, -1)} | {-(2**63)})
    ways: dict[str, Any] = {
        integers.add("a", "b"): int.__add__,
        integers.subtract("a", "b"): int.__sub__,
        integers.multiply("a", "b"): int.__mul__,
    }
    with _connection(postgres) as connection:
        numbers = "SELECT unnest(%s::bigint[]) AS {}"
        pairs = f"({numbers.format('a')}) AS one, ({numbers.format('b')}) AS other"
        rows = connection.execute(f"SELECT a, b, {', '.join(ways)} FROM {pairs}", [values, values]).fetchall()
    assert len(rows) == len(values) ** 2
    for a, b, *found in rows:
        exact = [way(a, b) for way in ways.values()]
        assert found == [value if -(2**63) <= value < 2**63 else None for value in exact]


def test_sums_are_exact_and_end_at_their_limits(postgres: Cluster) -> None:
    """The sums of many rows are counted out: a series of one value is so many times the value."""
    draw, reach = random.Random(17), 2**54
    assert integers.in_halves(reach)
    assert not integers.in_halves(reach + 1)
    groups = [
        [draw.choice((reach, -reach, reach - 1, 5, -7)) for _ in range(draw.randint(1, 600))]
        for _ in range(60)
    ]
    groups += [[reach] * 256, [reach] * 257, [-reach] * 256, [-reach] * 257, [-reach] * 300 + [reach] * 300]
    groups += [[reach] * 255 + [reach - 1], [-reach] * 256 + [-1], [-reach] * 256 + [1], [-1], [None]]  # type: ignore[list-item]
    with _connection(postgres) as connection:
        connection.execute("CREATE TABLE data (g int, v bigint)")
        with connection.cursor() as cursor, cursor.copy("COPY data FROM STDIN") as copy:
            for number, values in enumerate(groups):
                for value in values:
                    copy.write_row((number, value))
        select = f"SELECT g, {integers.limited_sum('v')} FROM data GROUP BY g ORDER BY g"
        found = dict(connection.execute(select).fetchall())
    for number, values in enumerate(groups):
        expected = None if values == [None] else min(max(sum(values), -_END), _END)
        assert found[number] == expected
