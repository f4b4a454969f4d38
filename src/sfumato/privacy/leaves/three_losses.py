r"""Leaves whose pair has the losses :math:`-\epsilon`, 0 and :math:`\epsilon`, and is its own mirror image.

Write :math:`p_+` for the P-mass of the loss :math:`\epsilon`, :math:`p_- = e^{-\epsilon} p_+` for that of
:math:`-\epsilon` and :math:`p_0` for the rest. All that is proven here follows from these masses.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT, above, below
from sfumato.privacy.conversion import pure_to_gdp, pure_to_zcdp
from sfumato.privacy.gaussian_profile import upper_quantile
from sfumato.privacy.leaves.leaf import Leaf, bounded_log_profile, bounded_rdp
from sfumato.privacy.pairs.bins import Points
from sfumato.privacy.pairs.pair import AtomicPair, Pair, no_loss
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["ThreeLosses"]

_GRID: Final = 1 << 14


class ThreeLosses(Leaf):
    r"""What the three masses prove.

    Notes
    -----
    *Rényi DP and zCDP.* With :math:`u = \alpha - 1/2` and :math:`a = 2 p_+ e^{-\epsilon/2}` the divergence is
    :math:`(\alpha - 1) D_\alpha = g(u^2) - g(1/4)`, :math:`g(v) = \log(a \cosh \epsilon\sqrt v + p_0)`, and
    :math:`(\alpha - 1)\alpha = u^2 - 1/4`: so :math:`D_\alpha / \alpha` is at most the largest :math:`g'(v)`
    for :math:`v \ge 1/4`. For :math:`p_0 \le a` the function under the logarithm is entire of order 1/2 and
    has real negative zeros only, so :math:`g` is concave (Hadamard's product) and the largest is
    :math:`g'(1/4) = \epsilon(p_+ - p_-)`, the Kullback-Leibler divergence. Else, with :math:`w =
    \epsilon\sqrt v`, :math:`g' = \frac{\epsilon^2}{2} \frac{\sinh w}{w (\cosh w + p_0/a)}` is bounded step by
    step:
    :math:`\sinh(w)/w` and :math:`\cosh w` rise, and the fraction is below :math:`1/w`.

    *Gaussian DP.* The trade-off function has the vertices :math:`(p_-, 1 - p_+)` and its mirror image, and a
    convex curve that passes at or below the vertices of a piecewise linear one is below it: :math:`\mu =
    -\Phi^{-1}(p_-) - \Phi^{-1}(p_- + p_0)` suffices.
    """

    __slots__ = ()

    _epsilon: float

    def _masses(self) -> tuple[float, float]:
        """Return the logs of the largest loss's P-mass and of that of no loss."""
        raise NotImplementedError

    def pure(self) -> PureView:
        """Return the largest loss."""
        return PureView(self._epsilon, 0.0)

    def log_profile(self, epsilon: float) -> float:
        r"""Return the log of :math:`p_+ (1 - e^{\epsilon - \epsilon_0})`, exact."""
        top, _ = self._masses()
        # Where exp(-bound) is no float, the mass of the largest loss is as good as for a bound of 1000.
        slack = _units(top, min(self._epsilon, 1000.0))
        return bounded_log_profile(self._epsilon - epsilon, math.exp(-top) * (1 - slack))

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the exact divergences."""
        epsilon, (top, middle) = self._epsilon, self._masses()
        moment = math.exp(top) * (1 + np.exp((1 - 2 * orders) * epsilon))
        moment = (moment + np.exp(middle + (1 - orders) * epsilon)) * (1 + _units(top, epsilon))
        return bounded_rdp(epsilon, self.zcdp().rho, orders, moment)

    def zcdp(self) -> ZCDPView:
        """Return the largest ratio of a divergence to its order; the proof is in the class's notes."""
        return ZCDPView(_rho(self._epsilon, *self._masses()), 0.0)

    def gdp(self) -> GDPView:
        """Return the parameter of the two vertices; the proof is in the class's notes."""
        epsilon, (top, middle) = self._epsilon, self._masses()
        if epsilon == 0:
            return GDPView(0.0, 0.0)
        rest = math.log1p(-math.exp(top)) if top < -0.7 else float(np.logaddexp(middle, top - epsilon))
        units = _units(top, epsilon) / UNIT
        mu = upper_quantile(below(top - epsilon, units)) + upper_quantile(below(rest, units))
        # Where the vertices are beyond floats, the bound that holds for every such epsilon remains.
        proven = pure_to_gdp(epsilon)
        return GDPView(max(0.0, min(above(mu), proven)) if math.isfinite(mu) else proven, 0.0)

    def dominating_pair(self) -> Pair:
        """Return the three losses."""
        epsilon, (top, middle) = self._epsilon, self._masses()
        if epsilon == 0:
            return no_loss()
        log_p, loss = np.array([top - epsilon, middle, top]), np.array([-epsilon, 0.0, epsilon])
        selected = log_p > -np.inf
        error = np.full(int(selected.sum()), _units(top, epsilon))
        return AtomicPair(
            Points(log_p[selected], loss[selected], error, np.zeros(len(error))), symmetric=True
        )


def _units(top: float, epsilon: float) -> float:
    """Bound the relative error of all masses, and of products of some of them."""
    return UNIT * (64 + 16 * abs(top) + 16 * epsilon)


@lru_cache(maxsize=1024)
def _rho(epsilon: float, top: float, middle: float) -> float:
    """Return the zCDP parameter; see `ThreeLosses`."""
    if epsilon == 0:
        return 0.0
    slack = 1 + 4 * _units(top, epsilon)
    worst = pure_to_zcdp(epsilon)
    log_ratio = middle - top + epsilon / 2 - math.log(2)
    if log_ratio <= -1e-9:
        return min(worst, above(-epsilon * math.expm1(-epsilon) * math.exp(top) * slack))
    last = 4 * (max(log_ratio, 0.0) + 5) + epsilon
    with np.errstate(over="ignore", invalid="ignore"):
        w = np.linspace(epsilon / 2 * (1 - 8 * UNIT), last, _GRID)
        left, right = w[:-1], w[1:]
        beside = 1 + np.exp(-2 * left) + 2 * np.exp(log_ratio - left)
        steps = np.exp(right - left) * -np.expm1(-2 * right) / (right * beside)
    largest = max(float(steps.max()), 1 / last)
    found = above(epsilon * epsilon / 2 * largest * slack)
    return min(worst, found) if found >= 0 else worst  # where floats overflow, nothing is known
