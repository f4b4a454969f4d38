"""Private SELECTs that are answered by others: written out before anything of them is read."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sfumato.queries.sql.expanded_select import Expanded
from sfumato.queries.sql.grouping_sets import expanded
from sfumato.queries.sql.parser import LargerStatement, Statement
from sfumato.queries.sql.top_counts import with_top_counts

__all__ = ["written_out"]


def written_out(statement: Statement | LargerStatement) -> Statement | LargerStatement:
    """Return a statement whose private SELECTs have one grouping each, and no APPROX_TOP_COUNT.

    Parameters
    ----------
    statement : Statement or LargerStatement
        As it was parsed; the tree of a larger one is changed.

    Raises
    ------
    UnsupportedSql, OptionError
        What `expanded` and `with_top_counts` refuse.

    Examples
    --------
    >>> from sfumato.queries.sql.parser import parse_statement
    >>> private = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0)"
    >>> asked = parse_statement(f"{private} g, APPROX_TOP_COUNT(x, 3) AS top FROM t GROUP BY g")
    >>> [each.select.sql() for each in written_out(asked).private]
    ['SELECT g AS "g", x AS "value", COUNT(*) AS "count" FROM t GROUP BY 1, 2']
    """
    if isinstance(statement, Statement):
        made = _expanded(statement.select)
        return statement if made is None else LargerStatement(made.tree, _shared(statement, made))
    tree, private = statement.tree, list[Statement]()
    for each in statement.private:
        made = _expanded(each.select)
        private += [each] if made is None else _shared(each, made)
        if made is not None:
            each.select.replace(made.tree)
    return LargerStatement(tree, tuple(private))


def _expanded(select: exp.Select) -> Expanded | None:
    return with_top_counts(select) or expanded(select)


def _shared(statement: Statement, made: Expanded) -> tuple[Statement, ...]:
    parts = statement.parts * len(made.private)
    return tuple(replace(statement, select=select, parts=parts) for select in made.private)
