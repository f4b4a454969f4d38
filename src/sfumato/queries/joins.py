"""The FROM clause of a private SELECT: private rows, alone or beside a public list of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from sfumato.errors import QueryError, SchemaError, UnsupportedSql
from sfumato.queries.catalog import Tables
from sfumato.queries.expressions import read_expression
from sfumato.queries.groups import LIST_HINT, JoinedGroups, PublicList, comparable, read_public_list
from sfumato.queries.plan import Expression
from sfumato.queries.relations import Rows, is_private, read_rows
from sfumato.queries.terms import Term, only

__all__ = ["GroupScope", "Source", "read_from"]


@dataclass(frozen=True, slots=True)
class Source:
    """What a SELECT reads: private rows, and the public groups they were joined with."""

    rows: Rows
    groups: JoinedGroups | None


@dataclass(frozen=True, slots=True)
class GroupScope:
    """What GROUP BY and the SELECT list may name: the private columns, and those of the public list."""

    source: Source

    def resolve(self, qualifier: str | None, name: str) -> Term:
        """Return a column; one of the public list stands for the private key it is equated with."""
        rows, groups = self.source.rows, self.source.groups
        place = None if groups is None else groups.listed.find(name)
        if groups is None or place is None or (qualifier is not None and rows.answers_to(qualifier)):
            return rows.resolve(qualifier, name)
        key = groups.keys[place]
        if qualifier is None:
            same = rows.relation.schema.find(name)
            if same is not None and not (isinstance(key.tree, exp.Column) and key.tree.name == same.name):
                raise SchemaError(f"the column {name!r} is in both tables; write its table in front of it")
        elif not _names(groups.listed, qualifier):
            return rows.resolve(qualifier, name)
        return Term(key.tree.copy(), key.type)


def _names(listed: PublicList, qualifier: str) -> bool:
    return listed.qualifier is not None and listed.qualifier.casefold() == qualifier.casefold()


def read_from(select: exp.Select, tables: Tables) -> Source:
    """Read FROM and its join.

    Raises
    ------
    UnsupportedSql
        If no private table is read, or for every join but the one with a public list of groups.
    SchemaError
        If a table or a column is unknown.
    """
    from_ = select.args.get("from_")
    if from_ is None:
        raise UnsupportedSql("a query must read a private table; write SELECT ... FROM table")
    joins = select.args.get("joins") or []
    items = [from_.this, *(join.this for join in joins)]
    private = [is_private(item, tables) for item in items]
    if not any(private):
        raise UnsupportedSql(
            "a query must read a private table, this one reads public data only; query that directly"
        )
    if len(items) == 1:
        return Source(read_rows(items[0], tables), None)
    if all(private[:2]):
        _refuse_private_join(items, joins[0], tables)
    if len(items) > 2:
        raise UnsupportedSql("only one join is supported, with one public list of all the keys; " + LIST_HINT)
    rows = read_rows(items[private.index(True)], tables)
    return Source(rows, _join(joins[0], items[private.index(False)], rows, tables, private_first=private[0]))


def _refuse_private_join(items: list[exp.Expr], join: exp.Join, tables: Tables) -> NoReturn:
    units = [_unit_of(item, tables) for item in items[:2]]
    names = {unit.casefold() for unit in units if unit is not None}
    using = {column.name.casefold() for column in join.args.get("using") or ()}
    equated = [
        {side.name.casefold() for side in (test.this, test.expression)}
        for test in (join.args["on"].find_all(exp.EQ) if join.args.get("on") else ())
    ]
    on_unit = None not in units and (names <= using or names in equated)
    if not on_unit:
        raise UnsupportedSql(
            "a join of private tables must equate their privacy units, or a unit reaches the rows of others, "
            "and is not supported yet even then; join them on the privacy unit before connecting"
        )
    raise UnsupportedSql(
        "a join of two private tables is not supported yet; join them on the privacy unit before connecting"
    )


def _unit_of(item: exp.Expr, tables: Tables) -> str | None:
    try:
        return read_rows(item, tables).relation.unit
    except QueryError:  # the join is refused in any case, and that is the mistake to name
        return None


def _join(join: exp.Join, item: exp.Expr, rows: Rows, tables: Tables, *, private_first: bool) -> JoinedGroups:
    kind, side = (str(join.args.get(slot) or "").upper() for slot in ("kind", "side"))
    keeps_public = side == ("RIGHT" if private_first else "LEFT") and kind in ("", "OUTER")
    if side == "FULL" or (keeps_public and not _lists_groups(item)):
        raise UnsupportedSql(
            "an outer join must not keep public rows of no unit, unless they are a list of groups; "
            + LIST_HINT
        )
    if not keeps_public or join.args.get("method"):
        raise UnsupportedSql(
            "a join with a public table is not supported yet; bring its columns into the private table "
            f"before connecting, and for a public list of groups {LIST_HINT}"
        )
    only(join, "this", "kind", "side", "on", "using", what="JOIN")
    listed = read_public_list(item, tables)
    matched = _using(join, listed, rows) if join.args.get("using") else _on(join, listed, rows)
    missing = [column.name for place, column in enumerate(listed.columns) if place not in matched]
    if missing:
        raise UnsupportedSql(
            f"the join must equate every column of the public list; add {missing[0]!r} to USING"
        )
    keys = tuple(matched[place] for place in range(len(listed.columns)))
    if any(key in keys[:place] for place, key in enumerate(keys)):
        raise UnsupportedSql("two columns of the public list are equated with one key; select it once")
    for key, column in zip(keys, listed.columns, strict=True):
        if not comparable(column.type, key.type):
            raise SchemaError(
                f"the public column {column.name!r} must have the type of its key, {key.type.value}"
            )
    return JoinedGroups(listed, keys)


def _lists_groups(item: exp.Expr) -> bool:
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select):
        return item.this.args.get("distinct") is not None
    return isinstance(item, exp.Unnest)


def _using(join: exp.Join, listed: PublicList, rows: Rows) -> dict[int, Expression]:
    matched = {}
    for column in join.args["using"]:
        place = listed.find(column.name)
        if place is None:
            raise SchemaError(f"the public list has no column {column.name!r}; name it with AS in its SELECT")
        matched[place] = read_expression(exp.column(column.name), rows, "a column of USING")
    return matched


def _on(join: exp.Join, listed: PublicList, rows: Rows) -> dict[int, Expression]:
    condition = join.args.get("on")
    if condition is None:
        raise UnsupportedSql("the join with a public list must say which columns are equal; add USING (key)")
    matched: dict[int, Expression] = {}
    for test in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        sides = (test.unnest().this, test.unnest().expression) if isinstance(test.unnest(), exp.EQ) else ()
        places = [_place(side, listed, rows) for side in sides]
        if len([place for place in places if place is not None]) != 1:
            raise UnsupportedSql(
                "the join with a public list must be an equality of a private key and a public column; "
                "write ON data.key = list.key"
            )
        private_side = sides[places.index(None)]
        place = next(place for place in places if place is not None)
        if place in matched:
            raise UnsupportedSql(
                "a column of the public list is equated twice; leave one of the equalities out"
            )
        matched[place] = read_expression(private_side, rows, "a key")
    return matched


def _place(side: exp.Expr, listed: PublicList, rows: Rows) -> int | None:
    """Return the position in the list that one side of an equality names, None if it is private."""
    if not isinstance(side, exp.Column) or side.args.get("db") is not None:
        return None
    place = listed.find(side.name)
    if side.table:
        return place if _names(listed, side.table) and not rows.answers_to(side.table) else None
    if place is not None and rows.relation.schema.find(side.name) is not None:
        raise SchemaError(f"the column {side.name!r} is in both tables; write its table in front of it")
    return place
