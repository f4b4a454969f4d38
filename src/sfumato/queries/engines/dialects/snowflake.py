"""Snowflake's SQL, as text: integers are numbers of 38 digits, so 64 bits are a range that is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final, final

from sfumato.errors import UnsupportedSql
from sfumato.queries.engines.dialects.base import LONGEST_NUMBER, Dialect, StoredColumn
from sfumato.queries.engines.dialects.decimals import decimal_type
from sfumato.queries.engines.dialects.shapes import DOMAINS, SHAPES
from sfumato.queries.plan.patterns import Pattern, PatternSpelling
from sfumato.queries.plan.query import ColumnType

__all__ = ["SNOWFLAKE", "Snowflake"]

_WHOLE = frozenset({"INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "BYTEINT"})
_NUMBER = re.compile(r"(?:NUMBER|DECIMAL|NUMERIC)(?:\((\d+)(?:, *(\d+))?\))?")
_FLOATS = frozenset({"FLOAT", "DOUBLE", "REAL"})
_TEXT = re.compile(r"(VARCHAR|CHAR|STRING|TEXT)(\(\d+\))?")
_MOMENT = re.compile(r"TIMESTAMP_(NTZ|LTZ|TZ)(\(\d\))?")
_MIN, _MAX = -(2**63), 2**63 - 1
_LARGEST = 1.7976931348623157e308
_SPELLING: Final = PatternSpelling("$", plain_groups=False)


@final
class Snowflake(Dialect):
    """The SQL of Snowflake."""

    name: ClassVar[str] = "snowflake"
    types: ClassVar[dict[ColumnType, str]] = {
        ColumnType.BOOLEAN: "BOOLEAN",
        ColumnType.INTEGER: "NUMBER(38, 0)",
        ColumnType.FLOAT: "DOUBLE",
        ColumnType.TEXT: "VARCHAR",
        ColumnType.DATE: "DATE",
        ColumnType.TIMESTAMP: "TIMESTAMP_NTZ",
        ColumnType.DECIMAL: "VARCHAR",
    }
    whole: ClassVar[str] = "TRY_CAST({} AS NUMBER(38, 0))"

    def string(self, value: str) -> str:
        """Return a bare string literal; a backslash escapes there."""
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"

    def column_type(self, stored: str) -> ColumnType | None:
        """Return the type that a type of Snowflake is computed in.

        A type such as BIGINT is the word of whoever writes it that all values have 64 bits: to Snowflake it
        is another name of NUMBER(38, 0), as NUMBER alone is.
        """
        if stored in _WHOLE:
            return ColumnType.INTEGER
        if stored in _FLOATS:
            return ColumnType.FLOAT
        if number := _NUMBER.fullmatch(stored):
            return decimal_type(int(number[1] or 38), int(number[2] or 0))
        if _TEXT.fullmatch(stored):
            return ColumnType.TEXT
        if _MOMENT.fullmatch(stored):
            return ColumnType.TIMESTAMP
        return {"BOOLEAN": ColumnType.BOOLEAN, "DATE": ColumnType.DATE}.get(stored)

    def standard(self, column: StoredColumn) -> str:
        """Return a column in its standard type; texts without a collation, moments in UTC."""
        sql = self.identifier(column.name)
        if column.stored in _FLOATS:
            return f"IFF({self.isnan(sql)}, NULL, {sql})"
        if column.type is ColumnType.INTEGER:
            return self._narrow(sql)
        if column.type is ColumnType.DECIMAL:
            number = _NUMBER.fullmatch(column.stored)
            digits = f"TO_VARCHAR({sql})"
            whole = number is None or not int(number[2] or 0)
            return digits if whole else f"RTRIM(RTRIM({digits}, '0'), '.')"
        if column.type is ColumnType.TEXT:
            return f"COLLATE({sql}, '')"
        if column.type is ColumnType.TIMESTAMP and "NTZ" not in column.stored:
            sql = f"CONVERT_TIMEZONE('UTC', {sql})"
        if column.type in (ColumnType.DATE, ColumnType.TIMESTAMP):
            return self.in_calendar(f"CAST({sql} AS {self.types[column.type]})", column.type)
        return sql if column.type is None else self.converted(sql, column.type)

    def identity(self, column: StoredColumn) -> str:
        """Return the unit as it is stored, equal ones in one form."""
        if column.stored in _FLOATS:
            return self.canonical(self.identifier(column.name), ColumnType.FLOAT)
        return self.standard(column) if column.type is ColumnType.TEXT else self.identifier(column.name)

    def rank(self, words: tuple[int, int], columns: Sequence[str]) -> str:
        """Return SHA-256 of the columns between two secret words."""
        row = f"TO_JSON(ARRAY_CONSTRUCT({', '.join(columns)}))"
        return f"SHA2('{words[0]} ' || {row} || ' {words[1]}', 256)"

    def same(self, left: str, right: str) -> str:
        """Return the condition that two keys are equal or both NULL."""
        return f"EQUAL_NULL({left}, {right})"

    def wide(self, sql: str) -> str:
        """Return the integer as it is: all have 38 digits."""
        return f"CAST({sql} AS NUMBER(38, 0))"

    def total(self, column: str, *, narrow: bool) -> str:
        """Return the sum."""
        return f"SUM({column})"

    def quotient(self, dividend: str, divisor: str) -> str:
        """Return the whole part of a fraction: without its rest, for a division rounds."""
        return f"CAST(({dividend} - MOD({dividend}, {divisor})) / {divisor} AS NUMBER(38, 0))"

    def shifted(self, value: str, bits: int) -> str:
        """Return the nearest integer, by a division without a rest."""
        step, moved = 2**bits, f"({value} + {2 ** (bits - 1)})"
        rest = f"MOD(MOD({moved}, {step}) + {step}, {step})"
        return f"CAST(({moved} - {rest}) / {step} AS NUMBER(38, 0))"

    def gridded(self, value: str, exponent: int) -> str:
        """Return the nearest integer on the grid: ROUND takes halves away from zero, so those are redone."""
        scaled = " * ".join([value, *self.powers_of_two(-exponent)])
        scaled = f"({scaled})"
        even = f"2 * ROUND({scaled} / 2)"
        whole = f"IFF(ABS({scaled} - TRUNC({scaled})) = 0.5, {even}, ROUND({scaled}))"
        return f"CAST({whole} AS NUMBER(38, 0))"

    def arithmetic(self, sign: str, left: str, right: str, type_: ColumnType | None) -> str:
        """Return a sum, difference or product; of 64-bit integers 38 digits hold each."""
        sql = f"({left} {sign} {right})"
        return sql if type_ is ColumnType.FLOAT else self._narrow(sql)

    def _narrow(self, sql: str) -> str:
        return f"(CASE WHEN {sql} BETWEEN {_MIN} AND {_MAX} THEN {sql} END)"

    def divided(self, left: str, right: str) -> str:
        """Return the quotient of floats."""
        return f"(CASE WHEN {right} <> 0 THEN {left} / {right} END)"

    def remainder(self, left: str, right: str, type_: ColumnType | None) -> str:
        """Return the rest of a division of integers.

        Raises
        ------
        UnsupportedSql
            For floats, whose remainder Snowflake does not promise to be exact.
        """
        if type_ is ColumnType.FLOAT:
            raise UnsupportedSql("MOD of FLOAT64 is not answered on Snowflake; cast both sides to INT64")
        return f"(CASE WHEN {right} <> 0 THEN MOD({left}, {right}) END)"

    def absolute(self, sql: str, type_: ColumnType | None) -> str:
        """Return the magnitude."""
        return f"ABS({sql})" if type_ is ColumnType.FLOAT else self._narrow(f"ABS({sql})")

    def isnan(self, sql: str) -> str:
        """Return the condition that a float is NaN; here NaN equals itself."""
        return f"({sql} = {self.real(float('nan'))})"

    def real_function(self, name: str, sql: str) -> str:
        """Return a function of a float."""
        made, infinity = f"{name.upper()}({sql})", self.real(float("inf"))
        if name == "log10":
            made = f"LOG(10, {sql})"
        if name == "exp":
            large = f"{sql} > {self.real(709.782712893384)} AND NOT {self.isnan(sql)}"
            return f"(CASE WHEN {large} THEN {infinity} ELSE {made} END)"
        domain = DOMAINS.get(name)
        return f"(CASE WHEN {sql} {domain} THEN {made} END)" if domain else made

    def power(self, base: str, exponent: str) -> str:
        """Return a power of floats; of a negative base to a fraction it is NaN."""
        size = f"{exponent} * LN(ABS({base}))"
        return (
            f"(CASE WHEN {base} = 0 AND {exponent} < 0 THEN {self.real(float('inf'))} "
            f"WHEN {base} < 0 AND {base} > {self.real(float('-inf'))} AND {exponent} <> FLOOR({exponent}) "
            f"THEN {self.real(float('nan'))} "
            f"WHEN {base} <> 0 AND {size} > {self.real(709.7827128)} AND {base} > 0 "
            f"THEN {self.real(float('inf'))} ELSE POWER({base}, {exponent}) END)"
        )

    def rounded(self, sql: str, decimals: int | None) -> str:
        """Return a float rounded to decimals."""
        if not decimals:
            return f"ROUND({sql})"
        most = self.real(_LARGEST / 10.0**decimals)
        return f"(CASE WHEN ABS({sql}) <= {most} THEN ROUND({sql}, {decimals}) ELSE {sql} END)"

    def text_function(self, name: str, sql: str) -> str:
        """Return a function of a text."""
        return f"TRIM({sql}, ' \\t\\n\\x0b\\f\\r')" if name == "trim" else f"{name.upper()}({sql})"

    def bytes_of(self, sql: str) -> str:
        """Return the length of a text in bytes."""
        return f"OCTET_LENGTH({sql})"

    def starts_with(self, sql: str, prefix: str) -> str:
        """Return whether a text starts with another."""
        return f"STARTSWITH({sql}, {prefix})"

    def matches(self, sql: str, pattern: Pattern) -> str:
        """Return whether a part of a text matches; Snowflake's REGEXP_LIKE is for the whole text."""
        return f"(REGEXP_INSTR({sql}, {self.string(pattern.spelled(_SPELLING))}) > 0)"

    def matched_part(self, sql: str, pattern: Pattern) -> str:
        """Return the first part that matches; every parenthesis captures there."""
        written = self.string(pattern.spelled(_SPELLING))
        group = f", 'e', {pattern.group}" if pattern.captures else ""
        return f"REGEXP_SUBSTR({sql}, {written}, 1, 1{group})"

    def direct_cast(self, sql: str, source: ColumnType | None, target: ColumnType) -> str:
        """Return a value in another type."""
        if target is ColumnType.TEXT:
            return self._written(sql, source)
        if source in (ColumnType.TEXT, ColumnType.DECIMAL):
            return self._read(sql, target) if source is ColumnType.TEXT else self._of_digits(sql, target)
        if source is ColumnType.INTEGER and target is ColumnType.BOOLEAN:
            return f"({sql} <> 0)"
        if source is ColumnType.BOOLEAN and target is ColumnType.INTEGER:
            return f"(CASE WHEN {sql} THEN 1 WHEN NOT {sql} THEN 0 END)"
        if source is ColumnType.FLOAT and target is ColumnType.INTEGER:
            low, high = self.real(-(2.0**63)), self.real(2.0**63)
            return (
                f"(CASE WHEN {sql} >= {low} AND {sql} < {high} THEN CAST(ROUND({sql}) AS NUMBER(38, 0)) END)"
            )
        return f"CAST({sql} AS {self.types[target]})"

    def _read(self, sql: str, target: ColumnType) -> str:
        if target is ColumnType.BOOLEAN:
            return f"(CASE LOWER({sql}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)"
        shaped = f"OCTET_LENGTH({sql}) <= {LONGEST_NUMBER} AND REGEXP_LIKE({sql}, '{SHAPES[target]}')"
        made = f"TRY_CAST({sql} AS {self.types[target]})"
        if target is ColumnType.TIMESTAMP:
            spaced = f"REPLACE(REPLACE({sql}, 'T', ' '), 'Z', '+00:00')"
            zoned = f"REGEXP_LIKE({spaced}, '.*[+-][0-9]{{2}}:[0-9]{{2}}')"
            instant = f"CONVERT_TIMEZONE('UTC', TRY_TO_TIMESTAMP_TZ({spaced}))"
            clock = f"TRY_TO_TIMESTAMP_NTZ({spaced})"
            made = f"IFF({zoned}, CAST({instant} AS TIMESTAMP_NTZ), {clock})"
        if target is ColumnType.FLOAT:
            made = f"IFF(ABS({made}) <= {self.real(_LARGEST)}, {made}, NULL)"
        elif target is ColumnType.INTEGER:
            made = self._narrow(made)
        else:
            made = self.in_calendar(made, target)
        return f"IFF({shaped}, {made}, NULL)"

    def _of_digits(self, sql: str, target: ColumnType) -> str:
        made = f"TRY_CAST({sql} AS {self.types[target]})"
        return made if target is ColumnType.FLOAT else self._narrow(made)

    def _written(self, sql: str, source: ColumnType | None) -> str:
        text = f"TO_VARCHAR({sql})"
        if source is ColumnType.DATE:
            return f"TO_VARCHAR({sql}, 'YYYY-MM-DD')"
        if source is ColumnType.TIMESTAMP:
            return f"RTRIM(RTRIM(TO_VARCHAR({sql}, 'YYYY-MM-DD HH24:MI:SS.FF6'), '0'), '.')"
        if source is not ColumnType.FLOAT:
            return text
        return (
            f"(CASE WHEN {self.isnan(sql)} THEN NULL "
            f"WHEN REGEXP_LIKE({text}, '-?[0-9]+') THEN {text} || '.0' ELSE {text} END)"
        )

    def part(self, name: str, sql: str, type_: ColumnType | None) -> str:
        """Return a part of a moment."""
        part = {"ISOWEEK": "WEEKISO", "ISOYEAR": "YEAROFWEEKISO"}.get(name, name)
        return f"DATE_PART('{part}', {sql})"

    def truncated(self, unit: str, sql: str, type_: ColumnType | None) -> str:
        """Return the first moment of a unit of time; the ISO weeks of DATE_TRUNC go by a parameter."""
        if unit == "ISOWEEK":
            return f"DATEADD('DAY', 1 - DAYOFWEEKISO({sql}), {sql})"
        return f"DATE_TRUNC('{unit}', {sql})"

    def days_later(self, sql: str, days: int | str) -> str:
        """Return a date some days later, a number or an integer of 32 bits."""
        return f"DATEADD('DAY', {days}, {sql})"

    def months_later(self, sql: str, months: int) -> str:
        """Return the same day of another month."""
        return f"DATEADD('MONTH', {months}, {sql})"

    def microseconds_later(self, sql: str, count: int) -> str:
        """Return a timestamp some microseconds later."""
        return f"DATEADD('MICROSECOND', {count}, {sql})"

    def days_between(self, later: str, earlier: str) -> str:
        """Return the days between dates."""
        return f"DATEDIFF('DAY', {earlier}, {later})"

    def microseconds_between(self, later: str, earlier: str) -> str:
        """Return the microseconds between timestamps."""
        return f"DATEDIFF('MICROSECOND', {earlier}, {later})"


SNOWFLAKE: Final = Snowflake()
"""The dialect; it has no state."""
