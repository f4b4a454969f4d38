r"""Rényi divergences of compositions, from closed curves where they exist and else from dominating pairs.

What adds up is *approximate* Rényi DP, one order and one direction at a time: P has a part :math:`P_g \le P`
of mass at least :math:`1 - \delta` with :math:`\int p_g^\alpha q^{1-\alpha} \le e^{(\alpha-1) D}`.

- It covers what is stated elsewhere: if :math:`P = (1-\delta)P' + \delta P''`, :math:`Q = (1-\delta)Q' +
  \delta Q''` and the divergence of (P', Q') is D (Bun and Steinke 2016), take :math:`P_g = (1-\delta)P'`: as
  :math:`q \ge (1-\delta)q'`, the integral is at most :math:`(1-\delta) e^{(\alpha-1)D}`.
- It is preserved by post-processing: the same channel carries :math:`P_g` to a part of P's image of the same
  mass, and the integral falls, because :math:`x \mapsto x^\alpha` is convex. So that of a dominating pair
  holds for the mechanism (Blackwell: a pair with greater hockey-stick divergences is turned into the other by
  a channel).
- It adds up, with parameters chosen from earlier outputs: see `sfumato.ledger.budget.filters`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UnsupportedView
from sfumato.privacy._outward import UNIT, sum_above, times_above
from sfumato.privacy.accountant import closed_forms
from sfumato.privacy.pairs.derived import fine_cuts
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss
from sfumato.privacy.pairs.pair import Pair

__all__ = ["RDPView", "approximate_rdp", "pair_rdp"]

_Array = NDArray[np.float64]

_REACH: Final = 24.0
"""In standard deviations: what lies beyond has a mass near 1e-125, which is parted off."""
_BINS: Final = 3000
_NEAR: Final = 80.0
"""Terms smaller than the largest by this much, on the log scale, do not count in a sum of thousands."""


class RDPView(NamedTuple):
    """Bounds on Rényi divergences, in the order in which the orders were given, outside a mass."""

    curve: tuple[float, ...]
    delta: float


class RDPPart(closed_forms.Views, Protocol):
    """A loss with all its views, hashable."""

    def dominating_pair(self) -> Pair:
        """Return two distributions that dominate the outputs on any two neighbors."""

    def __hash__(self) -> int:
        """Return the hash of what was run."""


Terms: TypeAlias = Sequence[tuple[RDPPart, int]]


def approximate_rdp(terms: Terms, orders: tuple[float, ...]) -> RDPView:
    """Add the divergences and the masses of the parts.

    Parameters
    ----------
    terms : sequence of (loss, int)
    orders : tuple of float
        All above 1.

    Returns
    -------
    RDPView

    Raises
    ------
    UnsupportedView
        If a part has neither a curve nor a dominating pair.
    """
    at = np.array(orders)
    total, masses = np.zeros(len(at)), []
    for term, count in terms:
        curve, mass = _of_part(term, orders)
        times = times_above(count, Fraction(1))
        more = np.array(curve)
        total += np.multiply(more, times, out=np.zeros(len(at)), where=more > 0)
        masses.append(times_above(count, mass))
    total = np.nextafter(total * (1 + 2 * (len(terms) + 1) * UNIT), np.inf) if terms else total
    return RDPView(tuple(total.tolist()), min(1.0, sum_above(masses)))


@lru_cache(maxsize=1024)
def _of_part(part: RDPPart, orders: tuple[float, ...]) -> RDPView:
    mass, rest = part.split()
    # Which of the two is used must not depend on the orders: filters of several orders have the same mass.
    try:
        return RDPView(tuple(closed_forms.rdp(rest, np.array(orders)).tolist()), mass)
    except UnsupportedView:
        return pair_rdp(part.dominating_pair(), orders)


def pair_rdp(pair: Pair, orders: tuple[float, ...]) -> RDPView:
    r"""Bound the divergences of a pair in both orders, outside the mass of its far tail.

    Notes
    -----
    With :math:`R = dQ/dP` the integral over a bin is :math:`E_P R^{1-\alpha}`, convex in R: splitting the
    bin's mass between its ends, with the same mean, raises it (see `sfumato.privacy.pairs.bins`). What is
    split off to an infinite loss is the mass that :math:`P_g` leaves out.
    """
    cuts = fine_cuts(pair, _REACH, _BINS)
    gaps = np.array(orders) - 1.0
    curve, mass = np.zeros(len(gaps)), 0.0
    for swapped in (False,) if pair.symmetric else (False, True):
        distribution = pair.bins(cuts, swapped=swapped).split()
        curve, mass = np.maximum(curve, _divergences(distribution, gaps)), max(mass, distribution.infinite)
    return RDPView(tuple(curve.tolist()), min(1.0, mass))


def _divergences(distribution: DiscreteLoss, gaps: _Array) -> _Array:
    """Return the log of each moment, divided by its gap, rounded up."""
    if not len(distribution.loss):
        return np.zeros(len(gaps))
    tilted = np.multiply.outer(gaps, distribution.loss)
    exponents = tilted + distribution.log_mass
    top = exponents.max(axis=1)
    if np.isneginf(top).any():
        return np.zeros(len(gaps))
    near = exponents > (top - _NEAR)[:, None]
    sizes = np.abs(tilted) + np.abs(distribution.log_mass, where=near, out=np.zeros_like(tilted))
    slack = UNIT * (4 * np.where(near, sizes, 0.0).max(axis=1) + 2 * np.abs(top) + 128)
    value = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
    bound = (value + slack) * (1 + np.sign(value) * 4 * UNIT) / gaps
    return np.asarray(np.maximum(0.0, np.nextafter(bound, np.inf)))
