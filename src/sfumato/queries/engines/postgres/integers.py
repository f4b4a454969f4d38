"""Integers of PostgreSQL that are total: there one that leaves 64 bits is an error.

Operands are columns or literals, for each is used several times; ``floats.let`` makes them so.
"""

from __future__ import annotations

from sfumato.queries.engines.dialects.base import REACH

__all__ = ["LARGEST", "LEAST", "add", "in_halves", "limited_sum", "multiply", "subtract"]

LEAST, LARGEST = "-9223372036854775808", "9223372036854775807"

_HALF = 24
"""Bits of a lower half; the upper half of a value within 2**54 is of 32 bits."""


def add(a: str, b: str) -> str:
    """Return a sum, NULL where it leaves 64 bits."""
    fits = f"{a} <= {_big(LARGEST)} - GREATEST({b}, 0) AND {a} >= {_big(LEAST)} - LEAST({b}, 0)"
    return f"(CASE WHEN {fits} THEN {a} + {b} END)"


def subtract(a: str, b: str) -> str:
    """Return a difference, NULL where it leaves 64 bits."""
    fits = f"{a} <= {_big(LARGEST)} + LEAST({b}, 0) AND {a} >= {_big(LEAST)} + GREATEST({b}, 0)"
    return f"(CASE WHEN {fits} THEN {a} - {b} END)"


def multiply(a: str, b: str) -> str:
    """Return a product, NULL where it leaves 64 bits."""
    about = f"abs(CAST({a} AS double precision) * CAST({b} AS double precision))"
    exact = f"CAST({a} AS numeric) * CAST({b} AS numeric) BETWEEN {LEAST} AND {LARGEST}"
    return f"(CASE WHEN {about} < 9e18 THEN {a} * {b} WHEN {exact} THEN {a} * {b} END)"


def in_halves(reach: int) -> bool:
    """Return whether `limited_sum` takes values of such a magnitude.

    Examples
    --------
    >>> in_halves(2**48), in_halves(2**62)
    (True, False)
    """
    return reach <= 1 << (_HALF + 30)


def limited_sum(column: str) -> str:
    """Return the aggregate of the exact sum in 64 bits, 2**62 for one beyond it.

    PostgreSQL adds values of 32 bits as bigint, those of 64 as numeric, which takes far longer. So the upper
    and the lower bits are added on their own, and the lower sum's own upper bits are carried over. Exact up
    to 2**38 rows.
    """
    mask, end = (1 << _HALF) - 1, _big(str(REACH >> _HALF))
    low = f"sum(CAST({column} & {mask} AS integer))"
    high = f"(sum(CAST({column} >> {_HALF} AS integer)) + ({low} >> {_HALF}))"
    return (
        f"CASE WHEN {high} >= {end} THEN {_big(str(REACH))} WHEN {high} < -{end} "
        f"THEN {_big(str(-REACH))} ELSE ({high} << {_HALF}) + ({low} & {mask}) END"
    )


def _big(digits: str) -> str:
    return f"CAST('{digits}' AS bigint)"
