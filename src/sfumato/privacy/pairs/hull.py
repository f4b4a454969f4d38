"""The greatest convex function at or below given points."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

__all__ = ["lower_hull"]


def lower_hull(points: Iterable[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
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
