"""Casts of PostgreSQL: texts by their shape first, and numbers to the nearest value of a type."""

from __future__ import annotations

from typing import Final

from sfumato.queries.engines.dialects.base import LONGEST_NUMBER
from sfumato.queries.engines.dialects.shapes import REAL_DATE, REAL_TIMESTAMP, SHAPES
from sfumato.queries.engines.postgres import floats, integers
from sfumato.queries.engines.postgres.floats import let
from sfumato.queries.plan.query import ColumnType

__all__ = ["from_numeric", "read_text"]

# From this number on a text is beyond the floats; up to that one it is nearest to zero.
_TOO_LARGE = "CAST('1.797693134862315807937289714053e308' AS numeric)"
_TOO_SMALL = "CAST('2.4703282292062328e-324' AS numeric)"
_WHOLE = "[+-]?0*[0-9]{1,19}"


def from_numeric(a: str, type_: ColumnType | None) -> str:
    """Return a numeric as a number of a type, or as the one text of its value; NULL where NaN."""
    if type_ is ColumnType.FLOAT:
        return _nearest_float(a)
    if type_ is ColumnType.DECIMAL:
        return f"(CASE WHEN {a} = 'NaN' THEN NULL ELSE CAST(trim_scale({a}) AS text) END COLLATE \"C\")"
    return (
        f"(CASE WHEN {a} < 'Infinity' AND round({a}) BETWEEN {integers.LEAST} AND {integers.LARGEST} "
        f"THEN CAST(round({a}) AS bigint) END)"
    )


def _nearest_float(a: str) -> str:
    """Return a numeric as a float: infinity where too large, zero where too small, NULL where NaN."""
    return (
        f"(CASE WHEN {a} = 'NaN' THEN NULL WHEN abs({a}) >= {_TOO_LARGE} "
        f"THEN CASE WHEN {a} > 0 THEN {floats.INFINITY} ELSE -{floats.INFINITY} END "
        f"WHEN abs({a}) <= {_TOO_SMALL} THEN {floats.real(0.0)} ELSE CAST({a} AS double precision) END)"
    )


def _read_whole(a: str) -> str:
    value = f"CAST({a} AS numeric)"
    return (
        f"(CASE WHEN octet_length({a}) <= {LONGEST_NUMBER} AND {a} ~ '^{_WHOLE}$' THEN "
        f"CASE WHEN {value} BETWEEN {integers.LEAST} AND {integers.LARGEST} THEN CAST({a} AS bigint) END END)"
    )


def _read_float(a: str) -> str:
    size = f"abs(CAST({a} AS numeric))"
    return (
        f"(CASE WHEN octet_length({a}) <= {LONGEST_NUMBER} AND {a} ~ '^{SHAPES[ColumnType.FLOAT]}$' THEN "
        f"CASE WHEN {size} >= {_TOO_LARGE} THEN NULL WHEN {size} <= {_TOO_SMALL} "
        f"THEN {floats.real(0.0)} ELSE CAST({a} AS double precision) END END)"
    )


def _read_boolean(a: str) -> str:
    return (
        f"(CASE WHEN {a} ~ '^[tT][rR][uU][eE]$' THEN TRUE WHEN {a} ~ '^[fF][aA][lL][sS][eE]$' THEN FALSE END)"
    )


def _read_date(a: str) -> str:
    return f"(CASE WHEN {a} ~ '^{REAL_DATE}$' AND {a} >= '0001' THEN CAST({a} AS date) END)"


def _read_timestamp(a: str) -> str:
    # a text may carry an offset: it is read as an instant, then as the clock of UTC
    clock = f"(CAST({a} AS timestamptz) AT TIME ZONE 'UTC')"
    return (
        f"(CASE WHEN {a} ~ '^{REAL_TIMESTAMP}$' AND {a} >= '0001' THEN "
        f"CASE WHEN {clock} BETWEEN CAST('0001-01-01' AS timestamp) "
        f"AND CAST('9999-12-31 23:59:59.999999' AS timestamp) THEN {clock} END END)"
    )


_READ: Final = {
    ColumnType.BOOLEAN: _read_boolean,
    ColumnType.INTEGER: _read_whole,
    ColumnType.FLOAT: _read_float,
    ColumnType.DATE: _read_date,
    ColumnType.TIMESTAMP: _read_timestamp,
}


def read_text(sql: str, source: ColumnType, target: ColumnType) -> str:
    """Return a text, or the digits of a number, in a type."""
    if target is ColumnType.TEXT:
        return sql
    if source is ColumnType.DECIMAL:
        return let(lambda a: from_numeric(a, target), f"CAST({sql} AS numeric)")
    return let(_READ[target], sql)
