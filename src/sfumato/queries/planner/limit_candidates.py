"""The limits that a query may have, what each cuts off, and the noise that it brings.

The error of a candidate is that of the query with it and with the chosen values of the other limits, as a
share of what the aggregate would be in an average group without any limit: the square root of the squared
share that is cut off, plus the squared standard deviation of the noise. Limits that the query states stay;
the others are chosen one after the other, twice, each as the one of least error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, final

from sfumato.errors import OptionError, ParameterError
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism
from sfumato.queries.plan.query import Aggregate, AggregateKind, Query
from sfumato.queries.plan.stated_limits import stated_rows
from sfumato.queries.planner.contribution_histograms import Counted
from sfumato.queries.planner.limit_estimates import CutShare, Distribution, Estimate
from sfumato.queries.pricing.price import PricedQuery, price

__all__ = ["Candidate", "Limit", "LimitChoice", "limits_of"]

_ACCEPTED: Final = 0.05
"""What may be cut off where no error is known, as for means: the least limit that cuts off no more."""

_ROWLESS: Final = (AggregateKind.COUNT_UNITS, AggregateKind.COUNT_DISTINCT, AggregateKind.AVG)
_COUNTS: Final = (AggregateKind.COUNT_ROWS, AggregateKind.COUNT_VALUES)


@final
@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a query.

    Parameters
    ----------
    counted : Counted
        What it bounds.
    aggregate : int or None
        The position of the aggregate whose values it bounds.
    """

    counted: Counted
    aggregate: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """One value of a limit, for one aggregate.

    Parameters
    ----------
    value : float
    share : CutShare
    noise : float
        Standard deviation of the noise over the aggregate in an average group; NaN where it is not known.
    error : Estimate or None
        The total error, as a share; None where public parameters and these histograms do not determine it.
    """

    value: float
    aggregate: str
    share: CutShare
    noise: float
    error: Estimate | None


@dataclass
class LimitChoice:
    """The values of all limits of a query, and what each could be instead.

    Parameters
    ----------
    query : Query
        As it was asked, whose stated limits stay.
    known : mapping of Counted, or of (Counted, position), to Distribution
    groups : Estimate
        How many groups the answer has.
    stated : mapping of Limit to float
        The limits that the query states.
    """

    query: Query
    known: Mapping[Limit, Distribution]
    groups: Estimate
    stated: Mapping[Limit, float]
    chosen: dict[Limit, float] = field(default_factory=dict)
    _cuts: dict[tuple[Limit, float], float] = field(default_factory=dict)
    _shares: dict[tuple[Limit, float], CutShare] = field(default_factory=dict)
    _means: dict[int, Estimate | None] = field(default_factory=dict)
    _priced: dict[tuple[tuple[Limit, float], ...], PricedQuery | None] = field(default_factory=dict)

    def choose(self) -> None:
        """Choose every limit that the query leaves open."""
        self.chosen = {limit: self._start(limit) for limit in self.known}
        free = [limit for limit in self.known if limit not in self.stated and self.known[limit].limits]
        for _ in range(2 if len(free) > 1 else 1):
            for limit in free:
                self.chosen[limit] = self.best(limit)

    def best(self, limit: Limit) -> float:
        """Return the candidate of least error; of several aggregates the largest one's counts."""
        errors = {value: self._worst(limit, value) for value in self.known[limit].limits}
        value = min(errors, key=lambda each: errors[each], default=self._start(limit))
        return value if math.isfinite(errors.get(value, math.inf)) else self._least_cut(limit)

    def candidates(self, limit: Limit) -> Iterator[Candidate]:
        """Yield each value that a limit may have, for each aggregate that it matters to."""
        values = {*self.known[limit].limits, self.chosen[limit]}
        if limit in self.stated:
            values.add(self.stated[limit])
        for value in sorted(values):
            for position, aggregate in enumerate(self.query.aggregates):
                if limit in self._limits_of(position):
                    yield self._candidate(limit, value, position, aggregate)

    def _candidate(self, limit: Limit, value: float, position: int, aggregate: Aggregate) -> Candidate:
        chosen = {**self.chosen, limit: value}
        mean, stddev = self._mean(position), self._stddev(chosen, position)
        noise = math.nan if mean is None or stddev is None or not mean.value > 0 else stddev / mean.value
        return Candidate(
            value=value,
            aggregate=aggregate.name,
            share=self._share(limit, value),
            noise=noise,
            error=None if math.isnan(noise) or mean is None else self._error(chosen, position, mean, stddev),
        )

    def _worst(self, limit: Limit, value: float) -> float:
        """Return the error of the aggregate that is farthest off; infinity where none is known."""
        chosen, errors = {**self.chosen, limit: value}, []
        for position in range(len(self.query.aggregates)):
            mean = self._mean(position)
            if limit not in self._limits_of(position) or mean is None or not mean.value > 0:
                continue
            stddev = self._stddev(chosen, position)
            if stddev is not None:
                counting = math.prod(1 - self._cut(each, chosen[each]) for each in self._limits_of(position))
                errors.append(math.hypot(1 - counting, stddev / mean.value))
        return max(errors, default=math.inf)

    def _cut(self, limit: Limit, value: float) -> float:
        if (limit, value) not in self._cuts:
            self._cuts[limit, value] = self.known[limit].cut(value)
        return self._cuts[limit, value]

    def _share(self, limit: Limit, value: float) -> CutShare:
        if (limit, value) not in self._shares:
            self._shares[limit, value] = self.known[limit].beyond(value)
        return self._shares[limit, value]

    def _mean(self, position: int) -> Estimate | None:
        """Return what an aggregate would be in an average group, without limits."""
        if position not in self._means:
            size = self._size(position)
            self._means[position] = None if size is None else size.over(self.groups)
        return self._means[position]

    def _error(
        self, chosen: Mapping[Limit, float], position: int, mean: Estimate, stddev: float | None
    ) -> Estimate:
        """Return bias and noise together, each end from the ends of both."""
        cuts = [self._share(limit, chosen[limit]).cut for limit in self._limits_of(position)]
        noise = stddev or 0.0
        ends = []
        for name, size in (("value", mean.value), ("lower", mean.upper), ("upper", mean.lower)):
            bias = 1 - math.prod(1 - getattr(cut, name) for cut in cuts)
            ends.append(math.hypot(bias, noise / size) if size > 0 else math.inf)
        return Estimate(*ends)

    def _start(self, limit: Limit) -> float:
        return self.stated.get(limit, self._least_cut(limit))

    def _least_cut(self, limit: Limit) -> float:
        known = self.known[limit]
        values = known.limits
        return next((each for each in values if known.cut(each) <= _ACCEPTED), 1.0)

    def _limits_of(self, position: int) -> list[Limit]:
        """Return the limits that cut off something of an aggregate."""
        aggregate = self.query.aggregates[position]
        of_values = [limit for limit in self.known if limit.aggregate == position]
        by_totals = bool(of_values) and of_values[0].counted is Counted.TOTALS
        rowless = aggregate.kind in _ROWLESS
        wanted = [Limit(Counted.GROUPS), Limit(Counted.ALL_ROWS)]
        wanted += [] if rowless or by_totals else [Limit(Counted.ROWS)]
        return [*(limit for limit in wanted if limit in self.known), *of_values]

    def _size(self, position: int) -> Estimate | None:
        """Return what an aggregate would be in all groups together, without limits."""
        aggregate = self.query.aggregates[position]
        groups, rows = self.known.get(Limit(Counted.GROUPS)), self._rows()
        of_values = next((limit for limit in self.known if limit.aggregate == position), None)
        if aggregate.kind is AggregateKind.COUNT_UNITS:
            return None if groups is None else groups.total
        if aggregate.kind in _COUNTS:
            return rows
        if aggregate.kind is not AggregateKind.SUM or of_values is None:
            return None
        values = self.known[of_values]
        if of_values.counted is Counted.TOTALS:
            return values.total if groups is None else groups.total.times(values.mean)
        if self.query.relation.unit is None:
            return values.total
        return None if rows is None else rows.times(values.mean)

    def _rows(self) -> Estimate | None:
        """Return how many rows there are in all groups together."""
        all_rows = self.known.get(Limit(Counted.ALL_ROWS))
        groups, rows = self.known.get(Limit(Counted.GROUPS)), self.known.get(Limit(Counted.ROWS))
        if all_rows is not None:
            return all_rows.total
        if rows is None:
            return None
        return rows.total if groups is None else groups.total.times(rows.mean)

    def _stddev(self, chosen: Mapping[Limit, float], position: int) -> float | None:
        """Return the standard deviation of an aggregate's noise with these limits, in its unit."""
        key = tuple(chosen.items())
        if key not in self._priced:
            self._priced[key] = _price(self._with_limits(chosen))
        priced = self._priced[key]
        if priced is None:
            return None
        total = priced.estimators[position].total
        request, measure = priced.requests[total], priced.measures[total]
        mechanism = priced.mechanisms[total]
        if isinstance(mechanism, BinMechanism) or (request.found and not priced.bounds_known):
            return None
        return float(mechanism.stddev) * 2.0 ** request.noise_exponent(measure)

    def _with_limits(self, chosen: Mapping[Limit, float]) -> Query:
        """Return the query with these limits, of which it may state some itself."""
        options, aggregates = self.query.options, list(self.query.aggregates)
        for limit, value in chosen.items():
            match limit.counted:
                case Counted.GROUPS:
                    options = replace(options, max_groups_contributed=int(value))
                case Counted.ALL_ROWS:
                    options = replace(options, max_rows_contributed=int(value))
                case Counted.ROWS:
                    options = replace(options, max_rows_per_group=int(value))
                    aggregates = [_of_rows(each, int(value)) for each in aggregates]
                case _ if limit.aggregate is not None:
                    bounds = self._bounds(limit, value)
                    aggregates[limit.aggregate] = _within(aggregates[limit.aggregate], bounds, limit.counted)
        return replace(self.query, options=options, aggregates=tuple(aggregates))

    def _bounds(self, limit: Limit, value: float) -> tuple[float, float]:
        """Return the bounds of so large values: of both signs where negative ones stand out."""
        aggregate = self.query.aggregates[limit.aggregate or 0]
        stated = _stated_bounds(aggregate, limit.counted)
        if stated is not None and value == self.stated.get(limit):
            return stated
        return (-value if self.known[limit].negative else 0.0), value


def limits_of(
    query: Query, known: Mapping[Limit, Distribution], *, groups_stated: bool
) -> dict[Limit, float]:
    """Return the limits that a query states, of those that there are histograms for."""
    options, stated = query.options, {}
    for limit in known:
        value: float | None = None
        if limit.counted is Counted.GROUPS:
            value = options.max_groups_contributed if groups_stated else None
        elif limit.counted is Counted.ALL_ROWS:
            value = options.max_rows_contributed
        elif limit.counted is Counted.ROWS:
            value = stated_rows(query)
        elif limit.aggregate is not None:
            bounds = _stated_bounds(query.aggregates[limit.aggregate], limit.counted)
            value = None if bounds is None else max(map(abs, bounds))
        if value is not None:
            stated[limit] = float(value)
    return stated


def _price(query: Query) -> PricedQuery | None:
    try:
        return price(query)
    except (OptionError, ParameterError):
        return None


def _of_rows(aggregate: Aggregate, rows: int) -> Aggregate:
    """Return a count of rows that counts so many of a unit."""
    return replace(aggregate, group_bounds=(0, rows)) if aggregate.kind in _COUNTS else aggregate


def _stated_bounds(aggregate: Aggregate, counted: Counted) -> tuple[float, float] | None:
    per_group = counted is Counted.TOTALS or aggregate.kind is AggregateKind.AVG
    return aggregate.group_bounds if per_group else aggregate.row_bounds


def _within(aggregate: Aggregate, bounds: tuple[float, float], counted: Counted) -> Aggregate:
    if counted is Counted.TOTALS or aggregate.kind is AggregateKind.AVG:
        return replace(aggregate, group_bounds=bounds)
    second = bounds if aggregate.second is not None and aggregate.second_bounds is None else None
    return replace(aggregate, row_bounds=bounds, second_bounds=second or aggregate.second_bounds)
