"""Counts that are published exactly, and public bounds on counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.topdown.cell_query import CellQuery, cell_query
from sfumato.synthetic.topdown.hierarchy import Hierarchy, Nodes
from sfumato.synthetic.topdown.unit_counts import LevelCounts

__all__ = [
    "UNBOUNDED",
    "CountBound",
    "GroupLimits",
    "Invariant",
    "constraint_queries",
    "exact_counts",
    "stated_limits",
]

UNBOUNDED: Final = 1 << 52
_REMEDY: Final = "write Invariant('state', ['hhgq'])"


def _listed(columns: object) -> tuple[str, ...]:
    """Return the columns that groups are by."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        _check.refuse_type("columns", "be a list of columns", columns, _REMEDY)
    return tuple(columns)


@final
@dataclass(frozen=True, slots=True)
class Invariant:
    """Counts that are released without noise: outside of the guarantee.

    Parameters
    ----------
    level : str
        At each place of which they are exact.
    columns : sequence of str
        Which columns they are by; none for the total.

    Examples
    --------
    >>> print(Invariant("state"))
    the total at each state
    """

    level: str
    columns: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _listed(self.columns))

    def __str__(self) -> str:
        of = f"the counts by {', '.join(map(str, self.columns))}" if self.columns else "the total"
        return f"{of} at each {self.level}"


@final
@dataclass(frozen=True, slots=True)
class CountBound:
    """Public numbers that counts are within.

    Parameters
    ----------
    level : str
    lower, upper : int, sequence of int, mapping of label to such, or None
        For each place of the level; a sequence has a number for each group, in row-major order. A place that
        is not in the mapping, and None, has no bound.
    columns : sequence of str
        Which columns the groups are by; none for the total.

    Examples
    --------
    >>> homes = CountBound("block", upper={"A1": 400, "A2": 0})
    >>> homes.lower is None
    True
    """

    level: str
    lower: Any = None
    upper: Any = None
    columns: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _listed(self.columns))
        if self.lower is None and self.upper is None:
            _check.refuse("upper", "be given, or else lower", self.upper, "pass the public number")


@final
@dataclass(frozen=True, slots=True, eq=False)
class GroupLimits:
    """For each level, what each group of cells of each place may count.

    Parameters
    ----------
    query : CellQuery
        The groups.
    lower, upper : tuple of int64 array of shape (places, groups)
        By level from the root.
    """

    query: CellQuery
    lower: tuple[Nodes, ...]
    upper: tuple[Nodes, ...]


def constraint_queries(
    domain: TableDomain, invariants: Sequence[Invariant], bounds: Sequence[CountBound]
) -> tuple[CellQuery, ...]:
    """Return the partitions of the cells that constraints are about, one that refines them all last.

    Parameters
    ----------
    domain : TableDomain
    invariants : sequence of Invariant
    bounds : sequence of CountBound

    Returns
    -------
    tuple of CellQuery
        None where there is no constraint.

    Examples
    --------
    >>> domain = TableDomain(sex=["f", "m"], age=[1, 2, 3])
    >>> asked = [Invariant("state", ["age"]), Invariant("state"), Invariant("town", ["sex"])]
    >>> [query.name for query in constraint_queries(domain, asked, [])]
    ['age', 'total', 'sex', 'sex x age']
    """
    stated = [*(each.columns for each in invariants), *(each.columns for each in bounds)]
    queries = [cell_query(domain, columns) for columns in {frozenset(c): c for c in stated}.values()]
    if not queries:
        return ()
    code = np.zeros(domain.cells, np.int64)
    for query in queries:
        code = np.unique(code * query.groups + query.group_of, return_inverse=True)[1]
    atoms = int(code.max()) + 1
    finest = [query for query in queries if query.groups == atoms]
    if finest:
        return (*(query for query in queries if query is not finest[0]), finest[0])
    columns = tuple(sorted({column for query in queries for column in query.columns}))
    name = " x ".join(list(domain)[i] for i in columns)
    return (*queries, CellQuery(name, columns, (atoms,), code, recoded=True))


def stated_limits(
    hierarchy: Hierarchy,
    query: CellQuery,
    bounds: Sequence[CountBound],
    exact: Mapping[int, Nodes],
    possible: Nodes | None = None,
) -> GroupLimits:
    """Return the limits that are stated for the groups of a partition.

    Parameters
    ----------
    hierarchy : Hierarchy
    query : CellQuery
        The groups, of which each cell is in one.
    bounds : sequence of CountBound
        Those that are about these groups.
    exact : mapping of int to int64 array of shape (places, groups)
        Invariant counts by depth; published.
    possible : int64 array, optional
        The cells that may hold people: groups of other cells alone count 0. All unless given.

    Returns
    -------
    GroupLimits
    """
    lower: list[Nodes] = []
    upper: list[Nodes] = []
    filled = query.group_of if possible is None else query.group_of[possible]
    empty = np.bincount(filled, minlength=query.groups) == 0
    for depth in range(len(hierarchy.levels)):
        low, high = _stated(hierarchy, query, bounds, depth)
        high[:, empty] = 0
        if depth in exact:
            low, high = np.maximum(low, exact[depth]), np.minimum(high, exact[depth])
        lower.append(low)
        upper.append(high)
    return GroupLimits(query, tuple(lower), tuple(upper))


def _stated(
    hierarchy: Hierarchy, query: CellQuery, bounds: Sequence[CountBound], depth: int
) -> tuple[Nodes, Nodes]:
    """Return the bounds that are stated for a level."""
    shape = (hierarchy.size(depth), query.groups)
    low, high = np.zeros(shape, np.int64), np.full(shape, UNBOUNDED, np.int64)
    for bound in bounds:
        if hierarchy.depth(bound.level) == depth:
            low = np.maximum(low, _filled("lower", bound.lower, hierarchy, bound.level, low * 0))
            high = np.minimum(
                high, _filled("upper", bound.upper, hierarchy, bound.level, low * 0 + UNBOUNDED)
            )
    return low, high


def _filled(name: str, given: Any, hierarchy: Hierarchy, level: str, default: Nodes) -> Nodes:
    if given is None:
        return default
    places: Any = slice(None)
    shape = default.shape[1:]
    try:
        if isinstance(given, Mapping):
            places = hierarchy.index(level, list(given))
            numbers = np.array([np.broadcast_to(np.asarray(each), shape) for each in given.values()])
        else:
            numbers = np.broadcast_to(np.asarray(given), shape)
    except ValueError as fault:
        if isinstance(fault, ParameterError):
            raise
        rule = f"have {shape[0]} numbers, one for each group"
        _check.refuse_state(name, rule, "it has not", "pass one number, or one for each group")
    if numbers.dtype.kind not in "iu" or (numbers.size and numbers.min() < 0):
        _check.refuse_type(name, "be whole numbers of at least 0", given, "pass public counts")
    default[places] = np.minimum(numbers, UNBOUNDED)
    return default


def exact_counts(
    hierarchy: Hierarchy, query: CellQuery, invariants: Sequence[Invariant], levels: Sequence[LevelCounts]
) -> dict[int, Nodes]:
    """Return invariant counts by depth.

    Parameters
    ----------
    hierarchy : Hierarchy
    query : CellQuery
    invariants : sequence of Invariant
    levels : sequence of LevelCounts
        Private counts, by level from the root.

    Returns
    -------
    dict of int to int64 array of shape (places, groups)
        They are published.
    """
    depths = {hierarchy.depth(each.level) for each in invariants}
    return {
        depth: levels[depth].grouped(0, hierarchy.size(depth), query.group_of, query.groups)
        for depth in sorted(depths)
    }
