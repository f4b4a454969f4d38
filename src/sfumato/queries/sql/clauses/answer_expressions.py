"""Expressions over the answer: what may be computed from keys and aggregates once they are released.

Nothing here reads a row: HAVING, computed columns and ORDER BY are post-processing of noised numbers and cost
no privacy. An aggregate that only they name is released like any other and has its share of epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.errors import QueryError, SchemaError, UnsupportedSql
from sfumato.queries.plan.query import Aggregate, AggregateKind, ColumnType, Expression, Named
from sfumato.queries.plan.typed_expressions import TypedTree, column, from_decimal, operand, require
from sfumato.queries.sql.aggregates.aggregates import read_aggregate
from sfumato.queries.sql.aggregates.rewritten_aggregates import call_of_days, unfiltered
from sfumato.queries.sql.catalog import free_name
from sfumato.queries.sql.clauses.from_clause import FromClause
from sfumato.queries.sql.expressions.scalar import is_aggregate, read_expression

__all__ = ["AnswerColumns", "aggregate_name", "released_type", "require_number"]


def released_type(kind: AggregateKind) -> ColumnType:
    """Return the type of an aggregate's column in expressions: counts are INT64, all others FLOAT64.

    Examples
    --------
    >>> released_type(AggregateKind.COUNT_ROWS).value, released_type(AggregateKind.SUM).value
    ('INT64', 'FLOAT64')
    """
    return ColumnType.INTEGER if kind.name.startswith("COUNT") else ColumnType.FLOAT


def require_number(aggregate: Aggregate) -> None:
    """Refuse an aggregate that is an array, or a report, where a single value is needed."""
    if aggregate.report:
        raise UnsupportedSql(
            "an aggregate with report_format is a text, which can only be shown; write it without "
            "report_format there, which reads the same noise"
        )
    if aggregate.kind is AggregateKind.QUANTILES:
        raise UnsupportedSql(
            "APPROX_QUANTILES makes an array, which can only be shown; use PERCENTILE_CONT(x, 0.5), say, "
            "which reads the same noise"
        )


def aggregate_name(node: exp.Expr, source: FromClause) -> str:
    """Return the name of an aggregate's column that has no alias."""
    node = unfiltered(node)
    function = node.name.lower()
    argument = next((part for part in node.expressions if not isinstance(part, exp.Kwarg)), None)
    if isinstance(argument, exp.Distinct):
        value = next(iter(argument.expressions), None)  # none in COUNT(DISTINCT), which is refused later
        if value is None:
            return f"{function}_distinct"
        if source.rows.names_unit(value):
            return f"{function}_units"
        return (
            f"{function}_distinct_{value.name}" if isinstance(value, exp.Column) else f"{function}_distinct"
        )
    return f"{function}_{argument.name}" if isinstance(argument, exp.Column) else function


@dataclass(slots=True)
class AnswerColumns:
    """The columns of an answer while they are read, and the scope of expressions over them.

    Parameters
    ----------
    source : Source
        What the query reads.
    keys : tuple of Named
    max_rows : int or None
        The maximum number of rows of one unit in one group, where that is known.
    output : tuple of str
        The columns that are shown, in order.
    taken : set of str
        Names in use, case-folded.
    aggregates, computed : list
        What has been read so far; shown or not.
    """

    source: FromClause
    keys: tuple[Named, ...]
    max_rows: int | None
    output: tuple[str, ...]
    taken: set[str]
    aggregates: list[Aggregate] = field(default_factory=list)
    computed: list[Named] = field(default_factory=list)

    def aggregate(self, node: exp.Expr, name: str | None = None) -> Aggregate:
        """Read an aggregate under a name; without one, take the same aggregate if it has been read."""
        read = read_aggregate(node, name or "", self.source.rows, max_rows=self.max_rows)
        if name is None:
            for known in self.aggregates:
                if replace(known, name="") == read:
                    return known
            read = replace(read, name=free_name(aggregate_name(node, self.source), self.taken))
        self.aggregates.append(read)
        return read

    def expression(self, node: exp.Expr, what: str, *, aliases: bool) -> Expression:
        """Read an expression over keys and aggregates; with ``aliases`` the SELECT list's names come first.

        Raises
        ------
        UnsupportedSql
            If it names a column that is neither.
        SchemaError
            If it is a NUMERIC: answers have none.
        """
        known = self._aliases() if aliases else {}
        read = read_expression(node, self, what, whole=lambda part: self._whole(part, known))
        if read.type is ColumnType.DECIMAL:
            raise SchemaError(f"{what} must have a type of answers, got NUMERIC; {from_decimal(read)}")
        return read

    def condition(self, node: exp.Expr, what: str) -> Expression:
        """Read a condition over the answer."""
        read = self.expression(node, what, aliases=True)
        return require(read, {ColumnType.BOOLEAN}, what)

    def hidden(self, expression: Expression, name: str) -> str:
        """Store a computed column that is not shown, and return its name."""
        self.computed.append(Named(free_name(name, self.taken), expression))
        return self.computed[-1].name

    def shadowed(self) -> None:
        """Refuse a name of the SELECT list that is also a column inside of another GROUP BY item."""
        names = {key.name.casefold() for key in self.keys}
        inside = {
            part.name.casefold() for key in self.keys for part in key.expression.tree.find_all(exp.Column)
        }
        for name in self.output:
            if name.casefold() in inside - names:
                raise SchemaError(
                    f"the column {name!r} of the answer is called like a column that is grouped by; "
                    "rename it with AS"
                )

    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        """Refuse a column of the rows: keys and aggregates are found before their columns are asked for."""
        self.source.resolve(qualifier, name)
        if not self.keys:
            raise UnsupportedSql(f"{name!r} would show raw rows; aggregate it, or add it to GROUP BY")
        raise UnsupportedSql(
            f"{name!r} is neither a GROUP BY item nor an aggregate; add it to GROUP BY, or aggregate it"
        )

    def _refuse_array(self, node: exp.Expr) -> None:
        for aggregate in self.aggregates:
            named = isinstance(node, exp.Column) and not node.table and aggregate.name in self.output
            if named and node.name.casefold() == aggregate.name.casefold():
                require_number(aggregate)

    def _aliases(self) -> Mapping[str, TypedTree]:
        terms = {key.name: TypedTree(column(key.name, None).tree, key.expression.type) for key in self.keys}
        numbers = (a for a in self.aggregates if not (a.report or a.kind is AggregateKind.QUANTILES))
        terms |= {a.name: column(a.name, released_type(a.kind)) for a in numbers}
        for named in self.computed:
            terms[named.name] = TypedTree(operand(named.expression), named.expression.type)
        return {name.casefold(): term for name, term in terms.items() if name in self.output}

    def _whole(self, node: exp.Expr, aliases: Mapping[str, TypedTree]) -> TypedTree | None:
        if is_aggregate(node):
            dated = call_of_days(node, self.source)
            if dated is not None:
                read = read_expression(dated, self, "a date", whole=lambda part: self._whole(part, aliases))
                return TypedTree(read.tree, read.type)
            found = self.aggregate(node)
            require_number(found)
            return column(found.name, released_type(found.kind))
        self._refuse_array(node)
        if isinstance(node, exp.Column) and not node.table and node.name.casefold() in aliases:
            term = aliases[node.name.casefold()]
            return TypedTree(term.tree.copy(), term.type)
        parts = list(node.walk())
        if not any(isinstance(part, exp.Column) for part in parts) or any(map(is_aggregate, parts)):
            return None
        try:
            read = read_expression(node, self.source, "a part of an expression")
        except QueryError:  # read again node by node, where the mistake is named
            return None
        return next((column(k.name, k.expression.type) for k in self.keys if k.expression == read), None)
