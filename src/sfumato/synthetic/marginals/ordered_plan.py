"""The residuals' noise for a workload with prefixes and ranges: never more than for answers from cells."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.column_strategy import CellStrategy, ColumnStrategy, ordered_strategy
from sfumato.synthetic.marginals.ordered_queries import check_ordered
from sfumato.synthetic.marginals.residual_plan import AskedColumn, ResidualPlan, residual_plan
from sfumato.synthetic.marginals.workload import Marginals

__all__ = ["ordered_plan"]


def ordered_plan(
    domain: TableDomain, workload: Marginals, *, two: bool
) -> tuple[ResidualPlan, Mapping[int, AskedColumn]]:
    """Return how much noise residuals get, and how columns with prefixes and ranges are measured.

    Parameters
    ----------
    domain : TableDomain
    workload : Marginals
    two : bool
        As in `squared_shift`.

    Returns
    -------
    tuple of ResidualPlan and mapping of int to AskedColumn
        Column by column cells are measured alike instead where the squared error is no larger then: so it is
        at most that of answers from cells.

    Examples
    --------
    >>> from sfumato.synthetic import Ordered
    >>> domain = TableDomain(age=Ordered.integers(0, 63), sex=["f", "m"])
    >>> workload = Marginals.ranges("age", by=["sex"])
    >>> plan, ordered = ordered_plan(domain, workload, two=False)
    >>> type(ordered[0].strategy).__name__, round(plan.squared_error)
    ('RangeStrategy', 679)
    """
    cliques, sizes = workload.cliques(domain), domain.sizes
    weights = [workload.weight(place) for place in range(len(cliques))]
    grams = {
        domain.index(name): queries.gram(check_ordered(name, domain[name]))
        for name, queries in workload.ordered.items()
    }

    def planned(asked: Mapping[int, AskedColumn]) -> ResidualPlan:
        return residual_plan(cliques, weights, sizes, two=two, ordered=asked)

    alike = {place: AskedColumn(CellStrategy(sizes[place]), gram) for place, gram in grams.items()}
    best, found = planned(alike), dict[int, AskedColumn](alike)
    everything = dict(found)
    for name, queries in workload.ordered.items():
        place = domain.index(name)
        if sizes[place] > 1:
            strategy: ColumnStrategy = ordered_strategy(check_ordered(name, domain[name]), queries)
            everything[place] = AskedColumn(strategy, grams[place])
    for tried in (everything, *({**everything, place: alike[place]} for place in grams)):
        plan = planned(tried)
        if plan.squared_error < best.squared_error:
            best, found = plan, dict(tried)
    return best, MappingProxyType(found)
