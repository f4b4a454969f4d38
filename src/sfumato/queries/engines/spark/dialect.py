"""Spark's SQL, from 4.0 on: the same results whatever the session's settings.

It does not depend on ANSI mode (every operation that ANSI mode lets raise is a ``try_`` function, is guarded
against its errors, or is a sum that takes more than 2**36 units or rows to overflow), on the session's time
zone (moments are TIMESTAMP_NTZ, the clock of UTC, and are never made TIMESTAMP), on how the parser reads
backslashes and ``${...}`` (texts with anything odd in them are written as hexadecimal), or on case
sensitivity (columns go by neutral names).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final, final

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.engines.dialects.base import LONGEST_NUMBER, REACH, Dialect, StoredColumn
from sfumato.queries.engines.dialects.decimals import decimal_type
from sfumato.queries.engines.dialects.shapes import OFFSET, SHAPES
from sfumato.queries.plan.patterns import Pattern, PatternSpelling
from sfumato.queries.plan.query import ColumnType

__all__ = ["SPARK", "Spark"]

_PLAIN: Final = re.compile(r"[A-Za-z0-9 _.,:;+*/%()<>=!?#@-]*")
_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOATS: Final = frozenset({"float", "double"})
_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(\d+)\)")
_NO_ORDER: Final = re.compile(r"(?:^|[<,:])(?:map<|geometry\(|geography\(|(?:variant|interval)(?:[,>]|$))")
"""Types that hold what Spark cannot compare, at any depth."""
_WHITE_SPACE: Final = "CAST(X'20090A0B0C0D' AS STRING)"
_EPOCH: Final = "CAST('1970-01-01 00:00:00' AS TIMESTAMP_NTZ)"
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # microseconds of the years 1 to 9999
_HALF: Final = 24
_LIMB: Final = 21  # bits; sums of so many bits fit in 64 up to 2**42 rows
_END: Final = r"\z"  # of the text; a dollar sign would also match before its last new line
_SHAPES: Final = {**SHAPES, ColumnType.BOOLEAN: "(?i:true|false)"}
_DOMAINS: Final = {"sqrt": ">= 0D", "ln": "> 0D", "log10": "> 0D"}
_CHECKED: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_SPELLING: Final = PatternSpelling(r"\z")


@final
class Spark(Dialect):
    """The SQL of Spark 4."""

    name = "spark"
    types: ClassVar[dict[ColumnType, str]] = {
        ColumnType.BOOLEAN: "BOOLEAN",
        ColumnType.INTEGER: "BIGINT",
        ColumnType.FLOAT: "DOUBLE",
        ColumnType.TEXT: "STRING",
        ColumnType.DATE: "DATE",
        ColumnType.TIMESTAMP: "TIMESTAMP_NTZ",
        ColumnType.DECIMAL: "STRING",
    }
    whole = "try_cast({} AS DECIMAL(38, 0))"  # it rounds halves away from zero
    semi_join = "LEFT SEMI JOIN"

    def identifier(self, name: str) -> str:
        """Return the neutral name under which the engine finds a column of that name."""
        return "n" + name.encode().hex()

    def string(self, value: str) -> str:
        """Return a string; in hexadecimal where a setting could change how it is read."""
        if _PLAIN.fullmatch(value):
            return f"'{value}'"
        return f"CAST(X'{value.encode().hex()}' AS STRING)"

    def listed_rows(self, rows: Sequence[Sequence[str]]) -> str:
        """Return the SELECT of rows of typed values as structs: VALUES takes no functions."""
        named = (", ".join(f"{value} AS c{i}" for i, value in enumerate(row)) for row in rows)
        return f"SELECT inline(array({', '.join(f'struct({row})' for row in named)}))"

    def column_type(self, stored: str) -> ColumnType | None:
        """Return the type that a Spark type is computed in."""
        if stored in _INTEGERS:
            return ColumnType.INTEGER
        if stored in _FLOATS:
            return ColumnType.FLOAT
        if decimal := _DECIMAL.fullmatch(stored):
            return decimal_type(int(decimal[1]), int(decimal[2]))
        if stored == "string" or stored.startswith(("string collate ", "char(", "varchar(")):
            return ColumnType.TEXT
        if stored in ("timestamp", "timestamp_ntz"):
            return ColumnType.TIMESTAMP
        return {"boolean": ColumnType.BOOLEAN, "date": ColumnType.DATE}.get(stored)

    def element_of(self, stored: str) -> str:
        """Return the type between the angle brackets."""
        return stored[len("array<") : -1] if stored.startswith("array<") else ""

    def unnested(self, items: Sequence[str], source: str, array: str, name: str, *, keep: bool) -> str:
        """Return the SELECT with a lateral view."""
        view = f"LATERAL VIEW {'OUTER ' if keep else ''}explode(r.{array}) s AS e"
        return f"SELECT {', '.join([*items, f's.e AS {name}'])} FROM ({source}) AS r {view}"

    def standard(self, column: StoredColumn) -> str:
        """Return a column in its standard type; text that is not UTF-8 is NULL."""
        sql = self.identifier(column.name)
        if column.stored in _FLOATS:
            return f"CASE WHEN isnan({sql}) THEN NULL ELSE CAST({sql} AS DOUBLE) END"
        if column.type is ColumnType.DECIMAL:
            return self.digits(column)
        if column.type is ColumnType.TEXT:
            return f"try_validate_utf8({self._binary(column)})"
        if column.stored == "timestamp":
            micros = f"unix_micros({sql})"
            clock = f"timestampadd(MICROSECOND, {micros}, {_EPOCH})"
            return f"CASE WHEN {micros} BETWEEN {_FIRST} AND {_LAST} THEN {clock} END"
        if column.type in (ColumnType.DATE, ColumnType.TIMESTAMP):
            return self.in_calendar(sql, column.type)
        return sql if column.type is None else f"CAST({sql} AS {self.types[column.type]})"

    def digits(self, column: StoredColumn) -> str:
        """Return a decimal as the one text of its value; a cast writes an exponent outside of ANSI mode."""
        decimal = _DECIMAL.fullmatch(column.stored)
        scale = 0 if decimal is None else int(decimal[2])
        form = "0." + "#" * scale if scale else "0"
        return f"format_number({self.identifier(column.name)}, '{form}')"

    def identity(self, column: StoredColumn) -> str:
        """Return the unit as it is stored; texts that a collation calls equal are different units.

        Raises
        ------
        SchemaError
            If its type has no order: which units are the same would be unknown, or up to a setting.
        """
        if _NO_ORDER.search(column.stored):
            raise SchemaError(
                f"privacy_unit must be of a type that Spark can order, got {column.name!r}, "
                "which is or holds a MAP, VARIANT or such; make it a text before connecting"
            )
        sql = self.identifier(column.name)
        if column.stored in _FLOATS:
            zero = f"CAST('0.0' AS {column.stored})"
            return f"CASE WHEN isnan({sql}) THEN NULL WHEN {sql} = 0 THEN {zero} ELSE {sql} END"
        return self._binary(column)

    def _binary(self, column: StoredColumn) -> str:
        """Return a text compared by its bytes, and anything else as it is."""
        sql = self.identifier(column.name)
        return f"collate({sql}, 'UTF8_BINARY')" if "collate" in column.stored else sql

    def rank(self, words: tuple[int, int], columns: Sequence[str]) -> str:
        """Return Spark's ``xxhash64``, keyed by two rounds of xor with a word and hash again.

        A NULL would leave the hash as it is; so each column comes with whether it is there.
        """
        first, second = (self.integer(word - 2**63) for word in words)
        row = ", ".join(part for column in columns for part in (column, f"{column} IS NULL"))
        return f"xxhash64(xxhash64(xxhash64({row}) ^ {first}) ^ {second})"

    def same(self, left: str, right: str) -> str:
        """Return the condition that two keys are equal or both NULL."""
        return f"{left} <=> {right}"

    def wide(self, sql: str) -> str:
        """Return the integer as a decimal."""
        return f"CAST({sql} AS DECIMAL(38, 0))"

    def total(self, column: str, *, narrow: bool) -> str:
        """Return the sum: a BIGINT where narrow, else a decimal, put together from sums of parts of the bits.

        Sums of decimals would take ten times as long. The result is exact up to 2**42 rows. A narrow sum is
        one that fits: rows are chosen before they are added up.
        """
        if narrow:
            return f"sum({column})"
        mask = (1 << _LIMB) - 1
        limbs = (
            f"shiftright({column}, {2 * _LIMB})",
            f"shiftright({column}, {_LIMB}) & {mask}",
            f"{column} & {mask}",
        )
        high, middle, low = (f"CAST(try_sum({limb}) AS DECIMAL(19, 0))" for limb in limbs)
        return f"({high} * {1 << (2 * _LIMB)}BD + {middle} * {1 << _LIMB}BD + {low})"

    def limited_total(self, column: str, reach: int) -> str:
        """Return the sum of two or three parts of the bits, none of it in decimals.

        Exact up to 2**38 rows of a unit in a group where the values are within 2**48, else up to 2**42; no
        part of it overflows before that, so that it needs no ``try_sum``, which takes longer.
        """
        if reach > 1 << (2 * _HALF):
            return self._in_limbs(column)
        mask, end = (1 << _HALF) - 1, 1 << (62 - _HALF)
        low = f"sum({column} & {mask})"
        high = f"(sum(shiftright({column}, {_HALF})) + shiftright({low}, {_HALF}))"
        return _limited(high, f"shiftleft({high}, {_HALF}) + ({low} & {mask})", end)

    def _in_limbs(self, column: str) -> str:
        mask = (1 << _LIMB) - 1
        low = f"sum({column} & {mask})"
        middle = f"(sum(shiftright({column}, {_LIMB}) & {mask}) + shiftright({low}, {_LIMB}))"
        high = f"(sum(shiftright({column}, {2 * _LIMB})) + shiftright({middle}, {_LIMB}))"
        rest = f"shiftleft({middle} & {mask}, {_LIMB}) + ({low} & {mask})"
        return _limited(high, f"shiftleft({high}, {2 * _LIMB}) + {rest}", 1 << (62 - 2 * _LIMB))

    def quotient(self, dividend: str, divisor: str) -> str:
        """Return the whole part of a fraction."""
        return f"({dividend} div nullif({divisor}, 0))"

    def shifted(self, value: str, bits: int) -> str:
        """Return the integer nearest to a value divided by a power of two, halves up."""
        half = f"shiftright({value}, {bits - 1})"
        return f"(shiftright({half}, 1) + ({half} & 1))"

    def gridded(self, value: str, exponent: int) -> str:
        """Return the nearest integer on the grid; scaling is exact but for results far below one half."""
        return f"try_cast(rint({' * '.join([value, *map(self.real, powers(-exponent))])}) AS BIGINT)"

    def arithmetic(self, sign: str, left: str, right: str, type_: ColumnType | None) -> str:
        """Return a sum, difference or product."""
        if type_ is ColumnType.FLOAT:
            return f"({left} {sign} {right})"
        return f"{_CHECKED[sign]}({left}, {right})"

    def divided(self, left: str, right: str) -> str:
        """Return the quotient of floats."""
        return f"try_divide({left}, {right})"

    def remainder(self, left: str, right: str, type_: ColumnType | None) -> str:
        """Return the rest of a division."""
        return f"try_mod({left}, {right})"

    def absolute(self, sql: str, type_: ColumnType | None) -> str:
        """Return the magnitude; the least integer has none."""
        return f"abs({sql})" if type_ is ColumnType.FLOAT else f"abs(nullif({sql}, {self.integer(-(2**63))}))"

    def isnan(self, sql: str) -> str:
        """Return the condition that a float is NaN."""
        return f"isnan({sql})"

    def real_function(self, name: str, sql: str) -> str:
        """Return a function of a float; Spark's own FLOOR and CEIL make integers, which overflow."""
        if name == "floor":
            return _floor(sql)
        if name == "ceil":
            return f"(-{_floor(f'(-{sql})')})"
        domain = _DOMAINS.get(name)
        return f"(CASE WHEN {sql} {domain} THEN {name}({sql}) END)" if domain else f"{name}({sql})"

    def power(self, base: str, exponent: str) -> str:
        """Return a power of floats."""
        return f"pow({base}, {exponent})"

    def rounded(self, sql: str, decimals: int | None) -> str:
        """Return a float rounded to decimals, as DuckDB does; Spark would round its decimal digits."""
        if not decimals:
            return _away_from_zero(sql)
        factor, most = self.real(10.0**decimals), self.real(1.7976931348623157e308 / 10.0**decimals)
        scaled = _away_from_zero(f"({sql} * {factor})")
        return f"(CASE WHEN NOT abs({sql}) <= {most} THEN {sql} ELSE {scaled} / {factor} END)"

    def text_function(self, name: str, sql: str) -> str:
        """Return a function of a text."""
        if name == "trim":
            return f"trim(BOTH {_WHITE_SPACE} FROM {sql})"
        return f"CAST(length({sql}) AS BIGINT)" if name == "length" else f"{name}({sql})"

    def bytes_of(self, sql: str) -> str:
        """Return the length of a text in bytes."""
        return f"CAST(octet_length({sql}) AS BIGINT)"

    def starts_with(self, sql: str, prefix: str) -> str:
        """Return whether a text starts with another."""
        return f"startswith({sql}, {prefix})"

    def matches(self, sql: str, pattern: Pattern) -> str:
        """Return whether a part of a text matches."""
        return f"rlike({sql}, {self.string(pattern.spelled(_SPELLING))})"

    def matched_part(self, sql: str, pattern: Pattern) -> str:
        """Return the first part that matches; Spark's own is empty where there is none."""
        written = self.string(pattern.spelled(_SPELLING))
        part = f"regexp_extract({sql}, {written}, {int(pattern.captures)})"
        return f"(CASE WHEN {self.matches(sql, pattern)} THEN {part} END)"

    def direct_cast(self, sql: str, source: ColumnType | None, target: ColumnType) -> str:
        """Return a value in another type.

        Raises
        ------
        UnsupportedSql
            For a float as text: its digits depend on the version of Java.
        """
        if source is ColumnType.DECIMAL and target is ColumnType.INTEGER:
            sql = self.whole.format(sql)
        if source is ColumnType.TEXT:
            return sql if target is source else self._read(sql, target)
        if source is ColumnType.FLOAT and target is ColumnType.TEXT:
            raise UnsupportedSql(
                "a FLOAT64 as STRING is not answered on Spark; round it and cast it to INT64 first"
            )
        if source is ColumnType.FLOAT and target is ColumnType.INTEGER:
            whole = _away_from_zero(sql)
            # a float of 2**63 would become the largest integer
            return f"(CASE WHEN {whole} < {self.real(2.0**63)} THEN try_cast({whole} AS BIGINT) END)"
        return f"try_cast({sql} AS {self.types[target]})"

    def _read(self, sql: str, target: ColumnType) -> str:
        shape = self.string(rf"\A(?:{_SHAPES[target]}){_END}")
        made, shaped = f"try_cast({sql} AS {self.types[target]})", f"{sql} RLIKE {shape}"
        if target in (ColumnType.INTEGER, ColumnType.FLOAT):
            shaped = f"octet_length({sql}) <= {LONGEST_NUMBER} AND {shaped}"
        if target is ColumnType.FLOAT:
            shaped += f" AND abs({made}) < {self.real(float('inf'))}"
        if target is ColumnType.TIMESTAMP:
            # the cast reads the clock alone, and no zone behind it where there are no seconds
            zone = self.string(f"(Z|{OFFSET}){_END}")
            made = f"try_cast(regexp_replace({sql}, {zone}, '') AS TIMESTAMP_NTZ)"
            zoned = f"{sql} RLIKE {self.string(OFFSET + _END)}"
            hours, minutes = f"try_cast(substr({sql}, -5, 2) AS INT)", f"try_cast(right({sql}, 2) AS INT)"
            sign = f"CASE WHEN substr({sql}, -6, 1) = '-' THEN 1 ELSE -1 END"
            ahead = f"CASE WHEN {zoned} THEN {sign} * (60 * {hours} + {minutes}) ELSE 0 END"
            made = f"timestampadd(MINUTE, {ahead}, {made})"
        if target in (ColumnType.DATE, ColumnType.TIMESTAMP):
            made = self.in_calendar(made, target)
        return f"(CASE WHEN {shaped} THEN {made} END)"

    def part(self, name: str, sql: str, type_: ColumnType | None) -> str:
        """Return a part of a moment; seconds without their fraction."""
        if name == "ISOYEAR":
            return f"CAST(extract(YEAROFWEEK FROM {_clock(sql, type_)}) AS BIGINT)"
        function = {"ISOWEEK": "weekofyear"}.get(name, name.lower())
        return f"CAST({function}({_clock(sql, type_)}) AS BIGINT)"

    def truncated(self, unit: str, sql: str, type_: ColumnType | None) -> str:
        """Return the first moment of a unit of time; Spark's DATE_TRUNC would go by the session's zone."""
        if type_ is not ColumnType.TIMESTAMP:
            unit = unit.removeprefix("ISO")
            return f"trunc({sql}, '{unit}')" if unit in ("YEAR", "QUARTER", "MONTH", "WEEK") else sql
        day = f"CAST({sql} AS DATE)"
        if unit in ("YEAR", "QUARTER", "MONTH", "DAY"):
            first = day if unit == "DAY" else f"trunc({day}, '{unit}')"
            return f"CAST({first} AS TIMESTAMP_NTZ)"
        seconds = f"3600 * hour({sql})"
        seconds += f" + 60 * minute({sql})" if unit != "HOUR" else ""
        seconds += f" + second({sql})" if unit == "SECOND" else ""
        return f"timestampadd(SECOND, {seconds}, CAST({day} AS TIMESTAMP_NTZ))"

    def days_later(self, sql: str, days: int | str) -> str:
        """Return a date some days later, a number or an integer of 32 bits."""
        return f"date_add({sql}, {days})"

    def months_later(self, sql: str, months: int) -> str:
        """Return the same day of another month."""
        return f"add_months({sql}, {months})"

    def microseconds_later(self, sql: str, count: int) -> str:
        """Return a timestamp some microseconds later; in three steps, for amounts have 32 bits."""
        days, rest = divmod(count, 86_400_000_000)
        seconds, micros = divmod(rest, 1_000_000)
        made = f"timestampadd(SECOND, {seconds}, timestampadd(DAY, {days}, {sql}))"
        return f"timestampadd(MICROSECOND, {micros}, {made})"

    def days_between(self, later: str, earlier: str) -> str:
        """Return the days between dates."""
        return f"CAST(datediff({later}, {earlier}) AS BIGINT)"

    def microseconds_between(self, later: str, earlier: str) -> str:
        """Return the microseconds between timestamps."""
        return f"timestampdiff(MICROSECOND, {earlier}, {later})"


def _limited(high: str, whole: str, end: int) -> str:
    """Return an integer, 2**62 where its upper bits say that it is beyond."""
    reach = SPARK.integer(REACH)
    return f"CASE WHEN {high} >= {end} THEN {reach} WHEN {high} < -{end} THEN -{reach} ELSE {whole} END"


def powers(shift: int) -> list[float]:
    """Return floats whose product is ``2**shift``; larger scalings take several steps, each exact."""
    largest, made = 1000, []
    while abs(shift) > largest:
        step = largest if shift > 0 else -largest
        made.append(2.0**step)
        shift -= step
    return [*made, 2.0**shift]


def _clock(sql: str, type_: ColumnType | None) -> str:
    return sql if type_ is ColumnType.TIMESTAMP else f"CAST({sql} AS TIMESTAMP_NTZ)"


def _floor(sql: str) -> str:
    return f"(CASE WHEN rint({sql}) > {sql} THEN rint({sql}) - 1D ELSE rint({sql}) END)"


def _away_from_zero(sql: str) -> str:
    return (
        f"(CASE WHEN abs({sql} - rint({sql})) = 0.5D THEN {sql} + 0.5D * signum({sql}) ELSE rint({sql}) END)"
    )


SPARK: Final = Spark()
"""The dialect; it has no state."""
