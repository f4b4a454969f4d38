r"""What a privacy loss allows of reconstructed persons: how many of a block, beside how many of its controls.

Guarantee: let a release of a block of :math:`n` persons give a list of guesses, each of which one person of
those values may match, and let :math:`n` controls be drawn as they were, by lot. Exchange persons for
controls one after the other: the number of matches changes by what each adds to those already there, which is
an event of the release, and by exchangeability it has for a control the chance :math:`q_k` that it has for
the person with another in their place. The chance for the person is at most :math:`e^\epsilon q_k +
\delta(\epsilon)` for every :math:`\epsilon \ge 0`, by the loss for a replacement; and the mean of :math:`q_k`
is at most the share :math:`b` of controls who are matched, as one adds no more beside persons than without
them. So the expected share of persons is at most :math:`e^\epsilon b + \delta(\epsilon)`, and above that of
controls by at most the total variation distance, :math:`\delta(0)`. Per guess there is no such bound: one
guess may be any of :math:`n` persons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from sfumato.attacks.base.loss_bounds import AttackBound, advantage_bound, compared_loss
from sfumato.attacks.base.target_guesses import TargetGuesses, rate_interval
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import mul_up
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["person_bounds", "share_bound"]

_LARGE: Final = 30.0
_ROUNDS: Final = 3
_POINTS: Final = 9

Blocks = Mapping[str, Sequence[Any]]


def person_bounds(
    targets: TargetGuesses,
    controls: TargetGuesses,
    blocks: tuple[Blocks, Blocks],
    loss: PrivacyLoss | None,
    confidence: float,
) -> tuple[AttackBound, ...]:
    """Return the bounds on the share of persons who are matched, and on how far it is above the controls'.

    Parameters
    ----------
    targets, controls : TargetGuesses
        The same guesses, right where they match a person, or a control.
    blocks : tuple of two mappings of str to persons
        Persons and controls.
    loss : PrivacyLoss or None
        Of all tables together.
    confidence : float
        Of both intervals together.

    Returns
    -------
    tuple of AttackBound
        None where a block has not as many controls as persons, or the loss is of no replacement.
    """
    between = None if loss is None else compared_loss(loss, Neighboring.REPLACE_ONE)
    sizes = [{block: len(persons) for block, persons in side.items() if len(persons)} for side in blocks]
    people = sum(sizes[0].values())
    if between is None or sizes[0] != sizes[1] or not people:
        return ()
    risk = (1 - confidence) / 4
    seen, others = (rate_interval(side.hits or 0, people, risk) for side in (targets, controls))
    given = (
        f"of {people} persons and as many controls, {Neighboring.REPLACE_ONE}; mean over the noise; "
        f"confidence {confidence:g} by itself"
    )
    above = Interval(seen.lower - others.upper, seen.upper - others.lower)
    return (
        AttackBound(
            name="persons found", seen=seen, allowed=share_bound(between, others.upper), condition=given
        ),
        AttackBound(
            name="persons found above controls", seen=above, allowed=advantage_bound(between), condition=given
        ),
    )


def share_bound(loss: PrivacyLoss, baseline: float) -> float:
    r"""Return the greatest expected share of persons who are matched, for a share of controls.

    Parameters
    ----------
    loss : PrivacyLoss
        For the replacement of one person.
    baseline : float
        The expected share of controls, at most.

    Returns
    -------
    float
        The least :math:`e^\epsilon b + \delta(\epsilon)` that is found, rounded up.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> round(share_bound(PureDP(1.0), 0.1), 4), round(share_bound(PureDP(1.0), 0.5), 4)
    (0.2718, 0.9621)
    """
    top = min(loss.epsilon(0.0), _LARGE, -math.log(baseline) if baseline else _LARGE)
    found, low, high = 1.0, 0.0, top
    for _ in range(_ROUNDS):
        tried = np.linspace(low, high, _POINTS).tolist()
        bounds = [
            mul_up(math.nextafter(math.exp(one), math.inf), baseline) + loss.delta(one) for one in tried
        ]
        best = int(np.argmin(bounds))
        found = min(found, bounds[best] * (1 + 1e-15))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, _POINTS - 1)]
    return found
