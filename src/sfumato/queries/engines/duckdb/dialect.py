"""DuckDB's SQL.

What fails often is guarded by CASE, which costs nothing; ``TRY`` guards what fails rarely, for it computes a
vector again row by row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from sfumato.queries.engines.dialects.base import LONGEST_NUMBER, Dialect, StoredColumn
from sfumato.queries.engines.dialects.decimals import decimal_type
from sfumato.queries.engines.dialects.shapes import DOMAINS, SHAPES
from sfumato.queries.plan.patterns import Pattern, PatternSpelling
from sfumato.queries.plan.query import ColumnType

__all__ = ["DUCKDB", "DuckDB"]

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_LARGE_INTEGERS = ("UBIGINT", "HUGEINT", "UHUGEINT")
_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
_ZONED_NANOSECONDS = frozenset({"TIMESTAMPTZ_NS", "TIMESTAMP_NS WITH TIME ZONE"})
_MOMENTS = _ZONED_NANOSECONDS | {
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
}
_STORED = {
    **dict.fromkeys(_INTEGERS, ColumnType.INTEGER),
    **dict.fromkeys(_LARGE_INTEGERS, ColumnType.DECIMAL),
    **dict.fromkeys(("DOUBLE", "FLOAT"), ColumnType.FLOAT),
    **dict.fromkeys(("VARCHAR", "UUID"), ColumnType.TEXT),
    **dict.fromkeys(_MOMENTS, ColumnType.TIMESTAMP),
    "BOOLEAN": ColumnType.BOOLEAN,
    "DATE": ColumnType.DATE,
}
_ARRAY: Final = re.compile(r"(.+)\[\d*\]", re.DOTALL)
_HEAP = 100  # values of a group
_WHITE_SPACE = "chr(32) || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
_SPELLING: Final = PatternSpelling(r"\z")


class DuckDB(Dialect):
    """The SQL of DuckDB 2."""

    name = "duckdb"
    types: ClassVar[dict[ColumnType, str]] = {
        ColumnType.BOOLEAN: "BOOLEAN",
        ColumnType.INTEGER: "BIGINT",
        ColumnType.FLOAT: "DOUBLE",
        ColumnType.TEXT: "VARCHAR",
        ColumnType.DATE: "DATE",
        ColumnType.TIMESTAMP: "TIMESTAMP",
        ColumnType.DECIMAL: "VARCHAR",
    }
    whole = "TRY_CAST({} AS HUGEINT)"
    semi_join = "SEMI JOIN"
    anti_join = "ANTI JOIN"

    def column_type(self, stored: str) -> ColumnType | None:
        """Return the type that a DuckDB type is computed in."""
        if decimal := _DECIMAL.fullmatch(stored):
            return decimal_type(int(decimal[1]), int(decimal[2]))
        return ColumnType.TEXT if _is_a("ENUM", stored) else _STORED.get(stored)

    def element_of(self, stored: str) -> str:
        """Return the type before the brackets."""
        found = _ARRAY.fullmatch(stored)
        return found[1] if found else ""

    def unnested(self, items: Sequence[str], source: str, array: str, name: str, *, keep: bool) -> str:
        """Return the SELECT without a join: ``unnest`` among its items repeats the others."""
        if keep:
            array = f"CASE WHEN len({array}) > 0 THEN {array} ELSE [NULL] END"
        return f"SELECT {', '.join([*items, f'unnest({array}) AS {name}'])} FROM ({source}) AS r"

    def standard(self, column: StoredColumn) -> str:
        """Return a column in its standard type."""
        sql = self.identifier(column.name)
        if column.stored in ("DOUBLE", "FLOAT"):
            return f"CASE WHEN isnan({sql}) THEN NULL ELSE CAST({sql} AS DOUBLE) END"
        if column.stored in ("DATE", "TIMESTAMP"):
            return self.in_calendar(sql, ColumnType[column.stored])
        if column.stored in _ZONED_NANOSECONDS:
            # to UTC without its zone, bit for bit; then to the nearest microsecond, like a TIMESTAMP_NS
            sql = f"CAST({sql} AS TIMESTAMP_NS)"
        if column.stored in _MOMENTS:
            return self.in_calendar(f"TRY(CAST({sql} AS TIMESTAMP))", ColumnType.TIMESTAMP)
        if column.type is ColumnType.DECIMAL:
            return self.digits(sql, column.stored)
        # a cast to the type a column has already costs nothing, and none of these can fail
        return sql if column.type is None else f"CAST({sql} AS {self.types[column.type]})"

    def digits(self, sql: str, stored: str) -> str:
        """Return an integer or decimal of a stored type as the one text of its value."""
        digits = f"CAST({sql} AS VARCHAR)"
        decimal = _DECIMAL.fullmatch(stored)
        if decimal is None or decimal[2] == "0":
            return digits
        if decimal[1] == decimal[2]:  # DuckDB writes .5 where no digit is before the point
            digits = f"replace({digits}, '.', '0.')"
        return f"rtrim(rtrim({digits}, '0'), '.')"

    def identity(self, column: StoredColumn) -> str:
        """Return the unit as it is stored; DuckDB hashes 0.0 and -0.0 alike."""
        sql = self.identifier(column.name)
        if column.stored in ("DOUBLE", "FLOAT"):
            return f"CASE WHEN isnan({sql}) THEN NULL ELSE {sql} END"
        return sql

    def rank(self, words: tuple[int, int], columns: Sequence[str]) -> str:
        """Return 63 bits of DuckDB's ``hash``, keyed by two rounds of xor with a word and hash again.

        DuckDB sorts BIGINT faster than UBIGINT.
        """
        first, second = (f"CAST('{word}' AS UBIGINT)" for word in words)
        keyed = f"hash(xor(hash(xor(hash({', '.join(columns)}), {first})), {second}))"
        return f"CAST({keyed} >> 1 AS BIGINT)"

    def nth_least(self, column: str, place: int) -> str:
        """Return the aggregate: a heap for each group, which beats sorting while it is small."""
        return f"min({column}, {place})[{place}]" if place <= _HEAP else ""

    def wide(self, sql: str) -> str:
        """Return the integer as HUGEINT."""
        return f"CAST({sql} AS HUGEINT)"

    def total(self, column: str, *, narrow: bool) -> str:
        """Return the sum, a HUGEINT unless narrow."""
        return f"TRY_CAST(sum({column}) AS BIGINT)" if narrow else f"sum({column})"

    def small_total(self, column: str, reach: int) -> str:
        """Return the sum of floats: every sum on the way is an integer of at most 53 bits, and so exact.

        DuckDB's own sum of integers is a HUGEINT: with millions of parts it takes more room and time.
        """
        return f"TRY_CAST(sum(CAST({column} AS DOUBLE)) AS BIGINT)"

    def quotient(self, dividend: str, divisor: str) -> str:
        """Return the whole part of a fraction."""
        return f"({dividend} // {divisor})"

    def gridded(self, value: str, exponent: int) -> str:
        """Return the nearest integer on the grid; scaling is exact but for results far below one half."""
        scaled = " * ".join([value, *self.powers_of_two(-exponent)])
        return f"TRY_CAST({scaled} AS BIGINT)"

    def arithmetic(self, sign: str, left: str, right: str, type_: ColumnType | None) -> str:
        """Return a sum, difference or product: integers overflow with an error, floats to infinity."""
        sql = f"({left} {sign} {right})"
        return sql if type_ is ColumnType.FLOAT else f"TRY{sql}"

    def divided(self, left: str, right: str) -> str:
        """Return the quotient of floats."""
        return f"(CASE WHEN {right} <> 0 THEN {left} / {right} END)"

    def remainder(self, left: str, right: str, type_: ColumnType | None) -> str:
        """Return the rest of a division."""
        return f"(CASE WHEN {right} <> 0 THEN {self.arithmetic('%', left, right, type_)} END)"

    def absolute(self, sql: str, type_: ColumnType | None) -> str:
        """Return the magnitude."""
        return f"(abs({sql}))" if type_ is ColumnType.FLOAT else f"TRY(abs({sql}))"

    def isnan(self, sql: str) -> str:
        """Return the condition that a float is NaN."""
        return f"isnan({sql})"

    def real_function(self, name: str, sql: str) -> str:
        """Return a function of a float."""
        domain = DOMAINS.get(name)
        return f"(CASE WHEN {sql} {domain} THEN {name}({sql}) END)" if domain else f"{name}({sql})"

    def power(self, base: str, exponent: str) -> str:
        """Return a power of floats."""
        return f"TRY(pow({base}, {exponent}))"

    def rounded(self, sql: str, decimals: int | None) -> str:
        """Return a float rounded to decimals."""
        return f"round({sql})" if decimals is None else f"round({sql}, {decimals})"

    def text_function(self, name: str, sql: str) -> str:
        """Return a function of a text."""
        return f"{name}({sql}, {_WHITE_SPACE})" if name == "trim" else f"{name}({sql})"

    def bytes_of(self, sql: str) -> str:
        """Return the length of a text in bytes."""
        return f"strlen({sql})"

    def matches(self, sql: str, pattern: Pattern) -> str:
        """Return whether a part of a text matches."""
        return f"regexp_matches({sql}, {self.string(pattern.spelled(_SPELLING))})"

    def matched_part(self, sql: str, pattern: Pattern) -> str:
        """Return the first part that matches; DuckDB's own is empty where there is none."""
        written = self.string(pattern.spelled(_SPELLING))
        part = f"regexp_extract({sql}, {written}, {int(pattern.captures)})"
        return f"(CASE WHEN {self.matches(sql, pattern)} THEN {part} END)"

    def direct_cast(self, sql: str, source: ColumnType | None, target: ColumnType) -> str:
        """Return a value in another type: texts by their shape first, then by DuckDB's own reading."""
        if source is ColumnType.DECIMAL:  # a text of digits; as an integer DuckDB rounds it away from zero
            return sql if target is ColumnType.TEXT else f"TRY_CAST({sql} AS {self.types[target]})"
        if source is ColumnType.FLOAT and target is ColumnType.INTEGER:
            sql = f"round({sql})"
        if source is ColumnType.FLOAT and target is ColumnType.TEXT:
            return f"(CASE WHEN isnan({sql}) THEN NULL ELSE CAST({sql} AS VARCHAR) END)"
        if source is not ColumnType.TEXT or target is ColumnType.TEXT:
            return f"TRY_CAST({sql} AS {self.types[target]})"
        if target is ColumnType.BOOLEAN:
            return f"(CASE lower({sql}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)"
        made = f"TRY_CAST({sql} AS {self.types[target]})"
        shaped = f"regexp_full_match({sql}, '{SHAPES[target]}')"
        if target is ColumnType.TIMESTAMP:
            # a text may carry an offset: read it as an instant, then as the clock of UTC
            made = self.in_calendar(f"TRY(CAST(TRY_CAST({sql} AS TIMESTAMPTZ) AS TIMESTAMP))", target)
        elif target is ColumnType.DATE:
            made = self.in_calendar(made, target)
        else:
            shaped = f"strlen({sql}) <= {LONGEST_NUMBER} AND {shaped}"
            shaped += f" AND isfinite({made})" if target is ColumnType.FLOAT else ""
        return f"(CASE WHEN {shaped} THEN {made} END)"

    def part(self, name: str, sql: str, type_: ColumnType | None) -> str:
        """Return a part of a moment."""
        part = {"DAYOFYEAR": "doy", "ISOWEEK": "week"}.get(name, name.lower())
        return f"TRY(date_part('{part}', {sql}))"

    def truncated(self, unit: str, sql: str, type_: ColumnType | None) -> str:
        """Return the first moment of a unit of time."""
        type_ = ColumnType.TIMESTAMP if type_ is None else type_
        return f"TRY(CAST(date_trunc('{unit.lower().removeprefix('iso')}', {sql}) AS {self.types[type_]}))"

    def months_later(self, sql: str, months: int) -> str:
        """Return the same day of another month."""
        return f"CAST({sql} + to_months({months}) AS DATE)"

    def microseconds_later(self, sql: str, count: int) -> str:
        """Return a timestamp some microseconds later."""
        return f"({sql} + to_microseconds({count}))"

    def days_between(self, later: str, earlier: str) -> str:
        """Return the days between dates."""
        return f"date_diff('day', {earlier}, {later})"

    def microseconds_between(self, later: str, earlier: str) -> str:
        """Return the microseconds between timestamps."""
        return f"(epoch_us({later}) - epoch_us({earlier}))"


def _is_a(family: str, stored: str) -> bool:
    return stored.startswith(f"{family}(") and stored.endswith(")")


DUCKDB: Final = DuckDB()
"""The dialect; it has no state."""
