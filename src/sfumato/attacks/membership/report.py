"""The report on a membership attack: error rates with intervals, beside what the claimed privacy allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.attack_curve import roc
from sfumato.attacks.membership.signals import as_finite_array
from sfumato.attacks.membership.thresholds import (
    best_event,
    maximum_advantage_threshold,
    rates_at_threshold,
    split_halves,
    threshold_at_rate,
)
from sfumato.audit.one_run import best_guesses
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import sub_down, sub_up
from sfumato.privacy._outward import text_above, text_below
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["MembershipReport", "OperatingPoint", "membership_report"]

Design = Literal["one_model", "coins", "runs"]
_DESIGNS = ("one_model", "coins", "runs")


class OperatingPoint(NamedTuple):
    """One threshold: who scores above it is accused.

    Attributes
    ----------
    threshold : float
        Chosen on one half of the scores.
    false_positive_rate, true_positive_rate : Interval
        Of it, from the other half.
    allowed : float or None
        The greatest true positive rate that the claim allows at the upper end of the false positive rate;
        None without a claim.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.privacy import GaussianDP
    >>> noise = np.random.default_rng(1)
    >>> members, others = noise.normal(1, 1, 20_000), noise.normal(0, 1, 20_000)
    >>> found = membership_report(members, others, claim=GaussianDP(1.5), delta=0.01, design="runs")
    >>> point = found.points[0.01]
    >>> point.true_positive_rate.upper <= point.allowed
    True
    """

    threshold: float
    false_positive_rate: Interval
    true_positive_rate: Interval
    allowed: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MembershipReport:
    """What an attack achieved: the curator's.

    Parameters
    ----------
    points : mapping of float to OperatingPoint
        For each false positive rate that was asked for.
    advantage : Interval
        True minus false positive rate at the threshold that seemed best for it on one half of the scores.
    roc : tuple of two arrays
        False and true positive rates at every threshold, as they were seen on all scores: no intervals.
    area : float
        Under that curve: how likely a member scores higher than another, ties counted half.
    epsilon_lower : float or None
        What is proved of the training's epsilon at ``delta``; None where scores of one model prove nothing.
    delta : float
        For which that holds.
    claimed : float or None
        The claim's epsilon at ``delta``.
    violated : bool
        Whether ``epsilon_lower`` exceeds it.
    confidence : float
        That all intervals and the bound hold together.
    design : {"one_model", "coins", "runs"}
        Where the scores come from.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.privacy import GaussianDP
    >>> noise = np.random.default_rng(1)
    >>> members, others = noise.normal(1, 1, 20_000), noise.normal(0, 1, 20_000)
    >>> found = membership_report(members, others, claim=GaussianDP(1.5), delta=0.01, design="runs")
    >>> found.violated
    False
    """

    points: Mapping[float, OperatingPoint]
    advantage: Interval
    roc: tuple[NDArray[np.float64], NDArray[np.float64]]
    area: float
    epsilon_lower: float | None
    delta: float
    claimed: float | None
    violated: bool
    confidence: float
    design: Design

    def __str__(self) -> str:
        lines = [
            f"advantage {_released(self.advantage)}, area {self.area:.3f}, confidence {self.confidence:g}"
        ]
        for rate, point in self.points.items():
            maximum = "" if point.allowed is None else f"; the claim allows {point.allowed:.4f}"
            lines.append(
                f"aimed at {rate:g}: false positives {_released(point.false_positive_rate)}, "
                f"true positives {_released(point.true_positive_rate)}{maximum}"
            )
        if self.epsilon_lower is None:
            lines.append("nothing is proved of epsilon: these are scores of one model, not of coins or runs")
        else:
            verdict = "" if self.claimed is None else f", claimed {text_above(self.claimed, 4)}"
            verdict += " VIOLATED" if self.violated else ""
            lines.append(
                f"epsilon at least {text_below(self.epsilon_lower, 4)} at delta {self.delta:g}{verdict}"
            )
        return "\n".join(lines)


def _released(interval: Interval) -> str:
    return f"{interval.lower:.4f} to {interval.upper:.4f}"


def membership_report(
    members: ArrayLike,
    others: ArrayLike,
    *,
    claim: PrivacyLoss | None = None,
    delta: float = 0.0,
    design: Design = "one_model",
    false_positive_rates: Sequence[float] = (0.001, 0.01, 0.1),
    confidence: float = 0.95,
    rng: Any = 0,
) -> MembershipReport:
    """Say how well scores tell members from others, and what that proves.

    Parameters
    ----------
    members, others : arrays of shape (members,) and (others,)
        Scores of examples that were in the training and of such that were not, higher for what looks like a
        member: from `lira`, `rmia`, `loss_threshold`, or any other attack. Four of each at least.
    claim : PrivacyLoss, optional
        What the training is said to lose when a member is changed into what it would be for the others: its
        relation must be that of the two worlds compared (in or out: add/remove).
    delta : float
        At which epsilon is bounded from below.
    design : {"one_model", "coins", "runs"}
        ``"runs"``: every score comes from a training of its own, independent of all others.
        ``"coins"``: one training, and for each of these examples an independent fair coin decided whether it
        was in; *all* of the coins' examples are passed. ``"one_model"``: anything else; then
        nothing is proved of epsilon.
    false_positive_rates : sequence of float
        For which thresholds are chosen.
    confidence : float
        That all intervals and the bound hold together.
    rng : int or numpy Generator
        For cutting the scores into halves.

    Returns
    -------
    MembershipReport

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or scores are too few or not finite.

    Notes
    -----
    Guarantee: one half of the scores chooses thresholds, the other counts, so that counts at a threshold are
    binomial and Clopper and Pearson's bounds on them are exact, if the scores are independent draws: of runs,
    or of one model's members (drawn with replacement from all) and of people it never saw. All rates and
    the bound share the risk (half of it for epsilon), by a union bound. With ``"runs"`` epsilon is at least
    ``log((p_lower - delta) / q_upper)`` for the event that seemed best, of those that are likely for members
    and of those that are likely for others. Members of one model shared a training, and are no independent
    draws of what it does; there ``"coins"`` uses the theorem made for that (`audit_one_run`), with
    intervals that are of this model only, and ``"one_model"`` proves nothing of epsilon.

    What this tells of real members is the curator's alone: no ledger has paid for it.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.privacy import GaussianDP
    >>> noise = np.random.default_rng(1)
    >>> found = membership_report(noise.normal(2, 1, 20_000), noise.normal(0, 1, 20_000),
    ...                           claim=GaussianDP(1.0), delta=0.01, design="runs")
    >>> found.violated, found.points[0.01].allowed < found.points[0.01].true_positive_rate.lower
    (True, True)
    """
    if design not in _DESIGNS:
        _check.refuse(
            "design", "be 'one_model', 'coins' or 'runs'", design, "see the notes of membership_report"
        )
    if claim is not None:
        _check.instance("claim", claim, PrivacyLoss, "pass a loss such as GaussianDP(1.0)")
    delta = _check.probability("delta", delta)
    risk = 1 - _check.unit_interval("confidence", confidence)
    rates = [_check.unit_interval("false_positive_rates", rate) for rate in false_positive_rates]
    sides = [_checked("members", members), _checked("others", others)]
    cut = np.random.default_rng(rng)
    (learn_in, test_in), (learn_out, test_out) = (split_halves(side, cut) for side in sides)
    each = risk / 2 / (4 * (len(rates) + 1))
    thresholds = [threshold_at_rate(learn_out, rate) for rate in rates]
    found = [rates_at_threshold(test_in, test_out, threshold, each) for threshold in thresholds]
    gain = rates_at_threshold(test_in, test_out, maximum_advantage_threshold(learn_in, learn_out), each)
    points = {
        rate: OperatingPoint(threshold, false, true, _allowed(claim, false.upper))
        for rate, threshold, (false, true) in zip(rates, thresholds, found, strict=True)
    }
    lower: float | None = None
    if design == "runs":
        event = best_event(learn_in, learn_out, delta, risk / 4, (len(test_in), len(test_out)))
        lower = event.proved(test_in, test_out, delta, risk / 4)
    elif design == "coins":
        coins = np.repeat([True, False], [len(side) for side in sides])
        scores = np.concatenate(sides)
        lower = best_guesses(scores, coins, delta=delta, confidence=1 - risk / 2).epsilon_lower
    claimed = None if claim is None else claim.epsilon(delta)
    false, true, area = roc(*sides)
    return MembershipReport(
        points=points,
        advantage=Interval(sub_down(gain[1].lower, gain[0].upper), sub_up(gain[1].upper, gain[0].lower)),
        roc=(false, true),
        area=area,
        epsilon_lower=lower,
        delta=delta,
        claimed=claimed,
        violated=lower is not None and claimed is not None and lower > claimed,
        confidence=confidence,
        design=design,
    )


def _checked(name: str, scores: ArrayLike) -> NDArray[np.float64]:
    array = as_finite_array(name, scores, dimensions=(1,))
    if len(array) < 4:
        remedy = "pass more scores: half of them choose, half count"
        _check.refuse_state(name, "be at least four scores", f"there are {len(array)}", remedy)
    return array


def _allowed(claim: PrivacyLoss | None, rate: float) -> float | None:
    """Return the greatest true positive rate that a claim allows; the trade-off's lower end proves it."""
    if claim is None:
        return None
    return min(1.0, math.nextafter(1 - claim.trade_off(rate).lower, math.inf))
