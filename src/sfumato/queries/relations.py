"""The private rows of a FROM clause: a table, or subqueries over it, as a chain of Scan, Filter and Project.

Guarantee: every node has stability 1 (a row of the result comes from one row below it) and keeps the unit
column, so bounding what one unit adds to the result bounds what one unit of the table adds.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.catalog import CommonTable, Source, Tables, suggestion
from sfumato.queries.expressions import is_aggregate, read_expression, read_predicate
from sfumato.queries.plan import Expression, Filter, Named, Project, Relation, Scan
from sfumato.queries.terms import Term, column, only

__all__ = ["Rows", "is_private", "output_name", "read_rows", "table_source", "unwrapped"]

_DEEPEST_NESTING = 16

_REFUSED_INSIDE = {
    "distinct": "DISTINCT in a subquery mixes the rows of several units; group in the outer SELECT instead",
    "limit": "LIMIT in a subquery picks rows by what others hold; use max_rows_per_group in OPTIONS",
    "offset": "OFFSET in a subquery picks rows by what others hold; use max_rows_per_group in OPTIONS",
    "group": "a subquery over private rows must not aggregate; aggregate once, in the outermost SELECT",
    "having": "HAVING in a subquery mixes the rows of several units; write WHERE",
    "qualify": "QUALIFY in a subquery mixes the rows of several units; write WHERE",
    "windows": "WINDOW in a subquery mixes the rows of several units; group in the outer SELECT instead",
    "order": "ORDER BY in a subquery has no effect; move it to the outermost SELECT",
    "joins": "a join in a subquery is not supported; join the tables before connecting",
    "with_": "WITH inside a subquery is not supported; write it above the outermost SELECT",
}


@dataclass(frozen=True, slots=True)
class Rows:
    """Private rows and the name that qualifies their columns."""

    relation: Relation
    qualifier: str | None

    def resolve(self, qualifier: str | None, name: str) -> Term:
        """Return the column as a term, or refuse it."""
        if qualifier is not None and not self.answers_to(qualifier):
            known = [] if self.qualifier is None else [self.qualifier]
            raise SchemaError(
                f"the qualifier {qualifier!r} names no table of the query; "
                f"{suggestion(qualifier, known, 'qualifiers')}"
            )
        found = self.relation.schema.find(name)
        if found is None:
            names = [known.name for known in self.relation.schema.columns]
            raise SchemaError(f"the column {name!r} does not exist; {suggestion(name, names, 'columns')}")
        if found.type is None:
            raise SchemaError(
                f"the column {found.name!r} has a type that a query cannot use; convert it before connecting"
            )
        return column(found.name, found.type)

    def answers_to(self, qualifier: str) -> bool:
        """Tell whether a qualifier means these rows."""
        return self.qualifier is not None and self.qualifier.casefold() == qualifier.casefold()

    def is_unit(self, expression: Expression) -> bool:
        """Tell whether an expression is the privacy unit itself."""
        unit = self.relation.unit
        tree = expression.tree
        return unit is not None and isinstance(tree, exp.Column) and tree.name.casefold() == unit.casefold()


def unwrapped(item: exp.Expr) -> exp.Expr:
    """Take off parentheses around a table or a subquery, as far as they carry no alias."""
    while isinstance(item, exp.Subquery) and isinstance(item.this, (exp.Subquery, exp.Table)):
        if item.args.get("alias") is not None and item.this.args.get("alias") is not None:
            break
        inner = item.this
        if item.args.get("alias") is not None:
            inner.set("alias", item.args["alias"])
        item = inner
    return item


def table_source(item: exp.Table, tables: Tables) -> Source:
    """Find the table that an item of FROM names; functions, files and other databases are refused."""
    if not isinstance(item.this, exp.Identifier):
        raise UnsupportedSql("a table function is not answered; name a table of this session")
    name = ".".join(part.name for part in item.parts)
    if item.args.get("joins"):
        raise UnsupportedSql("a join in parentheses is not supported; join the tables before connecting")
    only(item, "this", "db", "catalog", "alias", what=f"the table {name!r}")
    alias = item.args.get("alias")
    if alias is not None:
        only(alias, "this", what=f"the alias of {name!r}")
    return tables.find(name)


def is_private(item: exp.Expr, tables: Tables, depth: int = 0) -> bool:
    """Tell whether an item of FROM reads private rows; what is no table or subquery is refused."""
    item = unwrapped(item)
    if depth > _DEEPEST_NESTING:
        raise UnsupportedSql(f"subqueries must be nested at most {_DEEPEST_NESTING} deep; simplify the query")
    if isinstance(item, exp.Unnest):
        return False
    if isinstance(item, exp.Table):
        source = table_source(item, tables)
        if isinstance(source, CommonTable):
            return _reads_private(source.select, source.tables, depth)
        return isinstance(source, Scan)
    if isinstance(item, exp.Subquery):
        return _reads_private(item.this, tables, depth)
    raise UnsupportedSql(f"{item.key.upper()} in FROM is not supported; name a table or write a subquery")


def _reads_private(query: exp.Expr, tables: Tables, depth: int) -> bool:
    if isinstance(query, exp.SetOperation):
        raise UnsupportedSql(
            f"{query.key.upper()} in FROM is not supported: its parts may place the unit column differently; "
            "put the rows into one table before connecting"
        )
    if not isinstance(query, exp.Select):
        raise UnsupportedSql("a subquery must be a SELECT; write (SELECT ... FROM ...)")
    if query.args.get("joins"):  # refused here, so that the way down is one path and not a tree of them
        raise UnsupportedSql(_REFUSED_INSIDE["joins"])
    from_ = query.args.get("from_")
    return from_ is not None and is_private(from_.this, tables, depth + 1)


def read_rows(item: exp.Expr, tables: Tables) -> Rows:
    """Read an item of FROM that :func:`is_private` said reads private rows."""
    item = unwrapped(item)
    alias = item.alias or None
    if isinstance(item, exp.Table):
        source = table_source(item, tables)
        if isinstance(source, Scan):
            return Rows(tables.catalog.rows_of(source), alias or item.name)
        if isinstance(source, CommonTable) and isinstance(source.select, exp.Select):
            return Rows(_derived(source.select, source.tables), alias or item.name)
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select):
        only(item, "this", "alias", what="a subquery")
        if item.args.get("alias") is not None:
            only(item.args["alias"], "this", what="the alias of a subquery")
        return Rows(_derived(item.this, tables), alias)
    raise UnsupportedSql("FROM must name a private table or a subquery over it; write FROM table")


def _derived(select: exp.Select, tables: Tables) -> Relation:
    """Read SELECT expressions FROM rows WHERE condition."""
    for slot, message in _REFUSED_INSIDE.items():
        if select.args.get(slot):
            raise UnsupportedSql(message)
    only(select, "expressions", "from_", "where", what="a subquery")
    rows = read_rows(select.args["from_"].this, tables)
    relation = rows.relation
    where = select.args.get("where")
    if where is not None:
        relation = Filter(relation, read_predicate(where.this, rows, "the condition of WHERE"))
    if len(select.expressions) == 1 and _is_plain_star(select.expressions[0], rows):
        return relation
    return _project(select.expressions, relation, Rows(relation, rows.qualifier))


def _project(items: list[exp.Expr], relation: Relation, rows: Rows) -> Project:
    columns: list[Named] = []
    for item in items:
        columns += _all_columns(rows) if _is_plain_star(item, rows) else [_named(item, rows)]
    seen: set[str] = set()
    for named in columns:
        if named.name.casefold() in seen:
            raise SchemaError(f"a subquery names the column {named.name!r} twice; rename one with AS")
        seen.add(named.name.casefold())
    unit = next((named.name for named in columns if rows.is_unit(named.expression)), None)
    if relation.unit is not None and unit is None:
        raise UnsupportedSql(
            f"a subquery over private rows must keep the privacy unit; add {relation.unit} to its SELECT list"
        )
    return Project(relation, tuple(columns), unit)


def _is_plain_star(item: exp.Expr, rows: Rows) -> bool:
    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star):
        return False
    if any(star.args.values()):
        raise UnsupportedSql("* must stand alone, without EXCEPT, REPLACE or RENAME; name the columns")
    if isinstance(item, exp.Column) and not rows.answers_to(item.table):
        raise SchemaError(f"the qualifier {item.table!r} names no table of the query; write *")
    return True


def _all_columns(rows: Rows) -> list[Named]:
    usable = ((known.name, known.type) for known in rows.relation.schema.columns)
    return [
        Named(name, Expression(column(name, type_).tree, type_))
        for name, type_ in usable
        if type_ is not None
    ]


def _named(item: exp.Expr, rows: Rows) -> Named:
    inner = item.this if isinstance(item, exp.Alias) else item
    if is_aggregate(inner):
        raise UnsupportedSql(_REFUSED_INSIDE["group"])
    expression = read_expression(inner, rows, "a column of a subquery")
    if isinstance(item, exp.Alias):
        return Named(output_name(item.alias), expression)
    if isinstance(expression.tree, exp.Column):
        return Named(expression.tree.name, expression)
    raise SchemaError("a computed column of a subquery must have a name; add AS name")


def output_name(name: str) -> str:
    """Return a name that a column may carry."""
    if not name or not name.isprintable() or len(name) > 300:
        raise SchemaError(
            "a column's name must be printable, not empty and at most 300 long; choose another with AS"
        )
    return name
