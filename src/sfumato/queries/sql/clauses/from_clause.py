"""The FROM clause of the outermost SELECT: private rows, alone or beside a public list of groups."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.query import Expression
from sfumato.queries.plan.typed_expressions import TypedTree, only
from sfumato.queries.sql.catalog import Rows, Tables
from sfumato.queries.sql.clauses.public_groups import JoinedGroups, comparable
from sfumato.queries.sql.clauses.public_lists import PublicList, is_list, read_public_list
from sfumato.queries.sql.clauses.table_expressions import read_item, read_join
from sfumato.queries.sql.expressions.scalar import read_expression

__all__ = ["FromClause", "read_from"]


@dataclass(frozen=True, slots=True)
class FromClause:
    """What a SELECT reads: private rows, and the public groups they were joined with.

    It is the scope of GROUP BY and of the SELECT list, which may name the columns of both.
    """

    rows: Rows
    groups: JoinedGroups | None

    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        """Return a column; one of the public list stands for the private key it is equated with."""
        rows, groups = self.rows, self.groups
        index = None if groups is None else groups.listed.find(name)
        if groups is None or index is None or (qualifier is not None and rows.answers_to(qualifier)):
            return rows.resolve(qualifier, name)
        key = groups.keys[index]
        if qualifier is None:
            same = rows.resolve(None, name).tree if rows.has(name) else key.tree
            if same != key.tree:
                raise SchemaError(f"the column {name!r} is in both tables; write its table in front of it")
        elif not _names(groups.listed, qualifier):
            return rows.resolve(qualifier, name)
        return TypedTree(key.tree.copy(), key.type)


def _names(listed: PublicList, qualifier: str) -> bool:
    return listed.qualifier is not None and listed.qualifier.casefold() == qualifier.casefold()


def read_from(select: exp.Select, tables: Tables) -> FromClause:
    """Read FROM and its joins; the last may be with a list of public groups.

    Raises
    ------
    UnsupportedSql
        If no private table is read, or rows of several units would be mixed.
    SchemaError
        If a table or a column is unknown.
    """
    from_ = select.args.get("from_")
    if from_ is None:
        raise UnsupportedSql("a query must read a private table; write SELECT ... FROM table")
    joins = list(select.args.get("joins") or [])
    first, listed = from_.this, None
    if joins and _preserves(joins[-1], "RIGHT") and is_list(joins[-1].this, tables):
        listed = (joins[-1], joins.pop().this)
    elif len(joins) == 1 and _preserves(joins[0], "LEFT") and is_list(first, tables):
        listed, first = (joins[0], first), joins.pop().this
    rows = read_item(first, tables)
    for join in joins:
        rows = read_join(rows, join, tables)
    if not rows.private:
        raise UnsupportedSql(_PUBLIC_ONLY)
    return FromClause(rows, None if listed is None else _groups(*listed, rows, tables))


_PUBLIC_ONLY = "a query must read a private table, this one reads public data only; query that directly"


def _preserves(join: exp.Join, side: str) -> bool:
    kind, preserved = (str(join.args.get(slot) or "").upper() for slot in ("kind", "side"))
    return preserved == side and kind in ("", "OUTER") and not join.args.get("method")


def _groups(join: exp.Join, item: exp.Expr, rows: Rows, tables: Tables) -> JoinedGroups:
    only(join, "this", "kind", "side", "on", "using", what="JOIN")
    listed = read_public_list(item, tables)
    matched = _using(join, listed, rows) if join.args.get("using") else _on(join, listed, rows)
    missing = [column.name for index, column in enumerate(listed.columns) if index not in matched]
    if missing:
        raise UnsupportedSql(
            f"the join must equate every column of the public list; add {missing[0]!r} to USING"
        )
    keys = tuple(matched[index] for index in range(len(listed.columns)))
    if any(key in keys[:index] for index, key in enumerate(keys)):
        raise UnsupportedSql("two columns of the public list are equated with one key; select it once")
    for key, column in zip(keys, listed.columns, strict=True):
        if not comparable(column.type, key.type):
            raise SchemaError(
                f"the public column {column.name!r} must have the type of its key, {key.type.value}; "
                "cast one of them"
            )
    return JoinedGroups(listed, keys)


def _using(join: exp.Join, listed: PublicList, rows: Rows) -> dict[int, Expression]:
    matched = {}
    for column in join.args["using"]:
        index = listed.find(column.name)
        if index is None:
            raise SchemaError(f"the public list has no column {column.name!r}; name it with AS in its SELECT")
        matched[index] = read_expression(exp.column(column.name), rows, "a column of USING")
    return matched


def _on(join: exp.Join, listed: PublicList, rows: Rows) -> dict[int, Expression]:
    condition = join.args.get("on")
    if condition is None:
        raise UnsupportedSql("the join with a public list must say which columns are equal; add USING (key)")
    matched: dict[int, Expression] = {}
    for test in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        sides = (test.unnest().this, test.unnest().expression) if isinstance(test.unnest(), exp.EQ) else ()
        indices = [_list_index(side, listed, rows) for side in sides]
        if len([index for index in indices if index is not None]) != 1:
            raise UnsupportedSql(
                "the join with a public list must be an equality of a private key and a public column; "
                "write ON data.key = list.key"
            )
        private_side = sides[indices.index(None)]
        index = next(index for index in indices if index is not None)
        if index in matched:
            raise UnsupportedSql(
                "a column of the public list is equated twice; leave one of the equalities out"
            )
        matched[index] = read_expression(private_side, rows, "a key")
    return matched


def _list_index(side: exp.Expr, listed: PublicList, rows: Rows) -> int | None:
    """Return the position in the list that one side of an equality names, None if it is private."""
    if not isinstance(side, exp.Column) or side.args.get("db") is not None:
        return None
    index = listed.find(side.name)
    if side.table:
        return index if _names(listed, side.table) and not rows.answers_to(side.table) else None
    if index is not None and rows.has(side.name):
        raise SchemaError(f"the column {side.name!r} is in both tables; write its table in front of it")
    return index
