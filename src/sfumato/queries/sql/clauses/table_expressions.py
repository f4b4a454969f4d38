"""What FROM reads: tables, joins, unions and subqueries, as a tree of nodes that keeps the privacy unit.

Guarantee: that of :mod:`sfumato.queries.plan.nodes`. Bounding comes after all of it, so what a subquery does
to the rows of one unit needs no bound here: a join may multiply them, a window may compare them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.constants import common, number
from sfumato.queries.plan.nodes import (
    Distinct,
    Filter,
    InPublic,
    Project,
    PublicScan,
    Relation,
    Scan,
    Union,
)
from sfumato.queries.plan.schema import ColumnType, Expression, Named
from sfumato.queries.plan.typed_expressions import TypedTree, cast, column, only, operand, require
from sfumato.queries.sql.catalog import PublicSource, Rows, Tables, named_item, output_name
from sfumato.queries.sql.clauses.from_items import reads_private, table_source, unwrapped
from sfumato.queries.sql.clauses.inline_rows import lists_rows, row_selected, rows_listed
from sfumato.queries.sql.clauses.joins import joined, together
from sfumato.queries.sql.clauses.row_arrays import is_row_array, with_elements
from sfumato.queries.sql.clauses.scalar_subqueries import with_values
from sfumato.queries.sql.clauses.set_operations import (
    require_alike,
    require_same_types,
    rows_in_both,
    rows_without,
)
from sfumato.queries.sql.clauses.unit_subqueries import Groups, Windows, groups_units, has_window
from sfumato.queries.sql.expressions.operators import chain
from sfumato.queries.sql.expressions.scalar import Scope, is_aggregate, read_expression, read_predicate

__all__ = ["Rows", "filtered", "output_name", "read_item", "read_join", "read_query"]

_REFUSED_INSIDE = {
    "limit": "LIMIT in a subquery picks rows by what others hold; use max_rows_per_group in OPTIONS, or "
    "ROW_NUMBER() OVER (PARTITION BY unit ORDER BY ...)",
    "offset": "OFFSET in a subquery picks rows by what others hold; use max_rows_per_group in OPTIONS",
    "windows": "WINDOW is not supported; write OVER (PARTITION BY unit) in place",
    "order": "ORDER BY in a subquery has no effect; move it to the outermost SELECT",
    "laterals": "LATERAL is not supported; name a table or a subquery",
}


def read_item(item: exp.Expr, tables: Tables) -> Rows:
    """Read an item of FROM: a table, a common table expression or a subquery.

    Raises
    ------
    UnsupportedSql
        If it would mix the rows of several units, or is nothing that is read here.
    SchemaError
        If a table or column is unknown.
    """
    item = unwrapped(item)
    tables = tables.deeper()
    if isinstance(item, exp.Table) and item.args.get("joins"):
        first = item.copy()
        first.set("joins", None)
        rows = read_item(first, tables)
        for join in item.args["joins"]:
            rows = read_join(rows, join, tables)
        return rows
    if isinstance(item, exp.Table):
        source = table_source(item, tables)
        alias = item.alias or item.name
        if isinstance(source, Scan):
            return Rows.of(tables.catalog.rows_of(source), alias)
        if isinstance(source, PublicSource):
            return Rows.of(PublicScan(source.name, source.schema), alias, private=False)
        rows = read_query(source.select, source.tables.at(tables))
        return Rows.of(rows.relation, alias, private=rows.private)
    if lists_rows(item):
        listed, named = rows_listed(item)
        return Rows.of(listed, named, private=False)
    if isinstance(item, exp.Subquery):
        only(item, "this", "alias", what="a subquery")
        if item.args.get("alias") is not None:
            only(item.args["alias"], "this", what="the alias of a subquery")
        rows = read_query(item.this, tables)
        return Rows.of(rows.relation, item.alias or None, private=rows.private)
    raise UnsupportedSql(f"{item.key.upper()} in FROM is not supported; name a table or write a subquery")


def read_join(rows: Rows, join: exp.Join, tables: Tables) -> Rows:
    """Read what rows are joined with: another item of FROM, or an array of their own."""
    if is_row_array(join.this):
        tables.deeper()
        return with_elements(rows, join)
    return joined(rows, read_item(join.this, tables), join)


def read_query(query: exp.Expr, tables: Tables) -> Rows:
    """Read a SELECT, or several that are united."""
    query = unwrapped(query)
    while isinstance(query, exp.Subquery) and query.is_wrapper:
        query = query.this
    if isinstance(query, exp.SetOperation):
        return _united(query, tables)
    if not isinstance(query, exp.Select):
        raise UnsupportedSql("a subquery must be a SELECT; write (SELECT ... FROM ...)")
    return _selected(query, tables)


def _compared(query: exp.Intersect | exp.Except, tables: Tables) -> Rows:
    """Read INTERSECT DISTINCT and EXCEPT DISTINCT of the rows of each unit."""
    word = query.key.upper()
    only(query, "this", "expression", "distinct", "with_", what=word)
    tables = tables.with_common(query.args.get("with_"))
    if not query.args.get("distinct"):
        raise UnsupportedSql(f"{word} ALL is not supported; write {word} DISTINCT")
    left, right = (read_query(part, tables.deeper()) for part in (query.this, _all_named(query.expression)))
    if not (left.private and right.private):
        raise UnsupportedSql(f"{word} must be of private rows; for public ones write IN, or NOT IN")
    require_alike([left.relation, right.relation], word)
    combined = rows_in_both if isinstance(query, exp.Intersect) else rows_without
    return Rows.of(combined(left.relation, right.relation), None)


def _united(query: exp.SetOperation, tables: Tables) -> Rows:
    if isinstance(query, (exp.Intersect, exp.Except)):
        return _compared(query, tables)
    if not isinstance(query, exp.Union) or query.args.get("by_name"):
        raise UnsupportedSql(f"{query.key.upper()} BY NAME is not supported; write UNION ALL")
    only(query, "this", "expression", "distinct", "with_", what="UNION ALL")
    tables = tables.with_common(query.args.get("with_"))
    distinct = bool(query.args.get("distinct"))
    nodes = [query.expression]
    first = query.this
    while isinstance(first, exp.Union) and bool(first.args.get("distinct")) == distinct:
        only(first, "this", "expression", "distinct", what="UNION ALL")
        nodes.append(first.expression)
        first = first.this
    parts = [read_query(node, tables.deeper()) for node in (first, *map(_all_named, reversed(nodes)))]
    private = parts[0].private
    if any(part.private != private for part in parts):
        raise UnsupportedSql(
            "UNION ALL must not put public rows among private ones, for they belong to nobody; join instead"
        )
    relations = [rows.relation for rows in parts]
    if private:
        require_alike(relations, "UNION ALL")
    require_same_types(relations, "UNION ALL")
    relation: Relation = Union(tuple(relations))
    return Rows.of(Distinct(relation) if distinct else relation, None, private=private)


def _starred(item: exp.Expr) -> bool:
    return isinstance(item.this if isinstance(item, exp.Column) else item, exp.Star)


def _all_named(query: exp.Expr) -> exp.Expr:
    """Name the columns of a part of a union: only those of the first part are ever called by name."""
    if isinstance(query, exp.Select) and not any(map(_starred, query.expressions)):
        items = [
            exp.alias_(item.this if isinstance(item, exp.Alias) else item, f"column_{position}", copy=False)
            for position, item in enumerate(query.expressions, 1)
        ]
        query.set("expressions", items)
    return query


def _selected(select: exp.Select, tables: Tables) -> Rows:
    for slot, message in _REFUSED_INSIDE.items():
        if select.args.get(slot):
            raise UnsupportedSql(message)
    slots = ("expressions", "from_", "joins", "where", "group", "having", "qualify", "distinct", "with_")
    only(select, *slots, what="a subquery")
    tables = tables.with_common(select.args.get("with_"))
    if select.args.get("from_") is None:
        return Rows.of(row_selected(select), None, private=False)
    rows = read_item(select.args["from_"].this, tables)
    for join in select.args.get("joins") or ():
        rows = read_join(rows, join, tables)
    select, rows = with_values(select, rows, tables, read_query)
    where = select.args.get("where")
    rows = rows if where is None else filtered(rows, where.this, tables)
    relation = _grouped(select, rows) if groups_units(select) else _projected(select, rows)
    if select.args.get("distinct") is not None:
        only(select.args["distinct"], what="DISTINCT")
        if rows.private and relation.unit is None:
            raise UnsupportedSql("DISTINCT where each row is a unit mixes units; group in the outer SELECT")
        relation = Distinct(relation)
    return Rows.of(relation, None, private=rows.private)


def filtered(rows: Rows, condition: exp.Expr, tables: Tables) -> Rows:
    """Return the rows that meet WHERE; a part of it may ask whether a value is in a public subquery."""
    plain, members = [], []
    for part in chain(condition, exp.And):
        negated = isinstance(part, exp.Not)
        test = part.this.unnest() if negated else part
        if isinstance(test, exp.Exists) or (isinstance(test, exp.In) and test.args.get("query") is not None):
            members.append((test, negated != bool(test.args.get("negate"))))
        else:
            plain.append(part)
    relation = rows.relation
    if plain and not members:
        relation = Filter(relation, read_predicate(condition, rows, "the condition of WHERE"))
    elif plain:
        read = together([read_predicate(part, rows, "the condition of WHERE") for part in plain])
        relation = relation if read is None else Filter(relation, read)
    for test, negated in members:
        relation = _member(rows, relation, test, tables, negated=negated)
    return replace(rows, relation=relation)


_PRIVATE_MEMBERS = "{} must not read a private table, for that mixes units; join on the privacy unit instead"


def _member(rows: Rows, relation: Relation, test: exp.Expr, tables: Tables, *, negated: bool) -> Relation:
    """Return the rows that IN or EXISTS retains: EXISTS is whether one is among ones."""
    exists = isinstance(test, exp.Exists)
    word = "EXISTS" if exists else "IN"
    only(test, *(("this",) if exists else ("this", "query", "negate")), what=word)
    query = test.this if exists else test.args["query"]
    if reads_private(query, tables):
        raise UnsupportedSql(_PRIVATE_MEMBERS.format(word))
    listed = read_query(query, tables.deeper())
    if listed.private:
        raise UnsupportedSql(_PRIVATE_MEMBERS.format(word))
    if exists:
        one = Expression(number("1").tree, ColumnType.INTEGER)
        return InPublic(relation, one, Project(listed.relation, (Named("one", one),), None), negated)
    columns = listed.schema.usable.columns
    if len(columns) != 1:
        raise SchemaError(f"the subquery of IN must have one column, got {len(columns)}; select one")
    subject = read_expression(test.this, rows, "the left side of IN")
    sides = [TypedTree(subject.tree, subject.type), column(columns[0].name, columns[0].type)]
    _, type_ = common(sides, "IN")
    public = listed.relation
    if type_ is not None and subject.type is not type_:
        subject = Expression(cast(sides[0], type_).tree, type_)
    if type_ is not None and columns[0].type is not type_:
        made = Named(columns[0].name, Expression(cast(sides[1], type_).tree, type_))
        public = Project(public, (made,), None)
    return InPublic(relation, subject, public, negated)


def _grouped(select: exp.Select, rows: Rows) -> Relation:
    """Read a SELECT with GROUP BY over the rows of each unit."""
    if select.args.get("qualify") is not None:
        raise UnsupportedSql("QUALIFY must not stand beside GROUP BY; write a subquery for it")
    groups = Groups.of(select, rows)
    columns, unnamed = [], itertools.count()
    for item in select.expressions:
        node, alias = named_item(item)
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            raise UnsupportedSql("* must not stand beside GROUP BY; name the columns")
        columns.append(_column(node, alias, groups, groups.whole, unnamed))
    having = select.args.get("having")
    condition = None
    if having is not None:
        aliases = {named.name.casefold(): named.expression for named in columns}

        def whole_or_alias(node: exp.Expr) -> TypedTree | None:
            named = isinstance(node, exp.Column) and not node.table and not rows.has(node.name)
            found = aliases.get(node.name.casefold()) if named else None
            return groups.whole(node) if found is None else TypedTree(operand(found).copy(), found.type)

        condition = read_expression(having.this, groups, "the condition of HAVING", whole=whole_or_alias)
    relation: Relation = groups.relation
    if condition is not None:
        relation = Filter(relation, require(condition, {ColumnType.BOOLEAN}, "the condition"))
    return _project(columns, relation, private=rows.private)


def _projected(select: exp.Select, rows: Rows) -> Relation:
    """Read a SELECT that computes row by row, and over windows of a unit's rows."""
    windows = Windows.of(rows)
    items = select.expressions
    qualify = select.args.get("qualify")
    if len(items) == 1 and _is_star(items[0], rows) == "*" and qualify is None and len(rows.members) == 1:
        return rows.relation
    columns: list[Named] = []
    unnamed = itertools.count()
    for item in items:
        star = _is_star(item, rows)
        if star is not None:
            columns += rows.everything(None if star == "*" else star)
            continue
        node, alias = named_item(item)
        if any(is_aggregate(part) for part in node.walk()) and not has_window(node):
            raise UnsupportedSql("an aggregate in a subquery needs GROUP BY; add it")
        columns.append(_column(node, alias, rows, windows.whole, unnamed))
    condition = None
    if qualify is not None:
        if not has_window(qualify.this):
            raise UnsupportedSql("QUALIFY must name a window; write WHERE")
        condition = read_expression(qualify.this, rows, "QUALIFY", whole=windows.whole)
        require(condition, {ColumnType.BOOLEAN}, "the condition")
    relation = windows.relation
    relation = relation if condition is None else Filter(relation, condition)
    return _project(columns, relation, private=rows.private)


def _is_star(item: exp.Expr, rows: Rows) -> str | None:
    """Return ``*``, or the qualifier before it; None for what is no star."""
    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star):
        return None
    if any(star.args.values()):
        raise UnsupportedSql("* must stand alone, without EXCEPT, REPLACE or RENAME; name the columns")
    if not isinstance(item, exp.Column):
        return "*"
    if not rows.answers_to(item.table):
        raise SchemaError(f"the qualifier {item.table!r} names no table of the query; write *")
    return str(item.table)


def _column(
    node: exp.Expr,
    alias: str | None,
    scope: Scope,
    whole: Callable[[exp.Expr, str | None], TypedTree | None],
    unnamed: Iterator[int],
) -> Named:
    """Read a column of a subquery; an aggregate or a window that it is as a whole takes its name."""
    found = whole(node, alias)
    if found is None or found.type is None:
        read = read_expression(node, scope, "a column of a subquery", whole=lambda part: whole(part, None))
    else:
        read = Expression(found.tree, found.type)
    if alias is not None:
        return Named(alias, read)
    if not isinstance(node, exp.Column):
        return Named(f"f{next(unnamed)}_", read)  # BigQuery's names
    same = read.tree.name.casefold() == node.name.casefold()
    return Named(str(read.tree.name) if same else output_name(node.name), read)


def _project(columns: list[Named], relation: Relation, *, private: bool) -> Relation:
    seen: set[str] = set()
    for named in columns:
        if named.name.casefold() in seen:
            raise SchemaError(f"a subquery names the column {named.name!r} twice; rename one with AS")
        seen.add(named.name.casefold())
    unit = relation.unit
    unit_name = None
    if private and unit is not None:
        unit_name = next((named.name for named in columns if _names(named.expression, unit)), None)
        if unit_name is None:
            raise UnsupportedSql(
                f"a subquery over private rows must keep the privacy unit; add {unit} to its SELECT list"
            )
    if not isinstance(relation, (Scan, PublicScan, Filter, Project)) and _same(columns, relation):
        return relation
    return Project(relation, tuple(columns), unit_name)


def _names(expression: Expression, name: str) -> bool:
    return isinstance(expression.tree, exp.Column) and expression.tree.name.casefold() == name.casefold()


def _same(columns: list[Named], relation: Relation) -> bool:
    """Return whether a SELECT list is that of the relation below, which then needs no node of its own."""
    names = [known.name for known in relation.schema.usable.columns]
    return [named.name for named in columns] == names and all(
        _names(named.expression, named.name) for named in columns
    )
