"""The exact sampler of one quantile of rows that are counted by bin: bins, or points within them, by rank."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.sampling.choice import choose, flip

__all__ = ["BinSampler", "BinnedPart", "finest_target"]

_FARTHEST: Final = 1 << 62
_MOST_BLOCKS: Final = 48

Integers = NDArray[np.int64]


def finest_target(parts: int) -> int:
    """Return the largest denominator of a target among bins of so many parts: gaps then fit in 64 bits."""
    return 1 << 20 if parts == 1 else 1 << 12


@final
@dataclass(frozen=True, slots=True)
class BinnedPart:
    """The rows of a group between two positions, by bin; each row is distributed evenly over its bin.

    Parameters
    ----------
    leaves : int64 array
        The bins that hold rows, rising; some may lie outside the positions.
    counts : int64 array
        How many rows each holds: positive.
    parts : int
        How finely a bin is cut: a bin is ``2 * parts`` positions wide, and a row weighs as much.
    low, high : int
        The positions: ``2 * parts * v`` is the border below bin v, an odd position is the middle of a part.

    Attributes
    ----------
    starts, ends : int64 arrays
        The positions between which the bins that hold some of the rows lie.
    density : int array
        The rows of each of these bins, which is the weight at each position in it.
    below : int array
        The weight below each of these bins.
    total : int
        The weight of all.
    """

    leaves: Integers
    counts: Integers
    parts: int
    low: int
    high: int
    starts: Integers = field(init=False)
    ends: Integers = field(init=False)
    density: NDArray[Any] = field(init=False)
    below: NDArray[Any] = field(init=False)
    total: int = field(init=False)

    def __post_init__(self) -> None:
        width = 2 * self.parts
        first, last = np.searchsorted(self.leaves, [self.low // width, -(-self.high // width)])
        leaves, counts = self.leaves[first:last], self.counts[first:last]
        starts = np.maximum(leaves * width, self.low)
        ends = np.minimum((leaves + 1) * width, self.high)
        held = starts < ends
        starts, ends, counts = starts[held], ends[held], counts[held]
        # Products with the denominator of a target must fit: else whole numbers of any size.
        wide = float(counts.sum(dtype=np.float64)) * width * finest_target(self.parts) >= _FARTHEST
        density = counts.astype(object) if wide else counts
        upto = np.cumsum(density * (ends - starts))
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "ends", ends)
        object.__setattr__(self, "density", density)
        object.__setattr__(self, "below", upto - density * (ends - starts))
        object.__setattr__(self, "total", int(upto[-1]) if len(upto) else 0)


class _Blocks(NamedTuple):
    """Runs of points: from ``first`` on, ``sizes`` of them, ``steps`` positions apart, in the bin ``bins``.

    The gap does not fall along a run; ``bins`` is -1 where it is the same all along.
    """

    first: Integers
    sizes: Integers
    steps: Integers
    bins: Integers


@final
@dataclass(frozen=True, slots=True)
class BinSampler:
    r"""The exponential mechanism over bins, or over points in bins, scored by rank.

    Parameters
    ----------
    target : Fraction
        Which share a/b of the rows should lie below, from 0 to 1.
    rate : Fraction
        By how much one unit of the gap lowers the logarithm of a candidate's probability.
    outer_low, outer_high : bool
        Whether the part begins with the smallest row of the group, and ends with its largest.

    Notes
    -----
    With n the weight of the part, L that below a candidate and M that in it (0 of a point), the target is
    :math:`T = a n + c`, and the gap :math:`\max(0, bL - T, T - b(L + M))`: b times the distance of the target
    from the ranks of the candidate. The constant c makes of the quantile of order p what it is among n rows,
    the one between the rows with the numbers :math:`\lfloor p(n-1) \rfloor` and :math:`\lceil p(n-1)
    \rceil` from 0: half a row is added at an end where there is no released quantile.

    *Sensitivity.* A row more, of weight w, changes bL - T by w times a number from -a to b - a, and T - b(L +
    M) by w times one from -(b - a) to a. So the gap of every candidate changes by at most :math:`w \max(a,
    b-a)`, and the gaps of two candidates by at most twice that against one another; and they may do so: below
    the target the gap falls where it rises above. A row's weight may lie in several bins of the part; then
    the changes are sums of those of its portions, with the same bound.

    *Draw.* Bins of one gap are one entry with its multiplicity (`choose`). Points of a bin with many rows
    have many gaps: they are cut into blocks whose gaps grow by no more than they are, one entry each with the
    least gap in it, and a point that is drawn evenly from a block is accepted with what it is less likely
    than that, or all is drawn anew. So the distribution is exactly the mechanism's, wherever blocks are cut.
    Gaps beyond 2^62 count as 2^62, which moves by no more than they do.
    """

    target: Fraction
    rate: Fraction
    outer_low: bool = True
    outer_high: bool = True

    def draw_bin(self, part: BinnedPart, source: RandomSource) -> int:
        """Return a bin that has a position of the part."""
        width = 2 * part.parts
        first, last = part.low // width, max(part.low, part.high - 1) // width
        held = part.starts // width
        starts, ends = np.append(first, held + 1), np.append(held - 1, last)
        gaps = np.concatenate(
            [self._gaps(part, part.below, self._above(part)), self._gaps(part, *self._between(part))]
        )
        counts = np.concatenate([np.ones(len(held), np.int64), np.maximum(0, ends - starts + 1)])
        at = choose(_near(gaps), self.rate, multiplicity=counts, rng=source)
        if at < len(held):
            return int(held[at])
        at -= len(held)
        return int(starts[at]) + int(uniform_integers(int(ends[at] - starts[at]) + 1, 1, source)[0])

    def draw_point(self, part: BinnedPart, source: RandomSource) -> int:
        """Return an odd position of the part."""
        blocks = self._blocks(part)
        gaps = self._gap_at(part, blocks.first, blocks.bins)
        runs, levels = self._runs(part), self._gaps(part, *self._between(part))
        all_gaps = np.concatenate([gaps, levels])
        first, sizes, steps, bins = (np.concatenate(pair) for pair in zip(blocks, runs, strict=True))
        near = _near(all_gaps)
        while True:
            at = choose(near, self.rate, multiplicity=sizes, rng=source)
            ahead = int(uniform_integers(int(sizes[at]), 1, source)[0])
            point = first[at : at + 1] + steps[at] * ahead
            if bins[at] < 0:
                return int(point[0])
            more = _near(self._gap_at(part, point, bins[at : at + 1])) - near[at]
            if flip(more, self.rate, source)[0]:
                return int(point[0])

    def _target(self, part: BinnedPart) -> int:
        a, b = self.target.numerator, self.target.denominator
        half = part.parts  # the weight of half a row
        return a * part.total + half * ((b - a) * self.outer_low - a * self.outer_high)

    def _gaps(self, part: BinnedPart, below: NDArray[Any], upto: NDArray[Any]) -> NDArray[Any]:
        b, target = self.target.denominator, self._target(part)
        return np.asarray(np.maximum(0, np.maximum(b * below - target, target - b * upto)))

    def _above(self, part: BinnedPart) -> NDArray[Any]:
        return np.asarray(part.below + part.density * (part.ends - part.starts))

    def _between(self, part: BinnedPart) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the weight below each run of bins without rows: before the first that has some, and on."""
        below = np.append(np.zeros(1, part.below.dtype), self._above(part))
        return below, below

    def _gap_at(self, part: BinnedPart, points: Integers, bins: Integers) -> NDArray[Any]:
        below = part.below[bins] + part.density[bins] * (points - part.starts[bins])
        return self._gaps(part, below, below)

    def _runs(self, part: BinnedPart) -> _Blocks:
        """Return the points where no rows are, with one gap each."""
        # A border between bins is even; an odd end of a bin with rows is the part's own, and that bin's.
        lows = np.append(part.low, part.ends + 1)
        highs = np.append(part.starts - 1, part.high)
        first, last = lows | 1, (highs - 1) | 1
        sizes = np.maximum(0, (last - first) // 2 + 1)
        return _Blocks(first, sizes, np.full_like(first, 2), np.full_like(first, -1))

    def _blocks(self, part: BinnedPart) -> _Blocks:
        """Return the points of bins with rows, from where their gaps are least."""
        first, last = part.starts | 1, (part.ends - 1) | 1
        bins, sizes = np.arange(len(first)), (last - first) // 2 + 1
        b, target = self.target.denominator, self._target(part)
        begin = b * (part.below + part.density * (first - part.starts))
        end = b * (part.below + part.density * (last - part.starts))
        across = np.flatnonzero((begin < target) & (end >= target))
        steps = np.where(begin >= target, 2, -2)
        starts = np.where(steps > 0, first, last)
        for at in across:  # one bin at most: cut where the gap is least
            low = -((int(begin[at]) - target) // (2 * b * int(part.density[at])))
            bins, steps = np.append(bins, at), np.append(steps, 2)
            starts = np.append(starts, first[at] + 2 * low)
            sizes = np.append(sizes, sizes[at] - low)
            starts[at], sizes[at] = first[at] + 2 * (low - 1), low
        return self._cut(part, _Blocks(starts, sizes, steps, bins))

    def _cut(self, part: BinnedPart, runs: _Blocks) -> _Blocks:
        """Cut runs into blocks of doubling size, the first of which has nearly one gap."""
        slope = 2.0 * float(self.rate * self.target.denominator) * part.density[runs.bins].astype(np.float64)
        many = np.clip(np.ceil(np.log2(slope * runs.sizes + 1)), 1, _MOST_BLOCKS).astype(np.int64)
        of = np.repeat(np.arange(len(many)), many)
        number = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many)
        whole = np.exp2(many[of].astype(np.float64)) - 1
        size = runs.sizes[of].astype(np.float64)
        begin = np.ceil(size * (np.exp2(number.astype(np.float64)) - 1) / whole).astype(np.int64)
        end = np.append(begin[1:], 0)
        final_ones = number == many[of] - 1
        end[final_ones] = runs.sizes[of][final_ones]
        steps = runs.steps[of]
        return _Blocks(runs.first[of] + steps * begin, np.maximum(0, end - begin), steps, runs.bins[of])


def _near(gaps: NDArray[Any]) -> Integers:
    return np.asarray(np.minimum(gaps, _FARTHEST), dtype=np.int64)
