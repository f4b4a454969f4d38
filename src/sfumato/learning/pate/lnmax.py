"""LNMax: the class with most votes after Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.learning.pate.aggregator import UNANSWERED, Aggregator, Labels, Probabilities, Votes, as_stddev
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.selection.noisy_max import NoisyMax, random_argmax
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.integer_noise import discrete_laplace
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["LNMax"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LNMax(Aggregator):
    """The class with most votes after Laplace noise: pure DP.

    Parameters
    ----------
    scale : int, float or Fraction
        Of the noise, in votes.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: ``2 / scale``-DP for each answer under add/remove and zero-out, ``4 / scale`` under
    replace-one (`NoisyMax`): each teacher that changes moves every count by at most 1.

    References
    ----------
    Papernot, Abadi, Erlingsson, Goodfellow, Talwar, "Semi-supervised knowledge transfer for deep learning
    from private training data" (ICLR 2017).

    Examples
    --------
    >>> LNMax(scale=20).loss(questions=100).epsilon(0.0)
    10.0
    """

    scale: Number

    def _settle(self) -> None:
        object.__setattr__(self, "scale", as_stddev("scale", self.scale))
        _ = self._noise

    @property
    def question_loss(self) -> PrivacyLoss | None:
        """Nothing: a question costs when it is answered."""
        return None

    @property
    def answer_loss(self) -> PrivacyLoss:
        """The loss of one answer."""
        return self._noise.privacy_loss

    def label(
        self, votes: Votes, answers: int, source: RandomSource, probabilities: Probabilities | None = None
    ) -> tuple[Labels, int]:
        """Answer the first ``answers`` questions; see `Aggregator.label`.

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
        asked = votes[:answers]
        labels = np.full(len(votes), UNANSWERED, np.int64)
        if len(asked):
            labels[: len(asked)] = random_argmax(
                asked + discrete_laplace(self.scale, asked.shape, source), source
            )
        return labels, len(asked)

    @property
    def _noise(self) -> NoisyMax:
        return NoisyMax(sensitivity=self.teachers_moved, scale=self.scale, neighboring=self.neighboring)
