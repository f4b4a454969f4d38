"""The exponential mechanism, and every other mechanism of bounded range."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato._wire import NUMBER
from sfumato.numerics.decimals import decimal_of
from sfumato.numerics.rounding import mul_up
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.conversion import pure_to_gdp, pure_to_zcdp
from sfumato.privacy.leaves.leaf import Leaf
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.pairs.noise.bounded_loss import BoundedRangePair
from sfumato.privacy.pairs.pair import Pair, no_loss
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["Exponential"]

_SMALL, _LARGE = 0.01, 700.0  # below, the closed form of zCDP cancels; above, it overflows


@final
@serialized_as("exponential-mechanism", epsilon=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class Exponential(Leaf):
    r"""One choice by the exponential mechanism: a candidate with probability proportional to exp(score).

    Parameters
    ----------
    epsilon : float
        The range: by how much more the log-probability of one candidate can move than that of another. For
        weights ``exp(c * utility)`` it is ``c`` times the range of the change of the utilities: ``2 * c``
        times the sensitivity, or ``c`` times it where one unit moves all utilities in the same direction.
    neighboring : Neighboring
        The relation that the range is about.

    Notes
    -----
    Guarantee: every view holds for all mechanisms of epsilon-bounded range (Durfee, Rogers 2019): for
    neighbors, the losses :math:`\log(P/Q)` of any two outputs differ by at most :math:`\epsilon`. The
    exponential mechanism and report-noisy-max with Gumbel noise are among them. Candidates and sensitivity
    are fixed before the data is seen. Let :math:`A = e^\epsilon`.

    *Pure DP and profile.* Some loss is at most 0 and some at least 0, so all are within :math:`\epsilon` of
    0. The profile is the largest of all such mechanisms, :math:`(\sqrt A - e^{x/2})^2/(A - 1)`; the proof is
    in the notes of `BoundedRangePair`, with that of the dominating pair.

    *Rényi DP.* For losses :math:`t` and :math:`t - \epsilon`, with :math:`z = e^t`, the moment
    :math:`E_P e^{(\alpha-1)L} = z^{\alpha-1}(A - A^{1-\alpha} - z(1 - A^{1-\alpha}))/(A-1)` is 1 at both ends
    of :math:`[1, A]` and largest at :math:`z = \frac{\alpha - 1}{\alpha}\frac{A^\alpha - 1}{A^{\alpha-1} -
    1}`. That :math:`t` is attained by a mechanism, so the curve is exact for the family.

    *zCDP.* The smallest :math:`\rho` is the largest divergence of order 1, :math:`y - 1 - \log y` with
    :math:`y = \epsilon/(A - 1)`: a little less than :math:`\epsilon^2/8` (Cesar, Rogers 2021). Proof: let Q
    have the losses :math:`t - \epsilon` and t, and :math:`K(u) = \log E_Q e^{uL}`; K is 0 at 0 and 1. So
    :math:`D_\alpha/\alpha = K(\alpha)/(\alpha(\alpha-1))` is the divided difference of K at 0, 1 and
    :math:`\alpha`: the integral of its second derivative with half of the linear B-spline of these knots. The
    derivative in :math:`\alpha` is that of the third derivative with a multiple of the B-spline of 0, 1,
    :math:`\alpha, \alpha`. The ratio of the second spline to the first rises: it is in proportion to s up to
    1, then to :math:`s + \alpha(s-1)/(\alpha-1)`. The second derivative of K is the variance of two losses, a
    bell that t moves along, so the third goes from positive to negative once; where t is the best for
    :math:`\alpha`, its integral with the first spline is 0, so that with the second is at most 0. Therefore
    the largest :math:`D_\alpha/\alpha` over t falls in :math:`\alpha`, and its limit at 1 is the largest
    :math:`D_1 = t - \epsilon(e^t - 1)/(A - 1)`, where :math:`e^t = 1/y`. It is the figure of Harrison,
    Manurangsi (2026).

    *Gaussian DP.* The trade-off function for one :math:`t` has one vertex, :math:`(q, 1 - p)`, with
    :math:`\operatorname{logit} p - \operatorname{logit} q = \epsilon`. The Gaussian curve passes below it if
    and only if :math:`\mu \ge \Phi^{-1}(p) - \Phi^{-1}(q)`. The logit of :math:`\Phi` is odd, and convex on
    the positive reals: the log of its slope grows by :math:`r(x) - r(-x) - x`, which is 0 at 0 and rises, as
    the hazard rate :math:`r` of the normal distribution is convex (Sampford 1953) with
    :math:`r'(0) = 2/\pi > 1/2`. The slope of the inverse therefore falls away from 0, and its increment over
    a window of length :math:`\epsilon` is largest for the one around 0, which is randomized response with
    :math:`\epsilon/2`.

    References
    ----------
    McSherry, Talwar (2007), the mechanism; Durfee, Rogers (2019), "Practical differentially private top-k
    selection with pay-what-you-get composition", bounded range; Dong, Durfee, Rogers (2020), "Optimal
    differential privacy composition for exponential mechanisms"; Cesar, Rogers (2021), "Bounding,
    concentrating, and truncating", a bound on the zCDP of bounded range; Harrison, Manurangsi (2026), "Exact
    zCDP characterizations for fundamental differentially private mechanisms", the exact one.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> (Exponential(0.1) * 100).epsilon(1e-6) < 0.6 * (PureDP(0.1) * 100).epsilon(1e-6)
    True
    """

    _epsilon: float
    neighboring: Neighboring = field(kw_only=True)

    def __init__(self, epsilon: float, *, neighboring: Neighboring = Neighboring.ADD_REMOVE) -> None:
        self._set_rounded("_epsilon", epsilon, up=True)
        self._set_relation(neighboring)

    def pure(self) -> PureView:
        """Return the range.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        return PureView(self._epsilon, 0.0)

    def exact_pure(self) -> tuple[Fraction | float, Fraction]:
        """Return the range as the decimal that it was written as.

        Returns
        -------
        epsilon : Fraction
        delta : Fraction
        """
        return decimal_of(self._epsilon), Fraction(0)

    def zcdp(self) -> ZCDPView:
        """Return the exact zCDP of bounded range; proof in the class's notes.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        epsilon = self._epsilon
        if not epsilon:
            return ZCDPView(0.0, 0.0)
        square = epsilon * epsilon
        if epsilon < _SMALL:  # the first terms of an alternating series
            return ZCDPView(above(square / 8 * (1 - square / 72 + square * square / 3240), 8.0), 0.0)
        if epsilon > _LARGE:  # the part is less than any rounding, and the logarithm of its inverse too
            return ZCDPView(above(epsilon - 1 - math.log(epsilon), 8.0, epsilon), 0.0)
        simple = min(above(square / 8, 4.0), pure_to_zcdp(epsilon))
        part = epsilon / math.expm1(epsilon)
        # a relative error of the part, at most some 4 units, is an absolute one of its logarithm
        exact = above(part - 1 - math.log(part), 16.0, 2 + abs(math.log(part)))
        return ZCDPView(min(simple, exact), 0.0)

    def gdp(self) -> GDPView:
        """Return the Gaussian DP of randomized response with half the range; proof in the class's notes.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        return GDPView(pure_to_gdp(mul_up(0.5, self._epsilon)), 0.0)

    def log_profile(self, epsilon: float) -> float:
        """Return the log of the largest profile of bounded range; see the class's notes.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """
        gap = self._epsilon - epsilon
        if gap <= 0:
            return -math.inf
        part = math.log(-math.expm1(-above(gap / 2, 2.0)))
        whole = math.log(-math.expm1(-self._epsilon))
        return min(0.0, above(2 * part - whole, 16.0, 1 + 2 * abs(part) + abs(whole)))

    def dominating_pair(self) -> Pair:
        """Return the smallest pair above all of bounded range.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return BoundedRangePair(self._epsilon) if self._epsilon > 0 else no_loss()

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest divergences of bounded range; see the class's notes.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        epsilon, gap = self._epsilon, orders - 1.0
        simple = np.fmin(epsilon, np.nextafter(self.zcdp().rho * orders, np.inf))
        if epsilon == 0:
            return simple
        first, log_gap = np.log(gap / orders), np.log(-np.expm1(-gap * epsilon))
        whole, one = np.log(-np.expm1(-orders * epsilon)), math.log(-math.expm1(-epsilon))
        rest = (whole - np.log(orders) - one) / gap
        size = epsilon + np.abs(first) + np.abs(log_gap) + np.abs(whole) + 2
        slack = 16 * UNIT * (size + (np.abs(whole) + np.log(orders) + abs(one) + 2) / gap)
        return np.fmin(simple, epsilon + first + whole - log_gap + rest + slack)
