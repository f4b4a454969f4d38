"""Private selection: run a mechanism a random number of times and release only the best answer."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import NUMBER
from sfumato.errors import UnsupportedView
from sfumato.numerics.rounding import log_down, log_up
from sfumato.privacy._outward import UNIT, above, below
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring, refuse_further
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.wrapped import FailureMassPair
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["PoissonStopping", "RandomStopping"]

_Array = NDArray[np.float64]

_GAPS: Final = np.exp2(np.linspace(-12.0, 24.0, 145))
"""Orders less 1 at which the base is asked in the other direction; any of them gives a valid bound."""
_SLACK: Final = 32 * UNIT


class _Stopping(Node):
    """Common base of both kinds: bounds on the loss, if the base has one."""

    __slots__ = ()

    loss: PrivacyLoss

    def _set_base(self) -> None:
        given: object = self.loss
        if not isinstance(given, PrivacyLoss) or given.neighboring is None:
            remedy = "pass the loss of one run, such as PureDP(0.1)"
            _check.refuse_type("loss", "be the PrivacyLoss of one run", self.loss, remedy)
        refuse_further(type(self).__name__, given.neighboring)

    @property
    def neighboring(self) -> Neighboring | None:
        """That of one run."""
        return cast("Neighboring | None", self.loss.neighboring)

    @abstractmethod
    def _bound(self, epsilon: float) -> float:
        """Return the largest loss where that of one run is at most ``epsilon``."""

    def pure(self) -> PureView:
        """Return the largest loss, if that of one run is bounded; see the class's notes."""
        epsilon, delta = self.loss.pure()
        if delta > 0:
            self._missing("pure")
        return PureView(self._bound(epsilon) if math.isfinite(epsilon) else math.inf, 0.0)

    def zcdp(self) -> ZCDPView:
        """Return what a bound on the loss implies."""
        return self._bounded("zcdp").zcdp()

    def gdp(self) -> GDPView:
        """Return what a bound on the loss implies."""
        return self._bounded("gdp").gdp()

    def log_profile(self, epsilon: float) -> float:
        """Return what a bound on the loss implies."""
        return self._bounded("profile").log_profile(epsilon)

    def dominating_pair(self) -> Pair:
        """Return what a bound on the loss implies; it is not the pair of two neighbors."""
        return FailureMassPair(self._bounded("dominating pair").dominating_pair())

    def _bounded(self, view: str) -> PureDP:
        epsilon = self.pure().epsilon
        return PureDP(epsilon) if math.isfinite(epsilon) else self._missing(view)


@final
@serialized_as("random-stopping", loss=LOSS, shape=NUMBER, stopping_probability=NUMBER)
@dataclass(frozen=True, slots=True, repr=False)
class RandomStopping(_Stopping):
    r"""The best of a random number of runs, drawn from a truncated negative binomial distribution.

    Parameters
    ----------
    loss : PrivacyLoss
        Of one run.
    shape : float
        :math:`\eta > -1`: 1 is the geometric distribution (stop after each run with one probability), 0 the
        logarithmic one; smaller is cheaper and less concentrated.
    stopping_probability : float
        :math:`\gamma`, strictly between 0 and 1: :math:`P(K = k) \propto (1-\gamma)^k \prod_{l<k} (l +
        \eta)/(l + 1)` for :math:`k \ge 1` (for :math:`\eta = 0`: :math:`(1-\gamma)^k/k`).

    Notes
    -----
    Guarantee: Rényi DP of order :math:`\alpha > 1`, for every :math:`\hat\alpha > 1`, with

    .. math:: D_\alpha + (1+\eta)\left(1 - \frac1{\hat\alpha}\right) D_{\hat\alpha} +
        \frac{(1+\eta)\log(1/\gamma)}{\hat\alpha} + \frac{\log E K}{\alpha - 1},

    :math:`D` the curve of one run; and pure DP with :math:`(2+\eta)\epsilon` for a run of pure DP.
    Conditions: the runs have fresh randomness and one distribution (of several candidates, each run draws one
    at random); the answers are totally ordered by what is released of them (an answer carries its score); the
    number of runs is drawn independently of the data, and stays secret, as does the time that they take;
    nothing is released but the best answer.

    *Proof.* Let :math:`f` be the generating function of :math:`K`, and :math:`Q(<y)` the chance of an answer
    worse than :math:`y`. The best answer has the distribution
    :math:`A(y) = f(Q(\le y)) - f(Q(<y)) = Q(y)\,E f'(Q(<y) + U Q(y))`, :math:`U` uniform. By joint convexity
    of :math:`a^\alpha b^{1-\alpha}`,
    :math:`\sum A^\alpha A'^{1-\alpha} \le e^{(\alpha-1)D_\alpha} \sup f'(q)^\alpha f'(q')^{1-\alpha}`, over
    the probabilities :math:`q, q'` that one run gives to one randomized event on the two datasets. Here
    :math:`f'(x) = E K\,(\gamma/r(x))^{1+\eta}`, :math:`r(x) = 1 - (1-\gamma)x \ge \gamma`; :math:`r = r(q)`
    and :math:`r' = r(q')` are probabilities of one event as well, so
    :math:`r' \le (r e^{D_{\hat\alpha}})^{1 - 1/\hat\alpha}` and
    :math:`r^{-\alpha} r'^{\alpha-1}
    \le r^{-1-(\alpha-1)/\hat\alpha} e^{(\alpha-1)(1-1/\hat\alpha)D_{\hat\alpha}}`,
    largest at :math:`r = \gamma`. For pure DP, :math:`A/A' \le e^\epsilon (r'/r)^{1+\eta}`.

    References
    ----------
    Papernot, Steinke (2022), "Hyperparameter tuning with Rényi differential privacy", Theorem 2; Liu, Talwar
    (2019), "Private selection from private candidates", the geometric distribution.

    Examples
    --------
    >>> from sfumato.privacy import ZCDP, PureDP
    >>> RandomStopping(PureDP(0.1), 1.0, 0.01).pure().epsilon < 0.3 + 1e-9
    True
    >>> RandomStopping(ZCDP(0.01), 0.0, 0.01).epsilon(1e-6) < 1.7
    True
    """

    loss: PrivacyLoss
    shape: float
    stopping_probability: float

    def __post_init__(self) -> None:
        self._set_base()
        distributions = "1 is the geometric distribution, 0 the logarithmic one"
        shape = _check.finite("shape", self.shape, distributions)
        if shape <= -1:
            _check.refuse("shape", "be above -1", shape, distributions)
        self._set("shape", shape)
        remedy = "the mean number of runs falls with it"
        chance = _check.unit_interval("stopping_probability", self.stopping_probability, remedy)
        self._set("stopping_probability", chance)

    @property
    def log_mean(self) -> float:
        """The log of the mean number of runs, rounded up."""
        eta, gamma = self.shape, self.stopping_probability
        hazard = -log_down(gamma)
        power = eta * math.log(gamma)
        if abs(power) < 1e-9:
            # eta / (1 - gamma**eta) is (1 + x / 2 + ...) / hazard at x = eta * hazard.
            ratio = (1 + abs(power)) / -log_up(gamma)
        else:
            ratio = eta / -math.expm1(power) if power < 700 else -eta * math.exp(-power)
        value = math.log(ratio) + math.log1p(-gamma) + hazard
        return max(0.0, above(value, 64.0, 1 + hazard * (1 + abs(eta)) + abs(math.log(ratio))))

    def _bound(self, epsilon: float) -> float:
        return above((2 + self.shape) * epsilon, 4.0)

    def rdp_curve(self, orders: _Array) -> _Array:
        """Return the bound at the best other order; see the class's notes.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        rest = (1 + self.shape) * _other_direction(self.loss, self.stopping_probability)
        excess = self.log_mean / (orders - 1.0)
        total = self.loss.rdp_curve(orders) + rest + excess
        return np.fmin(np.nextafter(total * (1 + _SLACK), np.inf), _bound_of(self))


@final
@serialized_as("poisson-stopping", loss=LOSS, mean=NUMBER)
@dataclass(frozen=True, slots=True, repr=False)
class PoissonStopping(_Stopping):
    r"""The best of a Poisson number of runs; with no run, nothing is released.

    Parameters
    ----------
    loss : PrivacyLoss
        Of one run.
    mean : float
        Of the number of runs, positive.

    Notes
    -----
    Guarantee: Rényi DP of order :math:`\alpha > 1` with

    .. math:: \frac{1}{\alpha - 1} \log\left(e^{-\mu} + \mu\, e^{(\alpha-1)(D_\alpha + \mu\delta)}\right),

    :math:`\mu` the mean, :math:`D` the curve of one run and :math:`\delta` its delta at :math:`\epsilon =
    \log(\alpha/(\alpha-1))`; and pure DP with :math:`\epsilon + \mu\tanh(\epsilon/2)` for a run of pure DP.
    Conditions: those of `RandomStopping`.

    *Proof.* As there, with :math:`f'(x) = \mu e^{\mu(x - 1)}`. With the complements :math:`\bar q = 1 - q`,
    :math:`f'(q)^\alpha f'(q')^{1-\alpha} = \mu e^{\mu(\alpha-1)(\bar q' - \frac{\alpha}{\alpha-1} \bar q)}
    \le \mu e^{\mu(\alpha-1)\delta}`. That there was no run has probability :math:`e^{-\mu}` on both
    datasets. For pure DP, :math:`f'(q)/f'(q') = e^{\mu(q - q')}`, and :math:`q - q'` is at most the total
    variation of randomized response.

    References
    ----------
    Papernot, Steinke (2022), the Poisson distribution; the term for no run is added here.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> loss = PoissonStopping(PureDP(0.1), mean=10)
    >>> round(loss.pure().epsilon, 4)
    0.5996
    """

    loss: PrivacyLoss
    mean: float

    def __post_init__(self) -> None:
        self._set_base()
        remedy = "pass the mean number of runs"
        self._set("mean", _check.positive("mean", self.mean, remedy))

    def _bound(self, epsilon: float) -> float:
        return above(epsilon + self.mean * math.tanh(epsilon / 2), 8.0)

    def rdp_curve(self, orders: _Array) -> _Array:
        """Return the bound; see the class's notes.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        gap = orders - 1.0
        at = [max(0.0, below(float(x), 4.0)) for x in np.log1p(1 / gap)]
        delta = np.array([self.loss.quick_delta(epsilon) for epsilon in at])
        exponent = gap * (self.loss.rdp_curve(orders) + self.mean * delta) * (1 + _SLACK)
        some = exponent + log_up(self.mean)
        total = np.logaddexp(-self.mean, some)
        size = np.abs(some) + self.mean + np.abs(total) + 1
        return np.fmin(np.maximum(0.0, (total + _SLACK * size) / gap * (1 + _SLACK)), _bound_of(self))


@lru_cache(maxsize=1024)
def _other_direction(loss: PrivacyLoss, gamma: float) -> float:
    """Return the smallest of ``(1 - 1/a) D_a + log(1/gamma) / a`` over the orders tried, rounded up."""
    orders = 1.0 + _GAPS
    hazard = -log_down(gamma)
    with np.errstate(all="ignore"):
        values = (loss.rdp_curve(orders) * (orders - 1.0) + hazard) / orders * (1 + _SLACK)
    best = float(np.nan_to_num(values, nan=np.inf).min())
    try:
        epsilon, delta = loss.pure()
    except UnsupportedView:
        return best
    return min(best, epsilon) if delta == 0 else best


def _bound_of(loss: _Stopping) -> float:
    """Return the largest loss, or infinity where none is known."""
    try:
        return loss.pure().epsilon
    except UnsupportedView:
        return math.inf
