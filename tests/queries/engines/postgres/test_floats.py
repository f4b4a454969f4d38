"""What is asked of PostgreSQL instead of a product or quotient of floats never leaves their range.

DuckDB, whose floats overflow in silence, computes the same texts here: with each product or quotient of the
operands themselves left out, so that what is left is what the guards decide.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence

import duckdb
import pyarrow as pa

from sfumato.queries.engines.postgres import floats
from tests.cases import cases

_SIZES = [0.0, 5e-324, 2.0**-1074 * 3, 2.0**-1022, 1e-200, 1e-150, 2.0**-512, 0.5, 1.0, 3.0, 2.0**512, 1e150]
_SIZES += [2.0**537, 1e200, 1e290, 2.0**1023, math.nextafter(math.inf, 0), math.inf]
_NUMBERS = [sign * size for size in _SIZES for sign in (1, -1)]


def _decided(text: str, left_out: str, pairs: Sequence[tuple[float, float]]) -> list[float | None]:
    """Return what a text says of pairs, and None where it leaves that to the operator."""
    assert left_out in text
    with duckdb.connect() as connection:
        left, right = zip(*pairs, strict=True)
        connection.register("pairs", pa.table({"place": range(len(pairs)), "a": left, "b": right}))
        query = f"SELECT {text.replace(left_out, 'NULL')} FROM pairs ORDER BY place"
        return [found for (found,) in connection.execute(query).fetchall()]


def _ends(values: Callable[[float, float], float], limit: float) -> list[tuple[float, float]]:
    """Return pairs of positive floats whose value is as near as may be to a limit, on either side of it."""
    found = []
    for size in _SIZES[1:-1]:
        other = limit / size if values is operator.mul else size / limit
        if 0 < other < math.inf:
            found += [
                (size, near) for near in (math.nextafter(other, 0), other, math.nextafter(other, math.inf))
            ]
    return [pair for pair in found if 0 < pair[1] < math.inf]


@cases(
    ("text", "left_out", "value"),
    [
        (floats.multiply("a", "b"), "a * b", operator.mul),
        (floats.divide("a", "b"), "a / b", operator.truediv),
    ],
    ids=["product", "quotient"],
)
def test_guards_settle_just_what_would_overflow_or_underflow(
    text: str, left_out: str, value: Callable[[float, float], float]
) -> None:
    edges = [pair for limit in (5e-324, 2.0**1023) for pair in _ends(value, limit)]
    pairs = [
        pair for pair in (*itertools.product(_NUMBERS, _NUMBERS), *edges) if value is operator.mul or pair[1]
    ]
    for (a, b), found in zip(pairs, _decided(text, left_out, pairs), strict=True):
        exact = value(a, b)
        ordinary = 0 < abs(a) < math.inf and 0 < abs(b) < math.inf
        if ordinary and (math.isinf(exact) or exact == 0):
            assert found == exact, (a, b)
        else:
            assert found is None, (a, b)
