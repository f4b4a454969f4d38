"""Confident GNMax: only questions on which the teachers agree are answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.pate.aggregator import UNANSWERED
from sfumato.learning.pate.gnmax import noisy_winners
from sfumato.learning.pate.noisy_check import NoisyCheckAggregator
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["ConfidentGNMax"]


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
        self,
        votes: NDArray[np.int64],
        answers: int,
        source: RandomSource,
        probabilities: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.int64], int]:
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
