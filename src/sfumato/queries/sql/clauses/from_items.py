"""Items of FROM as they are written: parentheses, the tables that they name, and whether one is private."""

from __future__ import annotations

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan.query import Scan
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.catalog import CommonTable, Source, Tables

__all__ = ["reads_private", "table_source", "unwrapped"]


def unwrapped(item: exp.Expr) -> exp.Expr:
    """Take off parentheses around a table or a subquery, as far as they carry no alias."""
    while isinstance(item, exp.Subquery) and isinstance(item.this, (exp.Subquery, exp.Table)):
        inner_alias = item.this.args.get("alias") or item.this.args.get("joins")
        if item.args.get("alias") is not None and inner_alias:
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
    only(item, "this", "db", "catalog", "alias", what=f"the table {name!r}")
    alias = item.args.get("alias")
    if alias is not None:
        only(alias, "this", what=f"the alias of {name!r}")
    return tables.find(name)


def reads_private(query: exp.Expr, tables: Tables) -> bool:
    """Return whether a query names a private table, also by way of names in WITH.

    Names that it defines itself are left to those who read it.
    """
    seen: set[int] = set()

    def named(node: exp.Expr, within: Tables) -> bool:
        own = {cte.alias.casefold() for cte in node.find_all(exp.CTE)}
        for table in node.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier) or table.name.casefold() in own:
                continue
            source = within.find(".".join(part.name for part in table.parts))
            if isinstance(source, Scan):
                return True
            if isinstance(source, CommonTable) and id(source.select) not in seen:
                seen.add(id(source.select))
                if named(source.select, source.tables):
                    return True
        return False

    return named(query, tables)
