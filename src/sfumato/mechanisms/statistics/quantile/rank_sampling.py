"""The exact sampler of one quantile: grid points weighted by how far their rank is from the target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.base.grid import Grid
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.sampling.choice import choose, flip

__all__ = [
    "DENOMINATOR",
    "OrderStatistics",
    "PartitionedNumbers",
    "RankSampler",
    "SortedNumbers",
    "add_remove_sampler",
    "uniform_below_each",
]

_Steps = NDArray[np.int64]
DENOMINATOR: Final = 1 << 20
"""The largest denominator of a quantile."""
_NEGLIGIBLE: Final = 45.0
"""Log of how rarely what lies outside the window is looked at."""


class OrderStatistics(Protocol):
    """Numbers in order, in whole steps."""

    @property
    def size(self) -> int:
        """How many there are."""

    def window(self, first: int, last: int) -> _Steps:
        """Return those of the indices from ``first`` to before ``last``, in order."""

    def around(self, point: int) -> tuple[int, int]:
        """Return how many lie below a point, and how many above it."""


@final
@dataclass(frozen=True, slots=True)
class SortedNumbers:
    """Numbers that were sorted.

    Parameters
    ----------
    steps : int64 array
        In order.
    """

    steps: _Steps

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.steps)

    def window(self, first: int, last: int) -> _Steps:
        """Return a slice."""
        return self.steps[first:last]

    def around(self, point: int) -> tuple[int, int]:
        """Return how many lie below a point, and how many above it, by bisection."""
        below, up_to = (int(np.searchsorted(self.steps, point, side=side)) for side in ("left", "right"))
        return below, len(self.steps) - up_to

    def between(self, lower: int | None, upper: int | None) -> SortedNumbers:
        """Return those above ``lower`` and at most ``upper``."""
        first = 0 if lower is None else int(np.searchsorted(self.steps, lower, side="right"))
        last = len(self.steps) if upper is None else int(np.searchsorted(self.steps, upper, side="right"))
        return SortedNumbers(self.steps[first:last])


@final
@dataclass(frozen=True, slots=True)
class PartitionedNumbers:
    """Numbers of which only a window is put in order, once.

    Parameters
    ----------
    values : array
        Real numbers without NaN, or integers; not changed.
    grid : Grid
        To round them to.
    lower, upper : int
        Bounds in steps, to which they are clamped; rounding and clamping keep their order.
    """

    values: NDArray[Any]
    grid: Grid
    lower: int
    upper: int

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.values)

    def window(self, first: int, last: int) -> _Steps:
        """Return a window, by selection: in time that is linear in the number of values."""
        if first == 0 and last == self.size:
            return self._steps(np.sort(np.asarray(self.values)))
        ends = sorted({max(0, first), min(self.size, last) - 1})
        return self._steps(np.sort(np.partition(self.values, ends)[first:last]))

    def around(self, point: int) -> tuple[int, int]:
        """Return how many lie below a point, and how many above it, by looking at all."""
        steps = self._steps(self.values)
        return int(np.count_nonzero(steps < point)), int(np.count_nonzero(steps > point))

    def _steps(self, values: NDArray[Any]) -> _Steps:
        return np.clip(np.asarray(self.grid.round(values), np.int64), self.lower, self.upper)


def uniform_below_each(bounds: _Steps, source: RandomSource) -> _Steps:
    """Return for each bound an independent uniform integer from 0 to below it."""
    found = np.empty(len(bounds), np.int64)
    for bound in np.unique(bounds).tolist():
        indices = np.flatnonzero(bounds == bound)
        found[indices] = uniform_integers(bound, indices.size, source)
    return found


class _Entries(NamedTuple):
    """Runs of points, each with its gap; of the lumped ones it is the smallest."""

    starts: _Steps
    ends: _Steps
    gaps: _Steps
    lumped: NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True)
class RankSampler:
    r"""The exponential mechanism over all lattice points between two bounds, scored by rank.

    Parameters
    ----------
    target : Fraction
        The quantile, from 0 to 1.
    rate : Fraction
        By how much one unit of the gap lowers the logarithm of a point's probability.
    lower, upper : int
        Bounds of the points, in steps.
    offset : int
        By how many records the target lies above the quantile.

    Notes
    -----
    With :math:`a/b` the quantile in lowest terms, n the number of values, of which L lie below a point and G
    above it, and c the offset, the gap of the point is :math:`\max(0, bL - an - bc, bG - (b-a)n + bc)`: b
    times the distance of the target from the point's ranks. One value more or less moves it by at most
    :math:`\max(a, b-a)`, one that is replaced by at most b.

    Points between two neighboring values have one gap, so a few thousand entries near the target are all that
    matters. What lies beyond a window around it is one entry on either side, weighted as if all its points
    had its least gap; if it is chosen, a point is drawn evenly and accepted with what it is less likely than
    that, or else all is drawn anew. So the distribution is exactly that of the mechanism.
    """

    target: Fraction
    rate: Fraction
    lower: int
    upper: int
    offset: int = 0

    def draw(self, ranks: OrderStatistics, source: RandomSource) -> int:
        """Return a point in steps."""
        return int(self.draws(ranks, 1, source)[0])

    def draws(self, ranks: OrderStatistics, size: int, source: RandomSource) -> _Steps:
        """Return that many independent points."""
        entries = self._near(ranks)
        found, left = np.empty(size, np.int64), np.arange(size)
        while left.size:
            counts = entries.ends - entries.starts + 1
            at = choose(entries.gaps, self.rate, multiplicity=counts, size=left.size, rng=source)
            found[left] = entries.starts[at] + uniform_below_each(counts[at], source)
            left, at = left[entries.lumped[at]], at[entries.lumped[at]]
            if left.size:
                gaps = np.array([self.gap(ranks, int(point)) for point in found[left]], np.int64)
                left = left[~flip(gaps - entries.gaps[at], self.rate, source)]
        return found

    def gap(self, ranks: OrderStatistics, point: int) -> int:
        """Return the gap of a point."""
        return int(self._gap(ranks.size, *ranks.around(point)))

    def _near(self, ranks: OrderStatistics) -> _Entries:
        """Return the entries of a window, or of all where equal values leave too much beyond it."""
        size, b = ranks.size, self.target.denominator
        enough = _NEGLIGIBLE + math.log(self.upper - self.lower + 1)
        half = math.ceil(enough / float(self.rate * b)) + 1
        middle = min(size, max(0, math.floor(self.target * size) + self.offset))
        first, last = max(0, middle - 2 * half), min(size, middle + 2 * half + 1)
        entries = self._entries(ranks, first, last)
        if (entries.gaps[entries.lumped] < half * b).any():
            return self._entries(ranks, 0, size)
        return entries

    def _entries(self, ranks: OrderStatistics, first: int, last: int) -> _Entries:
        """Return points of one gap each, with all that is beyond a window as one entry on either side."""
        size, window = ranks.size, ranks.window(first, last)
        begins = np.flatnonzero(np.append(True, window[1:] != window[:-1])[: len(window)])
        finishes = np.append(begins[1:], len(window))
        # The outermost values of a window may have equals beyond it.
        retained = slice(int(first > 0), len(begins) - int(last < size))
        values, begins, finishes = (
            window[begins[retained]],
            first + begins[retained],
            first + finishes[retained],
        )
        below = np.concatenate([[0], np.stack([begins, finishes], axis=1).ravel()])
        above = size - np.concatenate([np.stack([begins, finishes], axis=1).ravel(), [size]])
        starts = np.concatenate([[self.lower], np.stack([values, values + 1], axis=1).ravel()])
        ends = np.concatenate([np.stack([values - 1, values], axis=1).ravel(), [self.upper]])
        lumped = np.zeros(len(starts), np.bool_)
        lumped[0] |= first > 0
        lumped[-1] |= last < size
        return _Entries(starts, ends, self._gap(size, below, above), lumped)

    def _gap(self, size: int, below: Any, above: Any) -> Any:
        a, b = self.target.numerator, self.target.denominator
        low, high = a * size + b * self.offset, (b - a) * size - b * self.offset
        return np.maximum(0, np.maximum(b * below - low, b * above - high))


def add_remove_sampler(target: Fraction, epsilon: Fraction, lower: int, upper: int) -> RankSampler:
    """Return the draw that costs epsilon where one record more or less is hidden."""
    target = target.limit_denominator(DENOMINATOR)
    a, b = target.numerator, target.denominator
    return RankSampler(target, epsilon / (2 * max(a, b - a)), lower, upper)
