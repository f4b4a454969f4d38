"""Functions over the rows of one unit as SQL: groups and windows that never leave a unit.

Notes
-----
Guarantee: every group and every window holds the unit ``u`` among what it is formed by, and what it computes
does not depend on the order in which an engine meets rows: sums are exact integers, floats have one form, and
ties of ranks are distinguished by all columns of the row. So another unit's rows change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.select import SelectLayer, selected
from sfumato.queries.engines.compilation.terms import TypedSql
from sfumato.queries.engines.compilation.value_columns import ValueColumn
from sfumato.queries.engines.dialects.base import Dialect
from sfumato.queries.plan.nodes import PerUnit, UnitAggregate, UnitFunction, UnitWindow, UnitWindows
from sfumato.queries.plan.schema import ColumnType, Expression, Schema

__all__ = ["per_unit_layer", "windows_layer"]

_STEP = -20  # floats are summed in steps of 2**-20, within 2**42: 62 bits
_SUMS = (UnitFunction.SUM, UnitFunction.AVG)
_RANKS = (UnitFunction.ROW_NUMBER, UnitFunction.RANK, UnitFunction.DENSE_RANK)


@dataclass(frozen=True, slots=True)
class _Call:
    """A function over rows: ``x`` is its argument as computed, ``y`` as added up, ``a``, ``n`` its parts."""

    index: int
    made: UnitAggregate
    dialect: Dialect

    @property
    def _argument(self) -> Expression | None:
        return self.made.expression

    def value(self) -> list[str]:
        """Return the argument in the form that is put together."""
        argument, x = self._argument, f"x{self.index}"
        if argument is None:
            return []
        value = self.dialect.canonical(x, argument.type)
        if self.made.function in _SUMS and argument.type is ColumnType.FLOAT:
            value = ValueColumn(argument, _STEP).sql(x, self.dialect)
        return [f"{value} AS y{self.index}"]

    def parts(self, over: str = "") -> list[str]:
        """Return the aggregates, over a group or a window."""
        i, y = self.index, f"y{self.index}"
        match self.made.function:
            case UnitFunction.COUNT_ROWS:
                return [f"count(*){over} AS a{i}"]
            case UnitFunction.COUNT:
                return [f"count({y}){over} AS a{i}"]
            case UnitFunction.COUNT_DISTINCT:
                return [f"count(DISTINCT {y}){over} AS a{i}"]
            case UnitFunction.MIN | UnitFunction.MAX:
                return [f"{self.made.function.value.lower()}({y}){over} AS a{i}"]
            case UnitFunction.SUM | UnitFunction.AVG:
                total = f"sum({self.dialect.wide(y)}){over} AS a{i}"
                return [total, f"count({y}){over} AS n{i}"]
            case _:
                return [f"{self.made.function.value.lower()}(){over} AS a{i}"]

    def result(self) -> str:
        """Return the value in the type of its column; an integer beyond 64 bits is NULL."""
        a, dialect = f"a{self.index}", self.dialect
        if self.made.function in (*_RANKS, UnitFunction.COUNT_DISTINCT):
            return dialect.converted(a, ColumnType.INTEGER)
        if self.made.function not in _SUMS:
            return a
        real = dialect.converted(a, ColumnType.FLOAT)
        if self._argument is not None and self._argument.type is ColumnType.FLOAT:
            real = f"({real} * {dialect.real(2.0**_STEP)})"
        if self.made.function is UnitFunction.AVG:
            return dialect.divided(real, dialect.converted(f"n{self.index}", ColumnType.FLOAT))
        if self.made.type is ColumnType.FLOAT:
            return real
        least, most = dialect.integer(-(2**63)), dialect.integer(2**63 - 1)
        narrow = dialect.converted(a, ColumnType.INTEGER)
        return f"CASE WHEN {a} BETWEEN {least} AND {most} THEN {narrow} END"


def _arguments(calls: Sequence[_Call], columns: Mapping[str, TypedSql]) -> list[str]:
    return [
        f"{render(call.made.expression, columns, call.dialect)} AS x{call.index}"
        for call in calls
        if call.made.expression is not None
    ]


def per_unit_layer(node: PerUnit, below: SelectLayer, dialect: Dialect) -> SelectLayer:
    """Return one row for each unit and value of the keys; over public rows, for each value of the keys."""
    head = ["u"] if below.unit else []
    calls = [_Call(index, made, dialect) for index, made in enumerate(node.aggregates)]
    rendered = [render(key.expression, below.columns, dialect) for key in node.keys]
    keys = [f"k{i}" for i in range(len(rendered))]
    computed = [f"{sql} AS e{i}" for i, sql in enumerate(rendered)]
    everything = [*head, *computed, *_arguments(calls, below.columns)]
    sql = selected(everything or ["1 AS one"], below.sql, dialect)
    forms = [f"{dialect.canonical(f'e{i}', k.expression.type)} AS k{i}" for i, k in enumerate(node.keys)]
    values = [item for call in calls for item in call.value()]
    present = "WHERE u IS NOT NULL" if head else ""
    sql = selected([*head, *forms, *values] or ["1 AS one"], sql, dialect, present)
    by = [*head, *keys]
    grouped = f"GROUP BY {', '.join(by)}" if by else ""
    sql = selected([*by, *(p for call in calls for p in call.parts())], sql, dialect, grouped)
    made = [*keys, *(call.result() for call in calls)]
    return _numbered(made, node.schema, replace(below, sql=sql), dialect)


def windows_layer(node: UnitWindows, below: SelectLayer, dialect: Dialect) -> SelectLayer:
    """Return all rows with what is computed over rows of their unit."""
    known = node.child.schema.usable.columns
    own = [f"c{i}" for i in range(len(known))]
    # floats in one form: rows that no order can distinguish are then the same in all they show
    forms = [
        f"{dialect.canonical(below.columns[c.name.casefold()].sql, _typed(c.type))} AS c{i}"
        for i, c in enumerate(known)
    ]
    sql = selected(["u", *forms], below.sql, dialect)
    columns = {c.name.casefold(): TypedSql(f"c{i}", c.type) for i, c in enumerate(known)}
    calls = [_Call(index, window.aggregate, dialect) for index, window in enumerate(node.windows)]
    by = [_by(index, window) for index, window in enumerate(node.windows)]
    terms = [(name, expression) for named in by for name, expression in named.items()]
    computed = [f"{render(expression, columns, dialect)} AS {name}" for name, expression in terms]
    sql = selected(["u", *own, *_arguments(calls, columns), *computed], sql, dialect)
    canonical = [f"{dialect.canonical(name, expression.type)} AS {name}" for name, expression in terms]
    values = [item for call in calls for item in call.value()]
    sql = selected(["u", *own, *values, *canonical], sql, dialect)
    pairs = zip(calls, node.windows, strict=True)
    parts = [part for call, window in pairs for part in call.parts(_over(call.index, window, own, dialect))]
    sql = selected(["u", *own, *parts], sql, dialect)
    made = [*own, *(call.result() for call in calls)]
    return _numbered(made, node.schema, replace(below, sql=sql), dialect)


def _by(index: int, window: UnitWindow) -> dict[str, Expression]:
    """Return what a window is formed and ordered by, by the name of its column."""
    parts = {f"p{index}_{i}": part for i, part in enumerate(window.partition)}
    return parts | {f"o{index}_{i}": term.expression for i, term in enumerate(window.order)}


def _over(index: int, window: UnitWindow, own: Sequence[str], dialect: Dialect) -> str:
    by = ["u", *(f"p{index}_{i}" for i in range(len(window.partition)))]
    terms = [
        f"o{index}_{i} {'DESC' if term.descending else 'ASC'} NULLS {'FIRST' if term.nulls_first else 'LAST'}"
        for i, term in enumerate(window.order)
    ]
    if window.aggregate.function is UnitFunction.ROW_NUMBER:
        terms += [f"{column} ASC NULLS LAST" for column in own]
    order = f" ORDER BY {', '.join(terms)}" if terms else ""
    return f" OVER (PARTITION BY {', '.join(map(dialect.partition, by))}{order})"


def _numbered(made: Sequence[str], schema: Schema, below: SelectLayer, dialect: Dialect) -> SelectLayer:
    """Return expressions as the columns ``c0, c1, ...`` of a schema."""
    items = [*(["u"] if below.unit else []), *(f"{value} AS c{i}" for i, value in enumerate(made))]
    columns = {c.name.casefold(): TypedSql(f"c{i}", c.type) for i, c in enumerate(schema.columns)}
    return replace(below, sql=selected(items, below.sql, dialect), columns=columns)


def _typed(type_: ColumnType | None) -> ColumnType:
    assert type_ is not None  # noqa: S101 - of usable columns
    return type_
