r"""Two distributions several steps apart, each step from one neighbor to the next.

Let :math:`h(\alpha) = \sup\{P(S) : Q(S) \le \alpha\}`, the largest power of a test of one step. If
:math:`P_0, \dots, P_k` are the distributions on datasets of which each is a neighbor of the next, then
:math:`P_{i-1}(S) \le h_i(P_i(S))` for each event, hence :math:`P_0(S) \le h_1(\dots h_k(P_k(S)))`, as powers
rise with the level (Dong, Roth, Su 2022, group privacy, of steps that are alike). Of a finite pair :math:`h`
is concave and piecewise linear with the slopes :math:`e^{L}`, and so is a composition: its slopes are the
products.

*Round-off.* A segment's slope is stored as its logarithm; levels are sums of positive numbers, each off by a
factor within :math:`1 \pm \eta`. A curve with such errors has :math:`h(a) \le (1 + \eta)\,\tilde h((1 +
\eta) a)`, whose divergences are those of masses greater by :math:`1 + \eta` and losses greater by
:math:`2\eta`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import NO_ATOMS, Bins, Points
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss
from sfumato.privacy.pairs.pair import Pair, UncutPair

__all__ = ["MAX_STEPS", "GroupPrivacyPair"]

_Array = NDArray[np.float64]

MAX_STEPS: Final = 100
_REACH: Final = 14.0
_REACH_PER_STEP: Final = 2.0
_MAX_REACH: Final = 36.0
"""What lies farther out counts as a loss without bound; each step makes it more likely."""
_LOST: Final = 1e-300
"""Outweighs every mass that is no float."""
_MAX_BINS: Final = 12_000
_FEWEST_BINS: Final = 1_200


class GroupPrivacyPair(UncutPair):
    """A dominating pair for neighbors of neighbors.

    Parameters
    ----------
    base : Pair
        Of one step.
    there : int
        Steps in the base's own order.
    back : int
        Steps in the other order, taken afterwards; 0, or ``there``: the way is then its own mirror image.
    """

    __slots__ = ("_back", "_base", "_cut", "_there")

    def __init__(self, base: Pair, there: int, back: int) -> None:
        self._base, self._there, self._back = base, there, back
        self._cut: dict[bool, Bins] = {}

    @property
    def symmetric(self) -> bool:
        """Whether each step has its way back, or is as good in either order."""
        return self._back > 0 or self._base.symmetric

    tight = False
    """Never: the steps' worst neighbors need not lie on one line."""

    supremum = 0.0
    """No lower bound but 0 is offered."""

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the chain's atoms."""
        del cuts
        swapped = swapped and not self.symmetric
        if swapped not in self._cut:
            self._cut[swapped] = self._chain(swapped=swapped)
        return self._cut[swapped]

    def _chain(self, *, swapped: bool) -> Bins:
        curves = [self._step(swapped=swapped)] * self._there
        if self._back:
            curves += [self._step(swapped=not swapped and not self._base.symmetric)] * self._back
        whole = curves[-1]
        for curve in reversed(curves[:-1]):
            whole = _after(curve, whole)
        return whole.bins(error=8 * UNIT * (len(whole.slope) + 64) * len(curves))

    def _step(self, *, swapped: bool) -> _Curve:
        """Return an upper bound on the power of one step."""
        base = self._base
        cuts = base.cuts(min(_MAX_REACH, _REACH + _REACH_PER_STEP * (self._there + self._back)))
        if base.continuous:
            bins = max(_FEWEST_BINS, _MAX_BINS // (self._there + self._back))
            cuts = base.finer(cuts, bins / (len(cuts) - 1))
        return _curve(base.bins(cuts, swapped=swapped).split())


class _Curve(NamedTuple):
    """A concave piecewise linear power: its value at 0, and segments by falling log slope."""

    start: float
    slope: _Array
    run: _Array
    rise: _Array

    def bins(self, error: float) -> Bins:
        """Return the distributions whose most powerful tests have this power."""
        selected = self.rise > 0
        lost = _LOST if np.isfinite(self.slope[~selected]).any() else 0.0
        log_p = np.log(self.rise[selected][::-1])
        errors = np.full(len(log_p), error)
        points = Points(log_p, self.slope[selected][::-1], errors + 4 * UNIT * np.abs(log_p), 2 * errors)
        lone = max(0.0, 1 - math.fsum(self.run[selected]))
        nothing = np.zeros(0)
        certain = min(1.0, self.start * (1 + error) + lost)
        return Bins(NO_ATOMS, nothing, nothing, atoms=points, only_p=certain, only_q=lone)


def _curve(distribution: DiscreteLoss) -> _Curve:
    """Return the power of the tests between the two distributions of a pair."""
    selected = np.isfinite(distribution.log_mass)
    loss, log_mass = distribution.loss[selected], distribution.log_mass[selected]
    order = np.argsort(-loss, kind="stable")
    loss, log_mass = loss[order], log_mass[order]
    rise = np.exp(log_mass)
    lost = _LOST if (rise == 0).any() else 0.0
    return _Curve(min(1.0, distribution.infinite + lost), loss, np.exp(log_mass - loss), rise)


def _after(outer: _Curve, inner: _Curve) -> _Curve:
    """Return ``outer(inner(a))``, cut at the breakpoints of both on the axis between them."""
    if not len(inner.slope) or not len(outer.slope):
        return _Curve(1.0, *(np.zeros(0),) * 3)
    inner_ends = inner.start + np.cumsum(inner.rise)
    outer_ends = np.cumsum(outer.run)
    within = outer_ends[outer_ends < inner_ends[-1]]
    levels = np.unique(np.concatenate([[0.0, inner.start], inner_ends, within]))
    width, middle = np.diff(levels), 0.5 * (levels[1:] + levels[:-1])
    first = np.searchsorted(inner_ends, middle)
    second = np.searchsorted(outer_ends, middle)
    # Past the last breakpoint the outer power is 1 already.
    rises = second < len(outer_ends)
    outer_slope = np.where(rises, outer.slope[np.minimum(second, len(outer_ends) - 1)], -np.inf)
    rise = width * np.exp(outer_slope)
    certain = middle < inner.start
    start = min(1.0, outer.start + float(rise[certain].sum()))
    slope = inner.slope[np.minimum(first, len(inner.slope) - 1)]
    live = ~certain
    return _Curve(start, (slope + outer_slope)[live], (width * np.exp(-slope))[live], rise[live])
