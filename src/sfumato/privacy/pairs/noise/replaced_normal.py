"""The pair of a unit that is replaced under Poisson sampling and Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import Bins, Mass, Points
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.sampling.subsampled import mixed_log_tail

__all__ = ["ReplacedNormalPair"]

_Array = NDArray[np.float64]


class ReplacedNormalPair(Pair):
    r"""(1 - q) N(0, 1) + q N(mu, 1) as P, and (1 - q) N(0, 1) + q N(-mu, 1) as Q.

    Parameters
    ----------
    mu : float
        Positive and finite.
    q : float
        Strictly between 0 and 1.

    Notes
    -----
    Both masses of a bin are multiples of that of N(0, 1), so that its loss is the difference of two losses of
    a sampled normal pair, of which the second is that of the mirrored bin. The loss rises with the outcome,
    and changes its sign with it: both orders are alike.
    """

    __slots__ = ("_base", "_mu", "_q")

    def __init__(self, mu: float, q: float) -> None:
        self._mu, self._q = mu, q
        self._base = NormalPair(mu)

    supremum = math.inf
    """Infinity."""

    def cuts(self, reach: float) -> _Array:
        """Return cuts that are symmetric about 0."""
        upper = np.linspace(0.0, reach + self._mu, 101)
        return np.concatenate([-upper[:0:-1], upper])

    def rate(self, cuts: _Array) -> _Array:
        """Return bins per unit for which the quadrature is exact, on either side."""
        return self._base.rate(cuts)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the bins of two mixtures; both orders are the same but for the cuts' direction."""
        if swapped:
            return replace(self._cut(-cuts[::-1]), against=True)
        return self._cut(cuts)

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        r"""Bound the tail with :math:`Q \ge (1 - q) N(0, 1)`, by that of a sample against N(0, 1)."""
        ends = -cuts[::-1] if swapped else cuts
        tail = mixed_log_tail(self._base, self._q, tilts, ends, swapped=False)
        return np.asarray((tail - tilts * math.log1p(-self._q)) + 8 * UNIT * (np.abs(tail) + tilts + 1))

    def _cut(self, cuts: _Array) -> Bins:
        there = self._base.bins(cuts, swapped=False).mixed(self._q)
        back = self._base.bins(-cuts[::-1], swapped=False).mixed(self._q)
        raised, lowered = there.points, back.points
        loss = raised.loss - lowered.loss[::-1]
        error = raised.loss_error + lowered.loss_error[::-1] + UNIT * np.abs(loss)
        edges = there.edges - back.edges[::-1]
        return Bins(
            points=Points(raised.log_p, loss, raised.mass_error, error),
            edges=edges,
            edge_error=there.edge_error + back.edge_error[::-1] + UNIT * np.abs(edges),
            low=Mass(there.low.log_p, back.high.log_p),
            high=Mass(there.high.log_p, back.low.log_p),
        )
