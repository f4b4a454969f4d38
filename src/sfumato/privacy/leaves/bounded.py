"""Common base of mechanisms for which pure DP is proven and nothing more."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.decimals import outward
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.leaves.leaf import Leaf
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.pairs.wrapped import FailureMassPair
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["BoundedLeaf"]


class BoundedLeaf(Leaf):
    """A leaf whose views follow from one number: by default, those of `PureDP`."""

    __slots__ = ()

    @property
    def _views(self) -> Leaf:
        """Return the declared leaf with the same views; asked only where the loss is bounded."""
        return PureDP(outward(self.pure().epsilon))

    def pure(self) -> PureView:
        """Return `pure_epsilon`, rounded up."""
        epsilon = self.pure_epsilon()
        return PureView(fraction_up(epsilon) if isinstance(epsilon, Fraction) else epsilon, 0.0)

    def pure_epsilon(self) -> float | Fraction:
        """Return the largest loss; see the class's notes."""
        return self._missing("pure")

    def zcdp(self) -> ZCDPView:
        """Return what the bound on the loss implies."""
        return self._views.zcdp() if self._finite else ZCDPView(math.inf, 0.0)

    def gdp(self) -> GDPView:
        """Return what the bound on the loss implies."""
        return self._views.gdp() if self._finite else GDPView(math.inf, 0.0)

    def log_profile(self, epsilon: float) -> float:
        """Return what the bound on the loss implies."""
        return self._views.log_profile(epsilon) if self._finite else 0.0

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the bound on the loss implies."""
        return self._views.rdp_curve(orders) if self._finite else np.full_like(orders, np.inf)

    def dominating_pair(self) -> Pair:
        """Return the pair of the bound on the loss; it is not that of two neighbors."""
        return FailureMassPair(self._views.dominating_pair() if self._finite else two_points(math.inf))

    @property
    def _finite(self) -> bool:
        return math.isfinite(self.pure().epsilon)
