"""PostgreSQL's SQL, from 15 on: it has no TRY, so CASE avoids every value that would be an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, final

from sfumato.errors import UnsupportedSql
from sfumato.queries.engines.dialects.base import REACH, Dialect, StoredColumn
from sfumato.queries.engines.dialects.decimals import decimal_type
from sfumato.queries.engines.postgres import floats, integers
from sfumato.queries.engines.postgres.casts import from_numeric, read_text
from sfumato.queries.engines.postgres.floats import let
from sfumato.queries.plan.patterns import Pattern, PatternSpelling
from sfumato.queries.plan.query import ColumnType

__all__ = ["PostgreSQL"]

_INTEGERS = frozenset({"int2", "int4", "int8"})
_FLOATS = frozenset({"float4", "float8"})
_NUMERIC = re.compile(r"(?:numeric|decimal)(?:\((\d+)(?:, ?(-?\d+))?\))?")
_UNHASHED = frozenset({"money", "bit", "varbit"})
_TEXTS = frozenset({"text", "varchar", "bpchar", "name", "uuid", "time", "timetz", "inet", "cidr"})
_NESTED = frozenset({"jsonb", *(f"_{name}" for name in (*_INTEGERS, *_FLOATS, *_TEXTS))})
_NESTED |= {"_bool", "_numeric", "_date", "_timestamp", "_timestamptz"}
_LARGEST_NESTED = 1 << 14  # bytes as stored, perhaps compressed 255 times: their text has less than 2**30
_LONGEST = 1 << 26
_WHITE_SPACE = "chr(32) || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
_SPELLING: Final = PatternSpelling("$")


@final
@dataclass(frozen=True)
class PostgreSQL(Dialect):
    """The SQL of PostgreSQL.

    It relies on a database in UTF-8 and on the settings ``TimeZone = 'UTC'``, ``DateStyle = 'ISO'``,
    ``extra_float_digits = 1`` and ``standard_conforming_strings = on``. Texts are compared by their code
    points.

    Parameters
    ----------
    letters : str
        The collation that LOWER and UPPER go by.
    """

    letters: str = "und-x-icu"

    name: ClassVar[str] = "postgres"
    types: ClassVar[dict[ColumnType, str]] = {
        ColumnType.BOOLEAN: "boolean",
        ColumnType.INTEGER: "bigint",
        ColumnType.FLOAT: "double precision",
        ColumnType.TEXT: "text",
        ColumnType.DATE: "date",
        ColumnType.TIMESTAMP: "timestamp",
        ColumnType.DECIMAL: "text",
    }
    whole = "round(CAST({} AS numeric))"
    fence: ClassVar[str] = " OFFSET 0"

    def text(self, value: str) -> str:
        """Return a string as a text compared by code points."""
        return f'(CAST({self.string(value)} AS text) COLLATE "C")'

    def once(self, body: Callable[[str], str], sql: str) -> str:
        """Return what ``body`` makes of an operand, computed once."""
        return let(body, sql)

    def column_type(self, stored: str) -> ColumnType | None:
        """Return the type that a type of ``pg_type`` is computed in.

        An enumeration is stored as ``enum``, a numeric with its precision, if it has one.
        """
        if stored in _INTEGERS:
            return ColumnType.INTEGER
        if stored in _FLOATS:
            return ColumnType.FLOAT
        if numeric := _NUMERIC.fullmatch(stored):
            return decimal_type(int(numeric[1]), int(numeric[2] or 0)) if numeric[1] else ColumnType.DECIMAL
        if stored in _TEXTS or stored in _NESTED or stored == "enum":
            return ColumnType.TEXT
        if stored in ("timestamp", "timestamptz"):
            return ColumnType.TIMESTAMP
        return {"bool": ColumnType.BOOLEAN, "date": ColumnType.DATE}.get(stored)

    def element_of(self, stored: str) -> str:
        """Return the type of an array's elements, which PostgreSQL names without the underscore."""
        return stored[1:] if stored in _NESTED and stored.startswith("_") else ""

    def standard(self, column: StoredColumn) -> str:
        """Return a column in its standard type."""
        sql = self.identifier(column.name)
        if column.stored in _FLOATS:
            return f"CASE WHEN {sql} = 'NaN' THEN NULL ELSE CAST({sql} AS double precision) END"
        if _NUMERIC.fullmatch(column.stored):
            return from_numeric(sql, column.type)
        if column.type is ColumnType.TEXT:
            return f'{_written(sql, column.stored)} COLLATE "C"'
        if column.stored == "timestamptz":
            return self.in_calendar(f"({sql} AT TIME ZONE 'UTC')", ColumnType.TIMESTAMP)
        if column.type in (ColumnType.DATE, ColumnType.TIMESTAMP):
            return self.in_calendar(f"CAST({sql} AS {self.types[column.type]})", column.type)
        return sql if column.type is None else f"CAST({sql} AS {self.types[column.type]})"

    def identity(self, column: StoredColumn) -> str:
        """Return the unit as it is stored, equal ones in one form; as text where that has no hash."""
        sql = self.identifier(column.name)
        if column.stored in _UNHASHED:
            return f'CAST({sql} AS text) COLLATE "C"'
        if column.stored in _FLOATS:
            zero = f"CAST('0' AS {column.stored})"
            return f"CASE WHEN {sql} = 'NaN' THEN NULL WHEN {sql} = 0 THEN {zero} ELSE {sql} END"
        if _NUMERIC.fullmatch(column.stored):
            return f"CASE WHEN {sql} = 'NaN' THEN NULL ELSE trim_scale({sql}) END"
        if column.stored in _NESTED:
            return sql  # equal ones may have several texts, such as [1.0] and [1.00]
        return self.standard(column) if column.type is ColumnType.TEXT else sql

    def unit_type(self, column: StoredColumn) -> str:
        """Return the stored type of a unit; a numeric is one whatever its precision."""
        return "numeric" if _NUMERIC.fullmatch(column.stored) else column.stored

    def rank(self, words: tuple[int, int], columns: Sequence[str]) -> str:
        """Return a 64-bit hash, seeded by one word, of the row's hash, which is seeded by the other.

        A row's hash adds up those of its columns, so without the second every unit would have its keys in one
        order, turned. That one sees 32 bits of the first: of two rows, fewer than one pair in 2**31 tie.
        """
        first, second = (f"CAST('{word - 2**63}' AS bigint)" for word in words)
        return f"hashint8extended(hash_record_extended(ROW({', '.join(columns)}), {first}), {second})"

    def same(self, left: str, right: str) -> str:
        """Return the condition on arrays: NULLs in them are equal, and joins can hash them."""
        return f"ARRAY[{left}] = ARRAY[{right}]"

    def wide(self, sql: str) -> str:
        """Return the integer as numeric, which is exact."""
        return f"CAST({sql} AS numeric)"

    def total(self, column: str, *, narrow: bool) -> str:
        """Return the sum: numeric, whatever its size, or limited to 64 bits."""
        total = f"sum({column})"
        return self.clamped(total, (-REACH, REACH)) if narrow else total

    def limited_total(self, column: str, reach: int) -> str:
        """Return the sum, of two halves of the bits where these are of 32."""
        if not integers.in_halves(reach):
            return self.clamped(self.total(column, narrow=False), (-REACH, REACH))
        return integers.limited_sum(column)

    def small_total(self, column: str, reach: int) -> str:
        """Return the limited sum."""
        return self.limited_total(column, reach)

    def quotient(self, dividend: str, divisor: str) -> str:
        """Return the whole part of a fraction."""
        return f"div(CAST({dividend} AS numeric), CAST({divisor} AS numeric))"

    def narrow_quotient(self, dividend: str, divisor: str) -> str:
        """Return the whole part of a fraction of bigints."""
        return f"({dividend} / {divisor})"

    def gridded(self, value: str, exponent: int) -> str:
        """Return the nearest integer on the grid."""
        return floats.binary_exponential(value, -exponent)

    def arithmetic(self, sign: str, left: str, right: str, type_: ColumnType | None) -> str:
        """Return a sum, difference or product."""
        if type_ is ColumnType.FLOAT:
            return floats.multiply(left, right) if sign == "*" else floats.add(sign, left, right)
        if sign == "*":
            return let(integers.multiply, left, right)
        return let(integers.add if sign == "+" else integers.subtract, left, right)

    def divided(self, left: str, right: str) -> str:
        """Return the quotient of floats."""
        return floats.divide(left, right)

    def remainder(self, left: str, right: str, type_: ColumnType | None) -> str:
        """Return the rest of a division of integers.

        Raises
        ------
        UnsupportedSql
            For floats, of which PostgreSQL has no exact remainder.
        """
        if type_ is ColumnType.FLOAT:
            raise UnsupportedSql("MOD of FLOAT64 is not answered on PostgreSQL; cast both sides to INT64")
        return let(lambda a, b: f"(CASE WHEN {b} <> 0 THEN {a} % {b} END)", left, right)

    def absolute(self, sql: str, type_: ColumnType | None) -> str:
        """Return the magnitude."""
        if type_ is ColumnType.FLOAT:
            return f"abs({sql})"
        return let(lambda a: f"(CASE WHEN {a} > {self.integer(-(2**63))} THEN abs({a}) END)", sql)

    def isnan(self, sql: str) -> str:
        """Return the condition that a float is NaN; here NaN equals itself."""
        return f"({sql} = CAST('NaN' AS double precision))"

    def real_function(self, name: str, sql: str) -> str:
        """Return a function of a float."""
        if name == "exp":
            return floats.exponential(sql)
        if name in ("floor", "ceil"):
            return f"{name}({sql})"
        sign, function = (">=", name) if name == "sqrt" else (">", {"log10": "log"}.get(name, name))
        return let(lambda a: f"(CASE WHEN {a} {sign} 0 THEN {function}({a}) END)", sql)

    def power(self, base: str, exponent: str) -> str:
        """Return a power of floats."""
        return floats.power(base, exponent)

    def rounded(self, sql: str, decimals: int | None) -> str:
        """Return a float rounded to decimals; PostgreSQL itself rounds halves of floats to even."""
        if not decimals:
            return let(_away_from_zero, sql)
        factor, most = self.real(10.0**decimals), self.real(1.7976931348623157e308 / 10.0**decimals)

        def body(a: str) -> str:
            scaled = let(_away_from_zero, f"({a} * {factor})")
            return f"(CASE WHEN NOT abs({a}) <= {most} THEN {a} ELSE {scaled} / {factor} END)"

        return let(body, sql)

    def text_function(self, name: str, sql: str) -> str:
        """Return a function of a text."""
        if name == "trim":
            return f"btrim({sql}, {_WHITE_SPACE})"
        if name == "length":
            return f"CAST(char_length({sql}) AS bigint)"
        # other letters may take more bytes, and a text of more than 2**30 is an error
        made = f'({name}({{0}} COLLATE "{self.letters}") COLLATE "C")'
        return let(lambda a: f"(CASE WHEN octet_length({a}) <= {_LONGEST} THEN {made.format(a)} END)", sql)

    def bytes_of(self, sql: str) -> str:
        """Return the length of a text in bytes."""
        return f"CAST(octet_length({sql}) AS bigint)"

    def like(self, sql: str, pattern: str) -> str:
        """Return whether a text matches a pattern in which nothing is escaped."""
        return f"({sql} LIKE {self.text(pattern)} ESCAPE '')"

    def matches(self, sql: str, pattern: Pattern) -> str:
        """Return whether a part of a text matches."""
        return f"({sql} ~ {self.string(pattern.spelled(_SPELLING))})"

    def matched_part(self, sql: str, pattern: Pattern) -> str:
        """Return the first part that matches, or what is captured of it."""
        return f"substring({sql} FROM {self.string(pattern.spelled(_SPELLING))})"

    def direct_cast(self, sql: str, source: ColumnType | None, target: ColumnType) -> str:
        """Return a value in another type."""
        if source in (ColumnType.TEXT, ColumnType.DECIMAL):
            return read_text(sql, source, target)
        if target is ColumnType.TEXT:
            return let(_write_float if source is ColumnType.FLOAT else _plainly, sql)
        if source is ColumnType.FLOAT and target is ColumnType.INTEGER:
            return let(_whole, self.rounded(sql, None))
        if source is ColumnType.INTEGER and target is ColumnType.BOOLEAN:
            return f"({sql} <> 0)"
        if source is ColumnType.BOOLEAN and target is ColumnType.INTEGER:
            return f"CAST(CAST({sql} AS integer) AS bigint)"
        return f"CAST({sql} AS {self.types[target]})"

    def part(self, name: str, sql: str, type_: ColumnType | None) -> str:
        """Return a part of a moment; seconds without their fraction."""
        part = {"DAYOFYEAR": "doy", "ISOWEEK": "week"}.get(name, name.lower())
        return f"CAST(floor(EXTRACT({part} FROM {self._moment(sql, type_)})) AS bigint)"

    def truncated(self, unit: str, sql: str, type_: ColumnType | None) -> str:
        """Return the first moment of a unit of time."""
        moment = f"date_trunc('{unit.lower().removeprefix('iso')}', {self._moment(sql, type_)})"
        return f"CAST({moment} AS date)" if type_ is ColumnType.DATE else moment

    def months_later(self, sql: str, months: int) -> str:
        """Return the same day of another month."""
        return f"CAST({sql} + INTERVAL '{months} months' AS date)"

    def microseconds_later(self, sql: str, count: int) -> str:
        """Return a timestamp some microseconds later; in two steps, each exact."""
        days, rest = divmod(count, 86_400_000_000)
        return f"({sql} + INTERVAL '{days} days' + INTERVAL '{rest} microseconds')"

    def days_between(self, later: str, earlier: str) -> str:
        """Return the days between dates."""
        return f"CAST({later} - {earlier} AS bigint)"

    def microseconds_between(self, later: str, earlier: str) -> str:
        """Return the microseconds between timestamps, by way of exact numbers."""
        ends = (f"CAST(EXTRACT(EPOCH FROM {sql}) * 1000000 AS bigint)" for sql in (later, earlier))
        return f"({' - '.join(ends)})"

    def _moment(self, sql: str, type_: ColumnType | None) -> str:
        return sql if type_ is ColumnType.TIMESTAMP else f"CAST({sql} AS timestamp)"


def _written(sql: str, stored: str) -> str:
    """Return the one text of a value, as the server shows it; NULL for what might be too long to be one."""
    if stored == "inet":
        return f"abbrev({sql})"  # a cast would add /32 to an address
    text = f"CAST({sql} AS text)"
    small = f"pg_column_size({sql}) <= {_LARGEST_NESTED}"
    return f"(CASE WHEN {small} THEN {text} END)" if stored in _NESTED else text


def _away_from_zero(a: str) -> str:
    half = floats.real(0.5)
    return (
        f"(CASE WHEN abs({a} - trunc({a})) >= {half} AND abs({a}) < {floats.INFINITY} "
        f"THEN trunc({a}) + sign({a}) ELSE trunc({a}) END)"
    )


def _whole(a: str) -> str:
    reach = floats.real(2.0**63)
    return f"(CASE WHEN {a} >= -{reach} AND {a} < {reach} THEN CAST({a} AS bigint) END)"


def _plainly(a: str) -> str:
    return f'(CAST({a} AS text) COLLATE "C")'


def _write_float(a: str) -> str:
    """Return the shortest text that reads as the float, with a point or an exponent, as DuckDB writes it."""
    text, size = f"CAST({a} AS text)", f"abs({a})"
    return (
        f"((CASE WHEN {a} = 'NaN' THEN NULL WHEN {size} = {floats.INFINITY} "
        f"THEN CASE WHEN {a} > 0 THEN 'inf' ELSE '-inf' END "
        f"WHEN {size} >= 1e15 AND {size} < 1e16 THEN CAST(CAST({text} AS numeric) AS text) || '.0' "
        f"WHEN {text} ~ '^-?[0-9]+$' THEN {text} || '.0' ELSE {text} END) COLLATE \"C\")"
    )
