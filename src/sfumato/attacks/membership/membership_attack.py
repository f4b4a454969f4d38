"""Membership inference in the shape of all attacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.attacks.base.accusations import accusations, as_truth
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.membership.signals import as_finite_array
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["MembershipAttack"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MembershipAttack(Attack):
    """Whether people were in the training of a model, by any score.

    `membership_report` says more of the same scores, among it what they prove of epsilon.

    Parameters
    ----------
    score : callable
        ``score(model, people)`` returns a number for each person, higher for who looks like a member: `lira`,
        `rmia` or `loss_threshold` on what the model says of them.
    people : sequence or array
        The targets: their examples, in the form that ``score`` takes.
    false_positive_rate : float
        At which people are accused; half of the controls' scores set the threshold, the other half counts.
    prior : float
        Chance that a person who is asked about is a member.
    statements : tuple of str
        What else the score knows, such as shadow models.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or, in `run`, scores do not fit.

    Examples
    --------
    >>> from sfumato import attacks
    >>> attack = attacks.MembershipAttack(score=lambda model, people: [model[one] for one in people],
    ...                                   people=range(20), false_positive_rate=0.1)
    >>> losses = {n: 30.0 - n for n in range(60)}
    >>> found = attack.run(losses, truth=[True] * 20, controls=range(20, 60))
    >>> found.targets.claims, found.controls.people, found.controls.claims
    (20, 20, 3)
    """

    score: Callable[[Any, Any], ArrayLike]
    people: Any
    false_positive_rate: float = 0.01
    prior: float = 0.5
    statements: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.score):
            _check.refuse_type("score", "be callable", self.score, "pass score(model, people)")
        _check.unit_interval("false_positive_rate", self.false_positive_rate)
        _check.unit_interval("prior", self.prior)

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the model."""
        known = "the example of each target, and people who are not in the training"
        return Knowledge((known, *self.statements), {"people": self.people})

    def run(
        self,
        release: Any,
        *,
        truth: ArrayLike | None = None,
        controls: Any = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Attack a model.

        Parameters
        ----------
        release : Any
            The model, as ``score`` takes it.
        truth : bool array, optional
            Who of the targets was in the training; the others become controls.
        controls : sequence or array, optional
            People who were not.
        exchangeable : bool
            Whether targets and controls were drawn alike, by lot.
        loss : PrivacyLoss, optional
            Of the training.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
        """
        value, loss = read_release(release, loss)
        scores = as_finite_array("score", self.score(value, self.people), dimensions=(1,))
        other = None
        if controls is not None:
            other = as_finite_array("score", self.score(value, controls), dimensions=(1,))
        found = accusations(
            scores,
            truth=as_truth(truth, len(scores)),
            controls=other,
            false_positive_rate=self.false_positive_rate,
        )
        return Findings(
            attack="membership inference",
            kind="presence",
            knowledge=self.knowledge,
            targets=found.targets,
            controls=found.controls,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            prior=self.prior,
            numbers={"threshold": found.threshold},
        )
