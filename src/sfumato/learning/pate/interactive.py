"""Interactive GNMax: teachers answer where they know better than the student."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.aggregator import (
    UNANSWERED,
    Aggregator,
    as_stddev,
    check_noise,
    vote_noise,
)
from sfumato.learning.pate.confident import first_passing
from sfumato.learning.pate.gnmax import noisy_winners
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.rational import Number
from sfumato.numerics.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["InteractiveGNMax"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveGNMax(Aggregator):
    r"""The teachers' label where their votes outrun the student's guess; else the student's own, if sure.

    Parameters
    ----------
    teachers : int
        How many vote.
    threshold : int
        A question is answered if some class has at least so many votes, after noise, beyond what the student
        expects: its probability times the number of teachers.
    confidence : float
        A question that is not answered gets the student's own label if its probability is above this; from 0
        to 1, where 1 is never.
    check_stddev : int, float or Fraction
        Of the noise of the check, in votes.
    stddev : int, float or Fraction
        Of the noise of an answer, in votes.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: the costs of `ConfidentGNMax`. The student's probabilities are a function of earlier labels and
    public examples; given them, one teacher moves the largest surplus by at most 1. A question that fails the
    check is labelled by the student, which tells nothing new.

    References
    ----------
    Papernot et al., "Scalable private learning with PATE" (ICLR 2018), the aggregator of that name.
    """

    teachers: int
    threshold: int
    confidence: float = 1.0
    check_stddev: Number
    stddev: Number

    def _settle(self) -> None:
        object.__setattr__(self, "teachers", _check.integer("teachers", self.teachers, minimum=1))
        object.__setattr__(self, "threshold", _check.integer("threshold", self.threshold))
        confidence = _check.finite("confidence", self.confidence)
        if not 0 <= confidence <= 1:
            _check.refuse("confidence", "be from 0 to 1", confidence)
        object.__setattr__(self, "confidence", confidence)
        for name in ("check_stddev", "stddev"):
            object.__setattr__(self, name, as_stddev(name, getattr(self, name)))
        _ = self.check, self.noise

    @property
    def check(self) -> Gaussian:
        """The mechanism on the largest surplus of one question."""
        return check_noise(self.check_stddev, self.teachers_moved, self.neighboring)

    @property
    def noise(self) -> Gaussian:
        """The mechanism on the histogram of one question."""
        return vote_noise(self.stddev, self.teachers_moved, self.neighboring)

    @property
    def question_loss(self) -> PrivacyLoss:
        """The loss of one check."""
        return self.check.privacy_loss

    @property
    def answer_loss(self) -> PrivacyLoss:
        """The loss of one answer."""
        return self.noise.privacy_loss

    def label(
        self,
        votes: NDArray[np.int64],
        answers: int,
        source: RandomSource,
        probabilities: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.int64], int]:
        """Answer at most ``answers`` of the questions that pass the check; see `Aggregator.label`."""
        guess = as_probabilities(probabilities, votes.shape)
        expected = np.rint(guess * self.teachers).astype(np.int64)
        surplus = (votes - expected).max(axis=1, initial=-self.teachers)
        rows = first_passing(surplus, self.check, self.threshold, answers, source)
        labels = np.where(guess.max(axis=1, initial=0.0) > self.confidence, guess.argmax(axis=1), UNANSWERED)
        labels[rows] = noisy_winners(votes[rows], self.noise, source)
        return labels.astype(np.int64), len(rows)


def as_probabilities(given: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the student's probabilities; they are public, and so may be what is wrong with them."""
    guess = np.asarray(given)
    if guess.dtype.kind != "f" or guess.shape != shape or not ((guess >= 0) & (guess <= 1)).all():
        rule = f"be probabilities of shape {shape}"
        _check.refuse("probabilities", rule, f"array of {guess.dtype} of shape {guess.shape}")
    return guess.astype(np.float64)
