"""From aggregates to measures: which exact integers a query needs, and how its columns are read off them.

Aggregates share measures: COUNT(*) without bounds, COUNT(DISTINCT unit) and the threshold for unknown groups
all read the one count of units, and AVG(x) shares its denominator with COUNT(x). Each measure costs privacy
once, so sharing is free accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sfumato._check import refuse
from sfumato.queries.plan.query import (
    MOMENT_KINDS,
    Aggregate,
    AggregateKind,
    ColumnType,
    Expression,
    Query,
)
from sfumato.queries.pricing.measures.bins import CountBins, QuantileInterval
from sfumato.queries.pricing.measures.counts import (
    CountDistinct,
    CountRows,
    CountUnits,
    CountUnitsWithValue,
    CountValues,
)
from sfumato.queries.pricing.measures.measure_request import PLACEHOLDER_BOUNDS, MeasureRequest
from sfumato.queries.pricing.measures.products import Bounded, SumOfProducts
from sfumato.queries.pricing.measures.sums import MeanOfUnits, SumOfRows
from sfumato.queries.pricing.quantile_bins import quantile_bins

__all__ = ["ColumnEstimator", "requests_and_estimators"]


@dataclass(frozen=True, slots=True)
class ColumnEstimator:
    """How one released column is computed from noisy measures: ``total``, over ``count`` for an average.

    ``more`` are the further measures of what is read off several sums, or of the interval of a quantile;
    ``quantiles`` are the orders of those that
    are read off counts by bin.
    """

    name: str
    kind: AggregateKind
    total: int
    count: int | None = None
    more: tuple[int, ...] = ()
    quantiles: tuple[float, ...] = ()
    report: bool = False

    @property
    def measures(self) -> tuple[int, ...]:
        """The measures it is computed from, by number."""
        return (self.total, *(() if self.count is None else (self.count,)), *self.more)


def requests_and_estimators(query: Query) -> tuple[tuple[MeasureRequest, ...], tuple[ColumnEstimator, ...]]:
    """List the measures a query needs, each once, and how every aggregate reads them.

    Where groups are unknown the first measure is the count of units that the threshold is applied to: of all
    units of a group, or, where every aggregate is of one expression and the units with a value of it are
    counted anyway, of those.
    """
    max_rows = 1 if query.relation.unit is None else query.options.max_rows
    all_rows = query.options.max_rows_contributed
    wanted = [
        tuple(
            replace(request, all_rows=all_rows) for request in MEASURES[aggregate.kind](aggregate, max_rows)
        )
        for aggregate in query.aggregates
    ]
    requests = list(dict.fromkeys(request for several in wanted for request in several))
    if query.keys and query.public_groups is None:
        first = _counted(query.aggregates, requests) or CountUnits(all_rows=all_rows)
        requests = [first, *(request for request in requests if request != first)]
    estimators = []
    orders: dict[int, set[float]] = {}
    for aggregate, several in zip(query.aggregates, wanted, strict=True):
        total, *others = (requests.index(request) for request in several)
        orders.setdefault(total, set()).update(aggregate.quantiles)
        count = None if aggregate.quantiles or not others else others.pop(0)
        more = tuple(others), aggregate.quantiles, aggregate.report
        estimators.append(ColumnEstimator(aggregate.name, aggregate.kind, total, count, *more))
    for index, those in orders.items():
        requests[index] = requests[index].with_orders(sorted(those))
    return tuple(requests), tuple(estimators)


def _counted(
    aggregates: Sequence[Aggregate], requests: Sequence[MeasureRequest]
) -> CountUnitsWithValue | None:
    """Return the count of the units with a value, if it can serve as the count of units."""
    counts = [request for request in requests if isinstance(request, CountUnitsWithValue)]
    expressions = {aggregate.expression for aggregate in aggregates} if counts else set()
    return counts[0] if counts and len(expressions) == 1 else None


def _expression(aggregate: Aggregate) -> Expression:
    """Return what is aggregated: every aggregate but COUNT(*) and COUNT(DISTINCT unit) has an expression."""
    if aggregate.expression is None:
        refuse("expression", f"be given for {aggregate.kind.value}", None, "pass what is aggregated")
    return aggregate.expression


def _units(aggregate: Aggregate, max_rows: int | None) -> tuple[MeasureRequest, ...]:
    """Return the number of units."""
    del aggregate, max_rows
    return (CountUnits(),)


def _rows(aggregate: Aggregate, max_rows: int | None) -> tuple[MeasureRequest, ...]:
    """Return the number of rows; of units, where each has at most one."""
    if _one_row(aggregate, max_rows):
        return (CountUnits(),)
    return (CountRows(bounds=aggregate.group_bounds, max_rows=max_rows),)


def _values(aggregate: Aggregate, max_rows: int | None) -> tuple[MeasureRequest, ...]:
    """Return the number of rows with a value; of units, where each has at most one."""
    expression = _expression(aggregate)
    if _one_row(aggregate, max_rows):
        return (CountUnitsWithValue(expression=expression),)
    return (CountValues(expression=expression, bounds=aggregate.group_bounds, max_rows=max_rows),)


def _distinct(aggregate: Aggregate, max_rows: int | None) -> tuple[MeasureRequest, ...]:
    """Return the number of distinct values."""
    bounds = aggregate.group_bounds
    return (CountDistinct(expression=_expression(aggregate), bounds=bounds, max_rows=max_rows),)


def _one_row(aggregate: Aggregate, max_rows: int | None) -> bool:
    """Whether a unit counts as one row of a group."""
    bounds = aggregate.group_bounds
    return bounds in (None, (0, 1)) or (max_rows == 1 and bounds[0] == 0)


def _sum(aggregate: Aggregate, max_rows: int | None) -> tuple[MeasureRequest, ...]:
    """Return the sum of values."""
    found = aggregate.unbounded
    request = SumOfRows(
        expression=_expression(aggregate),
        bounds=PLACEHOLDER_BOUNDS if found else aggregate.group_bounds,
        row_bounds=aggregate.row_bounds,
        max_rows=max_rows,
        found=found,
    )
    return (request,)


def _mean(aggregate: Aggregate, max_rows: int | None) -> tuple[MeasureRequest, ...]:
    """Return the sum of units' means, and the number of units with a value."""
    del max_rows
    bounds, expression = aggregate.group_bounds or PLACEHOLDER_BOUNDS, _expression(aggregate)
    means = MeanOfUnits(expression=expression, bounds=bounds, found=aggregate.unbounded)
    return means, CountUnitsWithValue(expression=expression)


def _quantiles(aggregate: Aggregate, max_rows: int | None) -> tuple[MeasureRequest, ...]:
    """Return the counts by bin that quantiles are of, and those for intervals that are paid for."""
    expression, found = _expression(aggregate), aggregate.unbounded
    bounds = aggregate.row_bounds or PLACEHOLDER_BOUNDS
    whole = not found and expression.type is ColumnType.INTEGER
    levels = quantile_bins(bounds, whole=whole).shape.height  # of found bounds, no tree has more
    given: dict[str, Any] = {
        "expression": expression,
        "row_bounds": bounds,
        "max_rows": max_rows,
        "levels": levels,
        "found": found,
    }
    if aggregate.interval_epsilon is None:
        return (CountBins(**given),)
    return CountBins(**given), QuantileInterval(orders=aggregate.quantiles, **given)


def _moments(aggregate: Aggregate, max_rows: int | None) -> tuple[MeasureRequest, ...]:
    """Return the sums that a variance, covariance or correlation is read off, and the number of rows."""
    found = aggregate.unbounded
    columns = [
        Bounded(expression, bounds or PLACEHOLDER_BOUNDS, found)
        for expression, bounds in (
            (aggregate.expression, aggregate.row_bounds),
            (aggregate.second, aggregate.second_bounds),
        )
        if expression is not None
    ]

    def over(*factors: Bounded) -> SumOfProducts:
        return SumOfProducts(columns=factors, max_rows=max_rows or 1)

    counted = columns[0].expression
    rows = (
        CountUnitsWithValue(expression=counted)
        if max_rows == 1
        else CountValues(expression=counted, bounds=(0, max_rows or 1), max_rows=max_rows)
    )
    if len(columns) == 1:
        return over(columns[0], columns[0]), rows, over(columns[0])
    squares = [over(one, one) for one in columns] if aggregate.kind is AggregateKind.CORR else []
    return over(*columns), rows, *map(over, columns), *squares


MEASURES: Final[dict[AggregateKind, Callable[[Aggregate, int | None], tuple[MeasureRequest, ...]]]] = {
    AggregateKind.AVG: _mean,
    AggregateKind.COUNT_DISTINCT: _distinct,
    AggregateKind.COUNT_ROWS: _rows,
    AggregateKind.COUNT_UNITS: _units,
    AggregateKind.COUNT_VALUES: _values,
    AggregateKind.QUANTILE: _quantiles,
    AggregateKind.QUANTILES: _quantiles,
    AggregateKind.SUM: _sum,
    **dict.fromkeys(MOMENT_KINDS, _moments),
}
"""The measures that each aggregate is estimated from: the total, its count, and further ones."""
