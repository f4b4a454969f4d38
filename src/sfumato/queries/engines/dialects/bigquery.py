"""BigQuery's SQL, as text: it has SAFE forms of most functions, NULL where a value would be an error."""

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

__all__ = ["BIGQUERY", "BigQuery"]

_STORED = {
    "BOOL": ColumnType.BOOLEAN,
    "INT64": ColumnType.INTEGER,
    "FLOAT64": ColumnType.FLOAT,
    "STRING": ColumnType.TEXT,
    "DATE": ColumnType.DATE,
    "DATETIME": ColumnType.TIMESTAMP,
    "TIMESTAMP": ColumnType.TIMESTAMP,
}
_NUMERIC = re.compile(r"(?:BIG)?NUMERIC(?:\((\d+)(?:, *(\d+))?\))?")
_SAFE = {"+": "SAFE_ADD", "-": "SAFE_SUBTRACT", "*": "SAFE_MULTIPLY"}
_SPELLING: Final = PatternSpelling(r"\z")


@final
class BigQuery(Dialect):
    """The SQL of BigQuery. NaN equals nothing there, where a query compares it."""

    name: ClassVar[str] = "bigquery"
    types: ClassVar[dict[ColumnType, str]] = {
        **{type_: type_.value for type_ in ColumnType},
        ColumnType.DECIMAL: "STRING",
    }
    whole: ClassVar[str] = "ROUND(SAFE_CAST({} AS BIGNUMERIC))"

    def identifier(self, name: str) -> str:
        """Return an identifier in backticks."""
        return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"

    def string(self, value: str) -> str:
        """Return a bare string literal."""
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"

    def listed_rows(self, rows: Sequence[Sequence[str]]) -> str:
        """Return the SELECT of rows of typed values, as SELECTs: there is no VALUES."""
        items = (", ".join(f"{value} AS c{i}" for i, value in enumerate(row)) for row in rows)
        return " UNION ALL ".join(f"SELECT {item}" for item in items)

    def column_type(self, stored: str) -> ColumnType | None:
        """Return the type that a type of BigQuery is computed in."""
        if numeric := _NUMERIC.fullmatch(stored):
            return decimal_type(int(numeric[1]), int(numeric[2] or 0)) if numeric[1] else ColumnType.DECIMAL
        return _STORED.get(stored)

    def standard(self, column: StoredColumn) -> str:
        """Return a column in its standard type; texts without a collation."""
        sql = self.identifier(column.name)
        if column.stored == "FLOAT64":
            return f"IF(IS_NAN({sql}), NULL, {sql})"
        if column.type is ColumnType.TEXT:
            return f"COLLATE({sql}, '')"
        if column.type is ColumnType.DECIMAL:
            digits = f"CAST({sql} AS STRING)"
            return f"IF(STRPOS({digits}, '.') > 0, RTRIM(RTRIM({digits}, '0'), '.'), {digits})"
        same = column.type is None or column.stored == column.type.value
        return sql if column.type is None or same else self.converted(sql, column.type)

    def identity(self, column: StoredColumn) -> str:
        """Return the unit as it is stored, equal ones in one form."""
        if column.stored == "FLOAT64":
            return self.canonical(self.identifier(column.name), ColumnType.FLOAT)
        return self.standard(column) if column.type is ColumnType.TEXT else self.identifier(column.name)

    def in_calendar(self, sql: str, type_: ColumnType) -> str:
        """Return the moment: BigQuery's are in the years 1 to 9999."""
        return sql

    def rank(self, words: tuple[int, int], columns: Sequence[str]) -> str:
        """Return SHA-256 of the columns between two secret words."""
        row = f"TO_JSON_STRING(STRUCT({', '.join(columns)}))"
        return f"TO_HEX(SHA256(CONCAT('{words[0]} ', {row}, ' {words[1]}')))"

    def same(self, left: str, right: str) -> str:
        """Return the condition on JSON texts: joins need an equality, and NULL has a text, too."""
        return " = ".join(f"IFNULL(TO_JSON_STRING({key}), 'null')" for key in (left, right))

    def partition(self, column: str) -> str:
        """Return the column as a text, for windows cannot be formed by floats."""
        return f"TO_JSON_STRING({column})"

    def wide(self, sql: str) -> str:
        """Return the integer as BIGNUMERIC, which has 38 digits before the point."""
        return f"CAST({sql} AS BIGNUMERIC)"

    def total(self, column: str, *, narrow: bool) -> str:
        """Return the sum, which is wide: a sum of INT64 that overflows is an error."""
        return f"SUM({self.wide(column)})"

    def quotient(self, dividend: str, divisor: str) -> str:
        """Return the whole part of a fraction."""
        return f"DIV({self.wide(dividend)}, {self.wide(divisor)})"

    def shifted(self, value: str, bits: int) -> str:
        """Return the nearest integer; shifts fill up with zeros, so negative integers are turned first."""
        half = f"IF({value} >= 0, {value} >> {bits - 1}, ~(~{value} >> {bits - 1}))"
        whole = f"IF({value} >= 0, {value} >> {bits}, ~(~{value} >> {bits}))"
        return f"({whole} + (({half}) & 1))"

    def gridded(self, value: str, exponent: int) -> str:
        """Return the nearest integer on the grid: ROUND takes halves away from zero, so those are redone."""
        scaled = value
        for factor in self.powers_of_two(-exponent):
            scaled = f"SAFE_MULTIPLY({scaled}, {factor})"
        even = f"2 * ROUND({scaled} / 2)"
        return f"SAFE_CAST(IF(ABS({scaled} - TRUNC({scaled})) = 0.5, {even}, ROUND({scaled})) AS INT64)"

    def arithmetic(self, sign: str, left: str, right: str, type_: ColumnType | None) -> str:
        """Return a sum, difference or product; where a float overflows it is infinity."""
        sql = f"{_SAFE[sign]}({left}, {right})"
        if type_ is not ColumnType.FLOAT:
            return sql
        signs = f"SIGN({left}) * SIGN({right})" if sign == "*" else f"SIGN({left})"
        return f"IFNULL({sql}, {signs} * IF({right} IS NULL, NULL, {self.real(float('inf'))}))"

    def divided(self, left: str, right: str) -> str:
        """Return the quotient of floats."""
        return f"(CASE WHEN {right} <> 0 THEN IEEE_DIVIDE({left}, {right}) END)"

    def remainder(self, left: str, right: str, type_: ColumnType | None) -> str:
        """Return the rest of a division of integers.

        Raises
        ------
        UnsupportedSql
            For floats, of which BigQuery has no remainder.
        """
        if type_ is ColumnType.FLOAT:
            raise UnsupportedSql("MOD of FLOAT64 is not answered on BigQuery; cast both sides to INT64")
        return f"(CASE WHEN {right} <> 0 THEN MOD({left}, {right}) END)"

    def absolute(self, sql: str, type_: ColumnType | None) -> str:
        """Return the magnitude."""
        return f"SAFE.ABS({sql})"

    def isnan(self, sql: str) -> str:
        """Return the condition that a float is NaN."""
        return f"IS_NAN({sql})"

    def real_function(self, name: str, sql: str) -> str:
        """Return a function of a float."""
        made, infinity = f"{name.upper()}({sql})", self.real(float("inf"))
        if name == "exp":
            return f"IF({sql} > {self.real(709.782712893384)}, {infinity}, {made})"
        domain = DOMAINS.get(name)
        return f"(CASE WHEN {sql} {domain} THEN {made} END)" if domain else made

    def power(self, base: str, exponent: str) -> str:
        """Return a power of floats; of a negative base to a fraction it is NaN."""
        odd = f"{exponent} = FLOOR({exponent}) AND ABS(MOD(CAST({exponent} AS BIGNUMERIC), 2)) = 1"
        sign = f"IF({base} < 0 AND ABS({exponent}) < 1e18 AND {odd}, -1, 1)"
        return (
            f"IFNULL(SAFE.POW({base}, {exponent}), CASE WHEN {base} IS NULL OR {exponent} IS NULL THEN NULL "
            f"WHEN {base} < 0 AND {exponent} <> FLOOR({exponent}) THEN {self.real(float('nan'))} "
            f"ELSE {sign} * {self.real(float('inf'))} END)"
        )

    def rounded(self, sql: str, decimals: int | None) -> str:
        """Return a float rounded to decimals."""
        return f"ROUND({sql})" if not decimals else f"IFNULL(SAFE.ROUND({sql}, {decimals}), {sql})"

    def text_function(self, name: str, sql: str) -> str:
        """Return a function of a text."""
        return f"TRIM({sql}, ' \\t\\n\\v\\f\\r')" if name == "trim" else f"{name.upper()}({sql})"

    def bytes_of(self, sql: str) -> str:
        """Return the length of a text in bytes."""
        return f"BYTE_LENGTH({sql})"

    def matches(self, sql: str, pattern: Pattern) -> str:
        """Return whether a part of a text matches."""
        return f"REGEXP_CONTAINS({sql}, {self.string(pattern.spelled(_SPELLING))})"

    def matched_part(self, sql: str, pattern: Pattern) -> str:
        """Return the first part that matches, or what is captured of it."""
        return f"REGEXP_EXTRACT({sql}, {self.string(pattern.spelled(_SPELLING))})"

    def direct_cast(self, sql: str, source: ColumnType | None, target: ColumnType) -> str:
        """Return a value in another type."""
        if source is ColumnType.DECIMAL:
            exact = f"SAFE_CAST({sql} AS BIGNUMERIC)" if target is ColumnType.INTEGER else sql
            return sql if target is ColumnType.TEXT else f"SAFE_CAST({exact} AS {self.types[target]})"
        if source is ColumnType.TEXT and target is not ColumnType.TEXT:
            return self._read(sql, target)
        if target is ColumnType.TEXT:
            return self._written(sql, source)
        if source is ColumnType.INTEGER and target is ColumnType.BOOLEAN:
            return f"({sql} <> 0)"
        value = f"ROUND({sql})" if source is ColumnType.FLOAT and target is ColumnType.INTEGER else sql
        return f"SAFE_CAST({value} AS {self.types[target]})"

    def _read(self, sql: str, target: ColumnType) -> str:
        if target is ColumnType.BOOLEAN:
            return f"(CASE LOWER({sql}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)"
        shaped = f"BYTE_LENGTH({sql}) <= {LONGEST_NUMBER} AND REGEXP_CONTAINS({sql}, r'^{SHAPES[target]}$')"
        made = f"SAFE_CAST({sql} AS {self.types[target]})"
        if target is ColumnType.TIMESTAMP:  # BigQuery wants seconds
            whole = f"REGEXP_REPLACE({sql}, r'^(.{{16}})(Z|[+-].*)?$', r'\\1:00\\2')"
            made = f"SAFE_CAST({whole} AS TIMESTAMP)"
        elif target is ColumnType.FLOAT:
            made = f"IF(IS_INF({made}), NULL, {made})"
        return f"IF({shaped}, {made}, NULL)"

    def _written(self, sql: str, source: ColumnType | None) -> str:
        text = f"CAST({sql} AS STRING)"
        if source is ColumnType.TIMESTAMP:
            return f"FORMAT_TIMESTAMP('%E4Y-%m-%d %H:%M:%E*S', {sql}, 'UTC')"
        if source is not ColumnType.FLOAT:
            return text
        return (
            f"(CASE WHEN IS_NAN({sql}) THEN NULL WHEN ABS({sql}) >= 1e15 AND ABS({sql}) < 1e16 "
            f"THEN CONCAT(CAST(CAST({text} AS NUMERIC) AS STRING), '.0') "
            f"WHEN REGEXP_CONTAINS({text}, r'^-?[0-9]+$') THEN CONCAT({text}, '.0') ELSE {text} END)"
        )

    def part(self, name: str, sql: str, type_: ColumnType | None) -> str:
        """Return a part of a moment."""
        return f"EXTRACT({name} FROM {sql})"

    def truncated(self, unit: str, sql: str, type_: ColumnType | None) -> str:
        """Return the first moment of a unit of time."""
        if type_ is ColumnType.DATE:
            return f"DATE_TRUNC({sql}, {unit})"
        return f"TIMESTAMP_TRUNC({sql}, {unit}, 'UTC')"

    def days_later(self, sql: str, days: int | str) -> str:
        """Return a date some days later, a number or an integer of 32 bits."""
        return f"DATE_ADD({sql}, INTERVAL {days} DAY)"

    def months_later(self, sql: str, months: int) -> str:
        """Return the same day of another month."""
        return f"DATE_ADD({sql}, INTERVAL {months} MONTH)"

    def microseconds_later(self, sql: str, count: int) -> str:
        """Return a timestamp some microseconds later."""
        return f"TIMESTAMP_ADD({sql}, INTERVAL {count} MICROSECOND)"

    def days_between(self, later: str, earlier: str) -> str:
        """Return the days between dates."""
        return f"DATE_DIFF({later}, {earlier}, DAY)"

    def microseconds_between(self, later: str, earlier: str) -> str:
        """Return the microseconds between timestamps."""
        return f"TIMESTAMP_DIFF({later}, {earlier}, MICROSECOND)"


BIGQUERY: Final = BigQuery()
"""The dialect; it has no state."""
