"""Relations that a query writes out: VALUES, UNNEST of literals or of STRUCTs, and SELECT without FROM.

They are public, for they follow from the text of the query alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.constants import common, is_constant, literal, python_value
from sfumato.queries.plan.nodes import Distinct, PublicRows, Relation, Union
from sfumato.queries.plan.query import Column, Expression, Schema
from sfumato.queries.plan.typed_expressions import TypedTree, only
from sfumato.queries.sql.catalog import named_item, output_name
from sfumato.queries.sql.clauses.array_literals import listed_values
from sfumato.queries.sql.expressions.scalar import read_term

__all__ = ["constant_values", "lists_rows", "row_selected", "rows_listed"]

_MAX_VALUES: Final = 4_000
_NO_NAMES: Final = "VALUES must have a name for each column; write (VALUES (1, 'a'), (2, 'b')) AS m(k, name)"


def lists_rows(item: exp.Expr) -> bool:
    """Return whether an item of FROM writes its rows out: VALUES, or UNNEST of what is no column."""
    if isinstance(item, exp.Subquery):
        return isinstance(item.this, exp.Values)
    if isinstance(item, exp.Unnest):
        return not any(isinstance(each, exp.Column) for each in item.expressions)
    return isinstance(item, exp.Values)


def rows_listed(item: exp.Expr) -> tuple[PublicRows, str | None]:
    """Return the rows that an item of FROM writes out, and its alias.

    Raises
    ------
    UnsupportedSql
        If they have no names, too many values, or are not written out.
    SchemaError
        If rows differ in their columns, or a column in its types.
    """
    if isinstance(item, exp.Unnest):
        return _unnested(item)
    values = item.this if isinstance(item, exp.Subquery) else item
    only(item, "this", "alias", "expressions", what="VALUES")
    only(values, "expressions", "alias", what="VALUES")
    alias = item.args.get("alias") or values.args.get("alias")
    names = [] if alias is None else [part.name for part in alias.args.get("columns") or ()]
    rows = [list(row.expressions) if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
    if alias is None or not names:
        raise UnsupportedSql(_NO_NAMES)
    return _rows(names, rows, "VALUES"), alias.name or None


def row_selected(select: exp.Select) -> PublicRows:
    """Return the one row of a SELECT without FROM."""
    if select.args.get("from_") is not None or select.args.get("joins"):
        raise UnsupportedSql("a SELECT without FROM must have no JOIN; write FROM before it")
    only(select, "expressions", "distinct", what="a SELECT without FROM")
    unnamed = itertools.count()
    named = [named_item(item) for item in select.expressions]
    names = [f"f{next(unnamed)}_" if alias is None else alias for _, alias in named]
    return _rows(names, [[node for node, _ in named]], "a SELECT without FROM")


def constant_values(relation: Relation) -> list[tuple[object, ...]] | None:
    """Return the values of rows that are written out as literals; None for any other relation."""
    if isinstance(relation, Distinct):
        rows = constant_values(relation.child)
        return None if rows is None else list(dict.fromkeys(rows))
    if isinstance(relation, Union):
        parts = [constant_values(part) for part in relation.parts]
        return None if None in parts else [row for part in parts for row in part or ()]
    if not isinstance(relation, PublicRows):
        return None
    made = []
    for row in relation.rows:
        terms = [TypedTree(value.tree, value.type) for value in row]
        if not all(isinstance(term.tree, exp.Null) or is_constant(term) for term in terms):
            return None
        made.append(tuple(None if isinstance(t.tree, exp.Null) else python_value(t) for t in terms))
    return made


def _unnested(item: exp.Unnest) -> tuple[PublicRows, str | None]:
    if item.args.get("offset"):
        raise UnsupportedSql("UNNEST must not have WITH OFFSET; list the places as a column of STRUCTs")
    only(item, "expressions", "alias", "explode_array", what="UNNEST")
    alias = item.args.get("alias")
    named = [] if alias is None else [p.name for p in (alias.this, *alias.args.get("columns", ())) if p]
    array = item.expressions[0] if len(item.expressions) == 1 else None
    if array is None or len(named) > 1:
        raise UnsupportedSql("UNNEST must list one array under one name; write UNNEST([1, 2]) AS k")
    if isinstance(array, exp.Cast):
        raise UnsupportedSql("an array in UNNEST must not have a type; write [STRUCT(1 AS k, 'a' AS s), ...]")
    name = output_name(named[0]) if named else None
    if isinstance(array, exp.Array) and any(isinstance(row, exp.Struct) for row in array.expressions):
        return _rows(*_structs(array.expressions), "UNNEST"), name
    if name is None:
        raise UnsupportedSql("UNNEST must have a name; write UNNEST(['a', 'b']) AS k")
    if isinstance(array, exp.Array):
        return _rows([name], [[value] for value in array.expressions], "UNNEST"), name
    values, type_ = listed_values(array)
    _require_few(len(values))
    assert type_ is not None  # noqa: S101 - of integers, or of dates
    rows = tuple((Expression(literal(value, type_), type_),) for value in values)
    return PublicRows(Schema((Column(name, type_),)), rows), name


def _structs(rows: Sequence[exp.Expr]) -> tuple[list[str], list[list[exp.Expr]]]:
    """Return the names of STRUCTs, which the first one states, and their values."""
    names = [part.this.name for part in _parts(rows[0]) if isinstance(part, exp.PropertyEQ)]
    if len(names) != len(list(_parts(rows[0]))):
        raise UnsupportedSql("the first STRUCT must name its values; write STRUCT(1 AS k, 'a' AS name)")
    made = []
    for row in rows:
        parts = list(_parts(row))
        own = [part.this.name for part in parts if isinstance(part, exp.PropertyEQ)]
        if own and [each.casefold() for each in own] != [each.casefold() for each in names]:
            raise SchemaError("the STRUCTs of one array must have the same names, in one order; rename them")
        made.append([part.expression if isinstance(part, exp.PropertyEQ) else part for part in parts])
    return names, made


def _parts(row: exp.Expr) -> Iterator[exp.Expr]:
    row = row.unnest()
    if not isinstance(row, (exp.Struct, exp.Tuple)):
        raise UnsupportedSql("an array of STRUCTs must hold nothing else; write [STRUCT(1 AS k), STRUCT(2)]")
    yield from row.expressions


def _rows(names: Sequence[str], rows: Sequence[Sequence[exp.Expr]], what: str) -> PublicRows:
    """Read rows of expressions without columns: each column in one type."""
    names = [output_name(name) for name in names]
    if len({name.casefold() for name in names}) < len(names):
        raise SchemaError(f"{what} must name each column once; rename one")
    if any(len(row) != len(names) for row in rows):
        raise SchemaError(f"{what} must have {len(names)} values in each row, one for each name; add them")
    _require_few(len(rows) * len(names))
    columns, read = [], []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        terms, type_ = common(
            [read_term(value, f"a value of {what}") for value in values], f"the column {name!r}"
        )
        if type_ is None:
            raise SchemaError(f"the column {name!r} must have a type; write CAST(NULL AS STRING), say")
        columns.append(Column(name, type_))
        read.append([Expression(term.tree, type_) for term in terms])
    return PublicRows(Schema(tuple(columns)), tuple(zip(*read, strict=True)))


def _require_few(count: int) -> None:
    if count > _MAX_VALUES:
        raise UnsupportedSql(
            f"rows in a query must have at most {_MAX_VALUES} values, got {count}; put them in a public table"
        )
