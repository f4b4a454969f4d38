"""What a subquery may compute over the rows of one unit: GROUP BY the unit, and windows partitioned by it.

Everything else that reads several rows would mix units before they are bounded, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from sfumato.errors import QueryError, UnsupportedSql
from sfumato.queries.plan.nodes import (
    PerUnit,
    Relation,
    UnitAggregate,
    UnitFunction,
    UnitOrder,
    UnitWindow,
    UnitWindows,
)
from sfumato.queries.plan.schema import ColumnType, Named
from sfumato.queries.plan.typed_expressions import (
    NUMERIC,
    TypedTree,
    coerced,
    column,
    only,
    require,
    require_order,
)
from sfumato.queries.sql.aggregates.rewritten_aggregates import plain_call, unfiltered
from sfumato.queries.sql.catalog import Rows, free_name, listed_position, named_item
from sfumato.queries.sql.expressions.scalar import function_name, is_aggregate, read_expression

__all__ = ["Groups", "Windows", "groups_units", "has_window"]

_BY_UNIT: Final = (
    "a subquery over private rows must not mix the rows of several units; write GROUP BY {unit}, or "
    "MAX(x) OVER (PARTITION BY {unit}), or aggregate in the outermost SELECT"
)
_RANKS: Final = frozenset({UnitFunction.ROW_NUMBER, UnitFunction.RANK, UnitFunction.DENSE_RANK})
_NAMES: Final = ", ".join(
    function.value for function in UnitFunction if function is not UnitFunction.COUNT_DISTINCT
)
_ORDERED: Final = frozenset(ColumnType) - {ColumnType.BOOLEAN, ColumnType.DECIMAL}


def has_window(node: exp.Expr) -> bool:
    """Return whether there is a window in an expression."""
    return any(isinstance(part, exp.Window) for part in node.walk())


def groups_units(select: exp.Select) -> bool:
    """Return whether a SELECT makes one row out of several."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(_aggregates(item) for item in select.expressions)


def _aggregates(node: exp.Expr) -> bool:
    """Return whether there is an aggregate outside of windows."""
    if isinstance(node, exp.Window):
        return False
    return is_aggregate(node) or any(_aggregates(child) for child in node.iter_expressions())


def _unit_of(rows: Rows) -> str:
    if rows.private and rows.relation.unit is not None:
        return rows.relation.unit
    raise UnsupportedSql(
        "where each row is a unit, a subquery must not put several rows together; aggregate in the outermost "
        "SELECT"
        if rows.private
        else "a subquery over public tables must not have windows; prepare the table before connecting"
    )


def _function(node: exp.Expr, rows: Rows, name: str) -> UnitAggregate:
    """Read a call of a function over rows of one unit."""
    node = plain_call(node, rows.names_unit)
    called = function_name(node)
    arguments = node.expressions if isinstance(node, exp.Anonymous) else []
    known = {"ROW_NUMBER", "RANK", "DENSE_RANK", *(f.value for f in UnitFunction)} - {"COUNT(DISTINCT)"}
    if called not in known:
        raise UnsupportedSql(
            f"{called or node.key.upper()} over rows of a unit is not supported; the functions are {_NAMES}"
        )
    if UnitFunction(called) in _RANKS:
        return UnitAggregate(name, UnitFunction(called))
    if len(arguments) != 1 or isinstance(arguments[0], exp.Kwarg):
        raise UnsupportedSql(
            f"{called} in a subquery must have one argument and no bounds; write {called}(x)"
        )
    argument = arguments[0]
    if isinstance(argument, exp.Star) and called == "COUNT" and not any(argument.args.values()):
        return UnitAggregate(name, UnitFunction.COUNT_ROWS)
    function = UnitFunction(called)
    if isinstance(argument, exp.Distinct):
        only(argument, "expressions", what="DISTINCT")
        if called != "COUNT" or len(argument.expressions) != 1:
            raise UnsupportedSql(
                f"{called}(DISTINCT) in a subquery is not supported; write COUNT(DISTINCT x)"
            )
        function, argument = UnitFunction.COUNT_DISTINCT, argument.expressions[0]
    what = f"the argument of {called}"
    read = read_expression(argument, rows, what)
    if called in ("SUM", "AVG"):
        return UnitAggregate(name, function, require(coerced(read), NUMERIC, what))
    require(read, _ORDERED if called in ("MIN", "MAX") else set(ColumnType), what)
    return UnitAggregate(name, function, read)


@dataclass(slots=True)
class Groups:
    """GROUP BY the unit, and perhaps more, while it is read."""

    rows: Rows
    keys: list[Named]
    taken: set[str]
    aggregates: list[UnitAggregate] = field(default_factory=list)

    @classmethod
    def of(cls, select: exp.Select, rows: Rows) -> Groups:
        """Read GROUP BY, which must name the unit; over public rows it may name anything, or be left out."""
        unit = _unit_of(rows) if rows.private else None
        group = select.args.get("group")
        if group is None and unit is not None:
            raise UnsupportedSql(_BY_UNIT.format(unit=unit))
        if group is not None:
            only(group, "expressions", what="GROUP BY in a subquery")
        taken: set[str] = set()
        keys: list[Named] = []
        for node in [] if group is None else group.expressions:
            read = read_expression(_meant(node.unnest(), select.expressions, rows), rows, "a GROUP BY item")
            if not read.tree.find(exp.Column):
                raise UnsupportedSql("a GROUP BY item must name a column; leave the constant out")
            if any(key.expression == read for key in keys):
                continue
            name = str(read.tree.name) if isinstance(read.tree, exp.Column) else f"key_{len(keys) + 1}"
            keys.append(Named(free_name(name, taken), read))
        if unit is not None and not any(rows.is_unit(key.expression) for key in keys):
            raise UnsupportedSql(_BY_UNIT.format(unit=unit))
        return cls(rows, keys, taken)

    def whole(self, node: exp.Expr, name: str | None = None) -> TypedTree | None:
        """Return the column that an aggregate or a GROUP BY item is."""
        if isinstance(node, exp.Window):
            raise UnsupportedSql("a window must not stand beside GROUP BY; write it in a subquery of its own")
        if is_aggregate(node):
            read = _function(node, self.rows, "")
            same = (made for made in self.aggregates if replace(made, name="") == read)
            found = next(same, None)
            if found is None:
                call = unfiltered(node)
                plain = call.name.lower() if isinstance(call, exp.Anonymous) else "value"
                found = replace(read, name=free_name(name or plain, self.taken))
                self.aggregates.append(found)
            return column(found.name, found.type)
        if any(is_aggregate(part) for part in node.walk()) or not node.find(exp.Column):
            return None
        try:
            read_key = read_expression(node, self.rows, "a part of an expression")
        except QueryError:  # read again node by node, where the mistake is named
            return None
        return next((column(k.name, k.expression.type) for k in self.keys if k.expression == read_key), None)

    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        """Refuse a column that is neither a GROUP BY item nor in an aggregate."""
        self.rows.resolve(qualifier, name)
        raise UnsupportedSql(f"{name!r} is neither a GROUP BY item nor an aggregate; add it to GROUP BY")

    @property
    def relation(self) -> PerUnit:
        """The node, once everything over it has been read."""
        unit = next((key.name for key in self.keys if self.rows.is_unit(key.expression)), None)
        return PerUnit(self.rows.relation, tuple(self.keys), tuple(self.aggregates), unit)


def _meant(node: exp.Expr, items: Sequence[exp.Expr], rows: Rows) -> exp.Expr:
    """Return what a GROUP BY item names by position or by alias, else itself."""
    position = listed_position(node, len(items))
    if position is not None:
        return named_item(items[position])[0]
    if isinstance(node, exp.Column) and not node.table and not rows.has(node.name):
        for item in items:
            if isinstance(item, exp.Alias) and item.alias.casefold() == node.name.casefold():
                return named_item(item)[0]
    return node


@dataclass(slots=True)
class Windows:
    """The windows of a SELECT, while they are read."""

    rows: Rows
    taken: set[str]
    made: list[UnitWindow] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Rows) -> Windows:
        """Begin with the columns of the rows."""
        return cls(rows, {known.name.casefold() for known in rows.schema.usable.columns})

    def whole(self, node: exp.Expr, name: str | None = None) -> TypedTree | None:
        """Return the column that a window is."""
        if not isinstance(node, exp.Window):
            return None
        read = self._read(node)
        same = (window for window in self.made if _unnamed(window) == _unnamed(read))
        found = next(same, None)
        if found is None:
            made = replace(read.aggregate, name=free_name(name or "window", self.taken))
            found = replace(read, aggregate=made)
            self.made.append(found)
        return column(found.aggregate.name, found.aggregate.type)

    @property
    def relation(self) -> Relation:
        """The node, once everything over it has been read."""
        return UnitWindows(self.rows.relation, tuple(self.made)) if self.made else self.rows.relation

    def _read(self, node: exp.Window) -> UnitWindow:
        unit = _unit_of(self.rows)
        if node.args.get("spec") is not None or node.args.get("alias") is not None:
            raise UnsupportedSql(
                "a window must be written in place and have no frame; write OVER (PARTITION BY unit)"
            )
        only(node, "this", "partition_by", "order", "over", what="a window")
        aggregate = _function(node.this, self.rows, "")
        parts = node.args.get("partition_by") or []
        if not any(self.rows.names_unit(part.unnest()) for part in parts):
            raise UnsupportedSql(
                f"a window function mixes the rows of several units; write OVER (PARTITION BY {unit}), or "
                "aggregate with GROUP BY"
            )
        partition = [read_expression(p, self.rows, "an item of PARTITION BY") for p in parts]
        order = self._order(node)
        ranks = aggregate.function in _RANKS
        if ranks != bool(order):
            raise UnsupportedSql(
                "ROW_NUMBER, RANK and DENSE_RANK need an ORDER BY in their window; add it"
                if ranks
                else "only ROW_NUMBER, RANK and DENSE_RANK may have an ORDER BY in their window; leave it out"
            )
        if aggregate.function is UnitFunction.COUNT_DISTINCT:
            raise UnsupportedSql("COUNT(DISTINCT) must not have a window; write a subquery with GROUP BY")
        rest = tuple(part for part in partition if not self.rows.is_unit(part))
        return UnitWindow(aggregate, rest, order)

    def _order(self, node: exp.Window) -> tuple[UnitOrder, ...]:
        order = node.args.get("order")
        if order is None:
            return ()
        only(order, "expressions", what="ORDER BY in a window")
        made = []
        for item in order.expressions:
            only(item, "this", "desc", "nulls_first", what="ORDER BY in a window")
            read = read_expression(item.this, self.rows, "an item of ORDER BY")
            require_order([read], "ORDER BY")
            made.append(UnitOrder(read, bool(item.args.get("desc")), bool(item.args.get("nulls_first"))))
        return tuple(made)


def _unnamed(window: UnitWindow) -> UnitWindow:
    return replace(window, aggregate=replace(window.aggregate, name=""))
