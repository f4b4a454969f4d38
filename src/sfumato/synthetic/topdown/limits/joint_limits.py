"""What invariants and bounds, on one partition of the cells or several, leave to each place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.topdown.cell_query import CellQuery, cell_query
from sfumato.synthetic.topdown.constraints import (
    UNBOUNDED,
    CountBound,
    GroupLimits,
    Invariant,
    constraint_queries,
    exact_counts,
    stated_limits,
)
from sfumato.synthetic.topdown.hierarchy import Hierarchy, Nodes
from sfumato.synthetic.topdown.limits.controlled_rounding import nearest
from sfumato.synthetic.topdown.limits.lookahead import Coming, Lookahead, below
from sfumato.synthetic.topdown.nonnegative_fit import Limits
from sfumato.synthetic.topdown.unit_counts import LevelCounts

__all__ = ["Constraints", "JointLimits", "joint_limits"]

_COUPLED: Final = 1 << 18


@final
@dataclass(frozen=True, slots=True, eq=False)
class JointLimits:
    """For each place what the groups of each partition may count, and which places couple them.

    Parameters
    ----------
    hierarchy : Hierarchy
    parts : tuple of GroupLimits
        Of each partition; the last one refines all of them.
    coupled : tuple of bool array
        By depth: places where, or below which, limits of the coarser partitions say more than those of the
        finest.
    """

    hierarchy: Hierarchy
    parts: tuple[GroupLimits, ...]
    coupled: tuple[NDArray[np.bool_], ...]

    @property
    def coarse(self) -> tuple[Nodes, ...]:
        """The group, of each coarser partition, that each group of the finest is in."""
        return _coarse([part.query for part in self.parts])

    def below(self, depth: int, first: int, last: int) -> dict[int, Lookahead]:
        """Return what lies below some places of a level, by their number from the first.

        Parameters
        ----------
        depth, first, last : int

        Returns
        -------
        dict of int to Lookahead
        """
        found = {}
        for place in (first + np.flatnonzero(self.coupled[depth][first:last])).tolist():
            look = below(self.hierarchy, self.parts, self.coupled, depth, place)
            if look is not None:
                found[place - first] = look
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Invariants and bounds of a mechanism, by the partitions of the cells that they are about.

    Parameters
    ----------
    hierarchy : Hierarchy
    queries : tuple of CellQuery
        The partitions, as `constraint_queries` returns them.
    invariants : tuple of tuple of Invariant
    bounds : tuple of tuple of CountBound
        By partition.
    possible : int64 array
        The cells that may hold people.
    """

    hierarchy: Hierarchy
    queries: tuple[CellQuery, ...]
    invariants: tuple[tuple[Invariant, ...], ...]
    bounds: tuple[tuple[CountBound, ...], ...]
    possible: Nodes

    @classmethod
    def of(
        cls,
        hierarchy: Hierarchy,
        domain: TableDomain,
        possible: Nodes,
        invariants: Sequence[Invariant],
        bounds: Sequence[CountBound],
    ) -> Constraints:
        """Return the constraints of a mechanism.

        Parameters
        ----------
        hierarchy : Hierarchy
        domain : TableDomain
        possible : int64 array
        invariants : sequence of Invariant
        bounds : sequence of CountBound

        Returns
        -------
        Constraints

        Raises
        ------
        ParameterError
            If different partitions meet at too many places; that depends on levels and columns only.
        """
        queries = constraint_queries(domain, invariants, bounds)
        exact: list[list[Invariant]] = [[] for _ in queries]
        within: list[list[CountBound]] = [[] for _ in queries]
        deepest = -1
        stated: list[Invariant | CountBound] = [*invariants, *bounds]
        for each in stated:
            group_of = cell_query(domain, each.columns).group_of
            part = next(i for i, query in enumerate(queries) if np.array_equal(query.group_of, group_of))
            if isinstance(each, Invariant):
                exact[part].append(each)
            else:
                within[part].append(each)
            if part < len(queries) - 1:
                deepest = max(deepest, hierarchy.depth(each.level))
        places = sum(map(hierarchy.size, range(deepest + 1)))
        if places and places * queries[-1].groups > _COUPLED:
            rule = f"meet at places which, with the groups of all columns multiplied, are at most {_COUPLED}"
            found = f"{places} places and {queries[-1].groups} groups"
            remedy = "state those of low levels by the same columns, or by columns with fewer cells"
            _check.refuse_state("invariants and bounds of different columns", rule, found, remedy)
        return cls(hierarchy, queries, tuple(map(tuple, exact)), tuple(map(tuple, within)), possible)

    def exact(self, levels: Sequence[LevelCounts]) -> list[dict[int, Nodes]]:
        """Return invariant counts by partition and depth.

        Parameters
        ----------
        levels : sequence of LevelCounts
            Private counts, by level from the root.

        Returns
        -------
        list of dict of int to int64 array of shape (places, groups)
            They are published.
        """
        asked = zip(self.queries, self.invariants, strict=True)
        return [exact_counts(self.hierarchy, query, stated, levels) for query, stated in asked]

    def limits(self, exact: Sequence[Mapping[int, Nodes]] | None = None) -> JointLimits | None:
        """Return what they leave to each place.

        Parameters
        ----------
        exact : sequence of mapping of int to int64 array, optional
            Invariant counts by partition and depth; without them what bounds alone leave.

        Returns
        -------
        JointLimits or None
            None if there is no constraint.

        Raises
        ------
        ParameterError
            If no counts meet them. As bounds are public and invariants are published, that shows no more than
            the release would.
        """
        if not self.queries:
            return None
        known = exact or [{}] * len(self.queries)
        stated = zip(self.queries, self.bounds, known, strict=True)
        return joint_limits(
            self.hierarchy,
            [stated_limits(self.hierarchy, query, within, at, self.possible) for query, within, at in stated],
        )


def joint_limits(hierarchy: Hierarchy, parts: Sequence[GroupLimits]) -> JointLimits:
    r"""Return what limits of places, of the places in them, and of all partitions leave to each.

    Parameters
    ----------
    hierarchy : Hierarchy
    parts : sequence of GroupLimits
        As stated, by partition; the last one refines all of them.

    Returns
    -------
    JointLimits

    Raises
    ------
    ParameterError
        If no counts meet them.

    Notes
    -----
    The limits of a parent are met with the sums of its children's, from the lowest level up, and those of a
    group with the sums of the finest partition's groups in it, and the reverse.

    With one partition every estimate of a parent within its limits can then be divided among its children
    within theirs: for each group apart, a table with the parent's cells as column sums and rows within
    :math:`[l_c, u_c]` exists if and only if :math:`\sum l_c` is at most, and :math:`\sum u_c` at least, the
    group's count; if it does, one of whole numbers does.

    With several partitions that holds as long as the coarser ones' limits follow from the finest one's, at a
    place and below it. A place where they do not is *coupled*, and so is each that holds it. Counts of a
    coupled child must leave whole counts for all coupled places in it, by group of the finest partition,
    with all other places gathered in one: that is a constraint of its family (`below`). It holds of the root
    if it holds at all, which is decided here, by an integer program; and from a parent that has such counts
    each family inherits them, so that none is without a solution.
    """
    lower: list[list[Nodes]] = [list(part.lower) for part in parts]
    upper: list[list[Nodes]] = [list(part.upper) for part in parts]
    coarse = _coarse([part.query for part in parts])
    coupled: list[NDArray[np.bool_]] = [np.zeros(0, np.bool_)] * len(hierarchy.levels)
    for depth in reversed(range(len(hierarchy.levels))):
        if depth < len(hierarchy.levels) - 1:
            starts = hierarchy.starts(depth)[:-1]
            for low, high in zip(lower, upper, strict=True):
                low[depth] = np.maximum(low[depth], np.add.reduceat(low[depth + 1], starts))
                sums = np.add.reduceat(high[depth + 1].astype(float), starts)
                high[depth] = np.minimum(high[depth], _whole(sums))
        lows, highs = [each[depth] for each in lower], [each[depth] for each in upper]
        coupled[depth] = _tightened(lows, highs, coarse)
        if depth < len(hierarchy.levels) - 1:
            coupled[depth] |= np.logical_or.reduceat(coupled[depth + 1], hierarchy.starts(depth)[:-1])
        for k, (least, most) in enumerate(zip(lows, highs, strict=True)):
            lower[k][depth], upper[k][depth] = least, most
            if (least > most).any():
                _contradict(f"none does at some place of the level {hierarchy.levels[depth]!r}")
    limits = [
        GroupLimits(part.query, tuple(low), tuple(high))
        for part, low, high in zip(parts, lower, upper, strict=True)
    ]
    found = JointLimits(hierarchy, tuple(limits), tuple(coupled))
    if coupled[0][0] and not _possible(found):
        _contradict("none does at all places together")
    return found


def _contradict(found: str) -> None:
    _check.refuse_state("counts", "exist that meet all invariants and bounds", found, "correct the bounds")


def _whole(sums: NDArray[np.float64]) -> Nodes:
    return np.clip(sums, 0, UNBOUNDED).astype(np.int64)


def _coarse(queries: Sequence[CellQuery]) -> tuple[Nodes, ...]:
    """Return the group, of each coarser partition, that each group of the last one is in."""
    first = np.unique(queries[-1].group_of, return_index=True)[1]
    return tuple(query.group_of[first] for query in queries[:-1])


def _sums(counts: Nodes, group_of: Nodes, groups: int) -> NDArray[np.float64]:
    found = np.zeros((groups, len(counts)))
    np.add.at(found, group_of, counts.T.astype(np.float64))
    return found.T


def _tightened(lower: list[Nodes], upper: list[Nodes], coarse: Sequence[Nodes]) -> NDArray[np.bool_]:
    """Tighten the limits of places in place, and return where those of the finest partition are not all."""
    coupled = np.zeros(len(lower[-1]), np.bool_)
    for again in range(3):
        for k, group_of in enumerate(coarse):
            least, most = (_sums(ends[-1], group_of, ends[k].shape[1]) for ends in (lower, upper))
            if again == 2:
                coupled |= ((lower[k] > least) | (upper[k] < np.minimum(most, UNBOUNDED))).any(axis=1)
                continue
            lower[k] = np.maximum(lower[k], _whole(least))
            upper[k] = np.minimum(upper[k], _whole(most))
            needed = lower[k][:, group_of] - (most[:, group_of] - upper[-1])
            left = upper[k][:, group_of] - (least[:, group_of] - lower[-1])
            bounded = upper[k][:, group_of] < UNBOUNDED
            lower[-1] = np.maximum(lower[-1], _whole(needed))
            upper[-1] = np.where(bounded, np.minimum(upper[-1], left), upper[-1]).astype(np.int64)
    return coupled


def _possible(limits: JointLimits) -> bool:
    """Return whether there are whole counts of the root, and of all that is coupled in it."""
    coarse = limits.coarse
    groups = len(limits.parts[-1].lower[0][0])
    within = [
        Limits(of, part.lower[0].T.astype(np.float64), part.upper[0].T.astype(np.float64))
        for of, part in zip((*coarse, np.arange(groups)), limits.parts, strict=True)
    ]
    ahead = limits.below(0, 0, 1)
    coming = [Coming(0, np.arange(groups), coarse, look) for look in ahead.values()]
    return nearest(np.zeros((groups, 1)), None, within, coming) is not None
