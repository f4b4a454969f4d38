"""What the aggregators with a noisy check share: its parameters, its noise and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.aggregator import Aggregator, as_stddev, check_noise, vote_noise
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["NoisyCheckAggregator"]


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
