"""Casts to NUMERIC and UINT64: every value is the one text of its digits, the same on every engine.

No engine's own decimals take part in what a NUMERIC is: they differ in how many digits they hold, and in
whether the scale belongs to the type or to the value. A text is read by its form alone, piece by piece.
"""

from __future__ import annotations

from typing import Final

from sfumato.queries.engines.dialects.base import LONGEST_NUMBER, Dialect
from sfumato.queries.plan.pattern_parser import PatternParser
from sfumato.queries.plan.patterns import Pattern
from sfumato.queries.plan.query import ColumnType

__all__ = ["as_decimal", "as_unsigned"]


def _pattern(text: str) -> Pattern:
    return Pattern(*PatternParser(text).read())


_FORM: Final = _pattern(
    "^[+-]?(?:(?:0*[1-9][0-9]{0,37}|0+)(?:[.](?:[0-9]{0,37}[1-9])?0*)?|[.](?:[0-9]{0,37}[1-9]0*|0+))$"
)
"""At most 38 digits on each side of the point, zeros at the ends not counted."""

_DIGITS: Final = _pattern("^[+]?[0-9]+$")
_BELOW_ZERO: Final = _pattern("^-[0.]*[1-9]")
_WHOLE_PART: Final = _pattern("^[+-]?0*([0-9]+)")
_FRACTION: Final = _pattern("[.][0-9]*[1-9]")
_LARGEST: Final = 2**64 - 1


def as_decimal(sql: str, source: ColumnType | None, dialect: Dialect) -> str:
    """Return an INT64, a text or a bare NULL as NUMERIC; a text of another form is NULL."""
    if source is ColumnType.INTEGER:
        return dialect.direct_cast(sql, source, ColumnType.TEXT)
    if source is None:
        return dialect.converted(sql, ColumnType.DECIMAL)
    return dialect.once(lambda text: _read(text, dialect), sql)


def _read(text: str, dialect: Dialect) -> str:
    sign = (
        f"CASE WHEN {dialect.matches(text, _BELOW_ZERO)} THEN {dialect.text('-')} ELSE {dialect.text('')} END"
    )
    whole = f"COALESCE({dialect.matched_part(text, _WHOLE_PART)}, {dialect.text('0')})"
    fraction = f"COALESCE({dialect.matched_part(text, _FRACTION)}, {dialect.text('')})"
    return f"(CASE WHEN {_formed(text, _FORM, dialect)} THEN ({sign}) || {whole} || {fraction} END)"


def _formed(text: str, form: Pattern, dialect: Dialect) -> str:
    return f"{dialect.bytes_of(text)} <= {LONGEST_NUMBER} AND {dialect.matches(text, form)}"


def as_unsigned(sql: str, source: ColumnType | None, dialect: Dialect) -> str:
    """Return an INT64, a NUMERIC, a text or a bare NULL as UINT64; what is out of its range is NULL.

    A NUMERIC becomes the nearest integer, halves away from zero; a text holds digits, perhaps behind ``+``.
    """
    if source is None:
        return dialect.converted(sql, ColumnType.DECIMAL)
    if source is ColumnType.INTEGER:
        return dialect.once(
            lambda value: (
                f"(CASE WHEN {value} >= {dialect.integer(0)} "
                f"THEN {dialect.direct_cast(value, source, ColumnType.TEXT)} END)"
            ),
            sql,
        )
    if source is ColumnType.DECIMAL:
        return dialect.once(lambda digits: _nearest(digits, dialect), sql)
    return dialect.once(
        lambda text: f"(CASE WHEN {_formed(text, _DIGITS, dialect)} THEN {_nearest(text, dialect)} END)", sql
    )


def _nearest(digits: str, dialect: Dialect) -> str:
    whole, largest = dialect.whole.format(digits), dialect.whole.format(f"'{_LARGEST}'")
    written = dialect.direct_cast(whole, ColumnType.INTEGER, ColumnType.TEXT)
    return f"(CASE WHEN {whole} BETWEEN 0 AND {largest} THEN {written} END)"
