r"""Distributions of sums and products of independent likelihood ratios, with errors to one side.

A distribution lists values :math:`A` with their masses under :math:`Q`. It is made for one purpose:

- `Side.RISING`: no smaller :math:`E\varphi(A)`, for all convex rising :math:`\varphi`;
- `Side.FALLING`: the same for all convex falling ones;
- `Side.LOWER`: no greater :math:`E\varphi(A)`, for all convex non-negative ones that rise, or that fall.

All three are preserved by weighted sums and by products of independent values, as :math:`\varphi` is convex
in each of them. So a distribution may be thinned out after each step: cells of values go to their ends with
the mean preserved (upwards), or to their means (downwards). A mass that is too small for a float is dropped
below; above, more than it is added to the smallest and to the largest value, which are more extreme than what
was lost.

*Round-off.* With ``mass_error`` e and ``value_error`` :math:`\lambda`, the claim is about the distribution
whose masses are greater by :math:`1 + e` and whose values are moved by :math:`e^\lambda`, both in the
direction that is conservative. A mean that is off by a factor :math:`1 \pm \eta`, in a cell whose members may
lie outside by as much, is moved by more than both: for convex rising functions, masses at the cell's ends
with a greater mean are worse than the true ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics import _kernels
from sfumato.privacy._outward import UNIT

__all__ = ["TINY", "RatioDistribution", "Side", "joined", "thinned"]

_Array = NDArray[np.float64]
_Join: TypeAlias = Callable[[_Array, _Array], _Array]

TINY: Final = 1e-285
"""Outweighs all masses that are lost in one step."""
_LOST: Final = 1e-290
_BLOCK: Final = 1 << 14
_AT_ONCE: Final = 10240
"""`SUMS_AT_ONCE` of the kernel that counts pairs of values."""
_FINE: Final = 6000
_CLOSE: Final = 1e-13
"""Values this near each other become one."""
_DIRECT: Final = 1024
"""So many values are left as they are."""
_DEEP: Final = 1e7
_COARSE: Final = 0.2
"""Tails nearer to the floor than this are distinguished less well."""
_WIDEST: Final = 0.1
_STRETCH: Final = 12.0


class Side(Enum):
    """What a distribution bounds."""

    RISING = 1
    FALLING = -1
    LOWER = 0


class RatioDistribution(NamedTuple):
    """Positive values, rising, their masses, and the extremes; see the module's notes.

    Parameters
    ----------
    value, mass : ndarray
    zero : float
        Mass of the value zero.
    infinite : float
        What an infinite value adds to the mean of a rising function of slope 1: P-mass without Q-mass.
    floor, cut : float
        Tails below the floor are not distinguished; those below the cut become zero or infinite.
    mass_error, value_error : float
    step : float
        Width of a cell, in terms of the deviation of the distribution or of how far its tail reaches.
    """

    value: _Array
    mass: _Array
    zero: float
    infinite: float
    floor: float
    cut: float
    mass_error: float
    value_error: float
    step: float = 0.016

    @property
    def deviation(self) -> float:
        """About the standard deviation of the logarithm."""
        mean = max(float(self.mass @ self.value), 1e-300)
        return min(30.0, math.sqrt(math.log1p(float(self.mass @ (self.value / mean - 1) ** 2))))


class _Cells(NamedTuple):
    """Masses and first moments between two ends, with bounds on the relative errors of sums and positions."""

    left: _Array
    right: _Array
    mass: _Array
    moment: _Array
    mass_error: float
    location_error: float

    def of(self, selected: NDArray[np.bool_]) -> _Cells:
        """Return some of the cells."""
        left, right, mass, moment = (part[selected] for part in self[:4])
        return _Cells(left, right, mass, moment, self.mass_error, self.location_error)


def joined(
    one: RatioDistribution,
    two: RatioDistribution,
    weights: tuple[float, float] | None,
    deviation: float,
    side: Side,
) -> RatioDistribution:
    """Return the distribution of a weighted sum of two independent values, or of their product.

    Parameters
    ----------
    one, two : Distribution
        For the same side; maybe the same distribution twice.
    weights : (float, float), optional
        Positive; if None, the values are multiplied.
    deviation : float
        About the standard deviation of the logarithm of the result.
    side : Side
    """
    first, second = one.value, two.value
    product = weights is None
    if weights is None:
        join: _Join = np.multiply
        zero = one.zero + two.zero - one.zero * two.zero
        infinite = one.infinite + two.infinite - one.infinite * two.infinite
        alone: list[tuple[_Array, _Array]] = []
        moved = one.value_error + two.value_error
    else:
        join, first, second = np.add, weights[0] * first, weights[1] * second
        zero = one.zero * two.zero
        infinite = weights[0] * one.infinite + weights[1] * two.infinite
        alone = [(first, one.mass * two.zero)] if two.zero else []
        alone += [(second, two.mass * one.zero)] if one.zero else []
        moved = max(one.value_error, two.value_error)
        if one.zero and two.zero and side is not Side.LOWER:
            zero = max(zero, TINY)
    same = one is two and (weights is None or weights[0] == weights[1])
    error = one.mass_error + two.mass_error + 8 * UNIT
    infinite *= 1 - 16 * UNIT if side is Side.LOWER else 1 + 16 * UNIT
    start = one._replace(zero=zero, infinite=infinite, mass_error=error, value_error=moved + 8 * UNIT)
    if len(first) * len(second) <= _DIRECT:
        lists = [(join.outer(first, second).ravel(), np.multiply.outer(one.mass, two.mass).ravel()), *alone]  # type: ignore[attr-defined]
        value, mass = (np.concatenate(parts) for parts in zip(*lists, strict=True))
        return _listed(start._replace(value=value, mass=mass), side)
    ends = [join(first[i], second[i]) for i in (0, -1)]
    low = min([float(ends[0]), *(float(values[0]) for values, _ in alone)])
    counted = _Counter(low, float(ends[1]), deviation)
    counted.pairs((first, one.mass), (second, two.mass), product=product, same=same)
    for values, mass in alone:
        counted.add(values, mass)
    return _closed(*_grouped(*_trimmed(start, counted.cells(), side), deviation), side)


def thinned(distribution: RatioDistribution, side: Side) -> RatioDistribution:
    """Return a distribution with fewer values, if it has many."""
    if len(distribution.value) <= _DIRECT:
        return _listed(distribution, side)
    deviation = distribution.deviation
    counted = _Counter(float(distribution.value[0]), float(distribution.value[-1]), deviation)
    counted.add(distribution.value, distribution.mass)
    return _closed(*_grouped(*_trimmed(distribution, counted.cells(), side), deviation), side)


class _Counter:
    r"""Counts values in fine cells, which are narrow near 1 and widen on both sides.

    Of :math:`u = \log A / c` the cells are of one width in :math:`u / (1 + |u|)`; which cell a value is in is
    decided by comparison with the edges.
    """

    def __init__(self, low: float, high: float, deviation: float) -> None:
        if not 0 < low <= high < math.inf:
            raise ValueError("values must be positive and finite")
        scale = _STRETCH * deviation
        ends = [math.log(low) / scale, math.log(high) / scale]
        first, last = (u / (1 + abs(u)) for u in ends)
        level = first + np.arange(_FINE + 1) / (_FINE / max(last - first, 1e-300))
        with np.errstate(divide="ignore"):
            edges = np.exp(scale * level / (1 - np.minimum(np.abs(level), 1.0)))
        edges[0], edges[-1] = low, high
        self._edges, self._deviation = np.maximum.accumulate(np.clip(edges, low, high)), deviation
        self._sums = np.zeros((_FINE, 2))
        self._longest = self._blocks = 0
        far = max(abs(u) for u in ends)
        self._location_error = 64 * UNIT * (scale * (1 + far) ** 2 + far * scale + 4)

    def add(self, values: _Array, mass: _Array) -> None:
        """Count some values, which rise."""
        self.pairs((np.zeros(1), np.ones(1)), (values, mass), product=False, same=False)

    def pairs(
        self, one: tuple[_Array, _Array], two: tuple[_Array, _Array], *, product: bool, same: bool
    ) -> None:
        """Count all sums, or products, of two values; if both lists are the same, each two only once."""
        a, p, b, q = map(np.ascontiguousarray, (*one, *two))
        _kernels.pair_sums(self._edges, self._deviation, a, p, b, q, product, same, self._sums)
        longest, blocks = _additions(len(a), len(b), same=same)
        self._longest, self._blocks = max(self._longest, longest), self._blocks + blocks

    def cells(self) -> _Cells:
        """Return what was counted."""
        mass, moment = self._sums.T.copy()
        terms = self._longest + self._blocks + _FINE + 64
        return _Cells(self._edges[:-1], self._edges[1:], mass, moment, terms * UNIT, self._location_error)


def _additions(rows: int, columns: int, *, same: bool) -> tuple[int, int]:
    """Return how often one sum is added to within a block of rows, and how many blocks there are.

    Values are moved by the errors of sums, and readings of stored losses depend on where they lie: so the
    errors are those of blocks of `_BLOCK` pairs, in which squares of equal lists stand alone. The kernel's
    own blocks add up less often.
    """
    longest = blocks = 0
    for start, stop in _blocks(rows, columns, _BLOCK, same=same):
        height, square = min(stop, rows) - start, min(stop, columns) - start if same else 0
        rest = columns - min(stop, columns) if same else columns
        longest = max(longest, height * square, height * rest)
        blocks += (square > 0) + (rest > 0)
    at_once = max(min(rows * columns, _AT_ONCE), columns)
    if not same:
        at_once = columns * min(rows, max(1, _AT_ONCE // columns))
    more = at_once + sum(1 for _ in _blocks(rows, columns, _AT_ONCE, same=same)) - longest - blocks
    return longest + max(0, more), blocks


def _blocks(rows: int, columns: int, at_once: int, *, same: bool) -> Iterator[tuple[int, int]]:
    """Yield rows that have no more pairs together, or are one; of equal lists each two are met once."""
    start = 0
    while start < rows:
        stop = start + max(1, at_once // (columns - (start if same else 0)))
        yield start, stop
        start = stop


def _trimmed(distribution: RatioDistribution, cells: _Cells, side: Side) -> tuple[RatioDistribution, _Cells]:
    """Let a negligible tail go to the extreme that it is near, so that no high moment sees it."""
    slack = 1 + cells.mass_error + distribution.mass_error + distribution.value_error
    tail = np.cumsum(cells.moment[::-1])[::-1] if side is Side.RISING else np.cumsum(cells.mass)
    selected = tail >= distribution.cut
    if side is Side.LOWER or selected.all() or not selected.any():
        return distribution, cells
    if side is Side.RISING:
        gone, infinite = float(cells.mass[~selected].sum()), float(tail[~selected].max(initial=0.0))
        infinite += TINY * float(cells.right[-1])
        distribution = distribution._replace(
            zero=distribution.zero + gone * slack, infinite=distribution.infinite + infinite * slack
        )
    else:
        gone = float(tail[~selected].max(initial=0.0)) + TINY
        distribution = distribution._replace(zero=distribution.zero + gone * slack)
    return distribution, cells.of(selected)


def _grouped(
    distribution: RatioDistribution, cells: _Cells, deviation: float
) -> tuple[RatioDistribution, _Cells]:
    r"""Put neighboring cells together, as many as the bounds can bear.

    A cell of relative width w moves :math:`H(s) = E(A - s)_+` by :math:`s f w^2 / 8`, f the density of
    :math:`\log A`; so w may be as great as the root of :math:`H / sf`, or the deviation. Below the mean it is
    :math:`E(s - A)_+` that counts.
    """
    left, right, mass, moment, *_ = cells.of(cells.mass > 0)
    if not len(left):
        return distribution, cells.of(cells.mass > 0)
    upper = np.cumsum(moment[::-1])[::-1] - left * np.cumsum(mass[::-1])[::-1]
    lower = right * np.cumsum(mass) - np.cumsum(moment)
    tail = np.maximum(np.minimum(upper, lower), distribution.floor)
    # What lies between full cells belongs to the nearer one.
    middles = 0.5 * (np.log(left[1:]) + np.log(right[:-1]))
    widths = np.diff(middles, prepend=np.log(left[0]), append=np.log(right[-1]))
    density = np.minimum(np.sqrt(moment * widths / tail), widths / deviation)
    density *= np.where(tail < _DEEP * distribution.floor, _COARSE, 1.0)
    levels = np.floor(np.cumsum(np.maximum(density / distribution.step, widths / _WIDEST)))
    # The smallest and the largest values stay by themselves: they determine the largest loss.
    apart = np.diff(levels, prepend=-1.0) > 0
    apart[[0, min(1, len(apart) - 1), -1]] = True
    starts = np.flatnonzero(apart)
    ends = np.append(starts[1:], len(levels)) - 1
    grouped = _Cells(
        left[starts],
        right[ends],
        np.add.reduceat(mass, starts),
        np.add.reduceat(moment, starts),
        cells.mass_error,
        cells.location_error,
    )
    return distribution, grouped


def _closed(distribution: RatioDistribution, cells: _Cells, side: Side) -> RatioDistribution:
    """Put each cell's mass to its mean or to its ends."""
    left, right = cells.left, cells.right
    some = cells.mass > _LOST
    mass = np.where(some, cells.mass, 0.0)
    mean = np.where(some, cells.moment / np.where(some, cells.mass, 1.0), left)
    off = 2 * cells.mass_error + 2 * cells.location_error
    if side is Side.LOWER:
        value = np.clip(mean, left, right)
    else:
        mean = np.clip(mean * (1 + side.value * off), left, right)
        fraction = (mean - left) / np.where(right > left, right - left, 1.0)
        value = np.concatenate([left, right])
        mass = np.concatenate([mass * (1 - fraction), mass * fraction])
    changed = distribution._replace(
        value=value,
        mass=mass,
        mass_error=distribution.mass_error + cells.mass_error + 8 * UNIT,
        value_error=distribution.value_error + off,
    )
    return _listed(changed, side)


def _listed(distribution: RatioDistribution, side: Side) -> RatioDistribution:
    """Sort the values, put together what lies close, and leave out what has hardly any mass."""
    if not len(distribution.value):  # from below all may be lost
        return distribution
    order = np.argsort(distribution.value, kind="stable")
    value, mass = distribution.value[order], distribution.mass[order]
    starts = np.flatnonzero(np.diff(value, prepend=-1.0) > _CLOSE * value)
    total = np.add.reduceat(mass, starts)
    longest = int(np.diff(np.append(starts, len(value))).max())
    value = value[starts]
    if side is not Side.LOWER:
        total[0] += TINY
        total[-1] += TINY
    selected = total > _LOST
    return distribution._replace(
        value=value[selected],
        mass=total[selected],
        mass_error=distribution.mass_error + longest * UNIT,
        value_error=distribution.value_error + longest * _CLOSE,
    )
