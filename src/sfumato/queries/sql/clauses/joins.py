"""A join of two items of FROM: with public tables as they are, of private ones on the privacy unit only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.constants import common
from sfumato.queries.plan.nodes import JoinOnUnit, JoinPublic, Relation, Scan
from sfumato.queries.plan.relation_parts import nodes_of
from sfumato.queries.plan.schema import ColumnType, Expression
from sfumato.queries.plan.typed_expressions import TypedTree, cast, column, only, operand
from sfumato.queries.sql.catalog import Rows, ScopeColumn, ScopeTable, free_name
from sfumato.queries.sql.expressions.operators import chain
from sfumato.queries.sql.expressions.scalar import read_predicate

__all__ = ["joined", "require_one_unit", "scans", "together"]

_ON_UNIT = (
    "a join of private tables must equate their privacy units, or a unit reaches the rows of others; "
    "write JOIN ... USING (unit), or ON a.unit = b.unit AND ..."
)
_PRESERVES_PUBLIC = (
    "an outer join must not keep public rows of no unit, unless they are a list of groups; keep the private "
    "side, or write RIGHT JOIN (SELECT DISTINCT key FROM public_table) USING (key)"
)


def joined(left: Rows, right: Rows, join: exp.Join) -> Rows:
    """Return the rows of a join.

    Raises
    ------
    UnsupportedSql
        If it keeps public rows, or joins private tables on something else than their unit.
    SchemaError
        If a column is unknown or two sides do not compare.
    """
    kind, side = (str(join.args.get(slot) or "").upper() for slot in ("kind", "side"))
    only(join, "this", "kind", "side", "on", "using", what="JOIN")
    if kind not in ("", "INNER", "CROSS", "OUTER"):
        raise UnsupportedSql(f"{kind} JOIN is not supported; write INNER, LEFT or CROSS JOIN")
    preserved, other = (right, left) if side == "RIGHT" else (left, right)
    if left.private != right.private and not preserved.private and not side:
        preserved, other = other, preserved
    if side == "FULL" or (other.private and not preserved.private):
        raise UnsupportedSql(
            _PRESERVES_PUBLIC
            if left.private != right.private
            else "FULL JOIN is not supported; write LEFT JOIN"
        )
    pair = _Pair.of(preserved, other)
    conditions = list(_conditions(join, left, right, pair))
    keep = side in ("LEFT", "RIGHT")
    if preserved.private and other.private:
        made = _on_unit(pair, conditions, keep=keep)
    else:
        made = _public(pair, conditions, keep=keep)
    merged = {column.name.casefold() for column in join.args.get("using") or ()}
    seen = pair.one_unit if preserved.private and other.private and not keep else pair.names
    members = (pair.members(side_, seen, merged) for side_ in (left, right))
    return Rows(made, tuple(m for each in members for m in each), preserved.private or other.private)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two sides of a join, and the names that the other side's columns get beside the retained side's."""

    preserved: Rows
    other: Rows
    names: dict[str, str]

    @classmethod
    def of(cls, preserved: Rows, other: Rows) -> _Pair:
        taken = {known.name.casefold() for known in preserved.schema.usable.columns}
        names = {known.name: free_name(known.name, taken) for known in other.schema.usable.columns}
        return cls(preserved, other, names)

    def members(self, side: Rows, seen: Mapping[str, str], merged: set[str]) -> Iterator[ScopeTable]:
        """Yield the members of a side as they are seen in the join."""
        for member in side.members:
            columns = []
            for known in member.columns:
                if side is self.preserved:
                    found = side.schema.find(known.column)
                    if found is not None and found.type is not None:
                        columns.append(known)
                elif known.column in seen:
                    hidden = known.merged or known.written.casefold() in merged
                    columns.append(ScopeColumn(known.written, seen[known.column], hidden))
            yield ScopeTable(member.qualifier, tuple(columns))

    def term(self, side: Rows, qualifier: str | None, name: str) -> TypedTree:
        """Return a column of one side under its name in the join."""
        term = side.resolve(qualifier, name)
        if side is self.preserved:
            return term
        return column(self.names[term.tree.name], term.type)

    @property
    def one_unit(self) -> dict[str, str]:
        """The names where both units are equal in every row: one column will do for both."""
        unit, other = self.preserved.relation.unit, self.other.relation.unit
        found = None if other is None else self.other.schema.find(other)
        return self.names if found is None or unit is None else {**self.names, found.name: unit}


@dataclass(frozen=True, slots=True)
class _Both:
    """The scope of ON: the columns of both sides."""

    left: Rows
    right: Rows
    pair: _Pair

    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        """Return a column of either side."""
        sides = [s for s in (self.left, self.right) if qualifier is None or s.answers_to(qualifier)]
        holding = [side for side in sides if qualifier is not None or side.has(name)]
        if len(holding) > 1:
            raise SchemaError(f"the column {name!r} is in both tables; write its table in front of it")
        chosen = holding[0] if holding else (sides or [self.left])[0]
        return self.pair.term(chosen, qualifier, name)


def _conditions(join: exp.Join, left: Rows, right: Rows, pair: _Pair) -> Iterator[Expression]:
    """Yield what USING or ON demands, as conditions on the columns of the join."""
    for named in join.args.get("using") or ():
        terms = [pair.term(side, None, named.name) for side in (left, right)]
        (one, two), _ = common(terms, f"the column {named.name!r} of USING")
        yield Expression(exp.EQ(this=operand(one), expression=operand(two)), ColumnType.BOOLEAN)
    condition = join.args.get("on")
    if condition is not None:
        scope = _Both(left, right, pair)
        for part in chain(condition, exp.And):
            yield read_predicate(part, scope, "the condition of ON")


def together(conditions: Sequence[Expression]) -> Expression | None:
    """Return conditions as one, in a tree of logarithmic depth."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    half = len(conditions) // 2
    sides = [together(conditions[:half]), together(conditions[half:])]
    left, right = (operand(side) for side in sides if side is not None)
    return Expression(exp.And(this=left, expression=right), ColumnType.BOOLEAN)


def _on_unit(pair: _Pair, conditions: list[Expression], *, keep: bool) -> Relation:
    left, right = pair.preserved.relation, pair.other.relation
    if left.unit is None or right.unit is None:
        raise UnsupportedSql("tables in which each row is a unit cannot be joined; name the unit's column")
    units = {left.unit.casefold(), pair.names[right.unit].casefold()}
    rest = [condition for condition in conditions if not _equates(condition, units)]
    if len(rest) == len(conditions):
        raise UnsupportedSql(_ON_UNIT)
    require_one_unit(left, right)
    if keep:
        return JoinOnUnit(left, right, tuple(pair.names.values()), together(rest), keep)
    one = {pair.names[known]: name for known, name in pair.one_unit.items() if name != pair.names[known]}
    rest = [_renamed(condition, one) for condition in rest]
    names = tuple(name for name in pair.names.values() if name not in one)
    return JoinOnUnit(left, right, names, together(rest), keep)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    def rename(node: exp.Expr) -> exp.Expr:
        named = isinstance(node, exp.Column) and node.name in names
        return column(names[node.name], None).tree if named else node

    tree = expression.tree.transform(rename)
    assert isinstance(tree, exp.Expression)  # noqa: S101 - as every tree here
    return Expression(tree, expression.type)


def _equates(condition: Expression, names: set[str]) -> bool:
    tree = condition.tree
    sides = (tree.this, tree.expression) if isinstance(tree, exp.EQ) else ()
    return {side.name.casefold() for side in sides if isinstance(side, exp.Column)} == names


def scans(relation: Relation) -> Iterator[Scan]:
    """Yield the private tables that a relation reads."""
    yield from (node for node in nodes_of(relation) if isinstance(node, Scan))


def require_one_unit(*relations: Relation) -> None:
    """Refuse private tables whose units are not the same: the same column of the same type."""
    units = {}
    for scan in (scan for relation in relations for scan in scans(relation)):
        found = None if scan.unit is None else scan.schema.find(scan.unit)
        units[scan.table] = None if found is None else (found.name.casefold(), found.type)
    if len(set(units.values())) > 1:
        raise SchemaError(
            f"private tables that meet in a query must have one unit, {', '.join(sorted(units))} have "
            "different ones; give their unit columns one name and type before connecting"
        )


def _public(pair: _Pair, conditions: list[Expression], *, keep: bool) -> Relation:
    child, public = pair.preserved.relation, pair.other.relation
    names, on = tuple(pair.names.values()), together(conditions)
    single = None
    if pair.preserved.private and child.unit is None:
        single = tuple(_public_side(condition, pair) for condition in conditions)
        if not single:
            raise UnsupportedSql(_SINGLE)
    return JoinPublic(child, public, names, on, keep, single)


_SINGLE = (
    "where each row is a unit, a join with a public table must be by equalities of a private and a public "
    "expression only, so that a row does not come twice; write ON data.key = public.key"
)


def _public_side(condition: Expression, pair: _Pair) -> Expression:
    """Return what a public row is matched by, over the public relation's own columns, as it is compared."""
    own = {new: old for old, new in pair.names.items()}
    tree = condition.tree
    sides = (tree.this, tree.expression) if isinstance(tree, exp.EQ) else ()
    columns = [str(side.name) for side in sides if isinstance(side, exp.Column)]
    public = [pair.other.schema.find(own[name]) for name in columns if name in own]
    private = [pair.preserved.schema.find(name) for name in columns if name not in own]
    if len(public) != 1 or len(private) != 1 or public[0] is None or private[0] is None:
        raise UnsupportedSql(_SINGLE)
    made = column(public[0].name, public[0].type)
    _, type_ = common([made, column(private[0].name, private[0].type)], "the condition of ON")
    if type_ is None:
        raise UnsupportedSql(_SINGLE)
    made = made if made.type is type_ else cast(made, type_)
    return Expression(made.tree, type_)
