"""Each measure as SQL: the columns that it needs, and what a unit's part of a group adds to it.

A new measure is a class here, under its kind in `MEASURE_SQL`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Self, final

from sfumato._check import refuse
from sfumato.queries.engines.compilation.value_columns import ValueColumn, ValueColumns
from sfumato.queries.engines.dialects.base import REACH
from sfumato.queries.plan.query import ColumnType, Expression, Measure, MeasureKind

__all__ = ["MEASURE_SQL", "CountBinsSql", "CountDistinctSql", "MeasureSql"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSql(ABC):
    """A measure over the columns that were placed for it.

    Parameters
    ----------
    measure : Measure
    columns : ValueColumns
    counted, summed : int or None
        The column whose values are counted, and the one that is summed, of a unit's part of a group.
    product : int or None
        The product of columns that is summed.
    """

    early: ClassVar[bool] = False
    """Whether its columns are placed first: a count of values reads off any column of the same expression."""

    measure: Measure
    columns: ValueColumns
    counted: int | None = None
    summed: int | None = None
    product: int | None = None

    @classmethod
    def check(cls, measure: Measure) -> None:
        """Refuse a measure that cannot be computed.

        Raises
        ------
        ParameterError
            If a bound is out of reach or reversed, or an expression is missing or of the wrong type.
        """
        bounds = (measure.lower, measure.upper, measure.row_lower, measure.row_upper, measure.center)
        for bound in bounds:
            if bound is not None and abs(bound) > REACH:
                refuse("bounds", "be at most 2**62 grid steps", bound, "use a coarser grid")
        lower, upper = _row_range(measure)
        if measure.lower > measure.upper or lower > upper:
            refuse("bounds", "have lower at most upper", (measure.lower, measure.upper), "swap them")

    @classmethod
    @abstractmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Place the columns that a measure needs, and return it over them."""

    @abstractmethod
    def contribution(self, index: int) -> str:
        """Return what a unit's part of a group adds to measure ``index``: within its sensitivity, or NULL."""

    def mean(self, index: int) -> str | None:
        """Return the definition of the column ``q...`` that the measure needs; None where it needs none."""
        del index
        return None

    @property
    def _bounds(self) -> tuple[int, int]:
        return self.measure.lower, self.measure.upper

    @property
    def _most_rows(self) -> int:
        return REACH if self.columns.max_rows is None else self.columns.max_rows

    def _constant(self, value: int) -> str:
        """Return a number within the bounds."""
        return self.columns.dialect.integer(min(max(value, self.measure.lower), self.measure.upper))


@final
class CountUnitsSql(MeasureSql):
    """One for each unit."""

    __slots__ = ()

    @classmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Return the measure, which needs no column."""
        return cls(measure=measure, columns=columns)

    def contribution(self, index: int) -> str:
        """Return one."""
        del index
        return self._constant(1)


@final
class CountRowsSql(MeasureSql):
    """The number of rows."""

    __slots__ = ()

    @classmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Return the measure, which needs no column."""
        return cls(measure=measure, columns=columns)

    def contribution(self, index: int) -> str:
        """Return the clamped number of rows."""
        del index
        return self.columns.dialect.clamped("n", self._bounds, (1, self._most_rows))


@final
class CountValuesSql(MeasureSql):
    """The number of rows with a value."""

    __slots__ = ()

    @classmethod
    def check(cls, measure: Measure) -> None:
        """Refuse a measure without an expression."""
        MeasureSql.check(measure)
        _require_expression(measure)

    @classmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Place a column that has a value where the expression has."""
        counted = columns.place_count(_require_expression(measure))
        return cls(measure=measure, columns=columns, counted=counted)

    def contribution(self, index: int) -> str:
        """Return the clamped number of values."""
        del index
        return self.columns.dialect.clamped(f"c{self.counted}", self._bounds, (0, self._most_rows))


@final
class CountUnitsWithValueSql(MeasureSql):
    """One for each unit that has a value."""

    __slots__ = ()

    @classmethod
    def check(cls, measure: Measure) -> None:
        """Refuse a measure without an expression."""
        MeasureSql.check(measure)
        _require_expression(measure)

    @classmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Place a column that has a value where the expression has."""
        counted = columns.place_count(_require_expression(measure))
        return cls(measure=measure, columns=columns, counted=counted)

    def contribution(self, index: int) -> str:
        """Return one where there is a value."""
        del index
        return f"CASE WHEN c{self.counted} > 0 THEN {self._constant(1)} ELSE {self._constant(0)} END"


@final
class SumOfRowsSql(MeasureSql):
    """The sum of values."""

    __slots__ = ()
    early: ClassVar[bool] = True

    @classmethod
    def check(cls, measure: Measure) -> None:
        """Refuse an expression that is no number."""
        MeasureSql.check(measure)
        _require_number(measure, measure.expression)

    @classmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Place the values on the grid."""
        expression = _require_number(measure, measure.expression)
        summed = columns.place(ValueColumn(expression, measure.exponent, *_row_range(measure)))
        counted = columns.place_count(expression)
        return cls(measure=measure, columns=columns, summed=summed, counted=counted)

    def contribution(self, index: int) -> str:
        """Return the clamped sum."""
        del index
        rows, summed = self.columns.max_rows, self.summed or 0
        known = None if rows is None else self.columns.sum_range(summed, rows)
        return self.columns.dialect.clamped(f"s{summed}", self._bounds, known)


@final
class MeanOfUnitsSql(MeasureSql):
    """The mean of a unit's values, less the center."""

    __slots__ = ()
    early: ClassVar[bool] = True

    @classmethod
    def check(cls, measure: Measure) -> None:
        """Refuse an expression that is no number."""
        MeasureSql.check(measure)
        _require_number(measure, measure.expression)

    @classmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Place the values on the grid."""
        expression = _require_number(measure, measure.expression)
        summed = columns.place(ValueColumn(expression, measure.exponent, *_row_range(measure)))
        counted = columns.place_count(expression)
        return cls(measure=measure, columns=columns, summed=summed, counted=counted)

    def mean(self, index: int) -> str:
        """Return the exact mean, halves away from zero."""
        total, count = f"s{self.summed}", f"c{self.counted}"
        rounded = self.columns.dialect.quotient(f"(2 * abs({total}) + {count})", f"(2 * {count})")
        signed = f"CASE WHEN {total} < 0 THEN -{rounded} ELSE {rounded} END"
        return f"CASE WHEN {count} > 0 THEN {signed} END AS q{index}"

    def contribution(self, index: int) -> str:
        """Return the clamped mean less the center."""
        item, dialect = self.columns.items[self.summed or 0], self.columns.dialect
        mean = dialect.clamped(f"q{index}", self._bounds, (item.lower, item.upper))
        return f"{mean} - {dialect.integer(self.measure.center)}"


@final
class SumOfProductsSql(MeasureSql):
    """The sum of one column's centred values, or of the products of two."""

    __slots__ = ()
    early: ClassVar[bool] = True

    @classmethod
    def check(cls, measure: Measure) -> None:
        """Refuse factors that are no numbers, or whose product could leave 62 bits."""
        MeasureSql.check(measure)
        if len(measure.factors) not in (1, 2) or measure.expression != measure.factors[0].expression:
            refuse("factors", "be one or two, the first of the expression", measure.factors, "pass them so")
        for factor in measure.factors:
            _require_number(measure, factor.expression)
            if not -REACH <= factor.lower <= factor.center <= factor.upper <= REACH:
                refuse("bounds", "hold their center within 2**62 grid steps", factor, "use a coarser grid")
        if max(map(abs, measure.terms)) + abs(measure.offset) > REACH:
            refuse(
                "factors", "have products of at most 2**62 grid steps", measure.factors, "use a coarser grid"
            )

    @classmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Place the factors' values, each on its grid."""
        places = [
            (columns.place(ValueColumn(f.expression, f.exponent, f.lower, f.upper)), f.center)
            for f in measure.factors
        ]
        product = columns.place_product(*places) if len(places) == 2 else None
        summed = places[0][0] if product is None else None
        counted = columns.place_count(measure.factors[0].expression)
        return cls(measure=measure, columns=columns, counted=counted, summed=summed, product=product)

    def contribution(self, index: int) -> str:
        """Return a unit's sum of what its rows add, from its sum of values or products and their number."""
        del index
        measure, dialect = self.measure, self.columns.dialect
        each, total = measure.factors[0].center + measure.offset, f"s{self.summed}"
        if self.product is not None:
            each, total = measure.offset, self.columns.product_name(self.product)
        return dialect.clamped(f"({total} - {dialect.integer(each)} * c{self.counted})", self._bounds)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountBinsSql(MeasureSql):
    """The numbers of rows by bin, of the values in column ``binned``."""

    early: ClassVar[bool] = True
    binned: int

    @classmethod
    def check(cls, measure: Measure) -> None:
        """Refuse a measure without row bounds, or of what is no number."""
        MeasureSql.check(measure)
        if measure.row_lower is None or measure.row_upper is None:
            refuse("bounds", "be given for each row", None, "pass row_lower and row_upper")
        _require_number(measure, measure.expression)

    @classmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Place the values on the grid."""
        expression = _require_number(measure, measure.expression)
        binned = columns.place(ValueColumn(expression, measure.exponent, *_row_range(measure)))
        return cls(measure=measure, columns=columns, binned=binned)

    @property
    def bin(self) -> str:
        """The bin of a row, from 0; NULL where it has no value."""
        return f"v{self.binned} - {self.columns.dialect.integer(_row_range(self.measure)[0])}"

    def contribution(self, index: int) -> str:
        """Return nothing: what is counted takes its place."""
        del index
        return self._constant(0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountDistinctSql(MeasureSql):
    """The number of distinct values, which are in column ``told_apart``."""

    told_apart: int

    @classmethod
    def check(cls, measure: Measure) -> None:
        """Refuse a measure without an expression."""
        MeasureSql.check(measure)
        _require_expression(measure)

    @classmethod
    def placed(cls, measure: Measure, columns: ValueColumns) -> Self:
        """Place the values themselves, in canonical form."""
        column = ValueColumn(_require_expression(measure), None, whole=True)
        return cls(measure=measure, columns=columns, told_apart=columns.place(column))

    def contribution(self, index: int) -> str:
        """Return nothing: what is counted takes its place."""
        del index
        return self._constant(0)


MEASURE_SQL: Final[dict[MeasureKind, type[MeasureSql]]] = {
    MeasureKind.DISTINCT: CountDistinctSql,
    MeasureKind.LEAVES: CountBinsSql,
    MeasureKind.MEAN: MeanOfUnitsSql,
    MeasureKind.MOMENT: SumOfProductsSql,
    MeasureKind.ROWS: CountRowsSql,
    MeasureKind.SUM: SumOfRowsSql,
    MeasureKind.UNITS: CountUnitsSql,
    MeasureKind.VALUES: CountValuesSql,
    MeasureKind.VALUE_UNITS: CountUnitsWithValueSql,
}
"""The class of each kind of measure."""


def _row_range(measure: Measure) -> tuple[int, int]:
    """Return the clamp of one row; without row bounds it is 2**48 steps, or 2**62 under wide bounds.

    A grid has about 2**24 steps up to a bound, so this is 2**24 bounds away; it keeps sums in 64 bits.
    """
    reach = 2**48 if max(abs(measure.lower), abs(measure.upper)) <= 2**44 else REACH
    lower = -reach if measure.row_lower is None else measure.row_lower
    upper = reach if measure.row_upper is None else measure.row_upper
    return lower, upper


def _require_expression(measure: Measure) -> Expression:
    if measure.expression is None:
        refuse("expression", f"be given for {measure.kind.value}", None, "pass the counted expression")
    return measure.expression


def _require_number(measure: Measure, expression: Expression | None) -> Expression:
    if expression is None or expression.type not in (ColumnType.INTEGER, ColumnType.FLOAT):
        refuse("expression", f"be a number under {measure.kind.value}", expression, "use CAST")
    return expression
