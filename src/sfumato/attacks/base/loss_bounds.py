r"""Bounds that a privacy loss puts on attacks: success, advantage, precision, the reconstruction of bits.

>>> from sfumato.privacy import Gaussian, Neighboring
>>> loss = compared_loss(Gaussian(1.0), Neighboring.REPLACE_ONE)
>>> round(success_bound(loss, 0.01), 3), round(advantage_bound(loss), 3)
(0.372, 0.683)

Let :math:`f` be the trade-off function of the loss between two worlds, one with the target's record and one
with another in its place (or none). An attack that succeeds with the chance :math:`\kappa` where the target
is not there succeeds with at most :math:`1 - f(\kappa)` where it is, and for many targets the same holds for
the two mean rates, as :math:`f` is convex (Dong, Roth, Su 2022; Hayes, Mahloujifar, Balle 2023). Nothing is
assumed of what else the attacker knows. The rates are means over the release's noise: one release may be
above them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import mul_up
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = [
    "AttackBound",
    "advantage_bound",
    "bit_accuracy_bound",
    "compared_loss",
    "precision_bound",
    "success_bound",
]

_LARGE: Final = 700.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttackBound:
    """A number of an attack beside the most that the release's privacy loss allows.

    Parameters
    ----------
    name : str
        What is bounded, such as ``"success"``.
    seen : Interval
        Of the attack.
    allowed : float
        The most that the loss allows, rounded up.
    condition : str
        What the bound holds for.

    Examples
    --------
    >>> from sfumato.numerics.interval import Interval
    >>> bound = AttackBound(name="advantage", seen=Interval(0.1, 0.2), allowed=0.25, condition="any prior")
    >>> print(bound)
    advantage: 0.1000 to 0.2000, the loss allows 0.2500 (any prior)
    >>> bound.exceeded
    False
    """

    name: str
    seen: Interval
    allowed: float
    condition: str

    @property
    def exceeded(self) -> bool:
        """Whether the whole interval is above what is allowed."""
        return self.seen.lower > self.allowed

    def __str__(self) -> str:
        allowed = math.ceil(self.allowed * 1e4 - 1e-9) / 1e4
        return (
            f"{self.name}: {self.seen.lower:.4f} to {self.seen.upper:.4f}, "
            f"the loss allows {allowed:.4f} ({self.condition})"
        )


def compared_loss(loss: PrivacyLoss, worlds: Neighboring) -> PrivacyLoss | None:
    """Return the loss between the two worlds that an experiment compares, or None where no theorem has it.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the release.
    worlds : Neighboring
        ``REPLACE_ONE`` where controls are people who might have been in a target's place; ``ADD_REMOVE``
        where the same release was made with and without a target.

    Returns
    -------
    PrivacyLoss or None
        A loss under add/remove is doubled for a replacement. A loss under replace-one says nothing of a
        removal, nor one under a further relation of either.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, PureDP
    >>> compared_loss(Gaussian(1.0), Neighboring.REPLACE_ONE)
    Gaussian(noise_multiplier=0.5, neighboring=<Neighboring.REPLACE_ONE: 'replace-one'>)
    >>> compared_loss(PureDP(1.0, neighboring=Neighboring.REPLACE_ONE), Neighboring.ADD_REMOVE) is None
    True
    """
    _check.instance("loss", loss, PrivacyLoss, "pass the loss of the release, such as release.loss")
    _check.instance("worlds", worlds, Neighboring, "pass Neighboring.REPLACE_ONE or ADD_REMOVE")
    own = loss.neighboring
    if own is None or own is worlds:
        return loss
    if worlds is Neighboring.REPLACE_ONE and isinstance(own, Neighboring):
        return loss.under(worlds)
    return None


def success_bound(loss: PrivacyLoss, baseline: float) -> float:
    r"""Return the greatest success rate of an attack whose rate is the baseline on who is not in the release.

    Parameters
    ----------
    loss : PrivacyLoss
        Between the two worlds that are compared; see `compared_loss`.
    baseline : float
        From 0 to 1: the false positive rate of an accusation, the rate of right guesses on controls, or the
        chance :math:`\kappa` of the best guess from the prior.

    Returns
    -------
    float
        :math:`1 - f(\kappa)`, rounded up.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> round(success_bound(PureDP(1.0), 0.1), 4)
    0.2719
    """
    baseline = _check.share("baseline", baseline, "pass the rate on controls, or the chance of a guess")
    if baseline == 1:
        return 1.0
    return min(1.0, math.nextafter(1 - loss.trade_off(baseline).lower, math.inf))


def advantage_bound(loss: PrivacyLoss) -> float:
    """Return the greatest difference of success and baseline: the total variation distance.

    Parameters
    ----------
    loss : PrivacyLoss
        Between the two worlds that are compared.

    Returns
    -------
    float
        Rounded up.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> round(advantage_bound(PureDP(1.0)), 4)
    0.4621
    """
    return min(1.0, loss.delta(0.0))


def precision_bound(loss: PrivacyLoss, false_positive_rate: float, prior: float) -> float:
    """Return the greatest share of accusations that are right, at a false positive rate and a prior.

    Parameters
    ----------
    loss : PrivacyLoss
        Between the two worlds that are compared.
    false_positive_rate : float
        At least this; the bound falls in it.
    prior : float
        Chance that who is asked about is in the data, strictly between 0 and 1.

    Returns
    -------
    float
        The positive predictive value of Bayes' rule, rounded up.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> round(precision_bound(PureDP(1.0), 0.0, 0.5), 4)
    0.7311
    """
    prior = _check.unit_interval("prior", prior, "pass the chance that a person is in the data")
    rate = _check.share("false_positive_rate", false_positive_rate, "pass the lower end of its interval")
    # The ratio of both rates falls as the false positive rate grows, as f is convex; at 0 it is e^epsilon.
    ratio = math.inf if rate == 0 else success_bound(loss, rate) / rate
    epsilon = loss.epsilon(0.0)
    if epsilon < _LARGE:
        ratio = min(ratio, math.exp(epsilon))
    if math.isinf(ratio):
        return 1.0
    odds = mul_up(ratio, prior) / (1 - prior)
    return min(1.0, odds / (1 + odds) * (1 + 1e-14))


def bit_accuracy_bound(loss: PrivacyLoss, prior: float = 0.5) -> float:
    """Return the greatest expected share of secret bits that any attack finds.

    Parameters
    ----------
    loss : PrivacyLoss
        Between two worlds that differ in one person's bit.
    prior : float
        Chance that a bit is 1, strictly between 0 and 1.

    Returns
    -------
    float
        Rounded up. Guarantee: it holds for bits that are independent of one another with that prior, for
        whatever else the attacker knows; given all other bits, a bit is found with at most that chance
        (Bayes' accuracy), and less without them. Correlated bits have no such bound.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> round(bit_accuracy_bound(PureDP(1.0)), 4)
    0.7311
    """
    prior = _check.unit_interval("prior", prior, "pass the chance that a bit is 1")
    return loss.risk(prior=prior, false_positive_rates=()).accuracy.upper
