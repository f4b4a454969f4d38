"""A table of fractions to whole counts, with sums that stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import EngineError
from sfumato.synthetic.topdown.limits.lookahead import Coming
from sfumato.synthetic.topdown.limits.whole_program import Flow, whole_units
from sfumato.synthetic.topdown.nonnegative_fit import Limits, Table

__all__ = ["nearest", "rounded", "rounded_root"]

Whole = NDArray[np.int64]

_SLACK: Final = 1e-6


def rounded(table: Table, sums: Whole, limits: Sequence[Limits] = (), coming: Sequence[Coming] = ()) -> Whole:
    r"""Return whole non-negative counts near a table, with its rows' sums.

    Parameters
    ----------
    table : float64 array of shape (cells, children)
        Non-negative; its rows sum to ``sums``, and groups of cells to numbers within the limits, up to a
        tolerance.
    sums : int64 array of shape (cells,)
    limits : sequence of Limits
        What groups of cells may sum to in each child; whole numbers. Without them all cells are one group.
    coming : sequence of Coming
        What lies below children and must be able to be met.

    Returns
    -------
    int64 array of shape (cells, children)
        Rows have the sums exactly, groups are within the limits exactly. Each entry and each group's sum is
        that of the table rounded up or down, where such a table exists.

    Raises
    ------
    EngineError
        If no table within the limits was found: where one exists, only by a fault of the solver.

    Notes
    -----
    The sum of absolute differences is least under these constraints. Rows are disjoint, and so are the groups
    of each child: the constraints are those of a flow from cells to groups of children, whose matrix is
    totally unimodular, so that each vertex of the polytope is whole (Hoffman, Kruskal 1956; Cox 1987 on
    controlled rounding). HiGHS returns a vertex. A table that has the sums up to round-off can always be
    rounded so; if its sums are off by more, entries may move by more than 1. Of several partitions see
    `whole_units`.

    Examples
    --------
    Children of 1.8 and 1.2 people get 2 and 1, although each cell alone is nearest to the first one.

    >>> rounded(np.full((3, 2), [0.6, 0.4]), np.array([1, 1, 1])).sum(axis=0).tolist()
    [2, 1]
    """
    base = np.floor(table + _SLACK)
    part = np.maximum(table - base, 0.0)
    row, column = np.nonzero(part > _SLACK)
    near = [_near(table, each) for each in limits or (_everything(table),)]
    ones = np.ones(len(row))
    units = whole_units(base, Flow(row, column, ones, 1 - 2 * part[row, column], ones), sums, near, coming)
    if units is None:
        whole = nearest(table, sums, limits, coming)
        if whole is None:
            raise EngineError("counts must be rounded within their limits, but the program was not solved")
        return whole
    whole = base.astype(np.int64)
    whole[row, column] += units
    return whole


def _everything(table: Table) -> Limits:
    """Return no limits of all cells as one group."""
    free = np.zeros((1, table.shape[1]))
    return Limits(np.zeros(len(table), np.int64), free, free + np.inf)


def _near(table: Table, limits: Limits) -> Limits:
    """Return limits that leave a group's sum what it is, rounded up or down."""
    real = np.zeros(limits.lower.shape)
    np.add.at(real, limits.group_of, table)
    low, high = np.floor(real + _SLACK), np.ceil(real - _SLACK)
    return Limits(limits.group_of, np.maximum(low, limits.lower), np.minimum(high, limits.upper))


def nearest(
    table: Table, sums: Whole | None, limits: Sequence[Limits], coming: Sequence[Coming] = ()
) -> Whole | None:
    """Return the nearest whole counts, where entries may move by more than 1; None where there are none.

    Parameters
    ----------
    table : float64 array of shape (cells, children)
    sums : int64 array of shape (cells,), or None
        Of the rows; None leaves them free.
    limits : sequence of Limits
    coming : sequence of Coming

    Returns
    -------
    int64 array of shape (cells, children), or None
    """
    base = np.floor(table + _SLACK)
    f = (table - base).ravel()
    row, column = (places.ravel() for places in np.indices(table.shape))
    down = np.flatnonzero(base.ravel() > 0)
    most = np.full(len(row), np.inf) if sums is None else sums[row].astype(np.float64)
    flow = Flow(
        np.concatenate([row, row, row[down]]),
        np.concatenate([column, column, column[down]]),
        np.concatenate([np.ones(2 * len(row)), -np.ones(len(down))]),
        # the first unit costs 1 - 2f, any further unit and any unit off a little over 1
        np.concatenate([1 - 2 * f, np.full(len(row) + len(down), 1.001)]),
        np.concatenate([np.ones(len(row)), most, base.ravel()[down]]),
    )
    units = whole_units(base, flow, sums, limits, coming, certain=True)
    if units is None:
        return None
    whole = base.astype(np.int64)
    np.add.at(whole, (flow.row, flow.column), (flow.sign * units).astype(np.int64))
    return whole


def rounded_root(table: Table, limits: Sequence[Limits] = (), coming: Sequence[Coming] = ()) -> Whole:
    """Return whole counts near those of the root, whose sums are free within limits.

    Parameters
    ----------
    table : float64 array of shape (cells,)
        Non-negative.
    limits : sequence of Limits
        Of one child; the finest partition's last.
    coming : sequence of Coming
        What lies below the root.

    Returns
    -------
    int64 array of shape (cells,)
        Each group sums to its rounded sum, within the limits; the largest fractions are rounded up. Under
        limits of several partitions the finest one's groups get the nearest sums that can be met.

    Examples
    --------
    >>> rounded_root(np.array([1.6, 0.7, 0.4])).tolist()
    [2, 1, 0]
    """
    last = limits[-1] if limits else _everything(table[:, None])
    group_of, lower, upper = last.group_of, last.lower, last.upper
    if len(limits) > 1:
        lower = upper = _atoms(table, limits, coming)
    whole = np.floor(table + _SLACK).astype(np.int64)
    for group in range(len(lower)):
        members = np.flatnonzero(group_of == group)
        wanted = round(float(table[members].sum()))
        wanted = int(np.clip(wanted, lower[group, 0], upper[group, 0]))
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


def _atoms(table: Table, limits: Sequence[Limits], coming: Sequence[Coming]) -> Table:
    """Return the sums of the finest partition's groups that are nearest to the table's and can be met."""
    finest = limits[-1]
    real = np.zeros((len(finest.lower), 1))
    np.add.at(real, finest.group_of, table[:, None])
    first = np.unique(finest.group_of, return_index=True)[1]  # a cell of each group
    groups = [Limits(each.group_of[first], each.lower, each.upper) for each in limits]
    found = nearest(real, None, groups, [each._replace(atom_of=each.atom_of[first]) for each in coming])
    if found is None:
        raise EngineError("counts must be rounded within their limits, but the program was not solved")
    return found.astype(np.float64)
