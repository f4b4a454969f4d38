"""Histograms of what units bring: of how many groups, rows and values there are, by public bins.

What a limit cuts off is seen nowhere in the answer to a query: rows beyond it do not count, and intervals are
for what counts. A histogram over units by the number of their groups shows it, for noise of one unit's worth.
Its bins are public, so that an empty bin says nothing, and each is a job like any other: every engine
computes it.

Notes
-----
Guarantee: adding or removing one unit moves the cells of a histogram by at most its ``cap`` together. The
rows of the histogram's relation are functions of one unit's rows each (`sfumato.queries.plan.nodes`), the job
leaves at most ``cap`` of them to a unit, chosen by a keyed function of that unit's rows alone, and each row
adds one to one cell (`sfumato.queries.plan.measure.BinCounts`). The number of distinct groups moves by at
most ``cap``, for a unit brings at most so many. With discrete Laplace noise of scale ``cap / epsilon`` on
every cell a histogram is epsilon-DP (Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in
private data analysis", 2006, Proposition 1, whose proof holds for the discrete distribution too); several of
them add their epsilons up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from sfumato.queries.plan.constants import number
from sfumato.queries.plan.listed_groups import within_listed_groups
from sfumato.queries.plan.measure import BinCounts, DistinctCount, GridColumn, Measure
from sfumato.queries.plan.nodes import Distinct, PerUnit, Relation, UnitAggregate, UnitFunction
from sfumato.queries.plan.query import (
    AggregateKind,
    AggregationJob,
    ColumnType,
    Expression,
    Named,
    Query,
)
from sfumato.queries.plan.stated_limits import counts_rows, stated_rows
from sfumato.queries.plan.typed_expressions import column
from sfumato.queries.pricing.bound_search import BoundSearch, projected
from sfumato.queries.pricing.quantile_bins import bin_counts

__all__ = ["EDGES", "Counted", "Histogram", "histograms_of"]

EDGES: Final = (*range(1, 9), *(2**octave * part // 4 for octave in range(3, 20) for part in (5, 6, 7, 8)))
"""The largest number of each bin of whole numbers, up to 2**20; what is larger is in the last bin."""


class Counted(Enum):
    """What a histogram counts, by which bins."""

    GROUPS = "groups of a unit"
    ALL_ROWS = "rows of a unit"
    ROWS = "rows of a unit in a group"
    VALUES = "values of a row"
    TOTALS = "totals of a unit in a group"
    NUMBER_OF_GROUPS = "number of groups"


@final
@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of what units bring.

    Parameters
    ----------
    counted : Counted
    cap : int
        How often one unit counts at most.
    expression : Expression or None
        What the values are of, or the key whose values are the groups.
    """

    counted: Counted
    cap: int = 1
    expression: Expression | None = None

    @property
    def cells(self) -> int:
        """How many noisy numbers it has."""
        if self.counted is Counted.NUMBER_OF_GROUPS:
            return 1
        return len(EDGES) if self.expression is None else BoundSearch(self.expression).bins.many

    @property
    def words(self) -> str:
        """What is counted, in words."""
        of = "" if self.expression is None else f" ({self.expression.sql})"
        return f"{self.counted.value}{of}"

    def job(self, query: Query) -> AggregationJob:
        """Return what the engine computes."""
        unit = query.relation.unit
        return AggregationJob(
            relation=self._relation(query),
            keys=(),
            measures=(self._measure(query),),
            max_groups=None,
            max_rows=None if unit is None or self.counted is Counted.NUMBER_OF_GROUPS else self.cap,
            public_groups=None,
        )

    def exact(self, answer: pa.Table) -> NDArray[np.int64]:
        """Return the cells from the engine's answer."""
        if self.counted is Counted.NUMBER_OF_GROUPS:
            return np.asarray(answer["m0"].to_numpy(), dtype=np.int64)
        found = bin_counts(answer["m0"])
        full = np.zeros(self.cells, dtype=np.int64)
        full[found.leaves] = found.counts
        return full

    def _measure(self, query: Query) -> Measure:
        if self.counted is Counted.NUMBER_OF_GROUPS and self.expression is not None:
            return Measure(DistinctCount(self.expression), upper=self.cap)
        name = self._search.place(query) if self._search else _name(query, "place")
        place = Expression(column(name, ColumnType.INTEGER).tree, ColumnType.INTEGER)
        return Measure(BinCounts(GridColumn(place, 0, 0, self.cells - 1)), upper=self.cap)

    @property
    def _search(self) -> BoundSearch | None:
        if self.expression is None or self.counted is Counted.NUMBER_OF_GROUPS:
            return None
        return BoundSearch(self.expression, totals=self.counted is Counted.TOTALS)

    def _relation(self, query: Query) -> Relation:
        listed = replace(query, relation=within_listed_groups(query))
        if self.counted is Counted.NUMBER_OF_GROUPS:
            return listed.relation
        if self._search is not None:
            return self._search.relation(listed)
        rows = listed.relation
        held = self.counted is not Counted.ALL_ROWS
        keys = [Named(_name(query, f"key_{i}"), key.expression) for i, key in enumerate(query.keys) if held]
        made: Relation = projected(rows, *keys)
        if self.counted is Counted.GROUPS:
            made = Distinct(made)
        groups = tuple(
            Named(known.name, Expression(column(known.name, known.type).tree, known.type))
            for known in made.schema.columns
            if known.type is not None and (self.counted is Counted.ROWS or known.name == rows.unit)
        )
        many = _name(query, "many")
        counted = PerUnit(made, groups, (UnitAggregate(many, UnitFunction.COUNT_ROWS),), str(rows.unit))
        return projected(counted, Named(_name(query, "place"), _bin(many)))


def histograms_of(query: Query, *, groups_known: bool) -> tuple[Histogram, ...]:
    """Return the histograms that the limits of a query can be chosen by, each once.

    Values are counted of so many rows of a unit as the query states for its groups and for the rows in each;
    one of what it leaves open.

    Parameters
    ----------
    query : Query
    groups_known : bool
        Whether it is known how many groups the answer has.
    """
    options, unit = query.options, query.relation.unit
    groups = options.max_groups_contributed or 1
    wanted: list[Histogram] = []
    if unit is not None and options.max_rows_contributed is not None:
        wanted.append(Histogram(Counted.ALL_ROWS))
    elif unit is not None:
        wanted += [Histogram(Counted.GROUPS)] if query.keys else []
        wanted += [Histogram(Counted.ROWS, groups)] if any(map(counts_rows, query.aggregates)) else []
    rows = options.max_rows_contributed or groups * (stated_rows(query) or 1)
    for aggregate in query.aggregates:
        if aggregate.kind.name.startswith("COUNT") or not _is_numeric(aggregate.expression):
            continue
        totals = aggregate.kind is AggregateKind.SUM and aggregate.group_bounds is not None
        counted, cap = (Counted.TOTALS, groups) if totals else (Counted.VALUES, rows)
        wanted.append(Histogram(counted, 1 if unit is None else cap, aggregate.expression))
    if wanted and query.keys and not groups_known:
        wanted.append(Histogram(Counted.NUMBER_OF_GROUPS, 1, query.keys[0].expression))
    return tuple(dict.fromkeys(wanted))


def _is_numeric(expression: Expression | None) -> bool:
    return expression is not None and expression.type in (ColumnType.INTEGER, ColumnType.FLOAT)


def _name(query: Query, word: str) -> str:
    """Return the name of a column that is not the unit's."""
    return ("of_" if (query.relation.unit or "").casefold().startswith("a_") else "a_") + word


def _bin(name: str) -> Expression:
    """Return the bin of a whole number that is at least one, as a tree of comparisons."""

    def tree(first: int, last: int) -> exp.Expression:
        if first == last:
            return number(str(first)).tree
        middle = (first + last) // 2
        within = exp.LTE(
            this=column(name, ColumnType.INTEGER).tree, expression=number(str(EDGES[middle])).tree
        )
        lower, higher = tree(first, middle), tree(middle + 1, last)
        return exp.Case(ifs=[exp.If(this=within, true=lower)], default=higher)

    return Expression(tree(0, len(EDGES) - 1), ColumnType.INTEGER)
