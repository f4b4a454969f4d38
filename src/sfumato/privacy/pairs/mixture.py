"""The pair of a mechanism drawn by public weights whose index is public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import NO_ATOMS, Bins, Mass, Points
from sfumato.privacy.pairs.derived import DerivedPair, fine_bins, fine_cuts
from sfumato.privacy.pairs.pair import Pair

__all__ = ["WEIGHT_SLACK", "MixturePair"]

_Array = NDArray[np.float64]

WEIGHT_SLACK: Final = 1e-12
"""By how much a sum of weights may miss 1."""
_GAP: Final = Points(np.array([-1e4]), *(np.zeros(1),) * 3)
"""An empty bin between the bins of two pairs."""


class MixturePair(DerivedPair):
    r"""Where pair i is drawn with weight :math:`w_i` and public: its divergences are the weighted means.

    Parameters
    ----------
    pairs : sequence of Pair
    weights : sequence of float
        Positive.
    slack : float
        Bound on their relative errors.
    """

    __slots__ = ("_pairs", "_slack", "_weights")

    def __init__(
        self, pairs: Sequence[Pair], weights: Sequence[float], *, slack: float = 2 * WEIGHT_SLACK
    ) -> None:
        self._pairs, self._weights, self._slack = pairs, weights, slack

    @property
    def symmetric(self) -> bool:
        """Whether all pairs are."""
        return all(pair.symmetric for pair in self._pairs)

    @property
    def tight(self) -> bool:
        """Whether all pairs are."""
        return all(pair.tight for pair in self._pairs)

    @property
    def supremum(self) -> float:
        """The largest of the pairs."""
        return max(pair.supremum for pair in self._pairs)

    def cuts(self, reach: float) -> _Array:
        """Return as many cuts as there are bins between; the first says how far to look."""
        return reach + np.arange(max(1, len(self.bins(np.array([reach]), swapped=False).edges)), dtype=float)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the bins of all pairs, side by side."""
        parts = [fine_bins(pair, float(cuts[0]), swapped=swapped) for pair in self._pairs]
        weighted = zip(parts, self._weights, strict=True)
        return _union([_scaled(part, weight, self._slack) for part, weight in weighted])

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        """Return the weighted sum of the pairs' bounds."""
        reach, tails = float(cuts[0]), [np.full(len(tilts), -np.inf)]
        for pair, weight in zip(self._pairs, self._weights, strict=True):
            own = fine_cuts(pair, reach)
            if pair.bins(own, swapped=swapped).high.log_p > -math.inf:
                own_tail = pair.log_tail(tilts, own, swapped=swapped)
                tails.append(math.log(weight) + self._slack + WEIGHT_SLACK + own_tail)
        return np.asarray(reduce(np.logaddexp, tails))


def _scaled(bins: Bins, weight: float, slack: float) -> Bins:
    """Multiply all masses."""
    log_weight = math.log(weight)

    def points(of: Points) -> Points:
        log_p = of.log_p + log_weight
        return replace(of, log_p=log_p, mass_error=of.mass_error + slack + 4 * UNIT * np.abs(log_p))

    def mass(of: Mass) -> Mass:
        return Mass(of.log_p + log_weight + slack, of.log_q + log_weight + slack)

    return replace(
        bins,
        points=points(bins.points),
        atoms=points(bins.atoms),
        low=mass(bins.low),
        high=mass(bins.high),
        only_p=weight * bins.only_p * (1 + slack),
        only_q=weight * bins.only_q * (1 + slack),
    )


def _union(parts: Sequence[Bins]) -> Bins:
    """Put partitions side by side, with an empty bin before, between and after.

    Low masses of all go to the first edge, which is therefore the largest of the low ends; and, as it is
    read from the other side when P and Q are exchanged, the last edge is the smallest of the high ends.
    """
    cut = [part for part in parts if len(part.edges)]
    atoms = reduce(Points.followed_by, (part.atoms for part in parts), NO_ATOMS)
    points, edges, errors = NO_ATOMS, np.zeros(0), np.zeros(0)
    if cut:
        first = max(float(part.edges[0] + part.edge_error[0]) for part in cut)
        last = min(float(part.edges[-1] - part.edge_error[-1]) for part in cut)
        points = reduce(Points.followed_by, (p for part in cut for p in (_GAP, part.points)))
        points = points.followed_by(_GAP)
        edges = np.concatenate([[first], *(part.edges for part in cut), [last]])
        errors = np.concatenate([[0.0], *(part.edge_error for part in cut), [0.0]])
    return Bins(
        points=points,
        edges=edges,
        edge_error=errors,
        atoms=atoms,
        low=_total([part.low for part in parts]),
        high=_total([part.high for part in parts]),
        only_p=math.fsum(part.only_p for part in parts),
        only_q=math.fsum(part.only_q for part in parts),
    )


def _total(masses: Sequence[Mass]) -> Mass:
    return Mass(
        float(np.logaddexp.reduce([mass.log_p for mass in masses])),
        float(np.logaddexp.reduce([mass.log_q for mass in masses])),
    )
