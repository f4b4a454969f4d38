"""Public groups: keys known without looking at private rows, from a public table, a list or the caller.

Every listed group is in the answer, with noise around zero where no unit is in it, so the set of groups says
nothing about anybody. Rows whose group is not listed are dropped before anything is bounded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from sfumato.errors import OptionError, SchemaError, UnsupportedSql
from sfumato.queries.plan.constants import stored_value
from sfumato.queries.plan.query import (
    Column,
    ColumnType,
    Expression,
    Named,
    PublicGroups,
    PublicTable,
    PublicValues,
)
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.catalog import PublicSource, Tables, suggestion
from sfumato.queries.sql.clauses.array_literals import listed_values
from sfumato.queries.sql.clauses.table_expressions import output_name, table_source, unwrapped

__all__ = [
    "LIST_HINT",
    "MAX_GROUPS",
    "JoinedGroups",
    "PublicList",
    "comparable",
    "groups_from_caller",
    "read_public_list",
]

LIST_HINT = "write RIGHT JOIN (SELECT DISTINCT key FROM public_table) USING (key), or pass public_groups="

MAX_GROUPS: Final = 1_000_000
"""How many groups a query may list."""


@dataclass(frozen=True, slots=True)
class PublicList:
    """A list of groups written in FROM.

    Parameters
    ----------
    qualifier : str or None
        The alias of the list.
    columns : tuple of Column
        Its columns as the query names them, all typed.
    table : str or None
        The public table it comes from; None for a list of literals.
    sources : tuple of str
        The columns of that table, one for each of ``columns``.
    values : tuple of tuple
        The listed rows, where there is no table.
    """

    qualifier: str | None
    columns: tuple[Column, ...]
    table: str | None = None
    sources: tuple[str, ...] = ()
    values: tuple[tuple[object, ...], ...] = ()

    def find(self, name: str) -> int | None:
        """Return the position of the column of that name, or None."""
        names = [column.name.casefold() for column in self.columns]
        return names.index(name.casefold()) if name.casefold() in names else None


@dataclass(frozen=True, slots=True)
class JoinedGroups:
    """A public list, and for each of its columns the expression over private rows it is equated with."""

    listed: PublicList
    keys: tuple[Expression, ...]

    def in_order_of(self, keys: Sequence[Named]) -> PublicGroups:
        """Return the groups with their columns in the order of the query's keys.

        Raises
        ------
        UnsupportedSql
            If the keys are not exactly the columns of the list.
        """
        order = []
        for key in keys:
            if key.expression not in self.keys:
                raise UnsupportedSql(f"the GROUP BY item {key.name!r} is not in the public list; {LIST_HINT}")
            order.append(self.keys.index(key.expression))
        if len(order) != len(self.keys):
            names = ", ".join(column.name for column in self.listed.columns)
            raise UnsupportedSql(
                f"GROUP BY must name every column of the public list; write GROUP BY {names}"
            )
        if self.listed.table is not None:
            return PublicTable(self.listed.table, tuple(self.listed.sources[index] for index in order))
        rows = (tuple(row[index] for index in order) for row in self.listed.values)
        return _sorted_values(rows, keys, "the public list")


def comparable(public: ColumnType | None, key: ColumnType) -> bool:
    """Return whether a public column can be equated with a key: integers may list groups of floats."""
    return public is key or (public is ColumnType.INTEGER and key is ColumnType.FLOAT)


def read_public_list(item: exp.Expr, tables: Tables) -> PublicList:
    """Read SELECT DISTINCT over a public table, or UNNEST of literals; nothing else lists groups."""
    item = unwrapped(item)
    if isinstance(item, exp.Unnest):
        return _unnested(item)
    if not isinstance(item, exp.Subquery) or not isinstance(item.this, exp.Select):
        raise UnsupportedSql(f"a public list of groups must be a SELECT DISTINCT; {LIST_HINT}")
    select = item.this
    only(item, "this", "alias", what="the public list")
    only(select, "distinct", "expressions", "from_", "joins", what="the SELECT of a public list")
    from_ = select.args.get("from_")
    if select.args.get("distinct") is None or select.args["distinct"].args.get("on") or from_ is None:
        raise UnsupportedSql(f"a public list of groups must be a SELECT DISTINCT; {LIST_HINT}")
    qualifier = item.alias or None
    inner = unwrapped(from_.this)
    if isinstance(inner, exp.Unnest):
        product = _product(inner, select)
        picked = _selected(select, product.columns, "the list")
        columns = tuple(Column(name, product.columns[position].type) for position, name in picked)
        rows = (tuple(row[position] for position, _ in picked) for row in product.values)
        return PublicList(qualifier, columns, values=tuple(dict.fromkeys(rows)))
    only(select, "distinct", "expressions", "from_", what="the SELECT of a public list over a table")
    source = table_source(inner, tables) if isinstance(inner, exp.Table) else None
    if not isinstance(source, PublicSource):
        raise UnsupportedSql(f"a public list of groups must read a public table directly; {LIST_HINT}")
    chosen = _selected(select, source.schema.columns, source.name)
    columns = tuple(Column(name, source.schema.columns[position].type) for position, name in chosen)
    sources = tuple(source.schema.columns[position].name for position, _ in chosen)
    return PublicList(qualifier, columns, source.name, sources)


def _product(first: exp.Unnest, select: exp.Select) -> PublicList:
    """Return all combinations of the values of lists that are joined without a condition."""
    lists = [_unnested(first)]
    for join in select.args.get("joins") or ():
        only(join, "this", "kind", what="a join of public lists")
        inner = unwrapped(join.this)
        if not isinstance(inner, exp.Unnest) or str(join.args.get("kind") or "CROSS").upper() != "CROSS":
            raise UnsupportedSql(
                "public lists must be joined as UNNEST(...) AS a CROSS JOIN UNNEST(...) AS b; write that, or "
                "pass public_groups="
            )
        lists.append(_unnested(inner))
    if math.prod(len(each.values) for each in lists) > MAX_GROUPS:
        raise UnsupportedSql(f"a public list must have at most {MAX_GROUPS} groups; list fewer")
    rows = (tuple(itertools.chain(*row)) for row in itertools.product(*(each.values for each in lists)))
    return PublicList(None, tuple(each.columns[0] for each in lists), values=tuple(rows))


def _selected(select: exp.Select, columns: Sequence[Column], table: str) -> list[tuple[int, str]]:
    """Read a SELECT list of bare columns: the position of each, and its name in the list."""
    known = [column.name.casefold() for column in columns]
    chosen: list[tuple[int, str]] = []
    for item in select.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        if not isinstance(inner, exp.Column) or isinstance(inner.this, exp.Star):
            raise UnsupportedSql(
                "a public list of groups must select columns by name, as they are; name them"
            )
        if inner.name.casefold() not in known:
            names = [column.name for column in columns]
            raise SchemaError(
                f"{table} has no column {inner.name!r}; {suggestion(inner.name, names, 'columns')}"
            )
        position = known.index(inner.name.casefold())
        name = output_name(item.alias) if isinstance(item, exp.Alias) else columns[position].name
        if columns[position].type is None:
            raise SchemaError(
                f"the public column {name!r} has a type that a query cannot use; convert it first"
            )
        if any(name.casefold() == other.casefold() or position == index for index, other in chosen):
            raise SchemaError(f"the public list names the column {name!r} twice; select it once")
        chosen.append((position, name))
    return chosen


def _unnested(item: exp.Unnest) -> PublicList:
    only(item, "expressions", "alias", "offset", what="UNNEST")
    array = item.expressions[0] if len(item.expressions) == 1 else None
    alias = item.args.get("alias")
    named = (
        [] if alias is None else [part.name for part in (alias.this, *alias.args.get("columns", ())) if part]
    )
    if len(named) != 1 or array is None:
        raise UnsupportedSql("a list of groups must be literals with a name; write UNNEST(['a', 'b']) AS key")
    values, type_ = listed_values(array)
    if len(values) > MAX_GROUPS:
        raise UnsupportedSql(f"a public list must have at most {MAX_GROUPS} groups; list fewer")
    name = output_name(named[0])
    return PublicList(name, (Column(name, type_),), values=tuple((value,) for value in values))


def groups_from_caller(given: Mapping[str, Sequence[object]], keys: Sequence[Named]) -> PublicValues:
    """Read the argument ``public_groups``: values of each key (their cross product), or rows of several keys.

    Raises
    ------
    OptionError
        If it does not list exactly the query's keys, or a value is not of its key's type.
    """
    if not isinstance(given, Mapping):
        raise OptionError(
            f"public_groups must map keys to values, got a value of type {type(given).__name__}; "
            "write {key: values}"
        )
    blocks = [(_names(name), _block(name, rows)) for name, rows in given.items()]
    if math.prod(len(rows) for _, rows in blocks) > MAX_GROUPS:
        raise OptionError(
            f"public_groups must list at most {MAX_GROUPS} groups; list fewer, or group by fewer keys"
        )
    names = [name for block, _ in blocks for name in block]
    indices = [_index(key, names) for key in keys]
    if sorted(indices) != list(range(len(names))):
        extra = next(name for index, name in enumerate(names) if index not in indices)
        known = suggestion(str(extra), [key.name for key in keys], "keys")
        raise OptionError(f"public_groups must name the GROUP BY items only, got {extra!r}; {known}")
    product = (tuple(itertools.chain(*rows)) for rows in itertools.product(*(rows for _, rows in blocks)))
    return _sorted_values((tuple(row[index] for index in indices) for row in product), keys, "public_groups")


def _names(name: object) -> tuple[object, ...]:
    return name if isinstance(name, tuple) else (name,)


def _block(name: object, rows: object) -> list[tuple[object, ...]]:
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise OptionError(
            f"public_groups must give a list for each key, got a value of type {type(rows).__name__} for "
            f"{name!r}; write [value, ...]"
        )
    width = len(name) if isinstance(name, tuple) else None
    block = [(row,) if width is None else _row(row, width) for row in itertools.islice(rows, MAX_GROUPS + 1)]
    if not block:
        raise OptionError(
            f"public_groups must list at least one group, got none for {name!r}; name the groups"
        )
    return block


def _row(row: object, width: int) -> tuple[object, ...]:
    if not isinstance(row, (tuple, list)) or len(row) != width:
        raise OptionError(
            f"public_groups must give rows of {width} values for {width} keys; write them as tuples"
        )
    return tuple(row)


def _index(key: Named, names: Sequence[object]) -> int:
    wanted = {key.name.casefold()}
    if isinstance(key.expression.tree, exp.Column):
        wanted.add(key.expression.tree.name.casefold())
    for index, name in enumerate(names):
        if isinstance(name, str) and name.casefold() in wanted:
            return index
    raise OptionError(f"public_groups must list the GROUP BY item {key.name!r}; add its values")


def _sorted_values(rows: Iterable[tuple[object, ...]], keys: Sequence[Named], what: str) -> PublicValues:
    """Check, sort and freeze the groups, so that equal lists make equal plans."""
    types = [key.expression.type for key in keys]
    names = [f"{what} for {key.name!r}" for key in keys]
    checked = [
        tuple(stored_value(value, type_, name) for value, type_, name in zip(row, types, names, strict=True))
        for row in rows
    ]
    if len(set(checked)) != len(checked):
        raise OptionError(f"{what} must list each group once; remove the repeated ones")
    order = sorted(checked, key=lambda row: tuple((value is not None, value) for value in row))
    return PublicValues(tuple(order))
