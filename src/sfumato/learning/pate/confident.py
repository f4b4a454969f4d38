"""Confident GNMax: only questions on which the teachers agree are answered.

The check of agreement, its noise and its cost are shared with `InteractiveGNMax`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.aggregator import (
    UNANSWERED,
    Aggregator,
    Labels,
    Probabilities,
    Votes,
    as_stddev,
    check_noise,
    vote_noise,
)
from sfumato.learning.pate.gnmax import noisy_winners
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["ConfidentGNMax", "NoisyCheckAggregator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCheckAggregator(Aggregator):
    r"""Answers the questions on which a number that one teacher moves by at most 1 is large, after noise.

    Parameters
    ----------
    threshold : int
        A question is answered if its number, after noise, is at least this.
    check_stddev : int, float or Fraction
        Of the noise of the check, in votes.
    stddev : int, float or Fraction
        Of the noise of an answer, in votes.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: every question costs ``DiscreteGaussian(check_stddev)``, as one teacher moves its number by at
    most 1 (:math:`1/2\sigma_1^2`-zCDP); an answered one costs `GNMax`'s answer besides. That a question was
    not answered is released.
    """

    threshold: int
    check_stddev: Number
    stddev: Number

    def _settle(self) -> None:
        object.__setattr__(self, "threshold", _check.integer("threshold", self.threshold))
        for name in ("check_stddev", "stddev"):
            object.__setattr__(self, name, as_stddev(name, getattr(self, name)))
        _ = self.check, self.noise

    @property
    def check(self) -> Gaussian:
        """The mechanism on the number that is checked, of one question."""
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

    def _passing(self, checked: NDArray[np.int64], answers: int, source: RandomSource) -> NDArray[np.intp]:
        """Return the first ``answers`` rows whose number passes the check."""
        noisy = checked + np.asarray(self.check.distribution.sample(checked.shape, source))
        return np.flatnonzero(noisy >= self.threshold)[:answers]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentGNMax(NoisyCheckAggregator):
    r"""The class with most votes after noise, where a noisy check finds that most votes are many.

    Parameters
    ----------
    threshold : int
        A question is answered if its largest number of votes, after noise, are at least this many.
    check_stddev : int, float or Fraction
        Of the noise of the check, in votes; usually several times the other.
    stddev : int, float or Fraction
        Of the noise of an answer, in votes.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: every question costs ``DiscreteGaussian(check_stddev)``, as one teacher moves the most votes by
    at most 1 (:math:`1/2\sigma_1^2`-zCDP); an answered one costs `GNMax`'s answer besides. That a question
    was not answered is released.

    References
    ----------
    Papernot et al., "Scalable private learning with PATE" (ICLR 2018), the aggregator of that name.

    Examples
    --------
    >>> aggregator = ConfidentGNMax(threshold=200, check_stddev=150, stddev=40)
    >>> round(aggregator.loss(questions=640, answers=286).epsilon(1e-5), 2)
    2.54
    """

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
        labels = np.full(len(votes), UNANSWERED, np.int64)
        rows = self._passing(votes.max(axis=1, initial=0), answers, source)
        labels[rows] = noisy_winners(votes[rows], self.noise, source)
        return labels, len(rows)
