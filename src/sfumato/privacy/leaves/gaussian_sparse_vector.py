"""The sparse vector technique with Gaussian noise, for streams of a known maximum length."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from sfumato import _check
from sfumato._wire import BOOLEAN, INTEGER, NUMBER
from sfumato.numerics.rounding import fraction_up, sqrt_up
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.accountant import certified
from sfumato.privacy.accountant.planning import Pairs
from sfumato.privacy.accountant.precision import Precision
from sfumato.privacy.conversion import rdp_epsilon
from sfumato.privacy.gaussian_profile import log_profile
from sfumato.privacy.leaves.leaf import Leaf
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.pairs.convex_minorant import distributions_of_profile
from sfumato.privacy.pairs.finite import rational_pair
from sfumato.privacy.pairs.noise.above_threshold import above_threshold_pair
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.pairs.wrapped import LoosePair
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, ZCDPView

__all__ = ["GaussianSparseVector"]

_LARGEST: Final = 600.0
_MINIMUM: Final = -100.0
"""Log of the smallest delta that is followed."""
_POINTS: Final = 128
_PRECISION: Final = Precision(0.01, 0.0)
_MAX_LENGTH: Final = 2**50


@final
@serialized_as(
    "gaussian-sparse-vector",
    threshold_noise=NUMBER,
    query_noise=NUMBER,
    length=INTEGER,
    positives=INTEGER,
    monotone=BOOLEAN,
    neighboring=RELATION,
)
@dataclass(frozen=True, slots=True, repr=False)
class GaussianSparseVector(Leaf):
    r"""Answers "above" or "below" to at most so many queries, stopping after some number of "above".

    One noisy threshold serves the whole run. A new threshold after each "above" is another mechanism:
    ``GaussianSparseVector(a, b, length) * positives``, each run with its own length.

    Parameters
    ----------
    threshold_noise : float
        Standard deviation of the threshold's noise over the sensitivity that all queries share; 0 is none.
    query_noise : float
        Standard deviation of each query's noise over the same sensitivity; 0 is no noise.
    length : int
        At most so many queries are answered, "above" or "below": the run then ends.
    positives : int
        The run ends with this "above" at the latest; at least 1.
    monotone : bool
        Whether between any two neighbors all queries move in the same direction, as counts do under
        add/remove and under zero-out.
    neighboring : Neighboring
        The relation that the sensitivity is about.

    Raises
    ------
    ParameterError
        If ``monotone`` is claimed under replace-one.

    Notes
    -----
    Guarantee: two bounds hold, and at each epsilon the lesser counts. With :math:`a, b` the two noise
    multipliers, :math:`n` the length, :math:`c` the positives:

    *Every answer costs.* :math:`\mu`-Gaussian DP, :math:`\mu^2` the maximum of :math:`d^T \Sigma^{-1} d` over
    all changes :math:`d \in [-1, 1]^n` (all of one sign if monotone), :math:`\Sigma` with :math:`a^2 + b^2`
    on the diagonal and :math:`a^2` elsewhere; at most :math:`n/b^2`.

    *Only "above" costs.* The composition of :math:`1/a`-Gaussian DP with :math:`c` pairs, those of
    `sfumato.privacy.pairs.noise.above_threshold`: their divergences are
    :math:`1 - (1 - \delta_m(\epsilon))^n` at :math:`\epsilon \ge 0`; :math:`\delta_m` is that of N(0, 1) and
    N(m, 1), :math:`m = 2/b`, or :math:`1/b` if monotone. Its Rényi divergence is at most
    :math:`\frac{\alpha}{2a^2} + \frac{c}{\alpha - 1} \log(1 + n G)`,
    :math:`G = e^{\alpha(\alpha-1)m^2/2} \Phi((\alpha - \tfrac12)m) - \Phi(\tfrac m2)`. Length counts by its
    logarithm, as large answers are rare.

    Conditions: fresh noise for each query; queries and public thresholds may be chosen from earlier answers;
    no noisy value is released. A number for an "above" needs fresh noise, added as its own loss.

    *Proof of the first.* With all noisy differences revealed, what each adds to the log likelihood ratio is
    normal given the earlier ones, and the squares of their changes over their variances add up to :math:`d^T
    \Sigma^{-1} d`, whatever d the answers led to; so the largest sum will do (Smith, Thakurta 2022). That is
    :math:`(\sum d_i^2 - r(\sum d_i)^2)/b^2`, :math:`r = a^2/(b^2 + na^2)`, convex in each :math:`d_i`, so
    that all are 1 in size (or 0, if monotone).

    *Proof of the second.* Fix an order of the neighbors. Take the threshold's noise on the second to be that
    on the first plus one sensitivity; as distributions of the same number they are 1/a apart. Given this
    number, no query is more likely to be above on the second, and at each the two normal distributions are
    apart by some :math:`m_i \le m`: 1 from the threshold, and 1 more from the query, in either direction. For
    monotone queries that fall, do not move the threshold, for those that rise, do: :math:`m_i \le 1/b`. So
    between two "above" there are chances :math:`h_i` and :math:`h_i' \le h_i` of stopping at query i, and
    :math:`s_i = \prod_{j \le i}(1 - h_j) \le s_i'` of going on: for each "above" the pair of stopping times
    dominates, at all :math:`u > 0`, and the pairs compose with each other and with the threshold's. The same
    is so with the neighbors in the other order. For the moments,
    :math:`\sum_i (s_{i-1}h_i)^\alpha (s'_{i-1}h_i')^{1-\alpha} + s_n^\alpha s_n'^{1-\alpha}
    \le 1 + \sum_i s_{i-1} (h_i^\alpha h_i'^{1-\alpha} - h_i)`,
    and with :math:`l` the likelihood ratio of the normal distributions a term is at most
    :math:`E_P(l^{\alpha-1} - 1)_+ = G`, by Jensen's inequality.

    References
    ----------
    Zhu, Wang (2020), "Improving sparse vector technique with Rényi differential privacy", Gaussian noise with
    a cap on the length; Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential
    privacy", the coupling; Smith, Thakurta (2022), "Fully adaptive composition for Gaussian differential
    privacy". The bounds are proven here.

    Examples
    --------
    >>> loss = GaussianSparseVector(20.0, 40.0, 100_000)
    >>> loss.gdp().mu > 7, loss.epsilon(1e-6) < 0.7
    (True, True)
    """

    threshold_noise: float
    query_noise: float
    length: int
    positives: int = field(default=1, kw_only=True)
    monotone: bool = field(default=False, kw_only=True)
    neighboring: Neighboring = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("threshold_noise", self.threshold_noise, up=False)
        self._set_rounded("query_noise", self.query_noise, up=False)
        remedy = "it bounds the loss, however few are above"
        self._set_integers("length", remedy=remedy)
        if self.length > _MAX_LENGTH:
            _check.refuse("length", "be at most 2**50", self.length, "cut the stream into runs")
        remedy = "the run ends with the last of them"
        self._set_integers("positives", remedy=remedy)
        self._set_relation(self.neighboring)
        self._set_monotone(self.monotone)

    def gdp(self) -> GDPView:
        """Return the bound by which every answer costs, from exact rationals.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        if self.query_noise == 0:
            return GDPView(math.inf, 0.0)
        a, b, n = Fraction(self.threshold_noise) ** 2, Fraction(self.query_noise) ** 2, self.length
        fraction = a / (b + n * a)
        if self.monotone:
            best = min(n, math.floor(1 / (2 * fraction))) if fraction else n
            whole = max(j - fraction * j * j for j in (best, min(n, best + 1)))
        else:
            whole = n - fraction * (n % 2)
        return GDPView(sqrt_up(fraction_up(whole / b)), 0.0)

    def zcdp(self) -> ZCDPView:
        """Return half the square of that mu.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        mu = self.gdp().mu
        return ZCDPView(above(0.5 * mu * mu, 4.0), 0.0)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the lesser of both bounds at each order.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        every = np.nextafter(self.zcdp().rho * orders, np.inf)
        if not (self.threshold_noise and self.query_noise):
            return every
        gap, m, a = orders - 1.0, self._shift, self.threshold_noise
        with np.errstate(all="ignore"):
            # The log of G, at least that of its smallest part that rounding could hide.
            top = 0.5 * orders * gap * m * m + log_ndtr((orders - 0.5) * m)
            log_part = top + np.log(-np.expm1(math.log(ndtr(0.5 * m)) - top) + 64 * UNIT * (1 + np.abs(top)))
            log_all = math.log(self.length) + log_part
            once = np.logaddexp(0.0, log_all) + 16 * UNIT * (
                np.abs(log_all) + np.abs(top) + orders * m * m + 4
            )
            above_only = orders / (2 * a * a) * (1 + 8 * UNIT) + self.positives * (once / gap) * (
                1 + 8 * UNIT
            )
        return np.fmin(every, np.nextafter(above_only, np.inf))

    @property
    def _shift(self) -> float:
        """Return the largest distance of two means at one query, in standard deviations, rounded up."""
        return above((1 if self.monotone else 2) / self.query_noise, 1.0)

    def dominating_pair(self) -> Pair:
        """Return the pair with the lesser of both profiles.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return _pair(self) if self.query_noise else two_points(math.inf)


@lru_cache(maxsize=64)
def _pair(leaf: GaussianSparseVector) -> Pair:
    """Return a pair with the smallest proven profile, between points at which both bounds are evaluated."""
    mu = leaf.gdp().mu
    last = min(_LARGEST, rdp_epsilon(leaf.rdp_curve, _MINIMUM, centre=math.sqrt(-_MINIMUM) / mu))
    epsilons = np.linspace(0.0, last, _POINTS).tolist()
    parts = _parts(leaf)
    deltas = []
    for epsilon in epsilons:
        every = math.exp(min(0.0, log_profile(mu, epsilon))) * (1 + 4 * UNIT)
        deltas.append(min(1.0, every, _composed(parts, epsilon) if parts else 1.0))
    return LoosePair(rational_pair(distributions_of_profile(epsilons, deltas), symmetric=True))


def _parts(leaf: GaussianSparseVector) -> Pairs:
    """Return the threshold's pair and that of each "above", or nothing where there is no such bound."""
    if leaf.threshold_noise == 0:
        return []
    stop = above_threshold_pair(leaf._shift, leaf.length)  # noqa: SLF001 - of this file
    return [(NormalPair(above(1 / leaf.threshold_noise, 1.0)), 1), (stop, leaf.positives)]


def _composed(parts: Pairs, epsilon: float) -> float:
    try:
        with np.errstate(all="ignore", over="raise", invalid="raise"):
            return certified.delta_interval(parts, epsilon, _PRECISION).upper
    except (ArithmeticError, ValueError):
        return 1.0
