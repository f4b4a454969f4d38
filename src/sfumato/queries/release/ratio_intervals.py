r"""Intervals of a ratio of two noisy sums: Fieller's, with the exact distribution of the noise.

If the exact sums are A and B, then for their ratio :math:`\theta = A / B` the number
:math:`\tilde A - \theta \tilde B` is pure noise of a known distribution. The interval holds each
:math:`\theta` that a two-sided test of this does not reject.

>>> from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
>>> from sfumato.queries.release.tails.noise_tails import noise_tail
>>> noise = NoiseTerm(noise_tail(DiscreteLaplaceDistribution(100)), 1.0, 0.0)
>>> count = NoiseTerm(noise_tail(DiscreteLaplaceDistribution(2)), 0.0, 1.0)
>>> low, high = ratio_interval(np.array([5000.0]), np.array([200.0]), [noise, count], np.array([0.05]))
>>> bool(22 < low[0] < 25 < high[0] < 28)
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato.queries.release.inversion import first_rejected
from sfumato.queries.release.tails.direction_tails import DirectionTails, direction_tails
from sfumato.queries.release.tails.noise_tails import NoiseTail

__all__ = ["NoiseTerm", "ratio_interval", "sum_interval"]

Floats: TypeAlias = NDArray[np.float64]
Groups: TypeAlias = NDArray[np.intp]

_TINY: Final = 1e-300
_ALL: Final = slice(None)
_GROUPS: Final = 2048  # at once: what memory is for


@final
@dataclass(frozen=True, slots=True)
class NoiseTerm:
    """Independent noise, and what it is multiplied by in the numerator and in the denominator."""

    tail: NoiseTail
    numerator: float
    denominator: float


def ratio_interval(
    numerator: Floats,
    denominator: Floats,
    noise: Sequence[NoiseTerm],
    miss: Floats,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[Floats, Floats]:
    r"""Return intervals of the ratios of two sums, from the noisy ones.

    Parameters
    ----------
    numerator, denominator : array
        The noisy sums of each group.
    noise : sequence of NoiseTerm
        Independent terms, of both sums together.
    miss : array
        The probability that each interval may miss its ratio with.
    bounds : tuple of two floats
        What no ratio can leave, from public parameters.

    Returns
    -------
    pair of arrays
        Where the noisy denominator may be zero, the ratios that are not rejected have no bound
        on one side or on both: the ends are then those of ``bounds``, infinite where there are none.

    Notes
    -----
    Guarantee: each interval holds the ratio of the exact sums with probability at least 1 - ``miss``, for
    every exact denominator but zero. What is tested is :math:`|\tilde A - \theta \tilde B|` against the tail
    of :math:`|Z_A - \theta Z_B|`, which is bounded from above: one term's probabilities are summed block by
    block, each at its farther end (single numbers, where their standard deviation is at most 16), the other's
    tail is its closed form. Of more than two terms the tails are those of `DirectionTails`. Nothing in it is
    asymptotic. The width exceeds the exact test's by at most about 2 %, through the blocks.

    The ratios that are not rejected are those of the points of a convex set around the noisy sums (for
    continuous log-concave noise, whose quantiles are the support function of its floating body: Bobkov,
    "Convex bodies and norms associated to convex measures", 2010), so they are one arc of directions around
    the estimate, and its two ends are searched for.

    References
    ----------
    Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B 16, 1954.
    """
    columns = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (numerator, denominator, miss)))
    starts = range(0, max(1, columns[0].size), _GROUPS)
    parts = [_arc([column[start : start + _GROUPS] for column in columns], noise, bounds) for start in starts]
    low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    return low, high


def sum_interval(total: Floats, noise: Sequence[NoiseTerm], miss: Floats) -> tuple[Floats, Floats]:
    """Return intervals of a sum, from the noisy one: what lies strictly between their ends is not rejected.

    Parameters
    ----------
    total : array
        The noisy sum of each group.
    noise : sequence of NoiseTerm
        A single term; its numerator is the weight of the noise.
    miss : array
        The probability that each interval may miss its sum with.
    """
    ((tail, weight),) = ((term.tail, abs(term.numerator)) for term in noise)
    goals, back = np.unique(miss, return_inverse=True)
    low, high = np.zeros_like(goals), np.full_like(goals, tail.stddev)
    while np.any(above := 2 * tail.upper(high) > goals) and high.max() < 1e4 * tail.stddev:
        high = np.where(above, 2 * high, high)
    for _ in range(60):
        middle = (low + high) / 2
        rejected = 2 * tail.upper(middle) <= goals
        low, high = np.where(rejected, low, middle), np.where(rejected, middle, high)
    half = weight * high[back]
    return total - half, total + half


def _arc(
    columns: Sequence[Floats], noise: Sequence[NoiseTerm], bounds: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Search for both ends of the arc of directions, and return the hull of it within the bounds."""
    numerator, denominator, miss = columns
    above, below = (
        math.hypot(*(term.tail.stddev * side for term, side in zip(noise, sides, strict=True))) or 1.0
        for sides in ([n.numerator for n in noise], [n.denominator for n in noise])
    )
    scaled = [NoiseTerm(term.tail, term.numerator / above, term.denominator / below) for term in noise]
    y, x = numerator / above, denominator / below
    estimate = np.where(x == 0, math.pi / 2, np.arctan(y / np.where(x == 0, 1.0, x)))
    many = None
    if len(noise) > 2:
        terms = [(term.tail, term.numerator, term.denominator) for term in scaled]
        many = direction_tails(terms, float(np.min(miss, initial=1.0)))
    sides = [_Turned(side, estimate, y, x, scaled, many) for side in (-1.0, 1.0)]
    quarter = np.full_like(y, math.pi / 2)
    start, end = (first_rejected(side.p_value, miss, side.normal_turn(miss), quarter) for side in sides)
    whole = (start >= math.pi / 2) | (end >= math.pi / 2)
    # past a quarter turn the ratio goes on at the other infinity
    crossing = whole | (estimate + end >= math.pi / 2) | (estimate - start <= -math.pi / 2)
    scale = above / below
    low, high = (np.tan(angle) * scale for angle in (estimate - start, estimate + end))
    low, high = np.where(whole, -math.inf, low), np.where(whole, math.inf, high)
    return _within((low, high), np.tan(estimate) * scale, crossing, bounds)


def _within(
    ends: tuple[Floats, Floats], estimate: Floats, crossing: NDArray[np.bool_], bounds: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Return the hull, within the bounds, of what is not rejected.

    That is what lies between the ends; where the arc is ``crossing`` infinity, what does not. Where nothing
    of it is within the bounds, both ends are the bound that is nearer to the estimate.
    """
    (low, high), (minimum, maximum) = ends, bounds
    lower = np.where(crossing & ((high >= minimum) | (low <= minimum)), minimum, low)
    upper = np.where(crossing & ((low <= maximum) | (high >= maximum)), maximum, high)
    empty = (lower > maximum) | (upper < minimum)
    nearest = np.clip(estimate, minimum, maximum)
    lower, upper = np.maximum(lower, minimum), np.minimum(upper, maximum)
    return np.where(empty, nearest, lower), np.where(empty, nearest, upper)


@final
@dataclass(frozen=True, slots=True)
class _Turned:
    """Ratios whose directions are some turn from the estimated ones, to one side."""

    side: float
    estimate: Floats
    y: Floats
    x: Floats
    noise: Sequence[NoiseTerm]
    many: DirectionTails | None = None

    def weights(self, turn: Floats, groups: Groups | slice = _ALL) -> tuple[Floats, list[Floats]]:
        """Return what was seen if the ratio is this one, and the weight of each noise in it."""
        angle = self.estimate[groups] + self.side * turn
        sine, cosine = np.sin(angle), np.cos(angle)
        terms = [np.abs(cosine * each.numerator - sine * each.denominator) for each in self.noise]
        return np.abs(cosine * self.y[groups] - sine * self.x[groups]), terms

    def p_value(self, turn: Floats, groups: Groups) -> Floats:
        """Return an upper bound on the probability of what was seen in some groups, or of more."""
        seen, weights = self.weights(turn, groups)
        if self.many is not None:
            angle = self.estimate[groups] + self.side * turn
            return self.many.beyond(seen, np.cos(angle), np.sin(angle))
        tails = [term.tail for term in self.noise]
        if len(tails) == 1:
            return np.minimum(1.0, 2 * tails[0].upper(seen / np.maximum(weights[0], _TINY)))
        fine, coarse = (0, 1) if _steps(tails[0]) > _steps(tails[1]) else (1, 0)
        magnitudes, masses = tails[coarse].nodes()
        moved, scale = weights[coarse][:, None] * magnitudes[:-1], np.maximum(weights[fine], _TINY)[:, None]
        near, far = ((seen[:, None] + way * moved) / scale for way in (-1, 1))
        beyond = np.minimum(1.0, tails[fine].upper(near) + tails[fine].upper(far))
        return np.asarray(np.minimum(1.0, beyond @ masses[:-1] + masses[-1]))

    def normal_turn(self, miss: Floats) -> Floats:
        """Return the first turn that is rejected, were the noise normal."""
        turn, distance = np.zeros_like(self.estimate), np.maximum(np.hypot(self.y, self.x), _TINY)
        for _ in range(4):
            deviations = [
                term.tail.stddev * weight
                for term, weight in zip(self.noise, self.weights(turn)[1], strict=True)
            ]
            deviation = np.sqrt(sum(each**2 for each in deviations))
            turn = np.arcsin(np.minimum(1.0, -ndtri(miss / 2) * deviation / distance))
        return np.maximum(turn, 1e-12)


def _steps(tail: NoiseTail) -> float:
    """Return how many different numbers are within a standard deviation."""
    return tail.stddev / tail.step
