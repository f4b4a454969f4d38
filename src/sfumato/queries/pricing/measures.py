"""From aggregates to measures: which exact integers a query needs, and how its columns are read off them.

Aggregates share measures: COUNT(*) without bounds, COUNT(DISTINCT unit) and the threshold for unknown groups
all read the one count of units, and AVG(x) shares its denominator with COUNT(x). Each measure costs privacy
once, so sharing is free accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.queries.plan.query import MOMENT_KINDS, Aggregate, AggregateKind, ColumnType, MeasureKind, Query
from sfumato.queries.pricing.grids import PLACEHOLDER_BOUNDS, MeasureRequest
from sfumato.queries.pricing.moment_grids import Bounded
from sfumato.queries.pricing.quantile_bins import quantile_bins

__all__ = ["ColumnEstimator", "requests_and_estimators"]


@dataclass(frozen=True, slots=True)
class ColumnEstimator:
    """How one released column is computed from noisy measures: ``total``, over ``count`` for an average.

    ``more`` are the further measures of what is read off several sums; ``quantiles`` the orders of those that
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
    most = 1 if query.relation.unit is None else query.options.most_rows
    all_rows = query.options.max_rows_contributed
    wanted = [
        tuple(replace(request, all_rows=all_rows) for request in _requests_of(aggregate, most))
        for aggregate in query.aggregates
    ]
    requests = list(dict.fromkeys(request for several in wanted for request in several))
    if query.keys and query.public_groups is None:
        first = _counted(query.aggregates, requests) or MeasureRequest(MeasureKind.UNITS, all_rows=all_rows)
        requests = [first, *(request for request in requests if request != first)]
    estimators = []
    for aggregate, several in zip(query.aggregates, wanted, strict=True):
        total, *others = (requests.index(request) for request in several)
        count = others[0] if others else None
        more = tuple(others[1:]), aggregate.quantiles, aggregate.report
        estimators.append(ColumnEstimator(aggregate.name, aggregate.kind, total, count, *more))
    return tuple(requests), tuple(estimators)


def _counted(aggregates: Sequence[Aggregate], requests: Sequence[MeasureRequest]) -> MeasureRequest | None:
    """Return the count of the units with a value, if it can serve as the count of units."""
    counts = [request for request in requests if request.kind is MeasureKind.VALUE_UNITS]
    expressions = {aggregate.expression for aggregate in aggregates} if counts else set()
    return counts[0] if counts and len(expressions) == 1 else None


def _leaves(aggregate: Aggregate, max_rows: int | None) -> MeasureRequest:
    """Return the counts by bin that quantiles are read off: one number of each level of the tree moves."""
    expression, found = aggregate.expression, aggregate.unbounded
    bounds = aggregate.row_bounds or PLACEHOLDER_BOUNDS
    whole = not found and expression is not None and expression.type is ColumnType.INTEGER
    levels = quantile_bins(bounds, whole=whole).shape.height  # of found bounds, no tree has more
    return MeasureRequest(
        MeasureKind.LEAVES, expression, row_bounds=bounds, max_rows=max_rows, entries=levels, found=found
    )


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

    def over(one: Bounded, other: Bounded | None = None) -> MeasureRequest:
        return MeasureRequest(
            MeasureKind.MOMENT,
            one.expression,
            row_bounds=one.bounds,
            max_rows=max_rows,
            second=other,
            found=found,
        )

    counted = MeasureKind.VALUE_UNITS if max_rows == 1 else MeasureKind.VALUES
    bounds = None if max_rows == 1 else (0, max_rows or 1)
    rows = MeasureRequest(
        counted, columns[0].expression, bounds, max_rows=None if max_rows == 1 else max_rows
    )
    if len(columns) == 1:
        return over(columns[0], columns[0]), rows, over(columns[0])
    squares = [over(one, one) for one in columns] if aggregate.kind is AggregateKind.CORR else []
    return over(*columns), rows, *map(over, columns), *squares


def _requests_of(aggregate: Aggregate, max_rows: int | None) -> tuple[MeasureRequest, ...]:
    expression, bounds = aggregate.expression, aggregate.group_bounds
    found = aggregate.unbounded
    one_row = bounds in (None, (0, 1)) or (max_rows == 1 and bounds[0] == 0)
    units = MeasureRequest(MeasureKind.VALUE_UNITS, expression)
    if aggregate.kind in MOMENT_KINDS:
        return _moments(aggregate, max_rows)
    if aggregate.quantiles:
        return (_leaves(aggregate, max_rows),)
    match aggregate.kind:
        case AggregateKind.SUM:
            within = PLACEHOLDER_BOUNDS if found else bounds
            return (
                MeasureRequest(
                    MeasureKind.SUM, expression, within, aggregate.row_bounds, max_rows, found=found
                ),
            )
        case AggregateKind.AVG:
            return MeasureRequest(
                MeasureKind.MEAN, expression, bounds or PLACEHOLDER_BOUNDS, found=found
            ), units
        case AggregateKind.COUNT_VALUES | AggregateKind.COUNT_DISTINCT:
            distinct = aggregate.kind is AggregateKind.COUNT_DISTINCT
            kind = MeasureKind.DISTINCT if distinct else MeasureKind.VALUES
            values = MeasureRequest(kind, expression, bounds, max_rows=max_rows)
            return (units if one_row and not distinct else values,)
        case _:
            by_row = aggregate.kind is AggregateKind.COUNT_ROWS and not one_row
            rows = MeasureRequest(MeasureKind.ROWS, None, bounds, max_rows=max_rows)
            return (rows if by_row else MeasureRequest(MeasureKind.UNITS),)
