r"""The hockey-stick divergences of one order of a composition, and what they say of its loss.

Let :math:`l = dP/dQ` and :math:`h(u) = E_P (1 - u/l)_+`, convex and falling, with the one-sided slopes
:math:`-Q(l \ge u)` and :math:`-Q(l > u)`. So, for :math:`u_1 < u < u_2`,

.. math:: P(l > u) = h(u) + u\,Q(l > u) \ge \frac{u_2 h(u) - u\,h(u_2)}{u_2 - u}, \qquad
          P(l \ge u) = h(u) + u\,Q(l \ge u) \le \frac{u\,h(u_1) - u_1 h(u)}{u - u_1}.

The same slopes in the other order, where :math:`l' = 1/l` and :math:`h'(v) = E_Q (1 - v/l')_+`, are
:math:`-P(l' \ge v)` and :math:`-P(l' > v)`: they bound the other tail. Bounds on :math:`h` at the three
points are turned into bounds on these quotients, each end by the worse ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Self, final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UnsupportedView
from sfumato.numerics.interval import Interval
from sfumato.privacy._outward import above, below
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.agreement import intersection
from sfumato.privacy.accountant.intervals import Accountable, Composition
from sfumato.privacy.accountant.precision import Precision
from sfumato.privacy.pairs.directed import directed
from sfumato.privacy.pairs.pair import Pair

__all__ = ["OneDirection"]

_LEVELS: Final = (1e-3, 3e-4, 1e-4, 4e-5, 2e-5, 1e-5, 5e-6, 2e-6)
"""Relative widths of divergences; finer ones take long."""


def _closed(*_: object) -> NoReturn:
    raise UnsupportedView("one order by itself has no closed view")


@final
@dataclass(frozen=True, slots=True)
class _Side:
    """One order of a part."""

    part: Accountable
    reverse: bool

    log_profile = rdp_curve = zcdp = gdp = pure = pure_epsilon = staticmethod(_closed)

    @classmethod
    def rdp_curves(cls, losses: Sequence[Self], orders: NDArray[np.float64]) -> NDArray[np.float64]:
        return _closed(losses, orders)

    def dominating_pair(self) -> Pair:
        return directed(self.part.dominating_pair(), swapped=self.reverse)

    @property
    def numeric(self) -> bool:
        return True

    def split(self) -> tuple[float, list[tuple[_Side, int]]]:
        return 0.0, [(self, 1)]


@final
@dataclass(frozen=True, slots=True)
class OneDirection:
    """A composition whose parts all have dominating pairs, in one order throughout.

    Parameters
    ----------
    terms : tuple of (part, int)
    """

    terms: tuple[tuple[_Side, int], ...]

    @classmethod
    def of(cls, loss: Composition, *, reverse: bool) -> OneDirection:
        """Take one order of a composition."""
        return cls(tuple((_Side(part, reverse), count) for part, count in loss.terms))

    def reversed(self) -> OneDirection:
        """Return the other order."""
        return OneDirection(tuple((_Side(side.part, not side.reverse), count) for side, count in self.terms))

    def divergence(self, point: float, relative: float) -> Interval:
        """Bound h(exp(point)), for a point of any sign, about to a relative width."""
        # Few precisions, each with a curve of its own.
        precision = Precision(next((level for level in _LEVELS if level <= relative), _LEVELS[-1]), 0.0)
        if point >= 0:
            return intervals.delta_on_curve(self, point, precision)
        # Exchanging P and Q turns h(u) into 1 - u + u h(1/u).
        lower, upper, tight = intervals.delta_on_curve(self.reversed(), -point, precision)
        u = math.exp(point)
        ends = (u * end - math.expm1(point) for end in (lower, upper))
        first, last = ends
        return Interval(max(0.0, below(first, 8.0, 1.0)), min(1.0, above(last, 8.0, 1.0)), tight)

    def upper_tail(self, point: float, step: float, relative: float) -> Interval:
        """Bound P(L > x) from below and P(L >= x) from above, with the points a step away on either side."""
        here, before, after = self._around(point, step, relative)
        shrink, grow = -math.expm1(-step), math.expm1(step)
        largest = above((before.upper - math.exp(-step) * here.lower) / shrink, 16.0, before.upper / shrink)
        smallest = below((math.exp(step) * here.lower - after.upper) / grow, 16.0, after.upper / grow)
        return _probability(smallest, largest, tight=here.tight)

    def lower_tail(self, point: float, step: float, relative: float) -> Interval:
        """Bound P(L < -x) from below and P(L <= -x) from above, P the *second* distribution of this order."""
        here, before, after = self._around(point, step, relative)
        u = math.exp(point)
        shrink, grow = -u * math.expm1(-step), u * math.expm1(step)
        # At 0 there is nothing but the trivial bound below a divergence.
        largest = above((before.upper - here.lower) / shrink, 16.0, before.upper / shrink)
        smallest = below((here.lower - after.upper) / grow, 16.0, here.lower / grow)
        return _probability(smallest, largest, tight=here.tight)

    def _around(self, point: float, step: float, relative: float) -> tuple[Interval, Interval, Interval]:
        here, before = (self.divergence(x, relative) for x in (point, point - step))
        after = self.divergence(point + step, relative) if here.tight else here
        return here, before, after

    def slope(self, point: float, step: float) -> float:
        """Estimate by how much the log of h falls per unit."""
        here, after = (self.divergence(x, 1e-3).upper for x in (point, point + step))
        return math.log(here / after) / step if 0 < after < here else 1 / step


def _probability(lower: float, upper: float, *, tight: bool) -> Interval:
    """Return bounds on a probability; where they are not tight, the lower one proves nothing."""
    smallest = min(1.0, max(0.0, lower)) if tight else 0.0
    largest = min(1.0, max(0.0, upper))
    return intersection("a tail of the loss", Interval(0.0, largest), Interval(smallest, 1.0, tight))
