"""Delta at many epsilons of one composition, from lines that are prepared once and read many times.

A line is a proof at every epsilon, and narrow near the one that its tilt belongs to. Here the tilts are on a
fixed grid, so that a bound depends on the composition and on epsilon, and not on what was asked before.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from sfumato.numerics.interval import Interval
from sfumato.privacy.accountant.certified import Order, lower_delta, upper_delta
from sfumato.privacy.accountant.composed_losses import DeltaBound
from sfumato.privacy.accountant.enumeration import Enumeration
from sfumato.privacy.accountant.planning import Pairs, survey

__all__ = ["DeltaCurve"]

_TILTS: Final = np.exp2(np.arange(-20.0, 40.0) / 2)
_TINY: Final = 1e-300
_PROPORTION: Final = 0.3
"""Proportion of the wanted width that a plan aims at."""
_SPARE: Final = 0.03
"""Aliases are made so much smaller than for one epsilon alone: they grow away from it."""


class _Node(NamedTuple):
    """What is prepared at one tilt: the order with the greater delta on both sides, and the other."""

    lower: DeltaBound
    uppers: tuple[DeltaBound, ...]


class DeltaCurve:
    """Certified bounds on delta, as a function of epsilon.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
    relative : float
        The width that is aimed at, over delta. It may not be met: then `interval` is wider.
    """

    def __init__(self, pairs: Pairs, relative: float) -> None:
        self._pairs, self._relative = pairs, relative
        self._symmetric = all(pair.symmetric for pair, _ in pairs)
        far = survey(pairs, _TINY)
        self._looks = (far,) if self._symmetric else (far, far.mirrored())
        self.usable = not far.alone
        kernel = np.log(_TILTS) + np.log1p(_TILTS)
        with np.errstate(all="ignore"):
            self._heights = np.array([look.log_moments(_TILTS) - kernel for look in self._looks])
        self._nodes: dict[tuple[int, int], _Node] = {}
        self._only: _Node | None = None

    def interval(self, epsilon: float) -> Interval:
        """Return bounds on delta at a non-negative epsilon.

        Parameters
        ----------
        epsilon : float

        Returns
        -------
        Interval
            The greater of both orders' hockey-stick divergences lies inside.
        """
        node = self._only or self._nearest(epsilon)
        lower = lower_delta(node.lower, epsilon)
        return Interval(lower, max(upper_delta(bound, epsilon, lower) for bound in node.uppers))

    def _nearest(self, epsilon: float) -> _Node:
        """Return the node of the tilt at which the integrand is smallest, of the order with more delta."""
        heights = np.nan_to_num(self._heights - _TILTS * epsilon, nan=np.inf)
        tilts = heights.argmin(axis=1)
        order = int(np.argmax(heights.min(axis=1)))
        key = order, int(tilts[order])
        if key not in self._nodes:
            self._nodes[key] = self._prepared(*key)
        return self._nodes[key]

    def _prepared(self, order: int, index: int) -> _Node:
        tilt = float(_TILTS[index])
        far = self._looks[order].saddle_at_tilt(tilt)
        look = survey(self._pairs, max(_TINY, float(np.exp(far.log_delta))))
        look = look.mirrored() if order else look
        error = _PROPORTION * self._relative / tilt
        first = Order(look.plan(look.saddle_at_tilt(tilt), error), error)
        orders = (first,) if self._symmetric else (first, first.mirrored())
        node = _Node(
            first.bound(error, upper=False, spare=_SPARE),
            tuple(one.bound(error, upper=True, spare=_SPARE) for one in orders),
        )
        if all(isinstance(bound, Enumeration) for bound in (node.lower, *node.uppers)):
            self._only = node
        return node
