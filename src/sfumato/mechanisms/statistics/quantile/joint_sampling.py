"""The exact sampler of joint quantiles, over all increasing tuples of grid points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.statistics.quantile.log_sum_exp import COARSEST, FINEST, NOTHING, LogSumExpBounds
from sfumato.numerics.certified.fixed_point import exp_bounds, log_bounds
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import UniformBits, uniform_integers
from sfumato.privacy.neighboring import Neighboring

__all__ = ["MAX_JOINT", "MAX_JOINT_EPSILON", "JointSampler", "joint_sampler", "parts_of"]

_Steps = NDArray[np.int64]
MAX_JOINT: Final = 32
"""How many points are drawn jointly at most."""
MAX_JOINT_EPSILON: Final = 1 << 16
_PARTS: Final = 1 << 14
_WORD: Final = 52
_SLACK: Final = Fraction(1, 1 << 16)
_SPARE: Final = 32


class _Levels(NamedTuple):
    """Runs of points at or below which equally many records lie."""

    ranks: _Steps
    starts: _Steps
    widths: _Steps


class _Bend(NamedTuple):
    """Up to which level a kernel has fallen from its top, and the logarithms that scale its two sides."""

    turns: _Steps
    far: int
    near: int


class _Path(NamedTuple):
    """Levels with how many of the points are on each, from the last to the first, and how it was drawn."""

    runs: list[tuple[int, int]]
    chances: list[int]


@final
@dataclass(frozen=True, slots=True)
class JointSampler:
    r"""The exponential mechanism over all tuples of m lattice points between two bounds, released in order.

    Parameters
    ----------
    shares : tuple of m + 1 Fractions
        Which share of the records should lie up to the first point, between neighboring ones, and above the
        last; positive, of sum 1.
    rate : Fraction
        By how much one record of the gap lowers the logarithm of a tuple's probability.
    lower, upper : int
        Bounds of the points, in steps, at most 2^62 points in all.

    Notes
    -----
    With n the number of values and :math:`c_j` how many of them lie above the point j - 1 and at most at the
    point j of the ordered tuple, its gap is :math:`\sum_j |c_j - p_j n|`.

    *Paths.* The level r of a point is how many values are at most at it; w(r) points have it. A tuple's gap
    depends on its path: the levels it visits, rising, each with how many points s are on it. So
    :math:`m! \prod w(r)^s/s!` tuples have a path, all equally likely: given the path, each point is uniform
    on its level, and the distribution of the path is the *weight* f, this number times exp(-rate gap).

    *Sums.* Let G(j, r) be the sum over all beginnings of a path that end with the point j, the last on level
    r, and H(t, r) that of all before whose point t is the first on r: :math:`G(j, r) = \sum_s H(j-s+1, r)
    w(r)^s/s!\, e^{-rate\,n \sum_{j-s+1 < i \le j} p_i}`, :math:`H(t, r) = \sum_{r' < r} G(t-1, r')
    e^{-rate |r - r' - p_t n|}`, and the whole is :math:`\sum_r G(m, r) e^{-rate |n - r - p_{m+1} n|}`. The
    kernel rises up to the distance :math:`p_t n` and falls from there, so that H is two sums over windows of
    levels, of :math:`G e^{\pm rate\,r'}`. `LogSumExpBounds` bounds every summand x and every sum X from above
    by logarithms in whole units; each sum is raised by a slack of d = 2^-16 (at least one unit).

    *Draw.* A path is drawn backwards: at each sum one of its summands, with a word of S = 52 bits, which
    takes an integer :math:`v \ge 2^S e^{x - X}`, :math:`v \le 2^S e^{x - X}(1 + 1.01 \cdot 2^{-17}) + 3`, of
    the :math:`2^S` words. As :math:`\sum e^{x - X} \le e^{-d}`, K summands take at most :math:`2^S (1 -
    2^{-18}) + 3K \le 2^S` words for K up to 2^32; on one of the words that is left all is drawn anew. So a
    path is proposed with the rational probability :math:`p = \prod v 2^{-S}`, and by the first inequality,
    multiplied along the path, :math:`f \le p e^X` with X the logarithm of the whole. It is accepted with the
    probability :math:`f / (p e^X) \le 1`, or else all is drawn anew: what is accepted has a distribution
    proportional to f. That probability is :math:`(A/\prod v) e^{-x}` with an integer A and a rational x,
    :math:`x \ge 0` as :math:`e^X` exceeds the weight of the path, so `exp_bounds` and as many random bits as
    it takes decide exactly. How tight the bounds are matters for the number of attempts alone: about 1.01 for
    ten quantiles.

    With k different values, time is of the order of m k log k + m^2 k.
    """

    shares: tuple[Fraction, ...]
    rate: Fraction
    lower: int
    upper: int

    def points(self, steps: _Steps, parts: int, source: RandomSource) -> list[int]:
        """Return points of which each is cut into parts, over records that count as much in each part.

        Parameters
        ----------
        steps : int64 array
            The records, counted from the lowest point; the sampler is over the parts of all points.
        parts : int
        source : RandomSource

        Returns
        -------
        list of int
            In order.
        """
        values, counts = np.unique(steps, return_counts=True)
        positions = (values[:, None] * parts + np.arange(parts)).ravel()
        ranks = np.repeat(counts, parts).cumsum()
        return [at // parts for at in self.draw(positions, ranks, source)]

    def draw(self, values: _Steps, ranks: _Steps, source: RandomSource) -> list[int]:
        """Return points in steps, in order.

        Parameters
        ----------
        values : int64 array of shape (k,)
            The different values, rising, in steps from ``lower`` to ``upper``.
        ranks : int64 array of shape (k,)
            How many values are at most each.
        source : RandomSource
        """
        size = int(ranks[-1]) if len(ranks) else 0
        sums = _Sums(self, _levels(values, ranks, self.lower, self.upper), size)
        while (path := sums.propose(source)) is None or not sums.accept(path, source):
            pass
        points = []
        for level, length in path.runs:
            start, width = int(sums.levels.starts[level]), int(sums.levels.widths[level])
            points.extend((start + uniform_integers(width, length, source)).tolist())
        return sorted(points)


def joint_sampler(
    quantiles: Sequence[Fraction], epsilon: Fraction, neighboring: Neighboring, points: int, parts: int
) -> JointSampler:
    r"""Return the sampler of quantiles that costs epsilon, over the parts of so many points.

    One record more or less moves the gap by at most :math:`2(1 - \min p)`, one that is replaced or zeroed by
    at most 2: the proof is in the notes of `JointQuantiles`.
    """
    shares = tuple(above - below for below, above in pairwise((Fraction(0), *quantiles, Fraction(1))))
    sensitivity = 2 * (1 - min(shares)) if neighboring is Neighboring.ADD_REMOVE else Fraction(2)
    return JointSampler(shares, epsilon / (2 * sensitivity * parts), 0, points * parts - 1)


def parts_of(points: int) -> int:
    """Return into how many parts so many points are cut, so that answers can tie where records do."""
    return max(1, _PARTS // points)


class _Sums:
    """All sums over beginnings of paths, as upper bounds on their logarithms."""

    def __init__(self, distribution: JointSampler, levels: _Levels, size: int) -> None:
        self.distribution, self.levels, self.size = distribution, levels, size
        many = len(distribution.shares) - 1
        # Weights are from exp(-2 rate n) to m! 2^(62 m), what scales them at most exp(2 rate n).
        largest = math.ceil(4 * distribution.rate * size) + 64 * (many + 1)
        self.logs = logs = LogSumExpBounds(max(min(FINEST, 59 - largest.bit_length()), COARSEST), _WORD)
        self._slack = logs.up(_SLACK)
        numerator, denominator = distribution.rate.numerator << logs.bits, distribution.rate.denominator
        products = [rank * numerator for rank in levels.ranks.tolist()]
        self._down = np.array([product // denominator for product in products], np.int64)
        self._up = np.array([-(-product // denominator) for product in products], np.int64)
        self._reached = [Fraction(0), *accumulate(distribution.shares)]
        self._bends = [self._bend(share) for share in distribution.shares[1:many]]
        one, orders = logs.counts(levels.widths), [_log_factorial(k, logs.bits) for k in range(many + 1)]
        self._runs = [k * one - orders[k][0] for k in range(1, many + 1)]
        self.firsts: list[_Steps] = [self._away(distribution.shares[0]) + orders[many][1]]
        self.ends: list[_Steps] = []
        for point in range(1, many + 1):
            if point > 1:
                self.firsts.append(self._first(point))
            self.ends.append(reduce(logs.add, self._end_terms(point)) + self._slack)
        self.all_terms = self.ends[-1] + self._away(1 - distribution.shares[-1])
        self.whole = int(logs.prefixes(self.all_terms)[-1]) + self._slack

    def propose(self, source: RandomSource) -> _Path | None:
        """Draw a path backwards, or None for a word that no summand takes."""
        path = _Path([], [])
        point = len(self.distribution.shares) - 1
        level = self._pick(self.whole, self.all_terms, path, source)
        while level is not None:
            lengths = np.array(self._end_terms(point, level))
            picked = self._pick(int(self.ends[point - 1][level]), lengths, path, source)
            if picked is None:
                return None
            path.runs.append((level, picked + 1))
            point -= picked
            if point == 1:
                return path
            before = self.before(point, level)
            level = self._pick(int(self.firsts[point - 1][level]), before, path, source)
            point -= 1
        return None

    def accept(self, path: _Path, source: RandomSource) -> bool:
        """Return whether a path is retained."""
        more, exponent = self.odds(path)
        uniform = UniformBits(int(source.words(1)[0]), 64, source)
        while True:
            spare = more.numerator.bit_length() - more.denominator.bit_length() + 1
            bits = uniform.width + _SPARE + max(0, spare)
            low, high = exp_bounds(exponent, bits)
            unit = more.denominator << bits
            if (uniform.value + 1) * unit <= more.numerator * low << uniform.width:
                return True
            if uniform.value * unit >= more.numerator * high << uniform.width:
                return False
            uniform.extend()

    def odds(self, path: _Path) -> tuple[Fraction, Fraction]:
        """Return a and x of the probability ``a exp(-x)`` with which a path is retained."""
        shares, size = self.distribution.shares, self.size
        points = [level for level, length in reversed(path.runs) for _ in range(length)]
        ranks = [0, *(int(self.levels.ranks[level]) for level in points), size]
        gap = sum(
            abs(above - below - share * size)
            for below, above, share in zip(ranks, ranks[1:], shares, strict=False)
        )
        ways = math.factorial(len(points))
        for level, length in path.runs:
            ways = ways // math.factorial(length) * int(self.levels.widths[level]) ** length
        more = Fraction(ways << _WORD * len(path.chances), math.prod(path.chances))
        return more, self.distribution.rate * gap + Fraction(self.whole, 1 << self.logs.bits)

    def before(self, point: int, level: int) -> _Steps:
        """Return the summands of the sum over what is before the first point on a level."""
        bend, ends = self._bends[point - 2], self.ends[point - 2]
        turn = bend.turns[level]
        far = ends[:turn] + self._up[:turn] + (bend.far - self._down[level])
        near = ends[turn:level] - self._down[turn:level] + (bend.near + self._up[level])
        return np.concatenate([far, near])

    def _first(self, point: int) -> _Steps:
        """Sum over what is before the first point on each level, on either side of the bend."""
        bend, ends, logs = self._bends[point - 2], self.ends[-1], self.logs
        far = logs.prefixes(ends + self._up)[np.maximum(bend.turns - 1, 0)] + (bend.far - self._down)
        far[bend.turns == 0] = NOTHING
        near = logs.windows(ends - self._down, bend.turns, np.arange(ends.size))
        total = logs.add(far, near + (bend.near + self._up)) + self._slack
        total[0] = NOTHING  # nothing is below the lowest level
        return np.asarray(total)

    def _bend(self, share: Fraction) -> _Bend:
        """Return where the kernel of a share turns: from the next whole distance on it falls."""
        ranks, mean = self.levels.ranks, self.distribution.rate * share * self.size
        distance = max(1, math.ceil(share * self.size))
        turns = np.searchsorted(ranks, ranks - distance, side="right")
        return _Bend(turns, self.logs.up(mean), -self.logs.down(mean))

    def _away(self, share: Fraction) -> _Steps:
        """Return the logarithms of what the distance of each rank from a share of all records costs."""
        target = self.distribution.rate * share * self.size
        above = self.logs.up(target) - self._down
        below = self._up - self.logs.down(target)
        return np.where(self.levels.ranks >= math.ceil(share * self.size), above, below)

    def _end_terms(self, point: int, at: int | slice = slice(None)) -> list[_Steps]:
        """Return the summands of the sum over all that ends with a point, by how many are on its level."""
        terms = []
        for length, run in enumerate(self._runs[:point], 1):
            between = self._reached[point] - self._reached[point - length + 1]
            cost = self.logs.down(self.distribution.rate * self.size * between)
            terms.append(self.firsts[point - length][at] + (run[at] - cost))
        return terms

    def _pick(self, top: int, terms: _Steps, path: _Path, source: RandomSource) -> int | None:
        """Choose among summands, and note by how many words."""
        chances = np.where(terms > NOTHING // 2, self.logs.chances(top - terms), 0)
        borders = chances.cumsum()
        word = int(source.words(1)[0]) >> (64 - _WORD)
        if word >= borders[-1]:
            return None
        picked = int(np.searchsorted(borders, word, side="right"))
        path.chances.append(int(chances[picked]))
        return picked


def _levels(values: _Steps, ranks: _Steps, lower: int, upper: int) -> _Levels:
    """Return those levels that have a point."""
    starts = np.append(np.int64(lower), values)
    widths = np.append(values, np.int64(upper + 1)) - starts
    retained = widths > 0
    return _Levels(np.append(np.int64(0), ranks)[retained], starts[retained], widths[retained])


def _log_factorial(number: int, bits: int) -> tuple[int, int]:
    """Bound the logarithm of a factorial in units of ``2**-bits``."""
    return log_bounds(Fraction(math.factorial(number)), bits)
