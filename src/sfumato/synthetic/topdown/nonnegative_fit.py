"""The children of one place, fitted to noisy counts together: non-negative, adding up to their parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["ITERATIONS", "Fit", "Limits", "Observed", "fit_children", "simplex_threshold"]

Table = NDArray[np.float64]

_DENSE: Final = 128
_TOLERANCE: Final = 2e-2
ITERATIONS: Final = 400
_ALTERNATIONS: Final = 40


@final
@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Noisy counts of one query on all children.

    Parameters
    ----------
    group_of : int64 array
        The group of each cell, of as many as are observed.
    counts : float64 array of shape (groups, children)
    weight : float
        One over the noise's variance.
    """

    group_of: NDArray[np.int64]
    counts: Table
    weight: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """What sums of disjoint groups of cells may be, for each child.

    Parameters
    ----------
    group_of : int64 array
        The group of each cell.
    lower, upper : float64 array of shape (groups, children)
    """

    group_of: NDArray[np.int64]
    lower: Table
    upper: Table


class Fit(NamedTuple):
    """A table of cells by children, and after how many steps it was found."""

    table: Table
    steps: int


def simplex_threshold(x: Table, sums: Table, start: Table | None = None) -> Table:
    r"""Return what to take off each row so that its positive part has the sum wanted.

    Parameters
    ----------
    x : float64 array of shape (rows, columns)
    sums : float64 array of shape (rows,)
        Positive.
    start : float64 array of shape (rows,), optional
        A guess.

    Returns
    -------
    float64 array of shape (rows,)

    Notes
    -----
    Newton's method on the sum of :math:`\max(x - t, 0)`, convex, decreasing and piecewise linear in t: after
    one step it is on the left of the root, and then rises to it in finitely many.

    Examples
    --------
    >>> simplex_threshold(np.array([[3.0, 1.0, -5.0]]), np.array([2.0])).tolist()
    [1.0]
    """
    t = (x.sum(axis=1) - sums) / x.shape[1] if start is None else start
    for _ in range(100):
        rest = np.maximum(x - t[:, None], 0)
        count = np.count_nonzero(rest, axis=1)
        excess = rest.sum(axis=1) - sums
        none = count == 0
        step = excess / np.maximum(count, 1)
        if none.any():
            step[none] = x[none].max(axis=1) - sums[none] - t[none]
        t = t + step
        if np.abs(step).max(initial=0.0) <= 1e-9 * (1 + np.abs(t).max(initial=0.0)):
            break
    return t


class _Groups:
    """The set of tables with groups of rows within limits, by column."""

    def __init__(self, limits: Limits) -> None:
        self.order = np.argsort(limits.group_of, kind="stable")
        present, self.starts = np.unique(limits.group_of[self.order], return_index=True)
        self.size = np.diff(np.r_[self.starts, len(self.order)])
        self.lower, self.upper = limits.lower[present], limits.upper[present]

    def project(self, x: Table) -> Table:
        """Return the nearest non-negative table of the set."""
        out = np.maximum(x, 0)
        sums = np.add.reduceat(out[self.order], self.starts, axis=0)
        wanted = np.clip(sums, self.lower, self.upper)
        off = wanted != sums
        columns = np.flatnonzero(off.any(axis=0))
        if len(columns):
            part = x[np.ix_(self.order, columns)]
            t = np.repeat(self._thresholds(part, wanted[:, columns]), self.size, axis=0)
            moved = np.where(np.repeat(wanted[:, columns] > 0, self.size, axis=0), np.maximum(part - t, 0), 0)
            changed = np.repeat(off[:, columns], self.size, axis=0)
            out[np.ix_(self.order, columns)] = np.where(changed, moved, np.maximum(part, 0))
        return out

    def _thresholds(self, x: Table, wanted: Table) -> Table:
        """Return what `simplex_threshold` does, for each group and column at once."""
        starts = self.starts
        t: Table = (np.add.reduceat(x, starts, axis=0) - wanted) / self.size[:, None]
        most = np.maximum.reduceat(x, starts, axis=0)
        for _ in range(100):
            rest = np.maximum(x - np.repeat(t, self.size, axis=0), 0)
            count = np.add.reduceat((rest > 0).astype(np.int64), starts, axis=0)
            excess = np.add.reduceat(rest, starts, axis=0) - wanted
            step = np.where(count == 0, most - wanted - t, excess / np.maximum(count, 1))
            t = t + step
            if np.abs(step).max(initial=0.0) <= 1e-9 * (1 + np.abs(t).max(initial=0.0)):
                break
        return t


class _Feasible:
    """The set of tables with rows of given sums, or free ones, and groups of rows within limits by column."""

    def __init__(self, sums: Table | None, limits: Sequence[Limits]) -> None:
        self.sums, self.limits = sums, limits
        self.start: Table | None = None
        self.off: list[Table] = []
        self.groups = [_Groups(each) for each in limits]

    def project(self, x: Table) -> Table:
        """Return the nearest table of the set: exact without limits, else by Dykstra's alternations.

        They are ascents of the dual problem, which may start anywhere: here where the last table's ended.
        """
        if not self.limits:
            return self._rows(x)
        if not self.off:
            self.off = [np.zeros_like(x) for _ in range(1 + len(self.limits))]
        off = self.off
        x = x - sum(off)
        for _ in range(_ALTERNATIONS):
            moved = 0.0
            for i, before in enumerate(off):
                y = x + before
                new = self.groups[i - 1].project(y) if i else self._rows(y)
                off[i] = y - new
                if i:
                    moved = max(moved, float(np.abs(new - x).max(initial=0.0)))
                x = new
            if moved < 1e-3:
                break
        return x

    def _rows(self, x: Table) -> Table:
        if self.sums is None:
            return np.maximum(x, 0)
        self.start = simplex_threshold(x, self.sums, self.start)
        return np.maximum(x - self.start[:, None], 0)


class _Misfit:
    """The gradient of the weighted sum of squared residuals, and a bound on its slope."""

    def __init__(self, observed: Sequence[Observed], cells: int) -> None:
        sizes = [np.bincount(each.group_of)[each.group_of] for each in observed]
        slopes = sum(each.weight * size for each, size in zip(observed, sizes, strict=True))
        self.slope = float(np.max(slopes))
        self.target = sum(each.weight * each.counts[each.group_of] for each in observed)
        self.dense: Table | None = None
        self.parts: list[tuple[Any, Observed]] = []
        if cells <= _DENSE:
            groups = [each.group_of for each in observed]
            equal = (w.weight * (g[:, None] == g[None]) for w, g in zip(observed, groups, strict=True))
            self.dense = np.asarray(sum(equal), np.float64)
            return
        for each in observed:
            ones = (np.ones(cells), (each.group_of, np.arange(cells)))
            alone = len(each.counts) == cells
            self.parts.append((None if alone else scipy.sparse.csr_array(ones), each))

    def gradient(self, x: Table) -> Table:
        if self.dense is not None:
            return np.asarray(self.dense @ x - self.target)
        found = -self.target
        for matrix, each in self.parts:
            found = found + each.weight * (x if matrix is None else (matrix @ x)[each.group_of])
        return np.asarray(found)


def fit_children(
    observed: Sequence[Observed], sums: Table | None, children: int, limits: Sequence[Limits] = ()
) -> Fit:
    r"""Return the non-negative table that is nearest to what was observed, in weighted least squares.

    Parameters
    ----------
    observed : sequence of Observed
        On the same cells. If there is none, children get equal parts, as far as limits allow.
    sums : float64 array of shape (cells,), or None
        The parent's counts, positive, which the children's add up to; None for the root, which has none.
    children : int
        How many there are.
    limits : sequence of Limits
        What groups of cells may sum to, of a partition of the cells each; compatible with the sums.

    Returns
    -------
    Fit
        Of a table of shape (cells, children). Without limits its sums are exact up to round-off, with limits
        up to the alternations' tolerance.

    Notes
    -----
    Accelerated projected gradient (Beck, Teboulle 2009), started again where it turns back (O'Donoghue,
    Candès 2015), until no entry moves by more than 0.02, or 400 steps were taken: then the table is what was
    reached, which meets the constraints all the same.

    Examples
    --------
    >>> seen = Observed(np.array([0, 1]), np.array([[4.0, -1.0], [1.0, 1.0]]), 1.0)
    >>> fit_children([seen], np.array([3.0, 4.0]), 2).table.round(2).tolist()
    [[3.0, 0.0], [2.0, 2.0]]
    """
    feasible = _Feasible(sums, limits)
    if not observed:
        even = np.zeros(0) if sums is None else sums / children
        return Fit(feasible.project(np.repeat(even[:, None], children, axis=1)), 0)
    misfit = _Misfit(observed, len(observed[0].group_of))
    finest = max(observed, key=lambda each: (len(each.counts), each.weight))
    share = np.bincount(finest.group_of)[finest.group_of]
    x = feasible.project(finest.counts[finest.group_of] / share[:, None])
    z, momentum, steps = x, 1.0, 0
    while steps < ITERATIONS:
        steps += 1
        new = feasible.project(z - misfit.gradient(z) / misfit.slope)
        moved = new - x
        if float(np.vdot(z - new, moved)) > 0:
            momentum, z = 1.0, new
        else:
            after = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
            z = new + (momentum - 1) / after * moved
            momentum = after
        x = new
        if np.abs(moved).max(initial=0.0) < _TOLERANCE:
            break
    return Fit(x, steps)
