"""The largest convex function at or below given points, and the distributions whose profile it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction

from sfumato.numerics.rounding import exp_up

__all__ = ["convex_minorant", "distributions_of_profile"]


def convex_minorant(points: Iterable[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """Return its vertices: points with rising slopes between them.

    Parameters
    ----------
    points : iterable of (Fraction, Fraction)
        With rising first coordinates.
    """
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in points:
        while len(hull) > 1:
            (a, b), (c, d) = hull[-2:]
            if (d - b) * (x - a) < (y - b) * (c - a):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def distributions_of_profile(
    epsilons: Sequence[float],
    deltas: Sequence[float],
    *,
    back: tuple[Sequence[float], Sequence[float]] | None = None,
) -> list[tuple[Fraction, Fraction]]:
    """Return the distributions with the largest profile that guarantees allow: symmetric, or in one order.

    Parameters
    ----------
    epsilons : sequence of float
        Rising, from 0 to 600.
    deltas : sequence of float
        As many, in [0, 1]; bounds on both orders' hockey-stick divergences. See `Profile` for the proof.
    back : pair of sequences of float, optional
        Epsilons and deltas of the other order, where it has its own; the former are then of the first alone.

    Returns
    -------
    list of (Fraction, Fraction)
        The masses of each outcome under both.
    """
    there = _steps(epsilons, deltas)
    points = {1 / s: 1 - (1 - delta) / s for s, delta in (_steps(*back) if back else there)}
    for s, delta in there:
        points[s] = min(delta, points.get(s, delta))
    last = there[-1][1]
    hull = convex_minorant([(Fraction(0), Fraction(1)), *sorted(points.items())])
    while len(hull) > 2 and hull[-2][1] <= last:
        hull.pop()
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in itertools.pairwise(hull)] + [Fraction(0)]
    rises = [after - before for before, after in itertools.pairwise(slopes)]
    inner = [(s * rise, rise) for (s, _), rise in zip(hull[1:], rises, strict=True)]
    return [(last, Fraction(0)), *inner, (Fraction(0), 1 + slopes[0])]


def _steps(epsilons: Sequence[float], deltas: Sequence[float]) -> list[tuple[Fraction, Fraction]]:
    """Return the exponentials of epsilons, rounded up, with the smallest delta so far."""
    ends = [Fraction(exp_up(epsilon)) for epsilon in epsilons]
    return list(zip(ends, itertools.accumulate(map(Fraction, deltas), min), strict=True))
