"""Public lists of groups written in FROM: constants, a public table, or a relation over such tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.query import Column, ColumnType, Relation
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.catalog import PublicSource, Tables, output_name, suggestion
from sfumato.queries.sql.clauses.array_literals import listed_values
from sfumato.queries.sql.clauses.from_items import reads_private, table_source, unwrapped
from sfumato.queries.sql.clauses.inline_rows import constant_values, lists_rows
from sfumato.queries.sql.clauses.table_expressions import read_item

__all__ = ["LIST_HINT", "MAX_GROUPS", "PublicList", "is_list", "read_public_list"]

LIST_HINT: Final = (
    "write RIGHT JOIN (SELECT DISTINCT key FROM public_table) USING (key), or pass public_groups="
)
MAX_GROUPS: Final = 1_000_000


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
        The public table whose rows it has.
    sources : tuple of str
        The columns of that table, or of the relation, one for each of ``columns``.
    values : tuple of tuple
        The listed rows, where there is neither.
    relation : Relation or None
        Where it comes from, if that is more than a table: joins, conditions, and the like.
    """

    qualifier: str | None
    columns: tuple[Column, ...]
    table: str | None = None
    sources: tuple[str, ...] = ()
    values: tuple[tuple[object, ...], ...] = ()
    relation: Relation | None = None

    def find(self, name: str) -> int | None:
        """Return the position of the column of that name, or None."""
        names = [column.name.casefold() for column in self.columns]
        return names.index(name.casefold()) if name.casefold() in names else None


def is_list(item: exp.Expr, tables: Tables) -> bool:
    """Return whether an item of FROM is written as a list of groups: distinct public rows, or constants."""
    item = unwrapped(item)
    if lists_rows(item):
        return True
    query = item.this if isinstance(item, exp.Subquery) else None
    if isinstance(query, exp.Union):
        return not reads_private(query, tables) and (bool(query.args.get("distinct")) or _constant(query))
    if not isinstance(query, exp.Select):
        return False
    if query.args.get("from_") is None:
        return True
    return query.args.get("distinct") is not None and not reads_private(query, tables)


def _constant(query: exp.Expr) -> bool:
    return not any(True for _ in query.find_all(exp.Table))


def read_public_list(item: exp.Expr, tables: Tables) -> PublicList:
    """Read what `is_list` calls a list: a public table, a relation over such tables, or constants.

    Raises
    ------
    UnsupportedSql
        If the list has a form that is not read, or too many groups.
    SchemaError
        If a table or column is unknown.
    """
    item = unwrapped(item)
    if isinstance(item, exp.Unnest) and not _of_structs(item):
        return _unnested(item)
    select = item.this if isinstance(item, exp.Subquery) else None
    if isinstance(select, exp.Select) and isinstance(item, exp.Subquery) and select.args.get("from_"):
        only(item, "this", "alias", what="the public list")
        found = _of_one_table(item, select, tables) or _of_literals(item, select)
        if found is not None:
            return found
    rows = read_item(item, tables)
    qualifier, columns = rows.members[0].qualifier, rows.schema.columns
    for known in columns:
        _require_usable(known.name, known.type)
    values = constant_values(rows.relation)
    if values is not None:
        return PublicList(qualifier, columns, values=tuple(values))
    return PublicList(qualifier, columns, None, tuple(c.name for c in columns), (), rows.relation)


def _slots(select: exp.Select) -> set[str]:
    return {slot for slot, value in select.args.items() if value not in (None, False, [])}


def _bare(select: exp.Select) -> bool:
    """Return whether a SELECT list has columns as they are, and nothing else."""
    items = (item.this if isinstance(item, exp.Alias) else item for item in select.expressions)
    return all(isinstance(item, exp.Column) and not isinstance(item.this, exp.Star) for item in items)


def _of_one_table(item: exp.Subquery, select: exp.Select, tables: Tables) -> PublicList | None:
    """Read SELECT DISTINCT of columns of one public table."""
    inner = unwrapped(select.args["from_"].this)
    if not _bare(select) or _slots(select) - {"distinct", "expressions", "from_"}:
        return None
    source = table_source(inner, tables) if isinstance(inner, exp.Table) else None
    if not isinstance(source, PublicSource) or inner.args.get("joins"):
        return None
    only(select.args["distinct"], what="DISTINCT")
    chosen = _selected(select, source.schema.columns, source.name)
    columns = tuple(Column(name, source.schema.columns[position].type) for position, name in chosen)
    sources = tuple(source.schema.columns[position].name for position, _ in chosen)
    return PublicList(item.alias or None, columns, source.name, sources)


def _of_literals(item: exp.Subquery, select: exp.Select) -> PublicList | None:
    """Read SELECT DISTINCT of columns of arrays of literals, in all combinations."""
    joins = select.args.get("joins") or []
    inner = [unwrapped(each.this) for each in (select.args["from_"], *joins)]
    crossed = all(str(join.args.get("kind") or "").upper() == "CROSS" for join in joins)
    arrays = all(isinstance(each, exp.Unnest) and not _of_structs(each) for each in inner)
    if (
        not crossed
        or not arrays
        or not _bare(select)
        or _slots(select) - {"distinct", "expressions", "from_", "joins"}
    ):
        return None
    product = _product([_unnested(each) for each in inner if isinstance(each, exp.Unnest)])
    picked = _selected(select, product.columns, "the list")
    columns = tuple(Column(name, product.columns[position].type) for position, name in picked)
    rows = (tuple(row[position] for position, _ in picked) for row in product.values)
    return PublicList(item.alias or None, columns, values=tuple(dict.fromkeys(rows)))


def _of_structs(item: exp.Unnest) -> bool:
    arrays = (each for each in item.expressions if isinstance(each, exp.Array))
    return any(isinstance(row, exp.Struct) for array in arrays for row in array.expressions)


def _require_usable(name: str, type_: ColumnType | None) -> None:
    if type_ is None:
        raise SchemaError(f"the public column {name!r} has a type that a query cannot use; convert it first")


def _product(lists: Sequence[PublicList]) -> PublicList:
    """Return all combinations of the values of lists."""
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
        _require_usable(name, columns[position].type)
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
