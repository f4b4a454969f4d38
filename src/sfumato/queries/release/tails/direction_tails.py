r"""Tails of several noises in a numerator and a denominator, for every ratio that these may be tested for.

A ratio :math:`\theta` is tested by :math:`\tilde A - \theta \tilde B`, a sum of the noises whose weights
depend on the ratio alone, that is on a direction in the plane. So the tails are computed once for a number of
directions and shared by all groups; what lies between two of them is bounded from the nearer one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato.queries.release.tails.noise_tails import NoiseTail, combined_tail

__all__ = ["DirectionTails", "direction_tails"]

Floats: TypeAlias = NDArray[np.float64]
_Terms: TypeAlias = tuple[tuple[NoiseTail, float, float], ...]

_DIRECTIONS: Final = 1024  # of a half turn, in the plane in which the noise has the same variance everywhere
_SPARE: Final = 1 / 200  # of the error probability, for noise far off


@final
@dataclass(frozen=True, slots=True, eq=False)
class DirectionTails:
    r"""Upper tails of :math:`|c Z_A - s Z_B|` for directions (c, s), for noises in both sums.

    Parameters
    ----------
    terms : tuple
        Of each independent noise its tail, and its weight in either sum; at least two of them are not in
        proportion.
    root, inverse : array
        The symmetric root of the covariance of both sums, and its inverse.
    spare : float
        What is left of an error probability for noise that is far off.
    tables : dict
        The tails that were needed so far, and what to subtract from what was seen, by direction.

    Notes
    -----
    Guarantee: the tails are bounded from above. Divided by its standard deviation, the sum in a direction
    that is an angle e from a computed one is :math:`\cos(e) T + \sin(e) T'`, where T is the sum in the
    computed direction and T' the one across it; but for a probability of at most ``spare`` T' is at most
    a number r (a union bound over the noises), so :math:`P(|\cdot| \ge t) \le P(|T| \ge t - r |\sin e|)`
    + ``spare``.
    """

    terms: _Terms
    root: Floats
    inverse: Floats
    spare: float
    tables: dict[int, tuple[NoiseTail, float]]

    def beyond(self, seen: Floats, cosine: Floats, sine: Floats) -> Floats:
        """Return at least the probabilities that the noise in some directions is as large as was seen."""
        across, along = self.root @ np.stack((cosine, -sine))
        deviation = np.hypot(across, along)
        places = np.rint(np.arctan2(along, across) * (_DIRECTIONS / math.pi)).astype(np.int64) % _DIRECTIONS
        found = np.ones_like(seen)
        order = np.argsort(places, kind="stable")
        starts = np.flatnonzero(np.diff(places[order], prepend=-1))
        for here in np.split(order, starts[1:]) if order.size else ():
            tail, nearer = self._table(int(places[here[0]]))
            found[here] = 2 * tail.upper(np.maximum(0.0, seen[here] / deviation[here] - nearer)) + self.spare
        return np.minimum(1.0, found)

    def _table(self, place: int) -> tuple[NoiseTail, float]:
        if place not in self.tables:
            angle = place * math.pi / _DIRECTIONS
            weights = self._weights(math.cos(angle), math.sin(angle))
            some = [(tail, weight) for (tail, *_), weight in zip(self.terms, weights, strict=True) if weight]
            across = self._weights(-math.sin(angle), math.cos(angle))
            rare = self.spare / (2 * len(self.terms))
            reach = sum(
                weight * _quantile(tail, rare) for (tail, *_), weight in zip(self.terms, across, strict=True)
            )
            tail = combined_tail([each for each, _ in some], [weight for _, weight in some])
            self.tables[place] = tail, reach * math.sin(math.pi / _DIRECTIONS / 2)
        return self.tables[place]

    def _weights(self, across: float, along: float) -> list[float]:
        """Return the weights of the noises in a sum of variance one."""
        one, other = self.inverse @ np.array([across, along])
        weights = [abs(one * above + other * below) for _, above, below in self.terms]
        least = 1e-12 * max(w * tail.stddev for w, (tail, *_) in zip(weights, self.terms, strict=True))
        return [
            w if w * tail.stddev > least else 0.0 for w, (tail, *_) in zip(weights, self.terms, strict=True)
        ]


def direction_tails(terms: Sequence[tuple[NoiseTail, float, float]], miss: float) -> DirectionTails:
    """Return the tails of some noises, to be tested at error probabilities of at least ``miss``.

    Parameters
    ----------
    terms : sequence of tuple
        Of each noise its tail, and its weights in the numerator and the denominator.
    miss : float

    Returns
    -------
    DirectionTails
    """
    return _direction_tails(tuple(terms), _SPARE * miss)


@lru_cache(maxsize=8)
def _direction_tails(terms: _Terms, spare: float) -> DirectionTails:
    sides = np.array([(above, below) for _, above, below in terms])
    variances = np.array([tail.stddev**2 for tail, *_ in terms])
    values, vectors = np.linalg.eigh((sides * variances[:, None]).T @ sides)
    root, inverse = ((vectors * power) @ vectors.T for power in (np.sqrt(values), 1 / np.sqrt(values)))
    return DirectionTails(terms, root, inverse, spare, {})


@lru_cache(maxsize=256)
def _quantile(tail: NoiseTail, rare: float) -> float:
    """Return a number that noise is beyond with at most a probability, to one side."""
    high = tail.stddev
    while float(tail.upper(np.array([high]))[0]) > rare and high < 1e6 * tail.stddev:
        high *= 1.25
    return high
