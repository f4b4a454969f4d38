"""GNMax: the class with most votes after Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.pate.aggregator import (
    UNANSWERED,
    Aggregator,
    Labels,
    Probabilities,
    Votes,
    as_stddev,
    vote_noise,
)
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.selection.noisy_max import random_argmax
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["GNMax", "noisy_winners"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GNMax(Aggregator):
    r"""The class with most votes after Gaussian noise.

    Parameters
    ----------
    stddev : int, float or Fraction
        Of the noise, in votes.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: each answer is a function of the noisy histogram, of which one teacher moves two entries by 1:
    ``DiscreteGaussian(stddev) * 2``, which is :math:`1/\sigma^2`-zCDP (Papernot et al. 2018,
    for the discrete distribution). Two teachers move it by :math:`\sqrt 8` in L2: :math:`4/\sigma^2`. Noise
    is discrete, and of classes with most votes together a uniform one is released.

    References
    ----------
    Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson, "Scalable private learning with PATE" (ICLR
    2018).

    Examples
    --------
    >>> round(GNMax(stddev=40).loss(questions=200).epsilon(1e-5), 2)
    1.99
    """

    stddev: Number

    def _settle(self) -> None:
        object.__setattr__(self, "stddev", as_stddev("stddev", self.stddev))
        _ = self.noise

    @property
    def noise(self) -> Gaussian:
        """The mechanism on the histogram of one question."""
        return vote_noise(self.stddev, self.teachers_moved, self.neighboring)

    @property
    def question_loss(self) -> PrivacyLoss | None:
        """Nothing: a question costs when it is answered."""
        return None

    @property
    def answer_loss(self) -> PrivacyLoss:
        """The loss of one answer."""
        return self.noise.privacy_loss

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
        labels[: len(asked)] = noisy_winners(asked, self.noise, source)
        return labels, len(asked)


def noisy_winners(votes: NDArray[np.int64], noise: Gaussian, source: RandomSource) -> NDArray[np.int64]:
    """Return the class with most votes after noise in each row, a uniform one of several."""
    if not len(votes):
        return np.empty(0, np.int64)
    return random_argmax(votes + np.asarray(noise.distribution.sample(votes.shape, source)), source)
