r"""What a privacy loss allows of reconstructed persons: how many of a block, beside how many of its controls.

Guarantee: let a release of a block of :math:`n` persons give a list of guesses, each of which one person of
those values may match, and let :math:`n` controls be drawn as they were, by lot. Exchange persons for
controls one after the other: the number of matches changes by what each adds to those already there, which is
an event of the release, and by exchangeability it has for a control the chance that it has for the person
with another in their place. So with :math:`q_k` that chance, :math:`f` the trade-off function for a
replacement and :math:`\varphi(q) = 1 - f(q) - q`, the expected matches of persons less those of controls are
at most :math:`\sum_k \varphi(q_k)`. It is at most :math:`n` times the total variation distance; as
:math:`\varphi` is concave and the mean of :math:`q_k` at most the share of controls who are matched, the
share of persons is at most that share plus the greatest :math:`\varphi` up to it. Per guess there is no such
bound: one guess may be any of :math:`n` persons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.attacks.base.loss_bounds import AttackBound, advantage_bound, compared_loss, success_bound
from sfumato.attacks.base.target_guesses import TargetGuesses, rate_interval
from sfumato.numerics.interval import Interval
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["person_bounds", "share_bound"]

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
    """Return the greatest expected share of persons who are matched, for a share of controls.

    Parameters
    ----------
    loss : PrivacyLoss
        For the replacement of one person.
    baseline : float
        The expected share of controls, at most.

    Returns
    -------
    float
        Rounded up.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> round(share_bound(PureDP(1.0), 0.1), 4), round(share_bound(PureDP(1.0), 0.5), 4)
    (0.2719, 0.9621)
    """
    most, allowed = advantage_bound(loss), success_bound(loss, baseline)
    # As the advantage is concave, it rises up to the baseline if it is no less anywhere above that. It is
    # greatest where both errors are equal.
    room = (1 - most) / 2 - baseline
    later = [baseline + room * part for part in (0.25, 0.5, 0.75, 1.0)] if room > 0 else []
    if any(1 - loss.trade_off(rate).upper - rate >= allowed - baseline for rate in later):
        return allowed
    return min(1.0, (baseline + most) * (1 + 1e-15))
