"""What engines differ in, as SQL text; the texts around it are common to all of them.

How to add to it:

- A scalar function: a reader in ``queries/sql/expressions`` makes the node; a rule in
  :data:`~sfumato.queries.engines.compilation.expressions._RULES` turns it into text. Where all engines take
  one text, the rule writes it; else it calls a method of the dialect, with one method here and one in each
  dialect. What it makes must be total: no row can raise, on any engine, whatever its
  values, also where all operands are constants. Without a value it is NULL.
- A measure: nothing here, if it combines the values of `sfumato.queries.plan.measure`. A value that they do
  not have is a class there, and a case of
  :class:`~sfumato.queries.engines.compilation.measure_columns.MeasureColumns`, in terms of the methods here
  (``clamped``, ``quotient``, ``wide``, ``total``, ...).
- A step before the sums: a :class:`~sfumato.queries.engines.compilation.bounding.Step` of ``Bounding.steps``.
- An engine: a dialect, and a class that runs a `CompiledJob` (see ``engines/duckdb``). Portable texts give
  every subquery an alias, write window conditions as a subquery, and name columns instead of using ``*``
  where a join could repeat one.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.queries.engines.dialects.row_sources import RowSources
from sfumato.queries.plan.patterns import Pattern
from sfumato.queries.plan.query import Column, ColumnType, Schema

__all__ = [
    "LONGEST_JOINED",
    "LONGEST_NUMBER",
    "REACH",
    "Dialect",
    "StoredColumn",
    "StoredTable",
]

REACH = 2**62
"""Integers are limited to [-2**62, 2**62], so that no step between two of them overflows 64 bits."""

LONGEST_JOINED = 1 << 14
"""Bytes of text that were joined; a thousand rows of such texts are still small."""

LONGEST_NUMBER = 400
"""Characters of a text that is read as a number."""

_LARGEST_STEP = 1000  # 2.0**1000 is a float
_FIRST, _LAST = "0001-01-01", "9999-12-31"


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column as the engine holds it: the engine's own type, and the type a query computes in (or None).

    ``declare`` and ``element`` are those of :class:`~sfumato.queries.plan.schema.Column`.
    """

    name: str
    stored: str
    type: ColumnType | None
    declare: tuple[str, ...] = ()
    element: ColumnType | None = None


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table as the engine holds it: the text that names it in a FROM clause, and its columns."""

    name: str
    columns: tuple[StoredColumn, ...]

    @property
    def schema(self) -> Schema:
        """The columns with the types a query computes in."""
        return Schema(tuple(Column(c.name, c.type, c.declare, c.element) for c in self.columns))


class Dialect(RowSources):
    """The SQL of one engine: types, literals, total functions, exact integers, ranks.

    Operands are closed texts: they can stand beside any operator. So are results.
    """

    name: ClassVar[str]
    """The dialect's name, as sqlglot spells it."""
    types: ClassVar[Mapping[ColumnType, str]]
    """The one type that each type is computed in."""
    semi_join: ClassVar[str] = "JOIN"
    """Keeps the rows of the left side that match; no two rows of the right side are equal."""
    anti_join: ClassVar[str] = ""
    """Keeps the rows of the left side that match none, under a condition that may compare; "" for none."""

    whole: ClassVar[str]
    """A format: the integer nearest to a text of digits, halves away from zero; maybe NULL from 10**38 on."""

    fence: ClassVar[str] = ""
    """Ends a subquery that the planner must not merge into what is around it, lest it repeat expressions."""

    # Names and literals

    def identifier(self, name: str) -> str:
        """Return an identifier in quotes."""
        return '"' + name.replace('"', '""') + '"'

    def string(self, value: str) -> str:
        """Return a bare string literal."""
        return "'" + value.replace("'", "''") + "'"

    def text(self, value: str) -> str:
        """Return a string as a value of the type of texts."""
        return f"CAST({self.string(value)} AS {self.types[ColumnType.TEXT]})"

    def integer(self, value: int) -> str:
        """Return an integer of 64 bits, constants of any size alike."""
        return f"CAST('{value}' AS {self.types[ColumnType.INTEGER]})"

    def real(self, value: float) -> str:
        """Return a float; infinities too."""
        return f"CAST('{value!r}' AS {self.types[ColumnType.FLOAT]})"

    def powers_of_two(self, shift: int) -> list[str]:
        """Return factors whose product is ``2**shift``: each a float, and each product exact if in range."""
        steps = []
        while abs(shift) > _LARGEST_STEP:
            steps.append(_LARGEST_STEP if shift > 0 else -_LARGEST_STEP)
            shift -= steps[-1]
        return [self.real(2.0**step) for step in (*steps, shift)]

    def limit(self, value: int) -> str:
        """Return a bound to compare integers with; beyond 64 bits it is as infinity."""
        return self.integer(value) if -(2**63) <= value < 2**63 else self.real(math.copysign(math.inf, value))

    def converted(self, sql: str, type_: ColumnType) -> str:
        """Return a bare NULL, or an integer that stands beside floats, in the type of the others."""
        return f"CAST({sql} AS {self.types[type_]})"

    def moment(self, value: str, type_: ColumnType) -> str:
        """Return a date or timestamp in its canonical spelling, in the calendar's range."""
        return f"CAST({self.string(value)} AS {self.types[type_]})"

    def once(self, body: Callable[[str], str], sql: str) -> str:
        """Return what ``body`` makes of an operand, which an engine may compute as often as it is named."""
        return body(sql)

    # Stored columns

    @abstractmethod
    def standard(self, column: StoredColumn) -> str:
        """Return a column in its standard type; NaN, and moments out of range or infinite, are NULL.

        A DECIMAL is the one text of its value: no exponent, no zero at the end of a fraction. No two numbers
        may become one, and none may become NULL but NaN.
        """

    @abstractmethod
    def identity(self, column: StoredColumn) -> str:
        """Return the unit as it is stored: no conversion that could make two units one; a NaN is nobody.

        Equal units have one form, so that a rank of it is a rank of the unit.
        """

    def unit_type(self, column: StoredColumn) -> str:
        """Return the stored type of a unit; where it differs, units of two tables are not compared."""
        return column.stored

    def in_calendar(self, sql: str, type_: ColumnType) -> str:
        """Return a moment, NULL outside of the years 1 to 9999, which every consumer can hold."""
        last = _LAST if type_ is ColumnType.DATE else f"{_LAST} 23:59:59.999999"
        first, final = self.moment(_FIRST, type_), self.moment(last, type_)
        return f"CASE WHEN {sql} BETWEEN {first} AND {final} THEN {sql} END"

    def canonical(self, sql: str, type_: ColumnType) -> str:
        """Return a key in its one form: NaN is NULL, -0.0 is 0.0, moments are in the calendar's range."""
        if type_ is ColumnType.FLOAT:
            return (
                f"CASE WHEN {self.isnan(sql)} THEN NULL WHEN {sql} = 0 THEN {self.real(0.0)} ELSE {sql} END"
            )
        if type_ in (ColumnType.DATE, ColumnType.TIMESTAMP):
            return self.in_calendar(sql, type_)
        return sql

    # Keys and ranks

    @abstractmethod
    def rank(self, words: tuple[int, int], columns: Sequence[str]) -> str:
        """Return a number (or text) that depends on the columns and on two secret 64-bit words, fairly.

        Fair means: for a random pair of words every order of different rows is as likely. The bounds on
        sensitivity need nothing of it.
        """

    def nth_least(self, column: str, place: int) -> str:
        """Return the aggregate of the value in a place from the least, equal ones counted; "" for none."""
        del column, place
        return ""

    def same(self, left: str, right: str) -> str:
        """Return the condition that two keys are equal or both NULL, as joins like it best."""
        return f"{left} IS NOT DISTINCT FROM {right}"

    def partition(self, column: str) -> str:
        """Return a unit or key as what windows are formed by."""
        return column

    # Exact integers

    @abstractmethod
    def wide(self, sql: str) -> str:
        """Return a 64-bit integer in the type of wide sums: at least 38 digits."""

    @abstractmethod
    def total(self, column: str, *, narrow: bool) -> str:
        """Return the exact sum of a 64-bit integer column.

        Where ``narrow``, a sum beyond 64 bits may be NULL instead: it will not be used.
        """

    def limited_total(self, column: str, reach: int) -> str:
        """Return the exact sum of an integer column in 64 bits: one beyond 2**62 is 2**62.

        Its values are at most ``reach`` in magnitude.
        """
        del reach
        return self.clamped(self.total(column, narrow=False), (-REACH, REACH))

    def small_total(self, column: str, reach: int) -> str:
        """Return the sum of an integer column: exact where the magnitudes add up to at most 2**53.

        Another sum will not be used: it may be any integer, or NULL. The values are at most ``reach`` in
        magnitude.
        """
        del reach
        return self.total(column, narrow=True)

    @abstractmethod
    def quotient(self, dividend: str, divisor: str) -> str:
        """Return the whole part of a fraction of integers, wide or not, that are not negative."""

    def narrow_quotient(self, dividend: str, divisor: str) -> str:
        """Return the same where both are of 64 bits."""
        return self.quotient(dividend, divisor)

    def clamped(self, column: str, bounds: tuple[int, int], known: tuple[int, int] | None = None) -> str:
        """Return an integer column clamped to ``bounds``; NULL stays NULL.

        ``known`` is a range it cannot leave anyway. A wide column becomes one of 64 bits.
        """
        (lower, upper), (least, most) = bounds, known or (-math.inf, math.inf)
        tests = [f"WHEN {column} > {self.integer(upper)} THEN {self.integer(upper)}"] if most > upper else []
        tests += (
            [f"WHEN {column} < {self.integer(lower)} THEN {self.integer(lower)}"] if least < lower else []
        )
        if not tests:
            return column
        return f"CAST(CASE {' '.join(tests)} ELSE {column} END AS {self.types[ColumnType.INTEGER]})"

    def shifted(self, value: str, bits: int) -> str:
        """Return the integer nearest to ``value / 2**bits``, halves up; bits from 1 to 63."""
        half = f"({value} >> {bits - 1})"
        return f"(({half} >> 1) + ({half} & 1))"

    @abstractmethod
    def gridded(self, value: str, exponent: int) -> str:
        """Return the integer nearest to ``value / 2**exponent``, halves to even.

        The value is a float, not NaN, and the result is known to be within 2**62; but where ``value`` is a
        constant, text for what never happens must not raise either.
        """

    # Arithmetic of expressions

    @abstractmethod
    def arithmetic(self, sign: str, left: str, right: str, type_: ColumnType | None) -> str:
        """Return a sum, difference or product; an integer that overflows is NULL, a float infinity."""

    @abstractmethod
    def divided(self, left: str, right: str) -> str:
        """Return the quotient of floats; NULL if the divisor is zero."""

    @abstractmethod
    def remainder(self, left: str, right: str, type_: ColumnType | None) -> str:
        """Return the rest of a division, with the sign of the dividend; NULL if the divisor is zero."""

    @abstractmethod
    def absolute(self, sql: str, type_: ColumnType | None) -> str:
        """Return the magnitude."""

    @abstractmethod
    def isnan(self, sql: str) -> str:
        """Return the condition that a float is NaN."""

    @abstractmethod
    def real_function(self, name: str, sql: str) -> str:
        """Return ``sqrt``, ``exp``, ``ln``, ``log10``, ``floor`` or ``ceil``; NULL off its domain."""

    @abstractmethod
    def power(self, base: str, exponent: str) -> str:
        """Return a power of floats."""

    @abstractmethod
    def rounded(self, sql: str, decimals: int | None) -> str:
        """Return a float rounded to decimals, halves away from zero."""

    # Text

    @abstractmethod
    def text_function(self, name: str, sql: str) -> str:
        """Return ``lower``, ``upper``, ``trim`` (of ASCII white space) or ``length`` (in code points)."""

    @abstractmethod
    def bytes_of(self, sql: str) -> str:
        """Return the length of a text in bytes."""

    def starts_with(self, sql: str, prefix: str) -> str:
        """Return whether a text starts with another."""
        return f"starts_with({sql}, {prefix})"

    def like(self, sql: str, pattern: str) -> str:
        """Return whether a text matches a pattern of ``%`` and ``_``; it holds no backslash."""
        return f"({sql} LIKE {self.string(pattern)})"

    @abstractmethod
    def matches(self, sql: str, pattern: Pattern) -> str:
        """Return whether a part of a text matches a pattern."""

    @abstractmethod
    def matched_part(self, sql: str, pattern: Pattern) -> str:
        """Return the first part that matches, or what the pattern captures of it; NULL without a match."""

    # Conversion and moments

    def cast(self, sql: str, source: ColumnType | None, target: ColumnType) -> str:
        """Return a value in another type; NULL where it has none.

        One rule for all engines. Texts: a BOOL is ``true`` or ``false`` in letters of any case; an INT64 has
        a sign or none and digits, a FLOAT64 also one point and an exponent of up to four digits or none,
        both in at most 400 bytes, and is finite; a TIMESTAMP is YYYY-MM-DD, perhaps with a blank or ``T``
        and HH:MM, perhaps :SS and up to six digits behind a point, perhaps ``Z`` or an offset of +HH:MM or
        -HH:MM below 15 hours; a DATE is the day of a TIMESTAMP, in UTC. White space is no part of any of
        them. Numbers go to INT64 by rounding, halves away from zero. A DECIMAL goes to the nearest FLOAT64,
        infinity if it is too large for any.
        """
        made = self.direct_cast(sql, source, target)
        if source is ColumnType.TEXT and target is ColumnType.DATE:
            moment = self.direct_cast(sql, source, ColumnType.TIMESTAMP)
            return f"COALESCE({made}, {self.direct_cast(moment, ColumnType.TIMESTAMP, target)})"
        return made

    @abstractmethod
    def direct_cast(self, sql: str, source: ColumnType | None, target: ColumnType) -> str:
        """Return a value in another type by `cast`'s rule, but a text as DATE as YYYY-MM-DD alone."""

    @abstractmethod
    def part(self, name: str, sql: str, type_: ColumnType | None) -> str:
        """Return a part of a moment, an integer.

        YEAR, QUARTER, MONTH, DAY, HOUR, MINUTE, SECOND, DAYOFYEAR, ISOYEAR or ISOWEEK.
        """

    @abstractmethod
    def truncated(self, unit: str, sql: str, type_: ColumnType | None) -> str:
        """Return the first moment of the YEAR, QUARTER, ..., SECOND in its type; of a date, also ISOWEEK."""

    # Spans of time; what they lead to is known to be in the calendar

    def days_later(self, sql: str, days: int | str) -> str:
        """Return a date some days later, a number or an integer of 32 bits."""
        return f"({sql} + ({days}))"

    @abstractmethod
    def months_later(self, sql: str, months: int) -> str:
        """Return the same day of another month, or the last day that it has."""

    @abstractmethod
    def microseconds_later(self, sql: str, count: int) -> str:
        """Return a timestamp some microseconds later."""

    @abstractmethod
    def days_between(self, later: str, earlier: str) -> str:
        """Return the days from one date to another, an integer of 64 bits."""

    @abstractmethod
    def microseconds_between(self, later: str, earlier: str) -> str:
        """Return the microseconds from one timestamp to another, an integer of 64 bits."""
