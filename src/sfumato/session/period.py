"""Questions about one period: the rows outside of it are dropped before anything else reads them.

Where a budget renews, an answer is charged to one period, and must then depend on no other period's rows (see
:class:`sfumato.ledger.Renewal`). So the condition stands at the scan itself, below all that a query says.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import SchemaError
from sfumato.ledger.budget.renewal import Renewal
from sfumato.queries.plan.query import Column, ColumnType, Expression, Scan
from sfumato.queries.plan.typed_expressions import TypedTree, advice, closest_name
from sfumato.queries.plan.typed_expressions import column as term_of
from sfumato.queries.sql.expressions.scalar import read_predicate
from sfumato.queries.sql.parser import parse

__all__ = ["within_period"]

_LITERALS = {ColumnType.DATE: "DATE '{}'", ColumnType.TIMESTAMP: "TIMESTAMP '{} 00:00:00'"}


@dataclass(frozen=True, slots=True)
class _Moment:
    """The scope of the condition: whatever name is read is the column with a row's time."""

    known: Column

    def resolve(self, _qualifier: str | None, _name: str) -> TypedTree:
        """Return the column."""
        return term_of(self.known.name, self.known.type)


def within_period(scan: Scan, renewal: Renewal, period: str) -> Expression:
    """Return the condition that a row of a private table lies in a period.

    A row without a time meets it for no period; a timestamp is compared as it stands.

    Raises
    ------
    SchemaError
        If the table has no such column, or it is neither a date nor a timestamp.
    ParameterError
        If the period is none.
    """
    names = {known.name.casefold(): known for known in scan.schema.columns}
    column = names.get(renewal.column.casefold())
    if column is None:
        close = closest_name(renewal.column, [known.name for known in scan.schema.columns])
        hint = f"did you mean {close!r}?" if close else "name the column with a row's time"
        raise SchemaError(f"the table {scan.table!r} has no column {renewal.column!r} for a period; {hint}")
    if column.type not in _LITERALS:
        hint = advice(term_of(column.name, column.type, column.declare), "DATE")
        raise SchemaError(
            f"the column {column.name!r} of {scan.table!r} must be a date or a timestamp to state a row's "
            f"period; {hint}name another one, or convert it before connecting"
        )
    first, after = (
        _LITERALS[column.type].format(day) for day in (renewal.first_day(period), renewal.day_after(period))
    )
    written = parse(f"SELECT 1 FROM t WHERE moment >= {first} AND moment < {after}")  # noqa: S608
    return read_predicate(written.select.args["where"].this, _Moment(column), "the period")
