"""Interactive GNMax: teachers answer where they know better than the student."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.aggregator import UNANSWERED, Labels, Probabilities, Votes
from sfumato.learning.pate.confident import NoisyCheckAggregator
from sfumato.learning.pate.gnmax import noisy_winners
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["InteractiveGNMax"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveGNMax(NoisyCheckAggregator):
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
    check is labelled by the student, which reveals nothing new.

    References
    ----------
    Papernot et al., "Scalable private learning with PATE" (ICLR 2018), the aggregator of that name.

    Examples
    --------
    >>> aggregator = InteractiveGNMax(teachers=250, threshold=200, check_stddev=150, stddev=40)
    >>> checked = aggregator.loss(questions=100, answers=0)
    >>> checked.epsilon(1e-5) < aggregator.loss(questions=100, answers=100).epsilon(1e-5)
    True
    """

    teachers: int
    confidence: float = 1.0

    def _settle(self) -> None:
        object.__setattr__(self, "teachers", _check.integer("teachers", self.teachers, minimum=1))
        confidence = _check.finite("confidence", self.confidence)
        if not 0 <= confidence <= 1:
            _check.refuse("confidence", "be from 0 to 1", confidence, "use 1 for never")
        object.__setattr__(self, "confidence", confidence)
        NoisyCheckAggregator._settle(self)  # noqa: SLF001  # a slotted dataclass has no super() without arguments

    def label(
        self, votes: Votes, answers: int, source: RandomSource, probabilities: Probabilities | None = None
    ) -> tuple[Labels, int]:
        """Answer at most ``answers`` of the questions that pass the check; see `Aggregator.label`.

        Parameters
        ----------
        votes : int array of shape (n, classes)
            The teachers' votes.
        answers : int
            The maximum number of questions that are answered.
        source : RandomSource
            Where randomness comes from.
        probabilities : float array of shape (n, classes), optional
            The student's.

        Returns
        -------
        tuple of (int64 array of shape (n,), int)
            The labels, -1 where there is none, and how many questions were answered.
        """
        guess = as_probabilities(probabilities, votes.shape)
        expected = np.rint(guess * self.teachers).astype(np.int64)
        surplus = (votes - expected).max(axis=1, initial=-self.teachers)
        rows = self._passing(surplus, answers, source)
        labels = np.where(guess.max(axis=1, initial=0.0) > self.confidence, guess.argmax(axis=1), UNANSWERED)
        labels[rows] = noisy_winners(votes[rows], self.noise, source)
        return labels.astype(np.int64), len(rows)


def as_probabilities(given: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the student's probabilities; they are public, and so may be what is wrong with them."""
    guess = np.asarray(given)
    if guess.dtype.kind != "f" or guess.shape != shape or not ((guess >= 0) & (guess <= 1)).all():
        rule = f"be probabilities of shape {shape}"
        _check.refuse_type("probabilities", rule, guess, "pass the student's predict_proba")
    return guess.astype(np.float64)
