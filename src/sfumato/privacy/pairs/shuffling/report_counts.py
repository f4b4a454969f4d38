r"""Two counts of reports that look alike, but for one report: cut into bins of the loss.

Of m reports each is of the first kind or of the second by a fair coin, but one of them, which is of the one
or the other by randomized response with the loss :math:`\epsilon'`. With :math:`t = \tanh(\epsilon'/2)` the
distributions of the two counts (x, y) are :math:`2^{-m} \binom{m}{x} (1 \pm tu)`, :math:`u = (x - y)/m`: the
loss is :math:`2\,\mathrm{artanh}(tu)`. A coin more is post-processing, so m may be taken for any smaller
number; a greater :math:`\epsilon'` only reveals more.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT, below
from sfumato.privacy.pairs.bins import Bins, Mass, Points
from sfumato.privacy.pairs.pair import UncutPair

__all__ = ["REACH", "TAIL", "Cells", "Counts", "ReportCountsPair", "binomial", "steps"]

_Array = NDArray[np.float64]

REACH: Final = 14.0
TAIL: Final = math.exp(-0.5 * REACH * REACH)
"""What Chernoff and Hoeffding leave beyond so many standard deviations."""
_BINS: Final = 2000
_NOTHING: Final = -1e4
"""Log of the mass of an empty bin, which is zero as a float."""


class Counts(NamedTuple):
    """Whole numbers with their probabilities, rounded up; the probability of smaller ones; and the error.

    ``log_error`` bounds the errors of the logarithms of the probabilities.
    """

    number: _Array
    mass: _Array
    fewer: float
    log_error: float


class Cells(NamedTuple):
    """Numbers of reports, the losses of the ones that are no fair coins, and the probabilities of both."""

    reports: _Array
    epsilon: _Array
    mass: _Array
    log_error: float


def binomial(trials: int, chance: float, odds: float) -> Counts:
    """Return the binomial distribution, but for what is far below its mean; what is far above counts as less.

    Parameters
    ----------
    trials : int
    chance, odds : float
        The probability of each trial, in (0, 1), and what it is divided by the rest.

    Notes
    -----
    What is left out on either side is at most `TAIL` (Chernoff); probabilities are divided by their sum over
    a finite window, which is at most 1.
    """
    mean = trials * chance
    width = REACH * math.sqrt(mean)
    first = max(0, math.floor(mean - width) - 1)
    last = min(trials, math.ceil(mean + width) + 101)
    count = np.arange(first, last + 1, dtype=float)
    # Ratios beyond floats are those next to a distribution of one number.
    with np.errstate(over="ignore", divide="ignore"):
        steps = np.log((trials - count[:-1]) / (count[:-1] + 1) * odds)
    centre = int(min(max(math.floor(mean), first), last)) - first
    log_shape = np.concatenate([-np.cumsum(steps[:centre][::-1])[::-1], [0.0], np.cumsum(steps[centre:])])
    shape = np.exp(log_shape)
    shape /= shape.sum()
    shape[-1] += TAIL
    # Sums of logarithms, each with some roundings, none above 200 where it counts.
    error = UNIT * 256 * (len(count) + 64)
    return Counts(count, shape, 2 * TAIL if first > 0 else 0.0, error)


def steps(first: int, last: int, ratio: float) -> NDArray[np.int64]:
    """Return rising whole numbers, up to the last, that differ by about a fixed ratio."""
    found, at = [], first
    while at <= last:
        found.append(at)
        at += max(1, int(at * ratio))
    return np.array(found)


class ReportCountsPair(UncutPair):
    """A mixture of such pairs, each of them revealed, cut once; an upper bound.

    Parameters
    ----------
    cells : Cells
        Equal numbers of reports should follow each other.
    epsilon : float
        The largest loss.
    tail : float
        Mass that no cell has.
    """

    __slots__ = ("_bins", "_epsilon")

    def __init__(self, cells: Cells, epsilon: float, tail: float) -> None:
        self._epsilon, self._bins = epsilon, _bins(cells, epsilon, tail)

    tight = False
    """Never: more is revealed than is seen."""

    @property
    def supremum(self) -> float:
        """The bound of the local randomizer: there may be no other report like it."""
        return below(self._epsilon)

    def cuts(self, reach: float) -> _Array:
        """Return as many cuts as there are."""
        del reach
        return np.arange(len(self._bins.edges), dtype=float)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the bins; both orders are the same, as the two counts may be exchanged."""
        del cuts, swapped
        return self._bins

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        """Return the mass of the tail at the largest loss."""
        del cuts, swapped
        return np.asarray(self._bins.high.log_p + tilts * self._epsilon * (1 + 4 * UNIT) + 1e-9)


def _half(m: int) -> tuple[_Array, _Array]:
    """Return u from 0 to about its furthest, and its probabilities, half of that at 0, rounded up."""
    start = (m + 1) // 2
    stop = min(m, math.floor(0.5 * m * (1 + float(_furthest(np.array(m))))) + 1)
    x = np.arange(start, stop + 1, dtype=float)
    mass = np.exp(np.concatenate([[0.0], np.cumsum(np.log((m - x[:-1]) / (x[:-1] + 1)))]))
    if 2 * start == m:
        mass[0] *= 0.5
    mass /= 2 * mass.sum()
    return (2 * x - m) / max(m, 1), mass


def _furthest(reports: _Array) -> _Array:
    """Return the u beyond which there is at most twice `TAIL`, or 1."""
    return np.asarray(np.minimum(1.0, REACH / np.sqrt(np.maximum(reports, 1.0))))


def _bins(cells: Cells, epsilon: float, tail: float) -> Bins:
    furthest, slopes = _furthest(cells.reports), np.tanh(0.5 * cells.epsilon)
    cut_off = furthest < 1
    far = 2 * np.arctanh(slopes * np.where(cut_off, furthest, 0.0))
    top = min(epsilon, float(np.max(np.where(cut_off, far, cells.epsilon))))
    edges = np.linspace(0.0, top, _BINS + 1)
    heights = np.tanh(0.5 * edges)
    q_mass, rise = np.zeros(_BINS), np.zeros(_BINS)
    last, u, half, longest = -1, np.zeros(0), np.zeros(0), 0
    for reports, loss, weight in zip(*(column.tolist() for column in cells[:3]), strict=True):
        if reports != last:
            last, (u, half) = reports, _half(int(reports))
            longest = max(longest, len(u))
        small = math.exp(-loss)
        t = (1 - small) / (1 + small)
        # What rounding puts beyond the last edge lies on it.
        stop = len(u) if loss <= top else int(np.searchsorted(u, heights[-1] / t, side="right"))
        seen, mass = u[:stop], half[:stop] * (weight / (1 + small))
        where = np.minimum(np.searchsorted(heights, t * seen, side="right") - 1, _BINS - 1)
        q_mass += np.bincount(where, mass * ((1 - seen) + small * (1 + seen)), _BINS)
        rise += np.bincount(where, mass * seen, _BINS) * (2 * (1 - small))
    error = cells.log_error + UNIT * 256 * (longest + len(cells.mass) + 64)
    return _mirrored(_points(edges, q_mass, rise, error), edges, tail + (2 * TAIL if cut_off.any() else 0.0))


def _points(edges: _Array, q_mass: _Array, rise: _Array, error: float) -> Points:
    """Return the bins of positive loss; ``error`` bounds those of the logarithms of all probabilities."""
    some = q_mass > 0
    q_mass = np.where(some, q_mass, 1.0)
    loss = np.where(some, np.log1p(rise / q_mass), 0.5 * (edges[1:] + edges[:-1]))
    loss = np.clip(loss, edges[:-1], edges[1:])
    # A factor of exp(error) on the masses moves their ratio by less than this, and within the bin.
    loss_error = np.minimum(4 * error * edges[1:], np.diff(edges)) + 16 * UNIT * edges[1:]
    log_p = np.where(some, np.log(q_mass + rise), _NOTHING)
    return Points(log_p, loss, 2 * error + 32 * UNIT * (1 + np.abs(log_p)), loss_error)


def _mirrored(points: Points, edges: _Array, tail: float) -> Bins:
    """Add the tails and the negative losses."""
    # The edge at u has the slope 2t / (1 - (tu)**2), and t u is tanh(edge / 2).
    edge_error = 16 * UNIT * (edges + np.sinh(edges))
    log_tail = math.log(tail) if tail else -math.inf
    return Bins(
        points=points.swapped().followed_by(points),
        edges=np.concatenate([-edges[:0:-1], edges]),
        edge_error=np.concatenate([edge_error[:0:-1], edge_error]),
        low=Mass(log_tail, log_tail),
        high=Mass(log_tail, log_tail),
    )
