"""The composition theorems by name, so that a course or a paper can be reproduced.

None of them is needed to account: a loss composed with ``+`` and ``*`` has better bounds. Each number is
rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np
from scipy.special import gammaln

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import exp_up, expm1_up, log_down, mul_up, sqrt_up
from sfumato.privacy._outward import UNIT, above, sum_above, times_above
from sfumato.privacy.accountant.precision import STANDARD, Precision
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.pairs.derived import fine_cuts
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.views import PureView

__all__ = [
    "advanced_composition",
    "basic_composition",
    "gdp_clt_approximation",
    "heterogeneous_composition",
    "loss_moments",
    "optimal_composition",
]

_MAX_COUNT: Final = 8_000_000
_REACH: Final = 12.0
_BINS: Final = 3840
"""Of the estimate of a loss's mean and variance."""


def basic_composition(guarantees: Iterable[tuple[float, float]]) -> PureView:
    """Add epsilons and deltas.

    Parameters
    ----------
    guarantees : iterable of (float, float)
        Epsilon and delta of each mechanism; they may be chosen adaptively.

    Returns
    -------
    PureView
        Epsilon and delta of all together; a delta of 1 promises nothing.

    References
    ----------
    Dwork, Roth (2014), "The algorithmic foundations of differential privacy", Theorem 3.16; Dwork,
    Kenthapadi, McSherry, Mironov, Naor (2006) for adaptive choice.

    Examples
    --------
    >>> basic_composition([(0.5, 1e-6)] * 4)
    PureView(epsilon=2.0, delta=4e-06)
    """
    checked = _guarantees(guarantees)
    return PureView(sum_above(e for e, _ in checked), min(1.0, sum_above(d for _, d in checked)))


def advanced_composition(epsilon: float, delta: float, count: int, *, slack: float) -> PureView:
    r"""Return :math:`(\epsilon\sqrt{2k\ln(1/\delta')} + k\epsilon(e^\epsilon - 1), k\delta + \delta')`.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of each mechanism.
    count : int
        How many there are, adaptively chosen.
    slack : float
        The :math:`\delta'` of the theorem, strictly between 0 and 1.

    Returns
    -------
    PureView

    References
    ----------
    Dwork, Rothblum, Vadhan (2010), "Boosting and differential privacy"; in this form Dwork, Roth (2014),
    Theorem 3.20.

    Examples
    --------
    >>> epsilon, delta = advanced_composition(0.1, 0.0, 100, slack=1e-5)
    >>> round(epsilon, 4)
    5.8502
    """
    epsilon, delta = _guarantee(epsilon, delta)
    count = _check.integer("count", count, remedy="pass how often the mechanism runs")
    slack = _check.unit_interval("slack", slack, "pass a part of delta such as 1e-6")
    deviation = sqrt_up(times_above(count, mul_up(2.0, -log_down(slack))))
    drift = times_above(count, mul_up(epsilon, expm1_up(epsilon)))
    total = sum_above([mul_up(epsilon, deviation), drift])
    return PureView(total, min(1.0, sum_above([times_above(count, delta), slack])))


def optimal_composition(epsilon: float, delta: float, count: int, *, target_delta: float) -> PureView:
    r"""Return the smallest of the epsilons of the optimal composition theorem whose delta is within a target.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of each mechanism.
    count : int
        How many there are, adaptively chosen; up to 8,000,000.
    target_delta : float
        In [0, 1).

    Returns
    -------
    PureView
        An epsilon among :math:`(k - 2i)\epsilon` for i from 0 to k/2, and its delta. Where even the
        largest of them, :math:`k\epsilon`, has a delta above the target (below :math:`1 - (1-\delta)^k`),
        epsilon is infinite and delta is the target.

    Notes
    -----
    Theorem: for every i the composition is :math:`((k-2i)\epsilon, 1 - (1-\delta)^k(1-\delta_i))`-DP with

    .. math:: \delta_i = \frac{\sum_{l<i} \binom{k}{l} (e^{(k-l)\epsilon} - e^{(k-2i+l)\epsilon})}
              {(1+e^\epsilon)^k},

    and no smaller delta holds for all such mechanisms. The terms are added in the log domain and rounded up.
    Between those epsilons `ApproximateDP` ``(epsilon, delta) * k`` gives the smallest one; it is never
    larger.

    References
    ----------
    Kairouz, Oh, Viswanath (2015), "The composition theorem for differential privacy", Theorem 3.3.

    Examples
    --------
    >>> epsilon, delta = optimal_composition(0.1, 0.0, 100, target_delta=1e-5)
    >>> round(epsilon, 6), delta <= 1e-5
    (4.4, True)
    """
    epsilon, delta = _guarantee(epsilon, delta)
    count = _check.integer("count", count, minimum=1, remedy="pass how often the mechanism runs")
    if count > _MAX_COUNT:
        _check.refuse(
            "count", f"be at most {_MAX_COUNT}", count, "compose ApproximateDP(epsilon, delta) * count"
        )
    target = _check.probability("target_delta", target_delta, "pass a small probability such as 1e-6")
    lost = _any_fails(delta, count)
    if lost > target:
        return PureView(math.inf, target)

    def total(i: int) -> float:
        return min(1.0, above(lost + (1 - lost) * _kov_delta(epsilon, count, i), 8.0))

    # Delta rises with i: the largest i within the target has the smallest epsilon.
    low, high = 0, count // 2 + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(middle) <= target else (low, middle)
    return PureView(times_above(count - 2 * low, epsilon), total(low) if low else lost)


def _kov_delta(epsilon: float, count: int, i: int) -> float:
    """Return the sum of the theorem, rounded up."""
    if i == 0:
        return 0.0
    below = np.arange(i, dtype=float)
    log_choose = gammaln(count + 1.0) - gammaln(below + 1.0) - gammaln(count - below + 1.0)
    # The factor is e^{(k-l) eps} (1 - e^{-2(i-l) eps}), over (1 + e^eps)^k.
    gain = np.log(-np.expm1(-2.0 * (i - below) * epsilon)) if epsilon else np.full(i, -np.inf)
    base = count * math.log1p(math.exp(-epsilon))
    exponents = log_choose - below * epsilon - base + gain
    top = float(exponents.max())
    if top == -math.inf:
        return 0.0
    size = 16.0 * float(gammaln(count + 1.0)) + 8.0 * (count * epsilon + base) + i + 64.0
    return min(1.0, exp_up(top + size * UNIT) * float(np.exp(exponents - top).sum()) * (1 + size * UNIT))


def heterogeneous_composition(
    guarantees: Iterable[tuple[float, float]], *, target_delta: float, precision: Precision = STANDARD
) -> Interval:
    r"""Return bounds on the smallest epsilon of the composition of different guarantees at a target delta.

    Parameters
    ----------
    guarantees : iterable of (float, float)
        Epsilon and delta of each mechanism, fixed beforehand; the mechanisms may be chosen adaptively.
    target_delta : float
        In [0, 1).
    precision : Precision
        The error allowed; the interval says which error there is.

    Returns
    -------
    Interval
        Holds the optimum; its upper end is a guarantee, rounded up.

    Notes
    -----
    The optimum is a sum over all subsets, #P-complete to compute exactly; the paper approximates it by
    rounding the epsilons. Here it is read off the composed dominating pairs of `ApproximateDP`, which attain
    it, with both errors certified (see `sfumato.privacy.accountant.certified`).

    References
    ----------
    Murtagh, Vadhan (2016), "The complexity of computing the optimal composition of differential privacy".

    Examples
    --------
    >>> lower, upper, tight = heterogeneous_composition([(0.1, 0.0), (0.2, 0.0)] * 50, target_delta=1e-5)
    >>> tight, lower <= upper <= lower * 1.001
    (True, True)
    """
    parts = [ApproximateDP(*pair) for pair in _guarantees(guarantees)]
    target = _check.probability("target_delta", target_delta, "pass a small probability such as 1e-6")
    return compose(parts).epsilon_interval(target, precision)


def gdp_clt_approximation(loss: PrivacyLoss) -> float:
    r"""Return the mu of the Gaussian DP that a composition comes close to: an approximation, NOT a bound.

    The truth may be worse, and much worse at a small delta: for q = 1e-5, noise multiplier 0.5 and a million
    steps the epsilon at 1e-5 that is read off the limit is half of the true one. Use `PrivacyLoss.epsilon`
    for a guarantee.

    Parameters
    ----------
    loss : PrivacyLoss
        Whose parts have dominating pairs, without a mass of infinite loss.

    Returns
    -------
    float
        :math:`2 \sum E L_i / \sqrt{\sum \mathrm{Var} L_i}`, the worse of both orders of the pairs.

    Notes
    -----
    In the central limit the loss is :math:`N(\mu^2/2, \mu^2)`, whose mean and deviation give mu. For
    symmetric trade-off functions the theorem bounds the distance from the limit by a third moment; nothing of
    that is added here.

    References
    ----------
    Dong, Roth, Su (2022), "Gaussian differential privacy", Theorem 3.4.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> round(gdp_clt_approximation(Gaussian(10.0) * 25), 4)
    0.5
    """
    _check.instance("loss", loss, PrivacyLoss, "pass a loss such as Gaussian(1.0) * 100")
    limits = []
    for swapped in (False, True):
        moments = [(*loss_moments(term.dominating_pair(), swapped=swapped), n) for term, n in loss.terms]
        mean = math.fsum(mean * n for mean, _, n in moments)
        variance = math.fsum(variance * n for _, variance, n in moments)
        # A loss that does not vary at all distinguishes the two, unless it is 0.
        limits.append(2 * mean / math.sqrt(variance) if variance > 0 else math.inf if mean > 0 else 0.0)
    return max(limits)


def _guarantee(epsilon: float, delta: float) -> tuple[float, float]:
    return (
        _check.non_negative("epsilon", epsilon, "pass the bound on the loss of each mechanism"),
        _check.probability("delta", delta, "a delta of 1 promises nothing"),
    )


def _guarantees(pairs: object) -> list[tuple[float, float]]:
    found = []
    for pair in pairs if isinstance(pairs, Iterable) else [pairs]:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            _check.refuse("guarantees", "be pairs of epsilon and delta", pair, "write [(0.5, 1e-6)] * 4")
        found.append(_guarantee(*pair))
    return found


def _any_fails(delta: float, count: int) -> float:
    """Return ``1 - (1 - delta) ** count``, rounded up."""
    if delta == 0:
        return 0.0
    hazard = times_above(count, above(-math.log1p(-delta), 4.0))
    return min(1.0, above(-math.expm1(-hazard), 8.0))


def loss_moments(pair: Pair, *, swapped: bool = False) -> tuple[float, float]:
    """Return about the mean and the variance of the loss under the first distribution of a pair: estimates.

    Parameters
    ----------
    pair : Pair
        Without a mass of infinite loss.
    swapped : bool
        The order.
    """
    distribution = pair.bins(fine_cuts(pair, _REACH, _BINS), swapped=swapped).merged()
    if distribution.infinite > 0:
        _check.refuse_state(
            "loss",
            "have no mass of infinite loss",
            f"it has a mass of {float(distribution.infinite)!r}",
            "leave out parts with a delta",
        )
    mass = np.exp(distribution.log_mass)
    total = float(mass.sum())
    mean = float(mass @ distribution.loss) / total
    variance = float(mass @ (distribution.loss - mean) ** 2) / total
    return (mean, variance) if math.isfinite(mean) else (math.inf, math.inf)
