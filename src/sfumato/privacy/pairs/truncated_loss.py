"""A pair whose largest losses are replaced by a mass of total failure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import Bins, Mass, Points
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.wrapped import FailureMassPair, LoosePair

__all__ = ["TruncatedLossPair"]

_Array = NDArray[np.float64]

_SLACK: Final = 1e-12
"""Outweighs every rounding in a sum of masses, relative to it."""
_SPARE: Final = 1.01
"""How much more than the mass is taken away at least; the difference must have some digits."""
_NOTHING: Final = -1e5
"""Log of a mass that is zero as a float."""


class TruncatedLossPair(LoosePair):
    r"""The greater of the base's divergences and of a mass: :math:`H(s) = \max(H_0(s), m)`.

    That is in the unswapped order; the swapped one is the same pair, exchanged.

    Parameters
    ----------
    base : Pair
        Symmetric.
    mass : float
        :math:`m`, in (0, 1), already rounded up.

    Notes
    -----
    No smaller function will do for neighbors that in some cases have the base as their pair, and in others
    two distributions that are equal but for a mass m that only the first has: there
    :math:`H(s) = \max(m, 1 - s)`.

    *Construction.* Take away all outcomes of the base with losses of at least x, of P-mass a and Q-mass b,
    where :math:`a - e^x b \le m < a`. Instead of them put a mass m that only P has, and an outcome of P-mass
    :math:`a - m` and Q-mass b. They had at most :math:`a - sb` of the divergence at s up to :math:`e^x`, and
    no more than m above; now they have the greater of both, as :math:`(a - m)/b \le e^x`. The masses add up
    as before, so that the other order has no smaller divergences either. With x the smallest edge of a bin
    that is allowed, nothing but a bin's width is lost. Where none is, the mass is put beside the base.
    """

    __slots__ = ("_mass",)

    def __init__(self, base: Pair, mass: float) -> None:
        super().__init__(base)
        self._mass = mass

    variance = 0.0
    """None: what is cut is not normal."""

    symmetric = False
    """Never: one of the distributions has the mass."""

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the base's bins up to a loss, and what stands for the others."""
        bins = _truncated(self._base.bins(cuts, swapped=False), self._mass)
        if bins is None:
            return FailureMassPair(self._base, self._mass).bins(cuts, swapped=swapped)
        return bins.swapped() if swapped else bins


def _truncated(bins: Bins, mass: float) -> Bins | None:
    """Put the mass instead of the largest losses, if that is possible."""
    points, atoms = bins.points, bins.atoms
    both = points.followed_by(atoms)
    lowest = np.concatenate([bins.edges[:-1] - bins.edge_error[:-1], atoms.loss - atoms.loss_error])
    lowest = lowest - 4 * UNIT * np.abs(lowest)
    error = float((both.mass_error + both.loss_error).max(initial=0.0)) + _SLACK
    # From the largest loss down: masses of all that has at least a loss.
    order = np.argsort(-lowest, kind="stable")
    p = math.exp(bins.high.log_p) + np.cumsum(np.exp(both.log_p[order]))
    q = math.exp(bins.high.log_q) + np.cumsum(np.exp(both.log_p - both.loss)[order])
    with np.errstate(over="ignore"):
        rest = p * (1 + error) - np.exp(np.minimum(lowest[order], 700.0)) * q * (1 - error)
    allowed = np.flatnonzero((rest <= mass) & (p > _SPARE * mass) & (lowest[order] >= 0))
    if not len(allowed) or bins.only_p > 0:
        return None
    last = int(allowed[-1])
    left = float(p[last]) - mass
    # The error of the difference, and of its ratio to the Q-mass.
    error = error * (float(p[last]) / left + 1)
    log_p, loss = math.log(left), math.log(left / float(q[last]))
    lump = Points(*(np.array([value]) for value in (log_p, loss, error, error)))
    taken = np.zeros(len(lowest), dtype=bool)
    taken[order[: last + 1]] = True
    far, lone = taken[: len(points.loss)], taken[len(points.loss) :]
    others = Points(*(part[~lone] for part in (atoms.log_p, atoms.loss, atoms.mass_error, atoms.loss_error)))
    return replace(
        bins,
        points=replace(points, log_p=np.where(far, _NOTHING, points.log_p)),
        atoms=others.followed_by(lump),
        high=Mass(),
        only_p=mass,
    )
