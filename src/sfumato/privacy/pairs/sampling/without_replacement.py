"""The pair of a mechanism on a sample of fixed size, drawn without replacement."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.rounding import expm1_down, log1p_down
from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import Bins, Mass
from sfumato.privacy.pairs.derived import DerivedPair, fine_bins, fine_cuts
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss
from sfumato.privacy.pairs.maximum import maximum, only_atoms
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.sampling.subsampled import mixed_log_tail

__all__ = ["WithoutReplacementPair"]

_Array = NDArray[np.float64]


class WithoutReplacementPair(DerivedPair):
    r"""The symmetric pair whose divergences at non-negative epsilons are those of ((1 - q) Q + q P, Q).

    Parameters
    ----------
    base : Pair
        (P, Q); where it is not symmetric, the greater divergence of its two orders counts.
    q : float
        Strictly between 0 and 1.

    Notes
    -----
    With :math:`H(s) = \int (dP - s\,dQ)_+`, exchanging P and Q turns it into :math:`1 - s + s H(1/s)`. So a
    symmetric pair is known from :math:`s \ge 1`, that is from the P-masses of its positive losses: a loss l
    of mass p comes with the loss -l of mass :math:`pe^{-l}`, and what is left has no loss. Where more than
    everything is found, the divergences below 1 are only greater.
    """

    __slots__ = ("_base", "_q")

    def __init__(self, base: Pair, q: float) -> None:
        self._base, self._q = base, q

    @property
    def supremum(self) -> float:
        """The log of 1 - q + q exp(L), rounded down."""
        top = self._base.supremum
        if math.isinf(top):
            return top
        found = log1p_down(self._q * expm1_down(top)) if top < 700 else top + math.log(self._q)
        return max(0.0, found * (1 - 2.0**-50))

    @property
    def _orders(self) -> tuple[bool, ...]:
        return (False,) if self._base.symmetric else (False, True)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return a discrete distribution that dominates; both orders are the same."""
        del swapped
        parts = [
            fine_bins(self._base, float(cuts[0]), swapped=order).mixed(self._q) for order in self._orders
        ]
        distributions = [part.split() for part in parts]
        tail = 0.0
        if not any(part.only_p > 0 for part in parts):
            # No loss is infinite: what lies beyond the last cuts is a tail, and is added to the largest.
            tail = math.fsum(distribution.infinite for distribution in distributions)
            distributions = [replace(distribution, infinite=0.0) for distribution in distributions]
        distribution = distributions[0] if len(distributions) == 1 else maximum(distributions)
        selected = (distribution.loss > 0) & np.isfinite(distribution.log_mass)
        loss, log_mass = distribution.loss[selected], distribution.log_mass[selected]
        mass = math.fsum([*np.exp(log_mass), *np.exp(log_mass - loss), distribution.infinite, tail])
        rest = max(0.0, 1 - mass) + UNIT * (len(loss) + 64)
        both = np.concatenate([-loss[::-1], [0.0], loss])
        masses = np.concatenate([(log_mass - loss)[::-1], [math.log(rest)], log_mass])
        bins = only_atoms(DiscreteLoss(both, masses, distribution.infinite))
        return replace(bins, high=Mass(math.log(tail), math.log(tail))) if tail else bins

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        """Return the sum of both orders' bounds: no loss in a tail is less than in the base's mixture."""
        del swapped
        base, own = self._base, fine_cuts(self._base, float(cuts[0]))
        tails = [
            mixed_log_tail(base, self._q, tilts, own, swapped=order)
            for order in self._orders
            if base.bins(own, swapped=order).high.log_p > -math.inf
        ]
        return np.asarray(reduce(np.logaddexp, tails, np.full(len(tilts), -np.inf)))
