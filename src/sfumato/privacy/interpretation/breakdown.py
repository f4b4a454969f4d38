"""How much of the epsilon of a composition each of its parts causes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UnsupportedView
from sfumato.privacy._outward import text_above
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.intervals import Composition
from sfumato.privacy.accountant.precision import STANDARD
from sfumato.privacy.pairs.pair import Pair

__all__ = ["Explanation", "Share", "explain"]

_REACH: Final = 12.0
_TILTS: Final = np.exp(np.linspace(math.log(1e-4), math.log(1e6), 231))


class Share(NamedTuple):
    """The contribution of one part of a composition to its epsilon.

    Attributes
    ----------
    part : str
        The part, as it prints.
    times : int
        How often it ran.
    share : float
        The proportion of epsilon that it causes; those of all parts add up to 1.
    epsilon_alone : float
        The epsilon of this part with its count, had nothing else run.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> row = (PureDP(1.0) * 3).explain(0.0).rows[0]
    >>> row.part, row.times, row.share, row.epsilon_alone
    ('PureDP(epsilon=1.0)', 3, 1.0, 3.0)
    """

    part: str
    times: int
    share: float
    epsilon_alone: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How much of the epsilon of a loss each of its parts causes.

    Parameters
    ----------
    epsilon, delta : float
        The whole loss: an upper bound on epsilon at this delta.
    rows : tuple of Share
        The parts, the largest proportion first.
    method : str
        How the proportions were computed; they are estimates, unlike the epsilons.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> print((PureDP(1.0) * 3 + PureDP(1.0 / 4)).explain(0.0))
    epsilon 3.25 at delta 0; shares by pure epsilon
      92.3 %  PureDP(epsilon=1.0) * 3  (alone: 3)
       7.7 %  PureDP(epsilon=0.25)  (alone: 0.25)
    """

    epsilon: float
    delta: float
    rows: tuple[Share, ...]
    method: str

    def __str__(self) -> str:
        lines = [f"epsilon {text_above(self.epsilon)} at delta {self.delta:g}; shares by {self.method}"]
        lines += [
            f"{100 * row.share:6.1f} %  {row.part}{f' * {row.times}' if row.times > 1 else ''}"
            f"  (alone: {text_above(row.epsilon_alone)})"
            for row in self.rows
        ]
        return "\n".join(lines)


def explain(loss: Composition, delta: float) -> Explanation:
    r"""Return the proportions of all parts; see `sfumato.privacy.PrivacyLoss.explain`.

    Notes
    -----
    With :math:`K_i(c)` the log of the moment generating function of one run of part :math:`i`, :math:`\log
    \delta \approx \sum n_i K_i(c) - c\epsilon - \dots` at the saddle point :math:`c`, which is stationary: so
    :math:`\partial\epsilon/\partial n_i \approx K_i(c)/c`, what one more run costs, and the proportion of a
    part is :math:`n_i K_i(c)/\sum_j n_j K_j(c)`. Where a part has no dominating pair: the same with Rényi
    divergences at the order that zCDP suggests, else with pure epsilons. The epsilons are certified upper
    bounds; the proportions are estimates, not bounds.
    """
    terms = loss.terms
    epsilon = intervals.charged_epsilon_interval(loss, delta, STANDARD).upper
    weights, method = _weights(terms, delta)
    total = math.fsum(weights)
    rows = [
        Share(
            repr(term),
            count,
            weight / total if 0 < total < math.inf else math.nan,
            intervals.charged_epsilon_interval(intervals.Parts(((term, count),)), delta, STANDARD).upper,
        )
        for (term, count), weight in zip(terms, weights, strict=True)
    ]
    rows.sort(key=lambda row: -row.share)
    return Explanation(epsilon=epsilon, delta=delta, rows=tuple(rows), method=method)


def _weights(terms: intervals.Terms, delta: float) -> tuple[list[float], str]:
    if delta > 0:
        for weigh, method in ((_moments, "log moments at the saddle point"), (_renyi, "Rényi divergence")):
            try:
                weights = weigh(terms, delta)
            except (UnsupportedView, ArithmeticError, ValueError):
                continue
            if all(0 <= weight < math.inf for weight in weights) and any(weights):
                return weights, method
    return [count * term.pure().epsilon for term, count in terms], "pure epsilon"


def _moments(terms: intervals.Terms, delta: float) -> list[float]:
    pairs = [(term.dominating_pair(), count) for term, count in terms]
    with np.errstate(all="ignore"):
        orders = []
        for swapped in (False, True):
            moments = np.array([count * _log_moments(pair, swapped=swapped) for pair, count in pairs])
            bounds = (moments.sum(axis=0) - math.log(delta) - np.log(_TILTS) - np.log1p(_TILTS)) / _TILTS
            best = int(np.nanargmin(bounds))
            orders.append((float(bounds[best]), [max(0.0, float(moment)) for moment in moments[:, best]]))
    return max(orders)[1]


def _log_moments(pair: Pair, *, swapped: bool) -> NDArray[np.float64]:
    if pair.variance > 0:
        return 0.5 * pair.variance * (_TILTS * _TILTS + _TILTS)
    return pair.bins(pair.cuts(_REACH), swapped=swapped).merged().log_moments(_TILTS)


def _renyi(terms: intervals.Terms, delta: float) -> list[float]:
    rho = math.fsum(count * term.zcdp().rho for term, count in terms)
    order = np.array([1 + math.sqrt(-math.log(delta) / rho)])
    return [count * float(term.rdp_curve(order)[0]) for term, count in terms]
