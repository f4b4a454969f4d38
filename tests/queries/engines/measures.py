"""Measures as the tests of engines write them: what a unit adds, its grid, and its bounds."""

from __future__ import annotations

from sfumato.queries.plan.measure import (
    AtLeast,
    BinCounts,
    DistinctCount,
    GridColumn,
    Measure,
    One,
    RowCount,
    RowMean,
    RowSum,
    ValueCount,
)
from sfumato.queries.plan.query import Expression

__all__ = [
    "UNITS",
    "bin_measure",
    "distinct_values",
    "mean",
    "products",
    "row_count",
    "row_sum",
    "units_with_value",
    "value_count",
]

UNITS = Measure(One())


def row_count(upper: int, lower: int = 0) -> Measure:
    return Measure(RowCount(), lower=lower, upper=upper)


def value_count(expression: Expression, upper: int) -> Measure:
    return Measure(ValueCount(expression), upper=upper)


def units_with_value(expression: Expression) -> Measure:
    return Measure(AtLeast(ValueCount(expression), 1))


def row_sum(  # noqa: PLR0917
    expression: Expression,
    exponent: int,
    lower: int,
    upper: int,
    row_lower: int | None = None,
    row_upper: int | None = None,
) -> Measure:
    return Measure(
        RowSum((_column(expression, exponent, (lower, upper), row_lower, row_upper),)), exponent, lower, upper
    )


def mean(  # noqa: PLR0917
    expression: Expression,
    exponent: int,
    lower: int,
    upper: int,
    row_lower: int | None = None,
    row_upper: int | None = None,
    *,
    center: int = 0,
) -> Measure:
    column = _column(expression, exponent, (lower, upper), row_lower, row_upper)
    return Measure(RowMean(column), exponent, lower, upper, center)


def products(factors: tuple[GridColumn, ...], lower: int = 0, upper: int = 1, offset: int = 0) -> Measure:
    exponent = sum(factor.exponent for factor in factors)
    return Measure(RowSum(factors, offset), exponent, lower, upper)


def bin_measure(expression: Expression, exponent: int, upper: int, row_lower: int, row_upper: int) -> Measure:
    return Measure(BinCounts(GridColumn(expression, exponent, row_lower, row_upper)), exponent, 0, upper)


def distinct_values(expression: Expression, upper: int = 1) -> Measure:
    return Measure(DistinctCount(expression), upper=upper)


def _column(
    expression: Expression, exponent: int, bounds: tuple[int, int], lower: int | None, upper: int | None
) -> GridColumn:
    wide = GridColumn.wide(expression, exponent, bounds)
    return GridColumn(
        expression, exponent, wide.lower if lower is None else lower, wide.upper if upper is None else upper
    )
