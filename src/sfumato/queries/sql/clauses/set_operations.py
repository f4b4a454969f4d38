"""INTERSECT and EXCEPT of private rows, and what parts of such a query and of a union must have in common.

A unit's rows are compared with its own rows only. Both are made of nodes that keep the unit: distinct rows, a
join on the unit and on all columns, and for EXCEPT a filter on what found no match.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.nodes import Distinct, Filter, JoinOnUnit, Project, Relation
from sfumato.queries.plan.schema import Column, ColumnType, Expression, Named
from sfumato.queries.plan.typed_expressions import column
from sfumato.queries.sql.catalog import free_name
from sfumato.queries.sql.clauses.joins import require_one_unit, together

__all__ = ["require_alike", "require_same_types", "rows_in_both", "rows_without"]


def rows_in_both(left: Relation, right: Relation) -> Relation:
    """Return the distinct rows of ``left`` that ``right`` has, too; their columns agree in type and order."""
    return _matched(left, right, keep=False)


def rows_without(left: Relation, right: Relation) -> Relation:
    """Return the distinct rows of ``left`` that ``right`` does not have."""
    return _matched(left, right, keep=True)


def _matched(left: Relation, right: Relation, *, keep: bool) -> Relation:
    one, other = Distinct(left), Distinct(right)
    own = one.schema.usable.columns
    marker = free_name("found", {known.name.casefold() for known in other.schema.usable.columns})
    items = [_named(known) for known in other.schema.usable.columns]
    truth = Named(marker, Expression(exp.Boolean(this=True), ColumnType.BOOLEAN))
    marked = Project(other, (*items, truth), other.unit)
    taken = {known.name.casefold() for known in own}
    bare = JoinOnUnit(one, marked, (), None, keep)
    names = tuple(free_name(known.name, taken) for known in bare.right_columns.columns)
    added = dict(zip((known.name for known in bare.right_columns.columns), names, strict=True))
    pairs = zip(own, other.schema.usable.columns, strict=True)
    same = [_same(mine, added[theirs.name]) for mine, theirs in pairs if not _is(one.unit, mine)]
    made: Relation = JoinOnUnit(one, marked, names, together(same), keep)
    if keep:
        absent = exp.Is(this=column(added[marker], None).tree, expression=exp.Null())
        made = Filter(made, Expression(absent, ColumnType.BOOLEAN))
    return Project(made, tuple(map(_named, own)), one.unit)


def _is(unit: str | None, known: Column) -> bool:
    return unit is not None and known.name.casefold() == unit.casefold()


def _named(known: Column) -> Named:
    type_ = ColumnType.TEXT if known.type is None else known.type
    return Named(known.name, Expression(column(known.name, type_).tree, type_))


def _same(mine: Column, theirs: str) -> Expression:
    """Return whether two columns are equal or both NULL."""
    sides = [column(name, mine.type).tree for name in (mine.name, theirs)]
    absent = [exp.Paren(this=exp.Is(this=side.copy(), expression=exp.Null())) for side in sides]
    both = exp.And(this=absent[0], expression=absent[1])
    equal = exp.EQ(this=sides[0], expression=sides[1])
    return Expression(exp.Coalesce(this=equal, expressions=[both]), ColumnType.BOOLEAN)


def require_alike(relations: list[Relation], word: str) -> None:
    """Refuse private rows whose units, or columns, do not agree in type and order."""
    _require_same_position(relations)
    require_one_unit(*relations)
    require_same_types(relations, word)


def require_same_types(relations: list[Relation], word: str) -> None:
    """Refuse parts whose columns do not agree in type and order."""
    types = [[known.type for known in part.schema.usable.columns] for part in relations]
    if any(other != types[0] for other in types):
        raise SchemaError(f"the parts of {word} must have columns of the same types in one order; use CAST")


def _require_same_position(relations: list[Relation]) -> None:
    positions = []
    for relation in relations:
        if relation.unit is None:
            raise UnsupportedSql(
                "tables in which each row is a unit cannot be united; put the rows into one table before "
                "connecting"
            )
        names = [known.name.casefold() for known in relation.schema.usable.columns]
        positions.append(names.index(relation.unit.casefold()) if relation.unit.casefold() in names else None)
    if len(set(positions)) > 1 or None in positions:
        raise UnsupportedSql(
            "UNION ALL must have the privacy unit in the same position in every part; reorder the SELECT list"
        )
