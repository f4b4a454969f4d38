"""What each unit brings and loses: the rows that the truncation report counts.

Each unit has one row: for each limit its total of groups, rows or values, and how much of it is cut off.
Groups that are limited stay by chance, so of a unit's rows that part is lost which is cut off on average.

Notes
-----
Guarantee: each row is a function of one unit's rows (`sfumato.queries.plan.nodes`), and each unit has one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from sqlglot import exp

from sfumato.queries.plan.constants import number
from sfumato.queries.plan.listed_groups import within_listed_groups
from sfumato.queries.plan.nodes import PerUnit, Relation, UnitAggregate, UnitFunction
from sfumato.queries.plan.query import Aggregate, AggregateKind, ColumnType, Expression, Named, Query
from sfumato.queries.plan.stated_limits import CutCount, CutOff, rows_counted
from sfumato.queries.plan.typed_expressions import TypedTree, cast, column
from sfumato.queries.pricing.bound_search import ColumnNames, finite, projected
from sfumato.queries.pricing.magnitude_bins import real

__all__ = ["either", "expression", "floored", "integer", "units_with_losses", "whole"]

_LARGEST: Final = 2**63 - 1
_FINEST: Final = 30  # floats are summed in steps of 2**-20 up to 2**42: bounds are brought near 2**30


def units_with_losses(query: Query, counts: list[CutCount], names: ColumnNames) -> Relation:
    """Return a row for each unit, with the total and what is lost of it for each limit.

    Parameters
    ----------
    query : Query
    counts : list of CutCount
    names : ColumnNames
        Of the columns ``all_0``, ``lost_0``, ``all_1``, ...
    """
    values = {
        index: _Values(
            query.aggregates[each.aggregate], names, index, by_unit=query.relation.unit is not None
        )
        for index, each in enumerate(counts)
        if each.aggregate is not None
    }
    keys = [Named(names(f"key_{index}"), key.expression) for index, key in enumerate(query.keys)]
    rows = projected(
        within_listed_groups(query), *keys, *(named for each in values.values() for named in each.columns)
    )
    if rows.unit is None:
        return projected(rows, *(named for each in values.values() for named in each.of_row()))
    groups = tuple(
        Named(known.name, Expression(column(known.name, known.type).tree, known.type))
        for known in rows.schema.columns
        if known.type is not None and (known.name == rows.unit or known.name in {key.name for key in keys})
    )
    found = (
        UnitAggregate(names("rows"), UnitFunction.COUNT_ROWS),
        *(a for v in values.values() for a in v.of_group()),
    )
    parts = PerUnit(rows, groups, found, rows.unit)
    unit = tuple(group for group in groups if group.name == rows.unit)
    staying, limit = integer(names("rows")), rows_counted(query)
    if limit is not None:
        staying = either(exp.LTE(this=staying, expression=whole(limit)), staying.copy(), whole(limit))
    summed = {"groups": whole(1), "rows": integer(names("rows")), "staying": staying}
    totals = [UnitAggregate(names(word), UnitFunction.SUM, expression(tree)) for word, tree in summed.items()]
    units = PerUnit(parts, unit, (*totals, *(a for v in values.values() for a in v.of_unit())), rows.unit)
    made: list[Named] = []
    for index, each in enumerate(counts):
        total, lost = values[index].totals() if index in values else _limited(query, each.kind, names)
        made += [
            Named(names(f"all_{index}"), expression(total)),
            Named(names(f"lost_{index}"), expression(lost)),
        ]
    return projected(units, *made)


def _limited(query: Query, kind: CutOff, names: ColumnNames) -> tuple[exp.Expression, exp.Expression]:
    """Return a unit's total, and what limits on groups and rows cut off of it."""
    most, all_rows = query.options.max_groups_contributed, query.options.max_rows_contributed
    groups, rows, staying = (integer(names(word)) for word in ("groups", "rows", "staying"))
    if kind is CutOff.ROWS:
        if all_rows is not None:
            staying = either(
                exp.LTE(this=staying, expression=whole(all_rows)), staying.copy(), whole(all_rows)
            )
        elif most is not None:
            chosen = floored(staying.copy(), groups.copy(), most)
            staying = either(exp.LTE(this=groups, expression=whole(most)), staying, chosen)
        return rows, exp.Sub(this=rows.copy(), expression=exp.Paren(this=staying))
    within = exp.LTE(this=groups, expression=whole(most or 0))
    if kind is CutOff.UNITS:
        return whole(1), either(within, whole(0), whole(1))
    beyond = exp.Sub(this=groups.copy(), expression=whole(most or 0))
    return groups.copy(), either(within, whole(0), beyond)


@final
@dataclass(frozen=True, slots=True)
class _Values:
    """The values of an aggregate that its bounds clamp: columns of rows, of groups and of units.

    Values are of rows where their bounds are, or where rows are units; else totals or means of a unit in a
    group; of COUNT(DISTINCT x) the distinct ones. NaN and infinities are not counted.
    """

    aggregate: Aggregate
    names: ColumnNames
    index: int
    by_unit: bool

    def _name(self, word: str) -> str:
        return self.names(f"{word}_{self.index}")

    @property
    def _distinct(self) -> bool:
        return self.aggregate.kind is AggregateKind.COUNT_DISTINCT

    @property
    def _by_row(self) -> bool:
        return not self._distinct and (self.aggregate.row_bounds is not None or not self.by_unit)

    @property
    def columns(self) -> tuple[Named, ...]:
        """The columns of rows that are needed."""
        aggregate, found = self.aggregate, []
        for word, made in (("value", aggregate.expression), ("second", aggregate.second)):
            if made is not None:
                of_row = made if self._distinct else Expression(finite(made).tree, made.type)
                found.append(Named(self._name(word), of_row))
        return tuple(found)

    def _beyond(self) -> exp.Expression:
        """Return one for a row whose value its bounds clamp, zero for another, NULL where it has no value."""
        aggregate, first = self.aggregate, self.aggregate.expression
        bounds = aggregate.row_bounds or aggregate.group_bounds
        tests = [_outside(self._name("value"), first, bounds)]
        there = [_present(self._name("value"), first)]
        if aggregate.second is not None:
            tests.append(_outside(self._name("second"), aggregate.second, aggregate.second_bounds))
            there.append(_present(self._name("second"), aggregate.second))
        clamped, present = _joined(exp.Or, tests), _joined(exp.And, there)
        return exp.Case(
            ifs=[exp.If(this=present, true=either(clamped, whole(1), whole(0)))], default=exp.Null()
        )

    def of_row(self) -> tuple[Named, Named]:
        """Return the total and what is lost of a row that is a unit."""
        there = exp.Is(this=exp.Paren(this=self._beyond()), expression=exp.Null())
        total, lost = self.names(f"all_{self.index}"), self.names(f"lost_{self.index}")
        return (
            Named(total, expression(either(there, whole(0), whole(1)))),
            Named(lost, expression(self._beyond())),
        )

    def of_group(self) -> tuple[UnitAggregate, ...]:
        """Return what is computed over a unit's rows in a group."""
        if self._distinct:
            made = Expression(column(self._name("value"), self._type).tree, self._type)
            return (UnitAggregate(self._name("found"), UnitFunction.COUNT_DISTINCT, made),)
        if self._by_row:
            beyond = self._beyond()
            return (
                UnitAggregate(self._name("beyond"), UnitFunction.SUM, expression(beyond)),
                UnitAggregate(self._name("found"), UnitFunction.COUNT, expression(beyond.copy())),
            )
        function = UnitFunction.AVG if self.aggregate.kind is AggregateKind.AVG else UnitFunction.SUM
        value = column(self._name("value"), self._type).tree
        if self._type is ColumnType.FLOAT:
            value = exp.Mul(this=value, expression=real(2.0**self._shift))
        return (UnitAggregate(self._name("total"), function, Expression(value, self._type)),)

    def of_unit(self) -> tuple[UnitAggregate, ...]:
        """Return what is summed over a unit's groups: how many values there are, and how many are lost."""
        if self._distinct:
            most = max(1, int(self._bounds[1]))
            found = integer(self._name("found"))
            more = exp.Sub(this=found.copy(), expression=whole(most))
            pair = found.copy(), either(exp.LTE(this=found, expression=whole(most)), whole(0), more)
        elif self._by_row:
            pair = integer(self._name("found")), integer(self._name("beyond"))
        else:
            name, type_ = self._name("total"), self._total_type
            made, scale = Expression(column(name, type_).tree, type_), 2.0**self._shift
            wide = type_ is ColumnType.FLOAT and self._type is ColumnType.FLOAT
            bounds = tuple(end * scale for end in self._bounds) if wide else self._bounds
            outside = _outside(name, made, (bounds[0], bounds[1]))
            pair = (
                either(_present(name, made), whole(1), whole(0)),
                either(outside, whole(1), whole(0)),
            )
        words = ("several", "clamped")
        return tuple(
            UnitAggregate(self._name(word), UnitFunction.SUM, expression(tree))
            for word, tree in zip(words, pair, strict=True)
        )

    def totals(self) -> tuple[exp.Expression, exp.Expression]:
        """Return a unit's number of values, and how many of them are lost."""
        return integer(self._name("several")), integer(self._name("clamped"))

    @property
    def _type(self) -> ColumnType:
        made = self.aggregate.expression
        return ColumnType.INTEGER if made is None else made.type

    @property
    def _total_type(self) -> ColumnType:
        return ColumnType.FLOAT if self.aggregate.kind is AggregateKind.AVG else self._type

    @property
    def _bounds(self) -> tuple[float, float]:
        return self.aggregate.group_bounds or (0.0, 0.0)

    @property
    def _shift(self) -> int:
        """The power of two that brings the bounds near 2**30, where sums of floats are fine."""
        largest = max(map(abs, self._bounds))
        return 0 if largest == 0 else min(900, max(-900, _FINEST - math.frexp(largest)[1]))


def integer(name: str) -> exp.Expression:
    """Return a column of whole numbers."""
    return column(name, ColumnType.INTEGER).tree


def whole(value: int) -> exp.Expression:
    """Return a whole number."""
    return number(str(abs(value)), negative=value < 0).tree


def expression(tree: exp.Expression) -> Expression:
    """Return an expression of whole numbers."""
    return Expression(tree, ColumnType.INTEGER)


def either(test: exp.Expression, then: exp.Expression, otherwise: exp.Expression) -> exp.Expression:
    """Return one of two numbers by a condition."""
    return exp.Case(ifs=[exp.If(this=test, true=then)], default=otherwise)


def _joined(connective: type[exp.Expression], tests: list[exp.Expression]) -> exp.Expression:
    if len(tests) == 1:
        return tests[0]
    return connective(this=exp.Paren(this=tests[0]), expression=exp.Paren(this=tests[1]))


def floored(part: exp.Expression, total: exp.Expression, times: int) -> exp.Expression:
    """Return the largest integer in a part of a total, so many times; both numbers are not negative."""
    over = exp.Div(this=exp.Paren(this=part), expression=total)
    product = exp.Mul(this=exp.Paren(this=over), expression=real(float(times)))
    return cast(TypedTree(exp.Floor(this=product), ColumnType.FLOAT), ColumnType.INTEGER).tree


def _present(name: str, made: Expression | None) -> exp.Expression:
    type_ = ColumnType.INTEGER if made is None else made.type
    absent = exp.Is(this=column(name, type_).tree, expression=exp.Null())
    return exp.Not(this=exp.Paren(this=absent))


def _outside(name: str, made: Expression | None, bounds: tuple[float, float] | None) -> exp.Expression:
    """Return the condition that a value is outside of its bounds."""
    type_ = ColumnType.INTEGER if made is None else made.type
    low, high = (_end(bounds or (0.0, 0.0), position, type_) for position in (0, 1))
    below = exp.LT(this=column(name, type_).tree, expression=low)
    above = exp.GT(this=column(name, type_).tree, expression=high)
    return exp.Or(this=exp.Paren(this=below), expression=exp.Paren(this=above))


def _end(bounds: tuple[float, float], position: int, type_: ColumnType) -> exp.Expression:
    """Return a bound as it is compared with: of whole numbers the last one within it."""
    if type_ is ColumnType.FLOAT:
        value = float(bounds[position])
        return number(repr(abs(value)), negative=value < 0).tree
    end = math.floor(bounds[1]) if position else math.ceil(bounds[0])
    return whole(max(-_LARGEST, min(_LARGEST, end)))
