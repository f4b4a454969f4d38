"""Whole counts at least cost: a linear program, and an integer program where its vertex is not whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.synthetic.topdown.limits.lookahead import Coming
from sfumato.synthetic.topdown.nonnegative_fit import Limits, Table

__all__ = ["Flow", "whole_units"]

Numbers: TypeAlias = NDArray[Any]
Whole: TypeAlias = NDArray[np.int64]

_NODES: Final = 10_000


class Flow(NamedTuple):
    """Arcs: the cell and the child of each, whether it adds or takes off, its cost, and the most units."""

    row: Whole
    column: Whole
    sign: Table
    cost: Table
    cap: Table


class _Rows:
    """Constraints as they are gathered: triplets of a sparse matrix, with bounds of rows and of variables."""

    def __init__(self, flow: Flow) -> None:
        self.row: list[Whole] = []
        self.column: list[Whole] = []
        self.value: list[Table] = []
        self.lower: list[Table] = []
        self.upper: list[Table] = []
        self.caps: list[tuple[Table, Table]] = [(np.zeros(len(flow.row)), flow.cap)]
        self.height, self.width = 0, len(flow.row)

    def add(self, lower: Numbers, upper: Numbers, *entries: tuple[Whole, Whole, Table]) -> None:
        """Add rows, with entries numbered from the first of them."""
        for row, column, value in entries:
            self.row.append(np.asarray(row).ravel() + self.height)
            self.column.append(np.asarray(column).ravel())
            self.value.append(np.asarray(value, np.float64).ravel())
        self.lower.append(np.asarray(lower, np.float64).ravel())
        self.upper.append(np.asarray(upper, np.float64).ravel())
        self.height += lower.size

    def variables(self, lower: Numbers, upper: Numbers) -> Whole:
        """Add variables, and return their numbers."""
        added = self.width + np.arange(lower.size).reshape(lower.shape)
        self.caps.append((lower.ravel().astype(np.float64), upper.ravel().astype(np.float64)))
        self.width += lower.size
        return added

    def coming(self, each: Coming, flow: Flow, base: Table) -> None:
        """Add what lies below a child: counts of coupled places by group of the finest partition."""
        look = each.look
        nodes, atoms = look.lower[-1].shape
        counts = self.variables(look.lower[-1], look.upper[-1])
        arcs = np.flatnonzero(flow.column == each.child)
        held = np.bincount(each.atom_of, weights=base[:, each.child], minlength=atoms)
        offset = np.zeros_like(look.rest_lower, np.float64)
        offset[0] = held
        number = np.cumsum(look.inner) - 1  # of the rows of a place with coupled ones in it
        every = np.arange(atoms)
        own = np.flatnonzero(look.inner[1:])
        self.add(
            (look.rest_lower - offset)[look.inner],
            (look.rest_upper - offset)[look.inner],
            (each.atom_of[flow.row[arcs]], arcs, flow.sign[arcs]),
            (number[1 + own][:, None] * atoms + every, counts[own], np.ones((len(own), atoms))),
            (number[1 + look.owner][:, None] * atoms + every, counts, -np.ones((nodes, atoms))),
        )
        for group_of, low, high in zip(each.coarse, look.lower, look.upper, strict=False):
            groups = low.shape[1]
            place = np.arange(nodes)[:, None] * groups + group_of
            self.add(low, high, (place, counts, np.ones((nodes, atoms))))


def whole_units(
    base: Table,
    flow: Flow,
    sums: Whole | None,
    limits: Sequence[Limits],
    coming: Sequence[Coming] = (),
    *,
    certain: bool = False,
) -> Whole | None:
    r"""Return the cheapest whole units on arcs, so that all rows and groups are within limits; or None.

    Parameters
    ----------
    base : float64 array of shape (cells, children)
        Whole counts that units are added to.
    flow : Flow
    sums : int64 array of shape (cells,), or None
        Of the rows; None leaves them free.
    limits : sequence of Limits
        Of groups by child, each of a partition of the cells.
    coming : sequence of Coming
        What lies below children.
    certain : bool
        Whether some units must be found if there are any, at whatever cost.

    Returns
    -------
    int64 array or None

    Notes
    -----
    Where the partitions are laminar (of any two groups one holds the other, or they are apart) and nothing
    comes below, rows and groups are two laminar families of arcs, whose matrix is totally unimodular (Edmonds
    1970), and each vertex is whole. Else the vertex that HiGHS finds is taken if it is whole; if not, the
    integer program is solved, with the best of the first 10,000 nodes of its search. If there is none yet and
    ``certain``, cost is given up and the search goes on to its end, which exists as all units are bounded.
    """
    rows, count = _Rows(flow), len(flow.row)
    arcs = np.arange(count)
    if sums is not None:
        need = sums - base.sum(axis=1)
        rows.add(need, need, (flow.row, arcs, flow.sign))
    for each in limits:
        under = np.zeros(each.lower.shape)
        np.add.at(under, each.group_of, base)
        place = each.group_of[flow.row] * base.shape[1] + flow.column
        rows.add(each.lower - under, each.upper - under, (place, arcs, flow.sign))
    for one in coming:
        rows.coming(one, flow, base)
    lower, upper = np.concatenate([*rows.lower, []]), np.concatenate([*rows.upper, []])
    if not rows.width:
        return np.zeros(0, np.int64) if (lower <= 0).all() and (upper >= 0).all() else None
    # scipy before 1.15 takes no longer indices
    entries = (np.concatenate(rows.row).astype(np.int32), np.concatenate(rows.column).astype(np.int32))
    matrix = scipy.sparse.csc_array((np.concatenate(rows.value), entries), (rows.height, rows.width))
    cost = np.concatenate([flow.cost, np.zeros(rows.width - count)])
    within = scipy.optimize.Bounds(*(np.concatenate(ends) for ends in zip(*rows.caps, strict=True)))
    given: Any = {"constraints": scipy.optimize.LinearConstraint(matrix, lower, upper), "bounds": within}
    steps: list[tuple[Table, int, Any]] = [(cost, 0, {}), (cost, 1, {"node_limit": _NODES})]
    if certain:
        steps.append((cost * 0, 1, {}))
    for wanted, integral, options in steps:
        found = scipy.optimize.milp(
            wanted, integrality=np.full(rows.width, integral), options=options, **given
        )
        if found.x is None:
            if found.status == 2 or not integral:  # there is none
                return None
            continue
        units = np.rint(found.x)
        if np.abs(found.x - units).max() < 1e-4:
            return np.asarray(units[:count], np.int64)
    return None
