"""The types that decimals of stated digits are computed in."""

from __future__ import annotations

from sfumato.queries.plan.query import ColumnType

__all__ = ["decimal_type"]

_INTEGER_DIGITS = 18  # all whole numbers of so many digits are of 64 bits
_FLOAT_DIGITS = 15  # no two decimals of so many digits have one nearest float, unless it is subnormal
_FLOAT_SCALE = 200


def decimal_type(digits: int, scale: int) -> ColumnType:
    """Return the type that tells all decimals of a precision apart, with ``scale`` digits behind the point.

    Examples
    --------
    >>> decimal_type(18, 0).value, decimal_type(9, 2).value, decimal_type(19, 0).value
    ('INT64', 'FLOAT64', 'NUMERIC')
    """
    if scale <= 0 and digits - scale <= _INTEGER_DIGITS:
        return ColumnType.INTEGER
    if digits <= _FLOAT_DIGITS and abs(scale) <= _FLOAT_SCALE:
        return ColumnType.FLOAT
    return ColumnType.DECIMAL
