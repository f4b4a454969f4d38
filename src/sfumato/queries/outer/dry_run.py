"""A dry run of outer SQL over made-up rows: it finds what fails whatever is released, before any charge.

Over tables without rows DuckDB finds wrong names and most wrong types. Other faults show over rows alone: a
constant that is too large, the number in a call of NTILE, a text compared with a number, a list beside a
number in UNION. So the SQL runs over three sets of tables of one row each: of NULL, of zeros, and of ones. It
is refused if it fails over NULL, which no released value is to blame for, or over zeros and over ones.

It runs as it was written, and once more with every condition let through and every branch computed, so that
nothing wrong hides behind a condition that made-up rows do not meet.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import duckdb
import pyarrow as pa
from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.outer.database import columns_of, opened, refuse, text_of

__all__ = ["dry_run"]

_SETTINGS: Final = (
    "scalar_subquery_error_on_multiple_rows = false",  # how many rows there are is for the answers to say
    "disabled_optimizers = 'expression_rewriter, filter_pushdown, statistics_propagation'",
)
_BINDING: Final = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.NotImplementedException,
    duckdb.ParserException,
)
_MIXED: Final = "in COALESCE operator"
_LARGE: Final = 300  # nodes
_LEFT: Final = frozenset({"", "INNER"})


def dry_run(tree: exp.Expr, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """Run a statement over tables without rows and over made-up rows, and return the columns that it makes.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        Of nodes on the whitelist.
    schemas : mapping of str to pyarrow.Schema
        The tables.

    Raises
    ------
    SchemaError
        If it does not suit the tables, or fails whatever the values are.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> answer = {"answer": pa.schema([("n", pa.int64())])}
    >>> dry_run(parse_one("SELECT n + 1 AS more FROM answer WHERE n > 100"), answer)
    more: int64
    >>> dry_run(parse_one("SELECT NTILE(0) OVER (ORDER BY n) AS t FROM answer WHERE n > 100"), answer)
    Traceback (most recent call last):
    sfumato.errors.SchemaError: the SQL around private SELECTs must suit their answers, got 'Invalid Input
    Error: Argument for ntile must be greater than zero'; nothing was charged: correct it
    """
    written, wide = text_of(tree), _written(_wide, tree)
    empty = {name: schema.empty_table() for name, schema in schemas.items()}
    with opened(empty, settings=_SETTINGS, shared=True) as connection:
        columns = columns_of(connection, written)
        _check_mixed(connection, tree)
        for sql in (written, *([wide] if wide else [])):
            failures: list[duckdb.Error | None] = []
            for index in range(3):
                for name, schema in schemas.items():
                    connection.register(name, _row(schema, index))
                failures.append(_failure(connection, sql))
                if sql is wide and isinstance(failures[-1], _BINDING):
                    return columns  # it cannot be written so; as it stands it ran
            failed = failures[0] or (failures[1] and failures[2])
            if failed is not None:
                refuse(failed)
    return columns


def _failure(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Error | None:
    try:
        connection.sql(sql).fetchall()
    except duckdb.Error as error:
        return error
    except Exception:  # a value that Python has no type for
        return None
    return None


def _row(schema: pa.Schema, index: int) -> pa.Table:
    columns = [pa.array([None if index == 0 else _value(f.type, index - 1)], f.type) for f in schema]
    return pa.table(columns, schema=schema)


def _value(kind: pa.DataType, number: int) -> object:
    """Return a value of a type: what is 0, or 1, of it."""
    if pa.types.is_list(kind):
        return [_value(kind.value_type, number)]
    if pa.types.is_struct(kind):
        return {part.name: _value(part.type, number) for part in kind}
    if pa.types.is_string(kind):
        return "text" * number
    if pa.types.is_date(kind):
        return dt.date(2000 + number, 1, 1)
    if pa.types.is_timestamp(kind):
        return dt.datetime(2000 + number, 1, 1)
    return bool(number) if pa.types.is_boolean(kind) else number


def _check_mixed(connection: duckdb.DuckDBPyConnection, tree: exp.Expr) -> None:
    """Refuse what puts values of different types into one column, which DuckDB would cast, or fail at.

    That is a set operation, a default of LAG or LEAD, and a condition that is no truth value: DuckDB casts
    texts, of which some are none.
    """
    beside = _written(_mixed, tree)
    if beside is None:
        return
    try:
        connection.sql(beside)  # which binds it, and runs nothing
    except duckdb.Error as error:
        if _MIXED in str(error):
            refuse(
                str(error).replace(_MIXED, "in UNION, INTERSECT or EXCEPT, in LAG or LEAD, or in a condition")
            )


def _written(change: Callable[[exp.Expr], exp.Expr], tree: exp.Expr) -> str | None:
    """Return a statement whose nodes were changed, children first; None where it cannot be written."""
    whole = tree.copy()
    for node in reversed(list(whole.walk())):
        made = change(node)
        if made is not node:
            whole = made if node is whole else whole
            node.replace(made)
    try:
        return text_of(whole)
    except UnsupportedSql:
        return None


def _mixed(node: exp.Expr) -> exp.Expr:
    """Return a set operation's parts as tables side by side, and mix what becomes one column by COALESCE.

    A condition is mixed with TRUE.
    """
    for slot in _conditions(node):
        if (condition := node.args.get(slot)) is not None:
            node.set(slot, exp.Coalesce(this=condition, expressions=[exp.Boolean(this=True)]))
    if isinstance(node, exp.Lag | exp.Lead) and (default := node.args.get("default")) is not None:
        node.set("this", exp.Coalesce(this=node.this, expressions=[default.copy()]))
    if not isinstance(node, exp.SetOperation):
        return node
    names = [item.alias_or_name for item in node.selects]
    columns = [exp.to_identifier(f"c{index}") for index in range(len(names))]
    parts = [
        exp.Subquery(this=part.unnest(), alias=exp.TableAlias(this=exp.to_identifier(table), columns=columns))
        for table, part in (("one", node.left), ("other", node.right))
    ]
    mixed = [
        exp.alias_(
            exp.Coalesce(this=exp.column(c.name, "one"), expressions=[exp.column(c.name, "other")]), name
        )
        for c, name in zip(columns, names, strict=True)
    ]
    made = exp.Select(expressions=mixed).from_(parts[0]).join(parts[1], join_type="cross")
    made.set("with_", node.args.get("with_"))
    return made


def _conditions(node: exp.Expr) -> tuple[str, ...]:
    """Return the arguments of a node that must be truth values."""
    if isinstance(node, exp.If):
        case = node.parent if isinstance(node.parent, exp.Case) else None
        return () if case is not None and case.this is not None else ("this",)
    if isinstance(node, exp.Where | exp.Having | exp.Qualify | exp.Not | exp.CountIf):
        return ("this",)
    if isinstance(node, exp.Join):
        return ("on",)
    return ("this", "expression") if isinstance(node, exp.And | exp.Or) else ()


def _wide(node: exp.Expr) -> exp.Expr:
    """Let every row through, and have every branch computed."""
    for kinds, change in _CHANGES:
        if isinstance(node, kinds):
            return change(node)
    return node


def _through(node: exp.Expr) -> exp.Expr:
    """Let every row through a condition that is computed to its end, with all that AND and OR join."""
    negated = exp.Not(this=exp.Paren(this=node.this))  # of truth values alone
    computed = exp.Is(this=exp.Paren(this=negated), expression=exp.Null())
    node.set("this", exp.Or(this=computed, expression=exp.Boolean(this=True)))
    return node


def _left_join(node: exp.Expr) -> exp.Expr:
    """Keep the rows on the left of a join."""
    if (node.args.get("on") or node.args.get("using")) and {
        str(node.args.get(slot) or "").upper() for slot in ("side", "kind")
    } <= _LEFT:
        node.set("side", "LEFT")
        node.set("kind", None)
    return node


def _default(node: exp.Expr) -> exp.Expr:
    """Look beyond the row, so that the default is what is answered."""
    if node.args.get("default") is not None:
        node.set("offset", exp.Literal.number("1"))
    return node


def _all_rows(node: exp.Expr) -> exp.Expr:
    for slot in ("limit", "offset"):
        node.set(slot, None)
    if not isinstance(node, exp.Intersect | exp.Except):
        return node
    others = {slot: value for slot, value in node.args.items() if slot != "distinct"}
    return exp.Union(**others, distinct=False)


def _every_branch(node: exp.Expr) -> exp.Expr:
    """Compute all conditions and all values of CASE or IF, and then choose."""
    if isinstance(node.parent, exp.Case) and node.arg_key == "ifs":
        return node
    ifs = [node] if isinstance(node, exp.If) else node.args["ifs"]
    compared = None if isinstance(node, exp.If) else node.args.get("this")
    otherwise = node.args.get("default") or node.args.get("false") or exp.Null()
    conditions, values = [each.this for each in ifs], [each.args["true"] for each in ifs]
    wanted: exp.Expr = exp.Boolean(this=True)
    if compared is not None and sum(1 for _ in compared.walk()) > _LARGE:
        wanted = compared  # written once, or it would double with each level
    elif compared is not None:  # by =, which casts otherwise than a search in a list does
        conditions = [exp.EQ(this=_paren(compared), expression=_paren(each)) for each in conditions]
    else:  # as a condition casts them: in a list beside TRUE, texts would be compared as such
        conditions = [exp.Cast(this=_paren(each), to=exp.DataType.build("BOOLEAN")) for each in conditions]
    place = _call("LIST_POSITION", exp.Array(expressions=conditions), wanted)
    chosen = exp.Coalesce(this=place, expressions=[exp.Literal.number(len(values) + 1)])
    return _call("LIST_EXTRACT", exp.Array(expressions=[*values, otherwise]), chosen)


def _every_value(node: exp.Expr) -> exp.Expr:
    return _call("LIST_ANY_VALUE", exp.Array(expressions=[node.this, *node.expressions]))


def _quotient(node: exp.Expr) -> exp.Expr:
    divisor = exp.Nullif(this=node.expression, expression=exp.Literal.number("0"))
    return exp.Div(this=exp.Paren(this=node.this), expression=divisor)


def _paren(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy())


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


_CHANGES: Final[
    Sequence[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], Callable[[exp.Expr], exp.Expr]]]
] = (
    ((exp.Where, exp.Having, exp.Qualify), _through),
    (exp.Join, _left_join),
    ((exp.Select, exp.SetOperation), _all_rows),
    ((exp.Case, exp.If), _every_branch),
    (exp.Coalesce, _every_value),
    (exp.SafeDivide, _quotient),
    ((exp.Lag, exp.Lead), _default),
)
"""What is written in another way; a node is of one of these."""
