r"""What shuffling leaves to see of one client's report: the pair of the clones.

With :math:`t = \tanh(\epsilon_0/2)`, the laws of the two counts (x, y), given :math:`m = x + y`, are
:math:`2^{-m} \binom{m}{x} (1 \pm tu)` with :math:`u = (x - y)/m`: the loss is :math:`2\,\mathrm{artanh}(tu)`.
It is grouped into bins of u; the mean of u in a bin gives the ratio of the bin's two masses.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT, below
from sfumato.privacy.pairs.bins import Bins, Mass, Points
from sfumato.privacy.pairs.pair import Pair, UncutPair, no_loss, two_points

__all__ = ["MOST_CLIENTS", "clones"]

_Array = NDArray[np.float64]

MOST_CLIENTS: Final = 10**12
"""More are counted as so many: further clients only hide more."""
_MOST_EPSILON: Final = 30.0
_REACH: Final = 14.0
_TAIL: Final = math.exp(-0.5 * _REACH * _REACH)
_BINS: Final = 2000
_SHARE: Final = 2e-4
"""Numbers of clones that differ by this share count as the least of them: a quarter of it is lost."""
_NOTHING: Final = -1e4
"""Log of the mass of an empty bin, which is zero as a float."""


class _Counts(NamedTuple):
    """Numbers of clones, each with its probability, rounded up; and the probability of fewer of them."""

    number: _Array
    mass: _Array
    fewer: float
    log_error: float


class ClonePair(UncutPair):
    """The pair of the clones, cut once; see `clones`."""

    __slots__ = ("_bins", "_epsilon")

    def __init__(self, epsilon: float, clients: int) -> None:
        self._epsilon, self._bins = epsilon, _bins(epsilon, clients)

    @property
    def tight(self) -> bool:
        """Never: the clones only bound what is seen."""
        return False

    @property
    def supremum(self) -> float:
        """The bound of the local randomizer: there may be no clone at all."""
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
        """Return the mass of the tail at the greatest loss."""
        del cuts, swapped
        return np.asarray(self._bins.high.log_p + tilts * self._epsilon * (1 + 4 * UNIT) + 1e-9)


@lru_cache(maxsize=256)
def clones(epsilon: float, clients: int) -> Pair:
    r"""Return the pair that dominates a shuffled epsilon-DP report among those of ``clients`` clients.

    Parameters
    ----------
    epsilon : float
        Of the local randomizer, for any two inputs.
    clients : int
        At least 1.

    Notes
    -----
    :math:`(A + \Delta, C - A + 1 - \Delta)` against :math:`(A + 1 - \Delta, C - A + \Delta)`, with :math:`C`
    binomial of :math:`n - 1` and :math:`e^{-\epsilon_0}`, :math:`A` binomial of C and 1/2, and :math:`\Delta`
    true with probability :math:`e^{\epsilon_0}/(e^{\epsilon_0} + 1)`. Four steps up are taken:

    - a clone more is post-processing (add a fair coin to the counts), so a number of clones may be taken for
      any smaller one, and more clients for fewer;
    - numbers far above the mean are so taken; numbers far below it, of probability at most :math:`e^{-98}`
      (Chernoff), as if there were no clone;
    - tails of u are at most :math:`e^{-98}` (Hoeffding), and their losses at most :math:`\epsilon_0`;
    - probabilities are divided by their sum over a finite window, which is at most 1.
    """
    clients = min(clients, MOST_CLIENTS)
    if epsilon == 0:
        return no_loss()
    if clients == 1 or epsilon > _MOST_EPSILON:
        return two_points(epsilon, tight=False)
    return ClonePair(epsilon, clients)


def _numbers(epsilon: float, others: int) -> _Counts:
    """Return the law of the number of clones, in blocks."""
    p, q = math.exp(-epsilon), -math.expm1(-epsilon)
    mean = others * p
    spread = _REACH * math.sqrt(mean)
    first = max(0, math.floor(mean - spread) - 1)
    last = min(others, math.ceil(mean + spread) + 101)
    count = np.arange(first, last + 1, dtype=float)
    steps = np.log((others - count[:-1]) / (count[:-1] + 1) * (p / q))
    centre = int(min(max(math.floor(mean), first), last)) - first
    log_shape = np.concatenate([-np.cumsum(steps[:centre][::-1])[::-1], [0.0], np.cumsum(steps[centre:])])
    shape = np.exp(log_shape)
    shape /= shape.sum()
    shape[-1] += _TAIL
    starts, at = [], first
    while at <= last:
        starts.append(at - first)
        at += max(1, int(at * _SHARE))
    # Sums of logarithms, each with some roundings, none above 200 where it counts.
    error = UNIT * 256 * (len(count) + 64)
    fewer = 2 * _TAIL if first > 0 else 0.0
    return _Counts(count[starts], np.add.reduceat(shape, starts), fewer, error)


def _half(m: int, furthest: float) -> tuple[_Array, _Array]:
    """Return u from 0 to ``furthest``, and its binomial probabilities, half of that at 0, rounded up."""
    start = (m + 1) // 2
    stop = min(m, math.floor(0.5 * m * (1 + furthest)) + 1)
    x = np.arange(start, stop + 1, dtype=float)
    mass = np.exp(np.concatenate([[0.0], np.cumsum(np.log((m - x[:-1]) / (x[:-1] + 1)))]))
    if 2 * start == m:
        mass[0] *= 0.5
    mass /= 2 * mass.sum()
    return (2 * x - m) / m, mass


def _bins(epsilon: float, clients: int) -> Bins:
    t = math.tanh(0.5 * epsilon)
    numbers = _numbers(epsilon, clients - 1)
    least = int(numbers.number[0]) + 1
    furthest = min(1.0, _REACH / math.sqrt(least))
    edges = np.linspace(0.0, epsilon if furthest == 1 else 2 * math.atanh(t * furthest), _BINS + 1)
    u_edges = np.append(np.tanh(0.5 * edges[:-1]) / t, furthest)
    total, moment, longest = np.zeros(_BINS), np.zeros(_BINS), 0
    for count, weight in zip(numbers.number.tolist(), numbers.mass.tolist(), strict=True):
        u, mass = _half(int(count) + 1, furthest)
        # What lies just beyond the last edge is rounded into the last bin only if it is on it.
        ends = np.searchsorted(u, u_edges)
        ends[-1] = int(np.searchsorted(u, furthest, side="right"))
        where = np.repeat(np.arange(_BINS), np.diff(ends))
        kept = slice(int(ends[0]), int(ends[-1]))
        mass = weight * mass[kept]
        total += np.bincount(where, mass, _BINS)
        moment += np.bincount(where, mass * u[kept], _BINS)
        longest = max(longest, len(u))
    error = numbers.log_error + UNIT * 256 * (longest + len(numbers.number) + 64)
    tail = numbers.fewer + (2 * _TAIL if furthest < 1 else 0.0)
    return _mirrored(_points(epsilon, edges, u_edges, (total, moment), error), edges, epsilon, tail)


def _slope(epsilon: float, u: _Array) -> _Array:
    """Return the derivative of the loss by u, with few roundings."""
    small = math.exp(-epsilon)
    return np.asarray(2 * math.tanh(0.5 * epsilon) / ((1 - u * u) + 4 * u * u * small / (1 + small) ** 2))


def _points(
    epsilon: float, edges: _Array, u_edges: _Array, sums: tuple[_Array, _Array], error: float
) -> Points:
    """Return the bins of positive loss; ``error`` bounds those of the logarithms of all probabilities."""
    total, moment = sums
    t, small = math.tanh(0.5 * epsilon), math.exp(-epsilon)
    some = total > 0
    u = np.where(some, moment / np.where(some, total, 1.0), 0.5 * (u_edges[1:] + u_edges[:-1]))
    u = np.clip(u, u_edges[:-1], np.minimum(u_edges[1:], 1.0))
    far = np.log(((1 + u) + small * (1 - u)) / (small * (1 + u) + (1 - u)))
    loss = np.where(u < 0.5, 2 * np.arctanh(t * np.minimum(u, 0.5)), far)
    # Weights wrong by the factor exp(error) move a mean by less than this, and so do the sums' roundings.
    loss_error = _slope(epsilon, u_edges[1:]) * 3 * error * u_edges[1:]
    loss_error = np.minimum(loss_error, np.diff(edges)) + 16 * UNIT * edges[1:]
    log_p = np.where(some, np.log(np.where(some, total, 1.0)) + np.log1p(t * u), _NOTHING)
    return Points(log_p, loss, 2 * error + 32 * UNIT * (1 + np.abs(log_p)), loss_error)


def _mirrored(points: Points, edges: _Array, epsilon: float, tail: float) -> Bins:
    """Add the tails and the negative losses."""
    edge_error = 16 * UNIT * (edges + _slope(epsilon, np.tanh(0.5 * edges) / math.tanh(0.5 * epsilon)))
    edge_error[0] = 0.0
    log_tail = math.log(tail) if tail else -math.inf
    return Bins(
        points=points.swapped().followed_by(points),
        edges=np.concatenate([-edges[:0:-1], edges]),
        edge_error=np.concatenate([edge_error[:0:-1], edge_error]),
        low=Mass(log_tail, log_tail),
        high=Mass(log_tail, log_tail),
    )
