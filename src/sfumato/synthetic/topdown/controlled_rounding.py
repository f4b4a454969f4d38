"""A table of fractions to whole counts, with sums that stay."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from sfumato.errors import EngineError
from sfumato.synthetic.topdown.nonnegative_fit import Limits, Table

__all__ = ["rounded", "rounded_root"]

Whole = NDArray[np.int64]

_SLACK: Final = 1e-6


def rounded(table: Table, sums: Whole, limits: Limits | None = None) -> Whole:
    r"""Return whole non-negative counts near a table, with its rows' sums.

    Parameters
    ----------
    table : float64 array of shape (cells, children)
        Non-negative; its rows sum to ``sums``, and groups of cells to numbers within the limits, up to a
        tolerance.
    sums : int64 array of shape (cells,)
    limits : Limits, optional
        What groups of cells may sum to in each child; whole numbers. Without them all cells are one group.

    Returns
    -------
    int64 array of shape (cells, children)
        Rows have the sums exactly, groups are within the limits exactly. Each entry and each group's sum is
        that of the table rounded up or down, where such a table exists.

    Notes
    -----
    The sum of absolute differences is least under these constraints. Rows are disjoint, and so are the groups
    of each child: the constraints are those of a flow from cells to groups of children, whose matrix is
    totally unimodular, so that each vertex of the polytope is whole (Hoffman, Kruskal 1956; Cox 1987 on
    controlled rounding). HiGHS returns a vertex. A table that has the sums up to round-off can always be
    rounded so; if its sums are off by more, entries may move by more than 1.

    Examples
    --------
    Children of 1.8 and 1.2 people get 2 and 1, although each cell alone is nearest to the first one.

    >>> rounded(np.full((3, 2), [0.6, 0.4]), np.array([1, 1, 1])).sum(axis=0).tolist()
    [2, 1]
    """
    base = np.floor(table + _SLACK)
    part = np.maximum(table - base, 0.0)
    row, column = np.nonzero(part > _SLACK)
    group_of = np.zeros(len(table), np.int64) if limits is None else limits.group_of
    need = sums - base.sum(axis=1)
    below, real = _grouped(base, group_of), _grouped(table, group_of)
    low, high = np.floor(real + _SLACK) - below, np.ceil(real - _SLACK) - below
    if limits is not None:
        low, high = np.maximum(low, limits.lower - below), np.minimum(high, limits.upper - below)
    ones = np.ones(len(row))
    flow = _Flow(row, column, ones, 1 - 2 * part[row, column], ones)
    units = _solved(flow, need, low, high, group_of)
    if units is None:
        return _repaired(table, sums, limits, group_of)
    whole = base.astype(np.int64)
    whole[row, column] += units
    return whole


class _Flow(NamedTuple):
    """Arcs: the cell and the child of each, whether it adds or takes off, its cost, and the most units."""

    row: Whole
    column: Whole
    sign: Table
    cost: Table
    cap: Table


def _repaired(table: Table, sums: Whole, limits: Limits | None, group_of: Whole) -> Whole:
    """Return the nearest counts where entries may move by more than 1: a flow that always exists."""
    base = np.floor(table + _SLACK)
    f = (table - base).ravel()
    row, column = (places.ravel() for places in np.indices(table.shape))
    down = np.flatnonzero(base.ravel() > 0)
    flow = _Flow(
        np.concatenate([row, row, row[down]]),
        np.concatenate([column, column, column[down]]),
        np.concatenate([np.ones(2 * len(row)), -np.ones(len(down))]),
        # the first unit costs 1 - 2f, any further unit and any unit off a little over 1
        np.concatenate([1 - 2 * f, np.full(len(row) + len(down), 1.001)]),
        np.concatenate([np.ones(len(row)), np.full(len(row), np.inf), base.ravel()[down]]),
    )
    below = _grouped(base, group_of)
    low, high = np.full(below.shape, -np.inf), np.full(below.shape, np.inf)
    if limits is not None:
        low, high = limits.lower - below, limits.upper - below
    units = _solved(flow, sums - base.sum(axis=1), low, high, group_of)
    if units is None:
        raise EngineError("counts must be rounded within their limits, but the linear program was not solved")
    whole = base.astype(np.int64)
    np.add.at(whole, (flow.row, flow.column), (flow.sign * units).astype(np.int64))
    return whole


def _grouped(table: Table, group_of: Whole) -> Table:
    found = np.zeros((int(group_of.max(initial=0)) + 1, table.shape[1]))
    np.add.at(found, group_of, table)
    return found


def _solved(flow: _Flow, need: Table, low: Table, high: Table, group_of: Whole) -> Whole | None:
    """Return the cheapest whole units with sums by row, and by group and column within limits; or None."""
    count, children = len(flow.row), low.shape[1]
    lower, upper = np.concatenate([need, low.ravel()]), np.concatenate([need, high.ravel()])
    if not count:
        return np.zeros(0, np.int64) if (lower <= 0).all() and (upper >= 0).all() else None
    place = len(need) + group_of[flow.row] * children + flow.column
    rows = np.concatenate([flow.row, place]).astype(np.int32)  # scipy before 1.15 takes no longer indices
    index = np.tile(np.arange(count, dtype=np.int32), 2)
    matrix = sparse.csc_array((np.tile(flow.sign, 2), (rows, index)), (len(need) + low.size, count))
    constraints, within = LinearConstraint(matrix, lower, upper), Bounds(0, flow.cap)
    for integral in (0, 1):  # a vertex is whole; should the solver end elsewhere, whole numbers are asked for
        found = milp(flow.cost, constraints=constraints, bounds=within, integrality=np.full(count, integral))
        if found.x is None:
            return None
        units = np.rint(found.x)
        if np.abs(found.x - units).max() < 1e-4:
            return np.asarray(units, np.int64)
    return None


def rounded_root(table: Table, limits: Limits | None = None) -> Whole:
    """Return whole counts near those of the root, whose sums are free within limits.

    Parameters
    ----------
    table : float64 array of shape (cells,)
        Non-negative.
    limits : Limits, optional
        Of one child.

    Returns
    -------
    int64 array of shape (cells,)
        Each group sums to its rounded sum, within the limits; the largest fractions are rounded up.

    Examples
    --------
    >>> rounded_root(np.array([1.6, 0.7, 0.4])).tolist()
    [2, 1, 0]
    """
    group_of = np.zeros(len(table), np.int64) if limits is None else limits.group_of
    whole = np.floor(table + _SLACK).astype(np.int64)
    for group in range(int(group_of.max(initial=0)) + 1):
        members = np.flatnonzero(group_of == group)
        wanted = round(float(table[members].sum()))
        if limits is not None:
            wanted = int(np.clip(wanted, limits.lower[group, 0], limits.upper[group, 0]))
        need = wanted - int(whole[members].sum())
        order = members[np.argsort(whole[members] - table[members], kind="stable")]
        if need >= 0 and len(members):
            whole[members] += need // len(members)
            whole[order[: need % len(members)]] += 1
        for place in order[::-1] if need < 0 else ():
            taken = min(-need, int(whole[place]))
            whole[place] -= taken
            need += taken
    return whole
