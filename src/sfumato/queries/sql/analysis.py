"""The front door of SQL: from text to a checked, typed :class:`~sfumato.queries.plan.query.Query`.

What comes out holds only whitelisted expressions over one private table, with the unit column left in at
every node, so that the price step and the engine can bound each unit's contribution behind every user
expression. Nothing here looks at data: an error depends on the text, the schema and the session's parameters
only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato.errors import OptionError, UnsupportedSql
from sfumato.queries.plan.query import (
    MOMENT_KINDS,
    AggregateKind,
    Expression,
    GroupSelection,
    Options,
    PublicGroups,
    PublicValues,
    Query,
)
from sfumato.queries.plan.stated_limits import cut_counts
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.catalog import Catalog, Tables
from sfumato.queries.sql.clauses.answer_expressions import AnswerColumns
from sfumato.queries.sql.clauses.from_clause import FromClause, read_from
from sfumato.queries.sql.clauses.public_groups import groups_from_caller
from sfumato.queries.sql.clauses.scalar_subqueries import with_values
from sfumato.queries.sql.clauses.select_list import (
    read_having,
    read_items,
    read_keys,
    read_order,
    read_outputs,
)
from sfumato.queries.sql.clauses.table_expressions import filtered, read_query
from sfumato.queries.sql.expressions.rewrites import buckets
from sfumato.queries.sql.options import Situation, given_options, resolve_options
from sfumato.queries.sql.parser import Statement, parse
from sfumato.queries.sql.query_parameters import NO_PARAMETERS, Parameters

__all__ = ["read", "read_statement"]

_OVER_ROWS = MOMENT_KINDS | {AggregateKind.QUANTILE, AggregateKind.QUANTILES}
_OF_GROUPS = frozenset({"group_selection_strategy", "group_selection_epsilon", "min_privacy_units_per_group"})
_REPORT = "truncation_epsilon"
_DOWN = 1 - 2**-50  # so that parts never add up to more, however they are rounded
_ROWS_BY_DEFAULT = 5  # ZetaSQL's, of one unit in one group

_REFUSED = {
    "distinct": "SELECT DISTINCT is not supported; GROUP BY the columns, unknown groups pass a threshold",
    "qualify": "QUALIFY is not supported; write HAVING, which reads released columns and costs no privacy",
    "windows": "WINDOW is not supported; aggregate with GROUP BY",
    "kind": "SELECT AS STRUCT and AS VALUE are not supported; select columns",
    "into": "SELECT INTO is not supported; write the released table to a file yourself",
    "laterals": "LATERAL is not supported; name a private table or a subquery over it",
}

_CLAUSES = (
    *("with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"),
)


def read(
    text: str,
    catalog: Catalog,
    *,
    defaults: Mapping[str, object] | None = None,
    public_groups: Mapping[str, Sequence[object]] | None = None,
    parameters: Parameters = NO_PARAMETERS,
) -> Query:
    """Read one private SELECT.

    Parameters
    ----------
    text : str
        The SQL, in BigQuery's spelling.
    catalog : Catalog
        The tables of the session.
    defaults : mapping, optional
        Values of options that OPTIONS leaves out; a plain SELECT is answered only where they give an epsilon.
    public_groups : mapping, optional
        Groups known without the data: for each GROUP BY item its values (several items make the cross
        product), or one tuple of items with rows of values.
    parameters : Parameters
        What ``@name`` stands for.

    Returns
    -------
    Query

    Raises
    ------
    SqlSyntaxError
        If the text is not SQL.
    UnsupportedSql
        If the SQL has no private meaning here; the message says what to write instead.
    SchemaError
        If a table or column is unknown, or a type does not fit.
    OptionError
        If an option or a bound is missing, unknown, or out of range.

    Examples
    --------
    >>> from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
    >>> schema = Schema((Column("id", ColumnType.INTEGER), Column("state", ColumnType.TEXT)))
    >>> query = read(
    ...     '''SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=1)
    ...        state, COUNT(*) AS n FROM data GROUP BY state''',
    ...     Catalog({"data": Scan("data", schema, "id")}),
    ... )
    >>> query.output
    ('state', 'n')
    """
    return read_statement(parse(text, parameters), catalog, defaults=defaults, public_groups=public_groups)


def read_statement(
    statement: Statement,
    catalog: Catalog,
    *,
    defaults: Mapping[str, object] | None = None,
    public_groups: Mapping[str, Sequence[object]] | None = None,
) -> Query:
    """Read a private SELECT that was parsed, as `read` does.

    Parameters
    ----------
    statement : Statement
    catalog, defaults, public_groups
        As for `read`.

    Returns
    -------
    Query
    """
    try:
        return _read(statement, catalog, defaults or {}, public_groups)
    except RecursionError:
        raise UnsupportedSql("the query is nested too deep; simplify it") from None


def _read(
    statement: Statement,
    catalog: Catalog,
    defaults: Mapping[str, object],
    public_groups: Mapping[str, Sequence[object]] | None,
) -> Query:
    given = None
    if statement.options is not None:
        given = given_options(statement.options, statement.parameters)
    select = statement.select
    for slot, message in _REFUSED.items():
        if select.args.get(slot):
            raise UnsupportedSql(message)
    only(select, *_CLAUSES, what="SELECT")
    tables = Tables(catalog).with_common(select.args.get("with_"))
    source = read_from(select, tables)
    select, rows = with_values(select, source.rows, tables, read_query)
    source, items = replace(source, rows=rows), read_items(select)
    where = select.args.get("where")
    relation = (source.rows if where is None else filtered(source.rows, where.this, tables)).relation
    keys = read_keys(select, items, source)
    listed = _how_listed(source, public_groups, grouped=bool(keys))
    bins = None if listed else _bins(keys, {**defaults, **(given or {})})
    situation = Situation(relation.unit, bool(keys), "argument" if bins else listed)
    if statement.parts > 1 and not keys:  # the set of no keys has no groups to choose
        given = {name: value for name, value in (given or {}).items() if name not in _OF_GROUPS}
    options = _part_of(resolve_options(given, defaults, situation), statement.parts)
    max_rows = 1 if relation.unit is None else options.max_rows
    answer = read_outputs(items, keys, source, max_rows=max_rows)
    groups = bins or _listed_groups(source, public_groups, answer)
    having, order = read_having(select, answer), read_order(select, answer)
    if max_rows is None and any(aggregate.kind in _OVER_ROWS for aggregate in answer.aggregates):
        options = replace(options, max_rows_per_group=_ROWS_BY_DEFAULT)
    limit, offset = _limit_and_offset(select)
    if not answer.aggregates and (groups is not None or not keys):
        raise UnsupportedSql(
            "there is nothing to release but the listed groups; add an aggregate such as COUNT(*)"
        )
    query = Query(
        relation=relation,
        keys=answer.keys,
        aggregates=tuple(
            replace(aggregate, epsilon=_part(aggregate.epsilon, statement.parts))
            for aggregate in answer.aggregates
        ),
        options=options,
        public_groups=groups,
        output=answer.output,
        order_by=order,
        limit=limit,
        computed=tuple(answer.computed),
        having=having,
        offset=offset,
    )
    return query if _REPORT in (given or {}) and statement.parts == 1 else _reported_where_cut(query)


def _reported_where_cut(query: Query) -> Query:
    """Return the query without the report that a default, or another set of keys, asks for in vain."""
    if query.options.truncation_epsilon is None or cut_counts(query):
        return query
    return replace(query, options=replace(query.options, truncation_epsilon=None))


def _part_of(options: Options, parts: int) -> Options:
    """Return the options of one of several SELECTs that share epsilon and delta evenly."""
    if parts == 1:
        return options
    return replace(
        options,
        epsilon=options.epsilon / parts * _DOWN,
        delta=options.delta / parts * _DOWN,
        group_selection_epsilon=_part(options.group_selection_epsilon, parts),
        truncation_epsilon=_part(options.truncation_epsilon, parts),
    )


def _part(stated: float | None, parts: int) -> float | None:
    return stated if stated is None or parts == 1 else stated / parts * _DOWN


def _how_listed(
    source: FromClause, public_groups: Mapping[str, Sequence[object]] | None, *, grouped: bool
) -> str:
    if public_groups is not None and source.groups is not None:
        raise OptionError(
            "public_groups must not be given for a query that joins a public list; keep one of them"
        )
    if public_groups is not None and not grouped:
        raise OptionError(
            "public_groups must come with GROUP BY, got none; add GROUP BY, or leave public_groups out"
        )
    if source.groups is not None and not grouped:
        raise UnsupportedSql(
            "the join with a public list needs GROUP BY; add GROUP BY, or leave the join out"
        )
    if source.groups is not None:
        return "join"
    return "" if public_groups is None else "argument"


def _bins(keys: Sequence[Expression], options: Mapping[str, object]) -> PublicGroups | None:
    """Return the buckets of a histogram as public groups, if that is what is asked for.

    They are public, for they follow from the query. Rows without a value are in none of them.
    """
    strategy = options.get("group_selection_strategy")
    public = GroupSelection.PUBLIC_GROUPS
    if len(keys) != 1 or not (strategy is public or str(strategy).upper() == public.value):
        return None
    many = buckets(keys[0])
    return None if many is None else PublicValues(tuple((index,) for index in range(many + 2)))


def _listed_groups(
    source: FromClause, public_groups: Mapping[str, Sequence[object]] | None, answer: AnswerColumns
) -> PublicGroups | None:
    if source.groups is not None:
        return source.groups.in_order_of(answer.keys)
    return None if public_groups is None else groups_from_caller(public_groups, answer.keys)


def _limit_and_offset(select: exp.Select) -> tuple[int | None, int]:
    limit, offset = select.args.get("limit"), select.args.get("offset")
    if limit is not None and not isinstance(limit, exp.Limit):
        raise UnsupportedSql("FETCH is not supported; write LIMIT n")
    count = None if limit is None else _whole_number(limit, "LIMIT")
    if count == 0:
        raise UnsupportedSql("LIMIT must be at least 1, or an empty answer is paid for; write LIMIT 10")
    return count, 0 if offset is None else _whole_number(offset, "OFFSET")


def _whole_number(clause: exp.Expr, what: str) -> int:
    only(clause, "expression", what=what)
    node = clause.expression
    if not isinstance(node, exp.Literal) or not node.is_int or len(node.name) > 18:
        raise UnsupportedSql(f"{what} must be a whole number; write {what} 10")
    return int(node.name)
