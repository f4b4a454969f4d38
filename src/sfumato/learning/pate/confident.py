"""Confident GNMax: only questions on which the teachers agree are answered."""

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
from sfumato.learning.pate.gnmax import noisy_winners
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.rational import Number
from sfumato.numerics.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["ConfidentGNMax", "first_passing"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentGNMax(Aggregator):
    r"""The class with most votes after noise, where a noisy check finds that most votes are many.

    Parameters
    ----------
    threshold : int
        A question is answered if its most votes, after noise, are at least this many.
    check_stddev : int, float or Fraction
        Of the noise of the check, in votes; usually several times the other.
    stddev : int, float or Fraction
        Of the noise of an answer, in votes.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: every question costs ``DiscreteGaussian(check_stddev)``, as one teacher moves the most votes by
    at most 1 (:math:`1/2\sigma_1^2`-zCDP); an answered one costs `GNMax`'s answer besides. That a question
    was not answered is told.

    References
    ----------
    Papernot et al., "Scalable private learning with PATE" (ICLR 2018), the aggregator of that name.

    Examples
    --------
    >>> aggregator = ConfidentGNMax(threshold=200, check_stddev=150, stddev=40)
    >>> round(aggregator.loss(questions=640, answers=286).epsilon(1e-5), 2)
    2.54
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
        """The mechanism on the most votes of one question."""
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
        labels = np.full(len(votes), UNANSWERED, np.int64)
        rows = first_passing(votes.max(axis=1, initial=0), self.check, self.threshold, answers, source)
        labels[rows] = noisy_winners(votes[rows], self.noise, source)
        return labels, len(rows)


def first_passing(
    most: NDArray[np.int64], check: Gaussian, threshold: int, answers: int, source: RandomSource
) -> NDArray[np.intp]:
    """Return the first ``answers`` rows that pass a noisy threshold."""
    return np.flatnonzero(most + np.asarray(check.law.sample(most.shape, source)) >= threshold)[:answers]
