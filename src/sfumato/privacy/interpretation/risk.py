"""Risk: the advantage, accuracy and reconstruction that the best attack against a loss can achieve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.privacy._outward import above, below, text_above
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.agreement import complement
from sfumato.privacy.accountant.intervals import Composition
from sfumato.privacy.accountant.precision import Precision
from sfumato.privacy.interpretation.tradeoff import trade_off

__all__ = ["Attack", "Risk", "risk"]


class Attack(NamedTuple):
    """The best attack that raises a false alarm at one rate.

    Attributes
    ----------
    false_positive_rate : float
        Probability of accusing where the unit's data are not there.
    true_positive_rate : Interval
        Probability of accusing where they are.
    posterior : Interval
        Probability that an accusation is right, under the prior of the `Risk`.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> attack = Gaussian(1.0).risk(false_positive_rates=[0.01]).attacks[0]
    >>> round(attack.true_positive_rate.upper, 4), round(attack.posterior.upper, 4)
    (0.0924, 0.9023)
    """

    false_positive_rate: float
    true_positive_rate: Interval
    posterior: Interval


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What the best attacker can achieve who knows everything but one unit.

    Parameters
    ----------
    advantage : Interval
        The largest difference of true positive rate and false positive rate.
    attacks : tuple of Attack
        One for each chosen false positive rate.
    prior : float
        Probability, before the release, that the unit's data are there.
    accuracy : Interval
        Probability of then deciding rightly, with that prior.
    baseline : float
        Probability of guessing the unit's record without the release.
    reconstruction : Interval
        Probability of finding the record with the release. The lower end is the baseline, as it is not known
        here which records a release distinguishes.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> risk = Gaussian(1.0).risk(prior=0.1)
    >>> round(risk.advantage.upper, 3), 0.9 <= risk.accuracy.lower
    (0.383, True)
    """

    advantage: Interval
    attacks: tuple[Attack, ...]
    prior: float
    accuracy: Interval
    baseline: float
    reconstruction: Interval

    def __str__(self) -> str:
        gain = _percent(self.advantage)
        lines = [f"An attacker who knows all other units gains at most {gain} over guessing if one is there."]
        lines += [
            f"With false alarms in {_shown(rate)} of cases it finds at most {_percent(found)} of the units; "
            f"if {_shown(self.prior)} are there, at most {_percent(posterior)} of its accusations are right."
            for rate, found, posterior in self.attacks
        ]
        lines.append(f"With that prior it decides rightly in at most {_percent(self.accuracy)} of cases.")
        lines.append(
            f"A record that it would guess with chance {_shown(self.baseline)} it reconstructs with chance "
            f"at most {_percent(self.reconstruction)}."
        )
        return "\n".join(lines)


def risk(
    loss: Composition,
    *,
    false_positive_rates: Sequence[float],
    prior: float,
    baseline: float,
    precision: Precision,
) -> Risk:
    r"""Return the powers of the best attack; see `sfumato.privacy.PrivacyLoss.risk`.

    Notes
    -----
    With :math:`H(t)` the greater hockey-stick divergence of both orders: the advantage is :math:`H(1)`. The
    chance of deciding rightly is :math:`\max_S \pi P(S) + (1 - \pi)(1 - Q(S)) = (1 - \pi) + \pi
    H((1-\pi)/\pi)`, which is :math:`\max(\pi, 1-\pi) + \min(\pi, 1-\pi)\,\delta(|\log(\pi/(1-\pi))|)`.

    Reconstruction: let the record :math:`z` be drawn from any prior, and let no guess that ignores the
    release succeed with more than the chance :math:`\kappa`. With :math:`E_z` the outputs on which the
    attack succeeds on :math:`z`, and :math:`Q` the distribution of the output without the record,
    :math:`E\,Q(E_z) \le \kappa`; the distribution with it gives :math:`P_z(E_z) \le 1 - f(Q(E_z))`; as
    :math:`f` is convex, the mean is at most :math:`1 - f(\kappa)` (Hayes, Mahloujifar, Balle 2023, whose
    argument this is).
    """
    prior = _check.unit_interval("prior", prior, "it is a probability, and certainty leaves nothing to learn")
    baseline = _check.unit_interval("baseline", baseline, "pass the chance of the best guess")
    attacks = []
    given: object = false_positive_rates
    for rate in given if isinstance(given, Iterable) else (given,):
        allowed = _check.unit_interval("false_positive_rates", rate, "each is a probability")
        found = complement(trade_off(loss, allowed, precision))
        attacks.append(Attack(allowed, found, _posterior(found, allowed, prior)))
    _, upper, _ = complement(trade_off(loss, baseline, precision))
    return Risk(
        advantage=intervals.delta_on_curve(loss, 0.0, precision),
        attacks=tuple(attacks),
        prior=prior,
        accuracy=_accuracy(loss, prior, precision),
        baseline=baseline,
        reconstruction=Interval(baseline, max(baseline, upper), tight=False),
    )


def _posterior(found: Interval, rate: float, prior: float) -> Interval:
    lower, upper = (prior * end / (prior * end + (1 - prior) * rate) for end in found[:2])
    return Interval(max(0.0, below(lower, 8.0)), min(1.0, above(upper, 8.0)), found.tight)


def _accuracy(loss: Composition, prior: float, precision: Precision) -> Interval:
    odds = abs(math.log(prior) - math.log1p(-prior))
    # Delta falls, so that rounding of the odds is outward.
    upper = intervals.delta_on_curve(loss, max(0.0, below(odds, 8.0, 1.0)), precision)
    lower = intervals.delta_on_curve(loss, above(odds, 8.0, 1.0), precision)
    likely, unlikely = max(prior, 1 - prior), min(prior, 1 - prior)
    ends = likely + unlikely * lower.lower, likely + unlikely * upper.upper
    return Interval(below(ends[0], 4.0), min(1.0, above(ends[1], 4.0)), lower.tight)


def _percent(bounds: Interval) -> str:
    """Return the upper end in percent, rounded up."""
    return _shown(bounds.upper, up=True)


def _shown(value: float, *, up: bool = False) -> str:
    if 0 < value < 1e-6:
        return f"{text_above(above(100 * value), 3) if up else f'{100 * value:.3g}'} %"
    digits = 2 if value >= 1e-3 else 2 + math.ceil(-math.log10(max(value, 1e-6)))
    scaled = 10.0**digits
    percent = 100 * value
    shown = math.ceil(percent * scaled - 1e-9) / scaled if up else percent
    return f"{min(shown, 100.0):.{digits}f}".rstrip("0").rstrip(".") + " %"
