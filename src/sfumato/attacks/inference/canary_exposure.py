"""Exposure: how far a model ranks a secret that was put into its training above others that were not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.loss_bounds import AttackBound, compared_loss, success_bound
from sfumato.attacks.base.target_guesses import TargetGuesses, rate_interval
from sfumato.attacks.membership.signals import as_finite_array
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["CanaryExposure"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryExposure(Attack):
    r"""Find canaries, such as made-up card numbers, by how likely a model takes them to be.

    Parameters
    ----------
    score : callable
        ``score(model, secrets)`` returns a number for each, higher for what looks more familiar: minus the
        loss, or the log-likelihood.
    canaries : sequence or array
        Secrets that were put into the training, each drawn by lot from the space of all.
    references : sequence or array
        Secrets drawn alike that were not: the more, the higher an exposure can be seen.
    false_positive_rate : float
        A canary is claimed to be memorised if at most this share of the space looks more familiar.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or, in `run`, scores do not fit.

    Notes
    -----
    With rank :math:`r` of a canary among itself and :math:`m` references, ties counted against it, its
    exposure is :math:`\log_2((m + 1) / r)`: Carlini and others' with the rank in the sample, which never
    extrapolates. A secret that was not in the training has an exposure of at least :math:`x` with probability
    at most :math:`2^{-x}`, as all ranks are equally likely: no controls are needed. With a loss, that of a
    canary in the training is bounded by the trade-off function at :math:`2^{-x}`, under add/remove of the
    canary, in the mean over the noise. Controls are scored by the model that has seen the canary: their rate
    is compared under replacement, for which a loss under add/remove is doubled.

    References
    ----------
    Carlini, Liu, Erlingsson, Kos, Song (2019), The Secret Sharer.

    Examples
    --------
    >>> from sfumato import attacks
    >>> def familiar(model, secrets):
    ...     return [model.get(one, one % 7) for one in secrets]
    >>> attack = attacks.CanaryExposure(score=familiar, canaries=[100, 101], references=range(63),
    ...                                 false_positive_rate=0.05)
    >>> found = attack.run({100: 50.0})
    >>> found.targets.scores.round(2).tolist(), found.targets.claims
    ([6.0, 0.79], 1)
    """

    score: Callable[[Any, Any], ArrayLike]
    canaries: Any
    references: Any
    false_positive_rate: float = 0.01

    def __post_init__(self) -> None:
        if not callable(self.score):
            _check.refuse_type("score", "be callable", self.score, "pass score(model, secrets)")
        _check.unit_interval("false_positive_rate", self.false_positive_rate)
        for name, values in (("canaries", self.canaries), ("references", self.references)):
            if not hasattr(values, "__len__") or not len(values):
                _check.refuse_type(name, "be a sequence of secrets, at least one", values, "draw some by lot")
        least = math.ceil(1 / self.false_positive_rate) - 1
        if len(self.references) < least:
            remedy = f"draw at least {least}: no rank among fewer is so rare"
            _check.refuse("references", "be enough for the false positive rate", len(self.references), remedy)

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the model."""
        known = "the space of secrets, and the canaries whose exposure is measured"
        return Knowledge((known,), {"canaries": self.canaries, "references": self.references})

    def run(
        self,
        release: Any,
        *,
        truth: Any = None,
        controls: Any = None,
        exchangeable: bool = True,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Measure the exposure of each canary.

        Parameters
        ----------
        release : Any
            The model, as ``score`` takes it.
        truth : Any, optional
            Not read: canaries are in the training.
        controls : sequence or array, optional
            Secrets drawn alike that were not in it and are no references.
        exchangeable : bool
            Whether canaries, controls and references were drawn by lot from one space.
        loss : PrivacyLoss, optional
            Of the training, for one canary.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
        """
        del truth
        model, loss = read_release(release, loss)
        references = np.sort(self._scores(model, self.references))
        targets = self._exposed(self._scores(model, self.canaries), references)
        other = None
        if controls is not None:
            other = self._exposed(self._scores(model, controls), references)
        return Findings(
            attack="canary exposure",
            kind="presence",
            knowledge=self.knowledge,
            targets=targets,
            controls=other,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers={
                "mean exposure in bits": float(targets.scores.mean()),
                "largest exposure in bits": float(targets.scores.max()),
                "most that the references can show": math.log2(len(references) + 1),
            },
            extra_bounds=self._bounds(targets, loss, confidence) if exchangeable else (),
        )

    def _scores(self, model: Any, secrets: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        found = as_finite_array("score", self.score(model, secrets), dimensions=(1,))
        if len(found) != len(secrets):
            remedy = "return a number for each secret"
            _check.refuse_state("score", "fit the secrets", f"{len(found)} numbers came", remedy)
        return found

    def _exposed(
        self, scores: np.ndarray[Any, np.dtype[np.float64]], references: np.ndarray[Any, np.dtype[np.float64]]
    ) -> TargetGuesses:
        places = len(references) + 1
        ranks = places - np.searchsorted(references, scores, side="left")
        claimed = ranks <= self.false_positive_rate * places
        every = np.ones(len(scores), dtype=np.bool_)
        return TargetGuesses(guesses=claimed, scores=np.log2(places / ranks), claimed=claimed, correct=every)

    def _bounds(
        self, targets: TargetGuesses, loss: PrivacyLoss | None, confidence: float
    ) -> tuple[AttackBound, ...]:
        between = None if loss is None else compared_loss(loss, Neighboring.ADD_REMOVE)
        if between is None:
            return ()
        allowed = success_bound(between, self.false_positive_rate)
        seen = rate_interval(targets.claims, targets.people, (1 - confidence) / 4)  # that of success
        bits = math.log2(1 / self.false_positive_rate)
        given = f"canaries drawn by lot, {Neighboring.ADD_REMOVE}; mean over the noise"
        name = f"share exposed by {bits:.2f} bits"
        return (AttackBound(name=name, seen=seen, allowed=allowed, condition=given),)
