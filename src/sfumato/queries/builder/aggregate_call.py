"""One aggregate of the builder: the call that it writes, under a name, of some of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from sfumato._check import refuse
from sfumato.queries.builder.columns import Expressible, expression_sql
from sfumato.queries.plan.sql_text import literal_sql

__all__ = ["AggregateCall", "write_call", "write_function"]


@final
@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate to ask for: its SQL, and the name of its column in the answer.

    Examples
    --------
    >>> import sfumato as sf
    >>> sf.mean("income", bounds=(0, 200_000)).alias("pay").name
    'pay'
    """

    sql: str
    name: str

    def alias(self, name: str) -> AggregateCall:
        """Return the same aggregate under another name."""
        return replace(self, name=name)

    def where(self, condition: Expressible) -> AggregateCall:
        """Return the same aggregate over the rows that meet a condition.

        Parameters
        ----------
        condition : str or ColumnExpression
            A condition on a row.

        Returns
        -------
        AggregateCall

        Examples
        --------
        >>> import sfumato as sf
        >>> sf.sum("price", bounds=(0, 100)).where("paid").sql
        'SUM(price, contribution_bounds_per_group => (0, 100)) FILTER (WHERE paid)'
        """
        return replace(self, sql=f"{self.sql} FILTER (WHERE {expression_sql(condition, 'condition')})")


def write_function(
    function: str, x: Expressible | None, name: str, bounds: dict[str, object], epsilon: float | None
) -> AggregateCall:
    """Return the call of a function over all rows, or over an expression."""
    argument = "*" if x is None else expression_sql(x, "x")
    return write_call(f"{function}({argument}", name, bounds, epsilon)


def write_call(call: str, name: str, given: dict[str, object], epsilon: float | None) -> AggregateCall:
    """Return a call that was begun, with its named arguments."""
    items = [call]
    for key, value in (*given.items(), ("epsilon", epsilon)):
        if value is not None:
            items.append(f"{key} => {_value(key, value)}")
    return AggregateCall(", ".join(items) + ")", name)


def _value(key: str, value: object) -> str:
    if not isinstance(value, tuple):
        return literal_sql(value)
    if len(value) != 2:
        refuse(key, "be a pair (lower, upper)", value, "write (0, 100), say")
    return "(" + ", ".join(literal_sql(bound) for bound in value) + ")"
