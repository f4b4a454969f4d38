"""Larger SQL taken apart: the private SELECTs, each for itself, and the outer SQL that reads their answers.

A private SELECT inside of larger SQL may name the common table expressions in reach of it, which are rows and
no answers. The outer SQL may name the answers, by the subquery or the name in WITH that they stand in, and
public tables: whatever else it names is refused. A private SELECT in WITH that nothing reads is left out: it
is neither answered nor charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import ErrorLevel, exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.outer.whitelist import in_duckdb
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.catalog import Catalog, free_name, suggestion
from sfumato.queries.sql.parser import LargerStatement, Statement

__all__ = ["OuterQuery", "separate"]

_MAX_PRIVATE = 32


@dataclass(frozen=True, slots=True)
class OuterQuery:
    """The outer SQL, checked, and the private SELECTs whose answers it reads.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        Of whitelisted nodes, in the terms of DuckDB; its tables are those of ``answers`` and ``public``.
    text : str
        The outer SQL as it was written, with the names of the answers, for people.
    private : tuple of Statement
        Those whose answers are read, each with the common table expressions that it names.
    answers : tuple of str
        What the tree calls the answer of each.
    public : mapping of str to str
        What the tree calls public tables, and the session's names of these.
    unread : tuple of str
        The names in WITH of private SELECTs that nothing reads.
    """

    tree: exp.Expr
    text: str
    private: tuple[Statement, ...]
    answers: tuple[str, ...]
    public: Mapping[str, str]
    unread: tuple[str, ...] = ()


def separate(statement: LargerStatement, catalog: Catalog) -> OuterQuery:
    """Take larger SQL apart.

    Parameters
    ----------
    statement : LargerStatement
        As it was parsed; its tree is changed.
    catalog : Catalog
        Of the session.

    Returns
    -------
    OuterQuery

    Raises
    ------
    UnsupportedSql
        If the outer SQL holds what is not on its whitelist, or reads no answer, or SELECTs are too many.
    SchemaError
        If it names a private table, or one that does not exist.

    Examples
    --------
    >>> from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
    >>> from sfumato.queries.sql.parser import parse_statement
    >>> catalog = Catalog({"data": Scan("data", Schema((Column("age", ColumnType.INTEGER),)), None)})
    >>> parsed = parse_statement(
    ...     "WITH a AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(*) AS n "
    ...     "FROM data) SELECT n / 2 AS half FROM a"
    ... )
    >>> outer = separate(parsed, catalog)
    >>> outer.private[0].select.sql(), outer.answers
    ('SELECT COUNT(*) AS n FROM data', ('answer_1',))
    >>> outer.tree.sql()
    'WITH a AS (SELECT * FROM answer_1) SELECT n / NULLIF(2, 0) AS half FROM a'
    """
    if len(statement.private) > _MAX_PRIVATE:
        raise UnsupportedSql(
            f"a statement must have at most {_MAX_PRIVATE} private SELECTs, got {len(statement.private)}; "
            "split it"
        )
    selects = [each.select for each in statement.private]
    private = tuple(replace(each, select=_alone(each.select, selects)) for each in statement.private)
    taken = {node.name.casefold() for node in statement.tree.find_all(exp.Identifier)}
    tables = [exp.Table(this=exp.to_identifier("")) for _ in selects]
    for select, table in zip(selects, tables, strict=True):
        select.replace(exp.select("*").from_(table))
    dropped = _drop_unread(statement.tree)
    left = {id(table) for table in statement.tree.find_all(exp.Table)}
    unread = tuple(cte.alias for cte in dropped if any(t.name == "" for t in cte.find_all(exp.Table)))
    read = [index for index, table in enumerate(tables) if id(table) in left]
    if not read:
        raise UnsupportedSql(
            "the SQL around private SELECTs must read an answer of theirs, got none; name one in FROM"
        )
    private = tuple(private[index] for index in read)
    answers = tuple(free_name(f"answer_{i}", taken) for i in range(1, len(read) + 1))
    for index, name in zip(read, answers, strict=True):
        tables[index].set("this", exp.to_identifier(name))
    tree = statement.tree.copy()
    found = _Tables(catalog, set(answers), taken, {})
    for each in list(tree.find_all(exp.Table)):
        found.resolve(each)
    tree = in_duckdb(tree)
    text = statement.tree.sql(dialect="bigquery", comments=False, unsupported_level=ErrorLevel.IGNORE)
    return OuterQuery(tree, text, private, answers, found.public, unread)


def _alone(select: exp.Select, private: Sequence[exp.Select]) -> exp.Select:
    """Return a copy of a private SELECT with the common table expressions around it that it names."""
    own = select.args.get("with_")
    if own is not None and own.args.get("recursive"):
        return select.copy()  # refused by whoever reads it
    around = [*_around(select), *([] if own is None else own.expressions)]
    needed, named = _named(select), []
    for cte in reversed(around):
        if cte.alias.casefold() in needed:
            named.append(cte)
            needed |= _named(cte)
    answers = {id(each) for each in private}
    for cte in named:
        if any(id(inner) in answers for inner in cte.find_all(exp.Select)):
            raise UnsupportedSql(
                f"a private SELECT must read rows, got the answer {cte.alias!r} of another; join the answers "
                "in the SQL around both"
            )
    alone = select.copy()
    alone.set("with_", exp.With(expressions=[cte.copy() for cte in reversed(named)]) if named else None)
    return alone


def _around(node: exp.Expr) -> list[exp.Expr]:
    """Return the common table expressions in reach of a node, the outermost first."""
    levels: list[list[exp.Expr]] = []
    below, above = node, node.parent
    inside: exp.Expr | None = None
    while above is not None:
        if isinstance(above, exp.With):
            inside = below
        clause = above.args.get("with_")
        if clause is not None and clause is not below:
            levels.append(list(clause.expressions))
        elif clause is not None:
            positions = [index for index, cte in enumerate(clause.expressions) if cte is inside]
            levels.append(list(clause.expressions[: positions[0]]))
        below, above = above, above.parent
    return [cte for level in reversed(levels) for cte in level]


def _named(node: exp.Expr) -> set[str]:
    return {table.name.casefold() for table in node.find_all(exp.Table)}


def _drop_unread(tree: exp.Expr) -> list[exp.CTE]:
    """Drop the common table expressions that the outer SQL does not read, and return them.

    It reads those that its tables name, and those that the tables of these name.
    """
    tables: dict[int, list[exp.Table]] = {}
    for table in tree.find_all(exp.Table):
        tables.setdefault(id(_holder(table)), []).append(table)
    read: set[int] = set()
    pending = [id(None)]
    while pending:
        for table in tables.get(pending.pop(), ()):
            named = [cte for cte in _around(table) if cte.alias.casefold() == table.name.casefold()]
            # Of one clause all are read that have the name, of which the database then says so.
            new = [id(cte) for cte in named if cte.parent is named[-1].parent and id(cte) not in read]
            read.update(new)
            pending += new
    unread = [cte for cte in tree.find_all(exp.CTE) if id(cte) not in read]
    for cte in unread:
        clause = cte.parent
        cte.pop()
        if clause is not None and not clause.expressions:
            clause.pop()
    return unread


def _holder(node: exp.Expr) -> exp.CTE | None:
    """Return the common table expression that a node stands in, the innermost one."""
    return next((above for above in _parents(node) if isinstance(above, exp.CTE)), None)


def _parents(node: exp.Expr) -> Iterator[exp.Expr]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


@dataclass(frozen=True, slots=True)
class _Tables:
    """What the tables of the outer SQL are."""

    catalog: Catalog
    answers: set[str]
    taken: set[str]
    public: dict[str, str]

    def resolve(self, table: exp.Table) -> None:
        """Name a public table as the locked database does; refuse what may not be read."""
        if table.name in self.answers:  # names that the text has nowhere
            return
        only(table, "this", "alias", "joins", what="a table outside of the private SELECTs")
        if not isinstance(table.this, exp.Identifier):
            raise UnsupportedSql(
                "a table function is not answered outside of the private SELECTs; name a public table"
            )
        name = table.name
        if name.casefold() in {cte.alias.casefold() for cte in _around(table)}:
            return
        known = next((each for each in self.catalog.public if each.casefold() == name.casefold()), "")
        if not known:
            self._refuse(name)
        inside = next((mine for mine, theirs in self.public.items() if theirs == known), None)
        if inside is None:
            inside = free_name(f"public_{len(self.public) + 1}", self.taken)
            self.public[inside] = known
        if not table.alias:
            table.set("alias", exp.TableAlias(this=table.this.copy()))
        table.set("this", exp.to_identifier(inside))

    def _refuse(self, name: str) -> None:
        if any(each.casefold() == name.casefold() for each in self.catalog.private):
            raise SchemaError(
                f"the table {name!r} is private and must be read in a private SELECT only, got it in the SQL "
                "around one; put WITH DIFFERENTIAL_PRIVACY OPTIONS(...) behind the SELECT that reads it"
            )
        known = suggestion(name, self.catalog.public, "public tables")
        raise SchemaError(f"the table {name!r} is no answer and no public table of this session; {known}")
