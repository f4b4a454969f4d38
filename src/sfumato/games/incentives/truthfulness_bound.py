"""What a lie gains at most under any mechanism of a privacy loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

from sfumato import _check
from sfumato.games.game import as_range
from sfumato.numerics.rounding import add_up, div_up, exp_up, mul_up, sub_down, sub_up
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["TruthfulnessBound", "truthfulness"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TruthfulnessBound:
    """How much a lie gains at most, in expectation; approximate truthfulness, which is no truthfulness.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the mechanism.
    utility_range : (float, float)
        What utilities lie in.
    liars : int
        How many agents lie together; each of them gains at most this.
    factor : float
        Utility above the lowest is multiplied by at most this, where the loss is pure; infinite otherwise.
    gain : float
        What is added to it at most: the least such number for the loss's trade-off function.
    theorem : str
        What proves it.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> bound = truthfulness(PureDP(0.1), (0, 10))
    >>> round(bound.factor, 4), round(bound.gain, 4), round(bound.utility_of_lie(2.0), 4)
    (1.1052, 0.4996, 2.2103)
    """

    loss: PrivacyLoss
    utility_range: tuple[float, float]
    liars: int
    factor: float
    gain: float
    theorem: str = "privacy bounds what a report changes (McSherry, Talwar 2007; Neyman-Pearson)"

    def utility_of_lie(self, utility_of_truth: float) -> float:
        """Return what the expected utility of any lie is at most, given that of the truth.

        Parameters
        ----------
        utility_of_truth : float
            In the range; an upper bound on it will do.

        Returns
        -------
        float
            Rounded up: from the loss's trade-off function, as closely as that is known.

        Raises
        ------
        ParameterError
            If the utility is outside of the range.

        Notes
        -----
        At most ``lowest + factor * (utility_of_truth - lowest)`` and at most ``utility_of_truth + gain``.
        """
        low, high = self.utility_range
        truth = _check.finite("utility_of_truth", utility_of_truth)
        if not low <= truth <= high:
            _check.refuse("utility_of_truth", f"be from {low!r} to {high!r}", truth, "state it in the range")
        length = sub_up(high, low)
        share = min(1.0, max(0.0, div_up(sub_up(truth, low), sub_down(high, low))))
        missed = self.loss.group(self.liars).trade_off(share).lower
        tested = add_up(low, mul_up(length, sub_up(1.0, missed)))
        bounds = [high, tested, add_up(truth, self.gain)]
        if math.isfinite(self.factor):
            bounds.append(add_up(low, mul_up(self.factor, sub_up(truth, low))))
        return min(bounds)

    def __str__(self) -> str:
        who = "a lie" if self.liars == 1 else f"a lie of {self.liars} agents together"
        return f"Approximately truthful: {who} gains at most {self.gain:.6g}. Proof: {self.theorem}."


def truthfulness(loss: PrivacyLoss, utility_range: Any = (0.0, 1.0), *, liars: int = 1) -> TruthfulnessBound:
    r"""Bound what any agent of any type gains by any lie.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the mechanism, under replacing one agent's report.
    utility_range : (float, float)
        What utilities lie in.
    liars : int
        How many agents lie together; more than 1 take `PrivacyLoss.group`.

    Returns
    -------
    TruthfulnessBound

    Raises
    ------
    ParameterError
        If the range is none, or ``liars`` is below 1.
    UnsupportedView
        If no theorem bounds the loss for groups.

    Notes
    -----
    Guarantee: for agents whose utility is a function of their true type and of what the loss covers, with
    whatever action they then take by themselves. Where an agent also receives a part of its own (a good, a
    payment) that depends on its report, the bound holds if that part is its best response to what the loss
    covers (joint privacy), not otherwise.

    Let Q be the distribution of the output for the truth and P that for a lie, and :math:`\varphi` the
    utility, moved and scaled to [0, 1]: a test between Q and P. *Multiplicative*: with pure epsilon :math:`P
    \le e^\epsilon Q`, so :math:`E_P\varphi \le e^\epsilon E_Q\varphi`. *Tight*: a test of size :math:`E_Q
    \varphi = x` has power at most :math:`1 - f(x)`, where f is the trade-off function; a utility that is the
    most powerful test attains it. *Additive*: :math:`\max_x (1 - f(x) - x) = \delta(0)`, the total variation.
    It is :math:`\tanh(\epsilon/2)` of the range for pure DP and :math:`\tanh(\epsilon/4)` for bounded
    range, both less than the usual :math:`e^\epsilon - 1`.

    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy", for the multiplicative bound and
    coalitions; Dong, Roth, Su (2022), "Gaussian differential privacy", for trade-off functions.

    Examples
    --------
    >>> from sfumato.privacy import Exponential, Neighboring
    >>> loss = Exponential(1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> round(truthfulness(loss).gain, 4), round(truthfulness(loss, liars=2).gain, 4)
    (0.2449, 0.4621)
    """
    _check.instance("loss", loss, PrivacyLoss, "pass a mechanism's privacy_loss")
    low, high = as_range("utility_range", utility_range)
    liars = _check.integer("liars", liars, minimum=1, remedy="pass how many lie together")
    together = loss.group(liars)
    epsilon = together.quick_epsilon(0.0)
    gain = min(sub_up(high, low), mul_up(sub_up(high, low), together.delta(0.0)))
    factor = exp_up(epsilon) if math.isfinite(epsilon) else math.inf
    return TruthfulnessBound(loss=loss, utility_range=(low, high), liars=liars, factor=factor, gain=gain)
