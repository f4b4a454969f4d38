"""The search for bounds that a query does not state: what is searched, and the job that counts it.

A search counts units by the magnitude of one of their numbers, in all groups together: one unit moves one
bin by one, however many groups it may be in. The number is the value of one of its rows, or where a unit's
totals are bounded the total of one of its groups, chosen at random.

ZetaSQL searches each group on its own, and a unit counts with a number in each: its noise grows with the
groups that a unit may be in, and a small group finds nothing. One search over all of them finds bounds that
suit the largest values; where groups differ in scale, it is better to state bounds. Rows of groups that are
not shown in the end, or that bounding drops, are searched like any others. NaN, infinities, and totals of
whole numbers beyond 64 bits are not counted.

Notes
-----
Guarantee: adding or removing one unit moves one bin of a search by one. The job bounds each unit to one row
of a relation of which each row is a function of one unit's rows (`sfumato.queries.plan.nodes`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import final

from sqlglot import exp

from sfumato.queries.plan.constants import number
from sfumato.queries.plan.measure import BinCounts, GridColumn, Measure
from sfumato.queries.plan.nodes import Filter, PerUnit, Project, Relation, UnitAggregate, UnitFunction
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    Named,
    Query,
)
from sfumato.queries.plan.schema import Column
from sfumato.queries.plan.typed_expressions import TypedTree, column, operand
from sfumato.queries.pricing.magnitude_bins import REAL, WHOLE, MagnitudeBins, real

__all__ = ["BoundSearch", "ColumnNames", "column_names", "finite", "projected"]

_FINE, _COARSE = 2.0**56, 2.0**-56
_SMALL, _LARGE = 2.0**-14, 2.0**42  # a float between them is summed as it is, in steps of 2**-20


@final
@dataclass(frozen=True, slots=True)
class BoundSearch:
    """What bounds are searched for.

    Parameters
    ----------
    expression : Expression
        Of the rows.
    totals : bool
        Whether a unit's total in a group is meant, not a row's value.
    max_rows : int or None
        The most rows of a unit that a total is of, where that is known: of more, their mean times so many.
    """

    expression: Expression
    totals: bool = False
    max_rows: int | None = None

    @property
    def bins(self) -> MagnitudeBins:
        """The bins of the numbers."""
        return WHOLE if self.expression.type is ColumnType.INTEGER and self.max_rows is None else REAL

    def counted(self, row_bin: Expression) -> Measure:
        """Return the counts of units by bin, of which ``row_bin`` is a row's."""
        return Measure(BinCounts(GridColumn(row_bin, 0, 0, self.bins.many - 1)))

    def job(self, query: Query) -> AggregationJob:
        """Return what the engine counts: one number of each unit, by its bin."""
        unit = query.relation.unit
        row_bin = Expression(column(self.place(query), ColumnType.INTEGER).tree, ColumnType.INTEGER)
        return AggregationJob(
            relation=self.relation(query),
            keys=(),
            measures=(self.counted(row_bin),),
            max_groups=None,
            max_rows=None if unit is None else 1,
            public_groups=None,
        )

    def words(self) -> str:
        """Return what is searched, in words."""
        return f"a unit's total of {self.expression.sql}" if self.totals else self.expression.sql

    def place(self, query: Query) -> str:
        """Return the name of the column of the bins."""
        return column_names(query)("place")

    def relation(self, query: Query) -> Relation:
        """Return the bins of the numbers, a row for each, with the unit that it is of."""
        names = column_names(query)
        groups = query.keys if self.totals else ()
        keys = (Named(names(f"key_{index}"), key.expression) for index, key in enumerate(groups))
        rows = projected(query.relation, *keys, Named(names("value"), finite(self.expression)))
        if self.totals:
            rows = self._per_group(rows, names)
        value = column(names("value"), self.bins.type)
        absent = exp.Is(this=value.tree, expression=exp.Null())
        there = Filter(rows, Expression(exp.Not(this=exp.Paren(this=absent)), ColumnType.BOOLEAN))
        if self.bins.type is ColumnType.INTEGER:
            return projected(there, Named(names("place"), self.bins.expression(value)))
        return self._by_blocks(there, names)

    def _by_blocks(self, rows: Relation, names: ColumnNames) -> Project:
        """Return the bins of floats."""
        value, size = (column(name, ColumnType.FLOAT) for name in (names("value"), names("size")))
        values = Named(names("value"), Expression(value.tree, ColumnType.FLOAT))
        sizes = Named(names("size"), Expression(exp.Abs(this=value.tree.copy()), ColumnType.FLOAT))
        rows = projected(rows, values, sizes)
        block, reduced = column(names("block"), ColumnType.INTEGER), column(names("part"), ColumnType.FLOAT)
        blocks = Named(names("block"), self.bins.block(size))
        rows = projected(rows, values, blocks, Named(names("part"), self.bins.reduced(size)))
        held = Named(names("block"), Expression(block.tree, ColumnType.INTEGER))
        rows = projected(rows, values, held, Named(names("step"), self.bins.step(reduced)))
        row_bin = self.bins.joined(value, block, column(names("step"), ColumnType.INTEGER))
        return projected(rows, Named(names("place"), row_bin))

    def _per_group(self, rows: Project, names: ColumnNames) -> Project:
        """Return one row for each unit and group: its total."""
        keys = tuple(
            Named(known.name, Expression(column(known.name, known.type).tree, known.type))
            for known in rows.schema.columns
            if known.name != names("value") and known.type is not None
        )
        type_, value = self.expression.type, column(names("value"), self.expression.type).tree
        made = [UnitAggregate(names("total"), UnitFunction.SUM, Expression(value, type_))]
        total = column(names("total"), type_).tree
        if type_ is ColumnType.FLOAT:
            peak = Expression(exp.Abs(this=value.copy()), type_)
            made += [
                UnitAggregate(names("peak"), UnitFunction.MAX, peak),
                UnitAggregate(names("fine"), UnitFunction.SUM, Expression(_times(value, _FINE), type_)),
                UnitAggregate(names("coarse"), UnitFunction.SUM, Expression(_times(value, _COARSE), type_)),
            ]
            total = _of_its_size(names)
        if self.max_rows is not None:
            made.append(UnitAggregate(names("many"), UnitFunction.COUNT, Expression(value, type_)))
            total = _of_fewer(total, names, self.max_rows)
        grouped = PerUnit(rows, keys, tuple(made), str(rows.unit))
        return projected(grouped, Named(names("value"), Expression(total, self.bins.type)))


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """Names of columns that are made, none of which is the unit's."""

    prefix: str

    def __call__(self, word: str) -> str:
        """Return the name of a column."""
        return self.prefix + word


def column_names(query: Query) -> ColumnNames:
    """Return how columns that are made of a query's rows are named."""
    return ColumnNames("of_" if (query.relation.unit or "").casefold().startswith("a_") else "a_")


def projected(rows: Relation, *made: Named) -> Project:
    """Return columns computed from rows, with their unit."""
    unit = None if rows.unit is None else rows.schema.find(rows.unit)
    return Project(rows, (*_kept(unit), *made), rows.unit)


def _kept(unit: Column | None) -> tuple[Named, ...]:
    if unit is None or unit.type is None:
        return ()
    return (Named(unit.name, Expression(column(unit.name, unit.type).tree, unit.type)),)


def _times(tree: exp.Expression, factor: float) -> exp.Expression:
    return exp.Mul(this=tree.copy(), expression=real(factor))


def finite(expression: Expression) -> Expression:
    """Return a value, NULL where it is NaN or infinite: engines order NaN above all numbers, or nowhere."""
    if expression.type is ColumnType.INTEGER:
        return expression
    value, largest = operand(TypedTree(expression.tree, expression.type)), sys.float_info.max
    smallest = exp.Neg(this=real(largest))
    within = exp.Between(this=value, low=smallest, high=real(largest))
    return Expression(
        exp.Case(ifs=[exp.If(this=within, true=expression.tree)], default=exp.Null()), expression.type
    )


def _of_its_size(names: ColumnNames) -> exp.Expression:
    """Return the total from the sum whose steps suit the largest of the numbers."""
    total, peak = (column(name, ColumnType.FLOAT).tree for name in (names("total"), names("peak")))
    fine, coarse = (column(name, ColumnType.FLOAT).tree for name in (names("fine"), names("coarse")))
    return exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=peak, expression=real(_SMALL)), true=_times(fine, _COARSE)),
            exp.If(this=exp.GT(this=peak.copy(), expression=real(_LARGE)), true=_times(coarse, _FINE)),
        ],
        default=total,
    )


def _of_fewer(total: exp.Expression, names: ColumnNames, max_rows: int) -> exp.Expression:
    """Return what ``max_rows`` of the rows come to, in the mean over which they are."""
    many = column(names("many"), ColumnType.INTEGER).tree
    each = exp.Div(this=exp.Paren(this=total.copy()), expression=many)
    fewer = exp.Mul(this=exp.Paren(this=each), expression=real(float(max_rows)))
    more = exp.GT(this=many.copy(), expression=number(str(max_rows)).tree)
    return exp.Case(ifs=[exp.If(this=more, true=fewer)], default=total)
