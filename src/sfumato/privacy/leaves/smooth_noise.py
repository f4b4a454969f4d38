"""Laplace and Gaussian noise scaled to a smooth bound on local sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato._wire import NUMBER
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.leaves.discrete_pair import RationalLeaf
from sfumato.privacy.leaves.leaf import Leaf
from sfumato.privacy.loss import Term
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.pairs.convex_minorant import distributions_of_profile
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.wrapped import LoosePair
from sfumato.privacy.serialization import serialized_as

__all__ = ["SmoothGaussian", "SmoothLaplace"]

_POINTS: Final = 256
_FARTHEST: Final = 140.0
"""Minus the log of the smallest delta that is followed."""
_LARGEST: Final = 600.0
_MIN_GAP: Final = 1e-9
_MIN_SMOOTH: Final = 1e-7


@final
@serialized_as("smooth-laplace", noise_multiplier=NUMBER, smoothness=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class SmoothLaplace(RationalLeaf):
    r"""A number with Laplace noise, as wide as a smooth upper bound on its local sensitivity.

    The answer is :math:`f(x) + k\, S(x)\, Z`, where :math:`Z` has the Laplace distribution of scale 1. The
    scale is secret: it depends on the data, and so does every error that is computed from it.

    Parameters
    ----------
    noise_multiplier : float
        :math:`k`; 0 is no noise.
    smoothness : float
        :math:`\beta`: the logarithm of :math:`S` moves by at most this between neighbors.
    neighboring : Neighboring
        The relation that the local sensitivity and its smoothness are about.

    Notes
    -----
    Guarantee: for :math:`\epsilon \ge \beta + 1/k`,

    .. math:: \delta(\epsilon) \le (1 - e^{-\beta})
              \exp\left(-\frac{\epsilon - 1/k + \beta}{e^\beta - 1}\right),

    for smaller ones what convexity makes of it, and Rényi divergences of an order :math:`\alpha` with
    :math:`(\alpha - 1)(e^\beta - 1) < 1` of at most the greater of :math:`\beta + 1/k` and :math:`1/k - \beta
    - \log(1 - (\alpha - 1)(e^\beta - 1))/(\alpha - 1)`. Conditions: :math:`S(x) \ge |f(x) - f(y)|` and
    :math:`S(x) \le e^\beta S(y)` for all neighbors :math:`x, y`, in either order, without exception; the
    value is one real number; the scale is not released.

    *Proof.* If :math:`S(x) = 0` then :math:`S(y) = 0` and :math:`f(x) = f(y)`. Otherwise measure in units of
    :math:`k S(x)` from :math:`f(x)`: the answer on x is :math:`Z`, that on y is :math:`d + e^\tau Z`,
    :math:`|\tau| \le \beta` and :math:`|d| \le \min(1, e^\tau)/k`. The loss at z is :math:`\tau - |z| +
    |z - d|e^{-\tau}`. For :math:`\tau \ge 0` it is at most :math:`\tau + |d|e^{-\tau} \le \beta + 1/k`. For
    :math:`\tau = -t < 0` it is at most :math:`Y = 1/k - t + (e^t - 1)E`, :math:`E = |z|` exponential of mean
    1, which has no memory: :math:`E(1 - e^{\epsilon - Y})_+ = (1 - e^{-t}) e^{-(\epsilon - 1/k + t)/(e^t -
    1)}` for :math:`\epsilon \ge 1/k`. Both factors rise with t, the second as :math:`1 - e^{-t} \le t`. The
    moment :math:`E e^{(\alpha-1)Y}` is that of an exponential distribution, and its bound rises with t too.

    References
    ----------
    Nissim, Raskhodnikova, Smith (2007), "Smooth sensitivity and sampling in private data analysis", Laplace
    noise; the bounds are proven here.

    Examples
    --------
    >>> SmoothLaplace(2.0, smoothness=0.5 / math.log(2e6)).epsilon(1e-6) < 1.0
    True
    """

    noise_multiplier: float
    smoothness: float = field(kw_only=True)
    neighboring: Neighboring = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("noise_multiplier", self.noise_multiplier, up=False)
        self._set_rounded("smoothness", self.smoothness, up=True)
        self._set_relation(self.neighboring)
        first = self._certain
        if first >= _LARGEST:
            self._set_distributions(distributions_of_profile([0.0], [1.0]), symmetric=True)
            return
        reach = math.expm1(self._beta) * _FARTHEST
        points = np.linspace(first, min(_LARGEST, first + reach), _POINTS if reach else 1).tolist()
        epsilons = sorted(set(points))
        deltas = [min(1.0, math.exp(self._log_delta(epsilon)) * (1 + 8 * UNIT)) for epsilon in epsilons]
        self._set_distributions(distributions_of_profile(epsilons, deltas), symmetric=True)

    @property
    def _shift(self) -> float:
        return above(1 / self.noise_multiplier, 1.0) if self.noise_multiplier else math.inf

    @property
    def _certain(self) -> float:
        """The smallest epsilon that the formula is about."""
        return above(self._shift + self._beta, 1.0)

    @property
    def _beta(self) -> float:
        """The smoothness, or a greater one that leaves some digits of the formula."""
        return max(self.smoothness, _MIN_SMOOTH) if self.smoothness else 0.0

    def _log_delta(self, epsilon: float) -> float:
        """Return the log of the bound, for an epsilon that it is about."""
        beta = self._beta
        if beta == 0 or beta > _LARGEST:
            return -math.inf if beta == 0 else 0.0
        decay = (epsilon - self._shift + beta) / math.expm1(beta)
        size = (epsilon + self._shift + beta) / math.expm1(beta)
        return above(math.log(-math.expm1(-beta)) - decay, 16.0, size)

    def log_profile(self, epsilon: float) -> float:
        """Return the log of the bound in the class's notes.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """
        found = RationalLeaf.log_profile(self, epsilon)
        return min(found, self._log_delta(epsilon)) if epsilon >= self._certain else found

    def split(self) -> tuple[float, tuple[Term, ...]]:
        """Part off nothing: the curve of divergences says more.

        Returns
        -------
        mass : float
            Probability of total failure.
        terms : sequence of (PrivacyLoss, int)
            What runs otherwise, each part with its count.
        """
        return 0.0, self.terms

    def dominating_pair(self) -> Pair:
        """Return the two distributions whose profile is at least the bound.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return LoosePair(self._pair)

    numeric = False
    """No: the divergences are in closed form."""

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bound in the class's notes.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        if self._certain > _LARGEST:
            return np.full_like(orders, np.inf)
        gap, beta = orders - 1.0, self._beta
        fraction = gap * (math.expm1(beta) * (1 + 4 * UNIT))
        with np.errstate(all="ignore"):
            tilt = np.where(fraction < 1 - _MIN_GAP, -np.log1p(-fraction) / gap, np.inf)
        # Near a fraction of 1 a rounding of it is as large as 1 / (1 - fraction) of the logarithm.
        slack = UNIT * (
            8 * (self._shift + beta) + 8 * tilt + 64 / _MIN_GAP * fraction / gap * (fraction > 0.5)
        )
        return np.maximum(self._certain, self._shift - beta + tilt + slack)


@final
@serialized_as("smooth-gaussian", noise_multiplier=NUMBER, smoothness=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class SmoothGaussian(Leaf):
    r"""A number with Gaussian noise, as wide as a smooth upper bound on its local sensitivity.

    The answer is :math:`f(x) + k\, S(x)\, Z`, where :math:`Z` is standard normal. The scale is secret: it
    depends on the data, and so does every error that is computed from it.

    Parameters
    ----------
    noise_multiplier : float
        :math:`k`; 0 is no noise.
    smoothness : float
        :math:`\beta`: the logarithm of :math:`S` moves by at most this between neighbors.
    neighboring : Neighboring
        The relation that the local sensitivity and its smoothness are about.

    Notes
    -----
    Guarantee: Rényi divergences, finite for orders :math:`\alpha < 1/(1 - e^{-2\beta})`. With
    :math:`w(\tau) = 1 - \alpha + \alpha e^{2\tau}` and :math:`g(\tau) = \tau + \frac{2\tau - \log
    w(\tau)}{2(\alpha - 1)}`, the greater of

    .. math:: g(-\beta) + \frac{\alpha}{2 k^2 (\alpha - (\alpha - 1) e^{2\beta})}
              \quad\text{and}\quad g(\beta) + \frac{\alpha}{2k^2}.

    Conditions: those of `SmoothLaplace`.

    *Proof.* In units of :math:`k S(x)` from :math:`f(x)` the answers are N(0, 1) and N(d, :math:`e^{2\tau}`),
    :math:`|\tau| \le \beta`, :math:`|d| \le \min(1, e^\tau)/k`, whose divergence is :math:`g(\tau) + \alpha
    d^2/(2w(\tau))` (infinite unless :math:`w > 0`). As :math:`g' = 1 - 1/w`, and :math:`w` is above 1 just
    for :math:`\tau > 0`, :math:`g` is largest at an end on either side of 0. For :math:`\tau > 0`,
    :math:`d^2/w \le k^{-2}`. For :math:`\tau < 0`, :math:`d^2/w \le k^{-2}/(\alpha - (\alpha - 1)
    e^{-2\tau})`, which is largest at :math:`-\beta`.

    References
    ----------
    Bun, Steinke (2019), "Average-case averages: private algorithms for smooth sensitivity and mean
    estimation", Gaussian noise and truncated concentrated DP; van Erven, Harremoës (2014), "Rényi divergence
    and Kullback-Leibler divergence", of two normal distributions; the bound is proven here.

    Examples
    --------
    >>> round(SmoothGaussian(4.0, smoothness=0.01).epsilon(1e-6), 2)
    1.38
    """

    noise_multiplier: float
    smoothness: float = field(kw_only=True)
    neighboring: Neighboring = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("noise_multiplier", self.noise_multiplier, up=False)
        self._set_rounded("smoothness", self.smoothness, up=True)
        self._set_relation(self.neighboring)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bound in the class's notes.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        noise, beta = self.noise_multiplier, self.smoothness
        if noise == 0 or beta > _LARGEST / 2:
            return np.full_like(orders, np.inf)
        gap = orders - 1.0
        with np.errstate(all="ignore"):
            shift = orders / (2 * noise * noise)
            narrow = shift / (1 - gap * math.expm1(2 * beta))
            ends = [(-beta, np.log1p(orders * math.expm1(-2 * beta)), narrow)]
            ends.append((beta, np.log1p(orders * math.expm1(2 * beta)), shift))
            found = np.zeros(len(orders))
            for tau, log_w, moved in ends:
                size = beta + (2 * beta + np.abs(log_w)) / gap + moved
                # Where w is small, its rounding is as large as 1 / w of both terms.
                slack = UNIT * 32 * size * (1 + np.exp(-np.minimum(log_w, 0.0)))
                found = np.maximum(found, tau + (2 * tau - log_w) / (2 * gap) + moved + slack)
            finite = (1 + orders * math.expm1(-2 * beta) > _MIN_GAP) & (
                gap * math.expm1(2 * beta) < 1 - _MIN_GAP
            )
        return np.where(finite, np.nextafter(found, np.inf), np.inf)
