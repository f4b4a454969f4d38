"""The limits that a query states, and what each of them can cut off.

A unit's groups, rows and values beyond a limit do not count in the answer. What is beyond is counted here by
units: of each a total and the part of it that is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from sfumato.queries.plan.query import Aggregate, AggregateKind, ColumnType, Query

__all__ = ["CutCount", "CutOff", "counts_rows", "cut_counts", "rows_counted", "stated_rows"]

_REACH: Final = 4
"""How many times its limit a unit weighs at most, by groups and by rows."""

_MOST: Final = 1 << 20
"""What a unit weighs at most, whatever the limits are."""

_UNITWISE: Final = frozenset({AggregateKind.COUNT_UNITS, AggregateKind.COUNT_DISTINCT, AggregateKind.AVG})
_COUNTS: Final = frozenset({AggregateKind.COUNT_ROWS, AggregateKind.COUNT_VALUES})
_NUMBERS: Final = (ColumnType.INTEGER, ColumnType.FLOAT)


class CutOff(Enum):
    """What a limit cuts off."""

    UNITS = "units"
    GROUPS = "groups"
    ROWS = "rows"
    VALUES = "values"


@final
@dataclass(frozen=True, slots=True)
class CutCount:
    """A count of what one limit cuts off, beside the count of what it leaves.

    Parameters
    ----------
    kind : CutOff
    cap : int
        The most that one unit weighs in both counts together; one that has more of it weighs as if it had
        just so much, in the same proportion.
    aggregate : int or None
        The position of the aggregate whose values are counted.
    """

    kind: CutOff
    cap: int
    aggregate: int | None = None


def cut_counts(query: Query) -> tuple[CutCount, ...]:
    """Return what the limits that a query states can cut off; nothing of bounds that are to be found.

    Parameters
    ----------
    query : Query

    Returns
    -------
    tuple of CutCount
        Units that lose a group and their groups, where groups are limited; rows, where they are and where an
        aggregate is of rows; and for each aggregate with bounds the values that these clamp.
    """
    options, by_unit = query.options, query.relation.unit is not None
    most, groups = options.max_rows_contributed, options.max_groups_contributed
    rows = rows_counted(query)
    counted: list[CutCount] = []
    if by_unit and groups is not None:
        counted += [CutCount(CutOff.UNITS, 1), CutCount(CutOff.GROUPS, min(_MOST, _REACH * groups))]
    in_groups, in_all = groups or most or 1, most or (groups or 1) * (rows or 1)
    limited = any(each is not None for each in (most, groups, rows))
    if (
        by_unit
        and limited
        and (most or options.max_rows_per_group or any(map(counts_rows, query.aggregates)))
    ):
        counted.append(CutCount(CutOff.ROWS, min(_MOST, _REACH * in_all)))
    for position, aggregate in enumerate(query.aggregates):
        cap = _values_cap(aggregate, in_groups, in_all)
        if cap is not None:
            counted.append(CutCount(CutOff.VALUES, min(_MOST, cap) if by_unit else 1, position))
    return tuple(counted)


def _values_cap(aggregate: Aggregate, in_groups: int, in_all: int) -> int | None:
    """Return how many values of an aggregate a unit weighs at most; None where none are clamped."""
    if aggregate.kind is AggregateKind.COUNT_DISTINCT and aggregate.group_bounds is not None:
        return _REACH * in_groups * max(1, int(aggregate.group_bounds[1]))
    bounded = aggregate.row_bounds is not None or aggregate.group_bounds is not None
    numeric = aggregate.expression is not None and aggregate.expression.type in _NUMBERS
    if aggregate.kind.name.startswith("COUNT") or not numeric or not bounded:
        return None
    return in_groups if aggregate.row_bounds is None else in_all


def rows_counted(query: Query) -> int | None:
    """Return the most rows of a unit that count in a group; None where nothing limits them.

    Parameters
    ----------
    query : Query
    """
    of_rows = [aggregate for aggregate in query.aggregates if counts_rows(aggregate)]
    limit = query.options.max_rows_per_group
    if not of_rows or any(aggregate.kind not in _COUNTS for aggregate in of_rows):
        return limit
    widest = max(max(1, int(bounds[1])) for bounds in (each.group_bounds or (0, 1) for each in of_rows))
    return widest if limit is None else min(limit, widest)


def stated_rows(query: Query) -> int | None:
    """Return the most rows of a unit in a group that count, where the query states it.

    Parameters
    ----------
    query : Query
    """
    if query.relation.unit is None:
        return 1
    if query.options.max_rows_per_group is not None:
        return query.options.max_rows_per_group
    counts = [each.group_bounds[1] for each in query.aggregates if each.kind in _COUNTS and each.group_bounds]
    return max(1, int(max(counts))) if counts else None


def counts_rows(aggregate: Aggregate) -> bool:
    """Return whether it matters how many rows of a unit count in a group.

    Parameters
    ----------
    aggregate : Aggregate
    """
    if aggregate.kind in _UNITWISE:
        return False
    return (
        aggregate.kind is not AggregateKind.SUM
        or aggregate.group_bounds is None
        or aggregate.row_bounds is not None
    )
