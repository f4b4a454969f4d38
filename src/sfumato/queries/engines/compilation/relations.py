"""Relations as SQL: every column in one of six types, and the privacy unit carried beside them.

The unit travels in its own column ``u`` from the scan upwards, in the type the source has. No expression of
a query can reach it, so nothing an analyst writes can merge two units or split one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sfumato.errors import SchemaError
from sfumato.queries.engines.compilation.elements import arrays_of, elements_layer
from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.select import SelectLayer, selected
from sfumato.queries.engines.compilation.terms import TypedSql
from sfumato.queries.engines.compilation.unit_windows import per_unit_layer, windows_layer
from sfumato.queries.engines.dialects.base import Dialect, StoredTable
from sfumato.queries.plan.nodes import (
    Distinct,
    Filter,
    InPublic,
    JoinOnUnit,
    JoinPublic,
    PerUnit,
    Project,
    PublicRows,
    PublicScan,
    Relation,
    Scan,
    Union,
    UnitWindows,
    Unnest,
)
from sfumato.queries.plan.schema import Expression, Schema

__all__ = ["SelectLayer", "relation_layer", "scan_columns"]


def scan_columns(table: StoredTable, dialect: Dialect) -> tuple[list[str], dict[str, TypedSql]]:
    """Return the usable columns of a table in standard types, as select items and by name."""
    items: list[str] = []
    columns: dict[str, TypedSql] = {}
    for column in table.columns:
        if column.type is None:
            continue
        columns[column.name.casefold()] = TypedSql(f"c{len(items)}", column.type)
        items.append(f"{dialect.standard(column)} AS c{len(items)}")
    return items, columns


def relation_layer(relation: Relation, tables: Mapping[str, StoredTable], dialect: Dialect) -> SelectLayer:
    """Return the SELECT of a relation.

    Raises
    ------
    SchemaError
        If private tables that meet have units of different stored types.

    Notes
    -----
    Guarantee: that of :mod:`sfumato.queries.plan.nodes`. Each row carries the unit whose rows it is a
    function of, and no order in which rows are met shows in it.
    """
    return _LAYERS[type(relation)](_Writer(tables, dialect), relation)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes nodes as SELECTs over the tables of an engine."""

    tables: Mapping[str, StoredTable]
    dialect: Dialect

    def layer(self, relation: Relation) -> SelectLayer:
        """Return the SELECT of a relation below."""
        return relation_layer(relation, self.tables, self.dialect)

    def scan(self, scan: Scan, arrays: Sequence[str] = ()) -> SelectLayer:
        """Return the rows of a private table, with further columns."""
        table = self.tables[scan.table]
        items, columns = scan_columns(table, self.dialect)
        stored = ""
        if scan.unit is not None:
            folded = scan.unit.casefold()
            found = next((column for column in table.columns if column.name.casefold() == folded), None)
            if found is None:
                raise SchemaError(
                    f"privacy_unit must be a column of {scan.table!r}, got {scan.unit!r}; name one"
                )
            items.insert(0, f"{self.dialect.identity(found)} AS u")
            stored = self.dialect.unit_type(found)
        unit = scan.unit is not None
        return SelectLayer(f"SELECT {', '.join([*items, *arrays])} FROM {table.name}", columns, unit, stored)

    def public_scan(self, scan: PublicScan, arrays: Sequence[str] = ()) -> SelectLayer:
        """Return the rows of a public table, with further columns."""
        table = self.tables[scan.table]
        items, columns = scan_columns(table, self.dialect)
        return SelectLayer(f"SELECT {', '.join([*items, *arrays])} FROM {table.name}", columns, unit=False)

    def public_rows(self, node: PublicRows) -> SelectLayer:
        """Return the rows that the query lists."""
        rows = [[render(value, {}, self.dialect) for value in row] for row in node.rows]
        columns = {c.name.casefold(): TypedSql(f"c{i}", c.type) for i, c in enumerate(node.schema.columns)}
        return SelectLayer(self.dialect.listed_rows(rows), columns, unit=False)

    def unnest(self, node: Unnest) -> SelectLayer:
        """Return the rows of a table, each for every element of its arrays."""
        nodes: list[Unnest] = [node]
        while isinstance(nodes[0].child, Unnest):
            nodes.insert(0, nodes[0].child)
        table, arrays = nodes[0].child, arrays_of(nodes, self.dialect)
        assert isinstance(table, Scan | PublicScan)  # noqa: S101 - arrays are read where the table is
        layer = self.scan(table, arrays) if isinstance(table, Scan) else self.public_scan(table, arrays)
        return elements_layer(nodes, layer, self.tables, self.dialect)

    def filter(self, node: Filter) -> SelectLayer:
        """Return the rows that meet a condition."""
        below = self.layer(node.child)
        predicate = render(node.predicate, below.columns, self.dialect)
        return self._same(below, selected(["*"], below.sql, self.dialect, f"WHERE {predicate}"))

    def project(self, node: Project) -> SelectLayer:
        """Return new columns, row by row."""
        below = self.layer(node.child)
        made = [render(named.expression, below.columns, self.dialect) for named in node.columns]
        return self._columns(below, made, node.schema)

    def join_public(self, node: JoinPublic) -> SelectLayer:
        """Return the rows with the public rows that match."""
        left, right = self.layer(node.child), self.layer(node.public)
        if node.single is not None:
            right = self._single(right, node.single, node.public.schema)
        return self._join(left, right, node, node.public.schema, [])

    def join_on_unit(self, node: JoinOnUnit) -> SelectLayer:
        """Return the rows with other rows of their unit."""
        left, right = self.layer(node.left), self.layer(node.right)
        _require_one_type([left.stored, right.stored])
        return self._join(left, right, node, node.right_columns, ["l.u = r.u"])

    def in_public(self, node: InPublic) -> SelectLayer:
        """Return the rows whose value is among public ones."""
        below, listed = self.layer(node.child), self.layer(node.public)
        (member,) = (listed.columns[c.name.casefold()].sql for c in node.public.schema.usable.columns)
        word = "NOT IN" if node.negated else "IN"
        subject = render(node.subject, below.columns, self.dialect)
        test = f"{subject} {word} ({selected([member], listed.sql, self.dialect)})"
        return self._same(below, selected(["*"], below.sql, self.dialect, f"WHERE {test}"))

    def union(self, node: Union) -> SelectLayer:
        """Return the rows of all parts."""
        parts = [self.layer(part) for part in node.parts]
        _require_one_type([part.stored for part in parts])
        pairs = zip(parts, node.parts, strict=True)
        layers = [self._columns(layer, _named(layer, part.schema), part.schema) for layer, part in pairs]
        made = self._columns(parts[0], _named(parts[0], node.schema), node.schema)
        return self._same(made, " UNION ALL ".join(layer.sql for layer in layers))

    def distinct(self, node: Distinct) -> SelectLayer:
        """Return each row of each unit once."""
        below = self.layer(node.child)
        made = self._columns(below, self._canonical(below, node.schema), node.schema)
        items = [*_unit(below), *(f"c{i}" for i in range(len(node.schema.columns)))]
        return self._same(made, selected([f"DISTINCT {items[0]}", *items[1:]], made.sql, self.dialect))

    def per_unit(self, node: PerUnit) -> SelectLayer:
        """Return one row for each unit and key."""
        return per_unit_layer(node, self.layer(node.child), self.dialect)

    def unit_windows(self, node: UnitWindows) -> SelectLayer:
        """Return the rows with what is computed over rows of their unit."""
        return windows_layer(node, self.layer(node.child), self.dialect)

    def _same(self, below: SelectLayer, sql: str) -> SelectLayer:
        return SelectLayer(sql, below.columns, below.unit, below.stored)

    def _columns(self, below: SelectLayer, made: Sequence[str], schema: Schema) -> SelectLayer:
        """Return expressions as the columns ``c0, c1, ...`` of a schema."""
        items = [*_unit(below), *(f"{sql} AS c{i}" for i, sql in enumerate(made))]
        pairs = enumerate(schema.usable.columns)
        columns = {column.name.casefold(): TypedSql(f"c{i}", column.type) for i, column in pairs}
        return SelectLayer(selected(items, below.sql, self.dialect), columns, below.unit, below.stored)

    def _canonical(self, layer: SelectLayer, schema: Schema) -> list[str]:
        """Return the usable columns of a schema in their one form."""
        pairs = zip(_named(layer, schema), schema.usable.columns, strict=True)
        return [self.dialect.canonical(sql, known.type) for sql, known in pairs if known.type is not None]

    def _join(
        self,
        left: SelectLayer,
        right: SelectLayer,
        node: JoinPublic | JoinOnUnit,
        added: Schema,
        tests: list[str],
    ) -> SelectLayer:
        schema = node.child.schema if isinstance(node, JoinPublic) else node.left.schema
        sources = [
            *(f"l.{sql}" for sql in _named(left, schema)),
            *(f"r.{sql}" for sql in _named(right, added)),
        ]
        known = list(zip(node.schema.columns, sources, strict=True))
        inside = {column.name.casefold(): TypedSql(sql, column.type) for column, sql in known}
        tests = [*tests, *([] if node.on is None else [render(node.on, inside, self.dialect)])]
        word = "LEFT JOIN" if node.keep else "JOIN" if tests else "CROSS JOIN"
        on = f" ON {' AND '.join(tests) or 'TRUE'}" if tests or node.keep else ""
        items = [*(["l.u AS u"] if left.unit else []), *(f"{sql} AS c{i}" for i, sql in enumerate(sources))]
        fence = self.dialect.fence
        both = f"({left.sql}{fence}) AS l {word} ({right.sql}{fence}) AS r{on}"
        columns = {c.name.casefold(): TypedSql(f"c{i}", c.type) for i, (c, _) in enumerate(known)}
        return SelectLayer(f"SELECT {', '.join(items)} FROM {both}", columns, left.unit, left.stored)

    def _single(self, right: SelectLayer, keys: Sequence[Expression], schema: Schema) -> SelectLayer:
        """Return the first public row of those with the same keys, in the order of all columns.

        Floats are in one form, so that rows that no order can distinguish are the same in all they show.
        """
        made = self._columns(right, self._canonical(right, schema), schema)
        own = [f"c{i}" for i in range(len(schema.usable.columns))]
        computed = [f"{render(key, made.columns, self.dialect)} AS e{i}" for i, key in enumerate(keys)]
        sql = selected([*own, *computed], made.sql, self.dialect)
        forms = [f"{self.dialect.canonical(f'e{i}', key.type)} AS k{i}" for i, key in enumerate(keys)]
        sql = selected([*own, *forms], sql, self.dialect)
        by = ", ".join(self.dialect.partition(f"k{i}") for i in range(len(keys)))
        order = ", ".join(f"{column} ASC NULLS LAST" for column in own)
        parts = f"PARTITION BY {by} " if keys else ""
        first = f"row_number() OVER ({parts}ORDER BY {order}) AS place"
        sql = selected([*own, first], sql, self.dialect)
        return self._same(made, selected(own, sql, self.dialect, "WHERE place = 1"))


def _unit(layer: SelectLayer) -> list[str]:
    return ["u"] if layer.unit else []


def _named(layer: SelectLayer, schema: Schema) -> list[str]:
    """Return where a layer has the usable columns of a schema."""
    return [layer.columns[column.name.casefold()].sql for column in schema.usable.columns]


def _require_one_type(stored: Sequence[str]) -> None:
    types = sorted(set(stored))
    if len(types) > 1:
        raise SchemaError(
            f"the privacy unit must be stored in one type in tables that meet, got {', '.join(types)}; "
            "cast it before connecting"
        )


_LAYERS: Final[dict[type[Any], Callable[[_Writer, Any], SelectLayer]]] = {
    Scan: _Writer.scan,
    PublicScan: _Writer.public_scan,
    PublicRows: _Writer.public_rows,
    Filter: _Writer.filter,
    Project: _Writer.project,
    JoinPublic: _Writer.join_public,
    JoinOnUnit: _Writer.join_on_unit,
    InPublic: _Writer.in_public,
    Union: _Writer.union,
    Distinct: _Writer.distinct,
    PerUnit: _Writer.per_unit,
    UnitWindows: _Writer.unit_windows,
    Unnest: _Writer.unnest,
}
