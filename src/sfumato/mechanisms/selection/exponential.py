"""The exponential mechanism, sampled exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.selection.selection import Selection, Steps, steps_of_log_odds
from sfumato.numerics.certified.exponentials import powers
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.choice import choose
from sfumato.privacy.leaves import exponential as leaf
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Exponential"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Selection):
    r"""One candidate, with probability proportional to ``exp(score / scale)``.

    Parameters
    ----------
    sensitivity, scale, candidates, monotone, grid, neighboring, integral
        As in `Selection`.

    Notes
    -----
    Guarantee: ``2 s / scale``-DP, or ``s / scale`` if monotone, with the sensitivity s in steps, rounding
    counted, under ``neighboring``; and more: the loss is of bounded range, which composes better than other
    pure DP (see `sfumato.privacy.Exponential`). It is report-noisy-max with Gumbel noise.

    *Utility.* Let the best score be g steps above all those of a set of m candidates. They weigh at most
    :math:`m e^{-g/b}` times the best, so one of them is chosen with probability at most :math:`m
    e^{-g/b}/(1 + m e^{-g/b})`, attained where all other candidates are in the set.

    References
    ----------
    McSherry, Talwar, "Mechanism design via differential privacy" (FOCS 2007); Durfee, Rogers, "Practical
    differentially private top-k selection with pay-what-you-get composition" (NeurIPS 2019), bounded range.

    Examples
    --------
    >>> mechanism = Exponential.calibrated(sensitivity=1, epsilon=0.5, candidates=("red", "green", "blue"))
    >>> mechanism.scale, mechanism.release([40, 90, 10], rng=1).value
    (4, 'green')
    >>> mechanism.utility_bound(0.05)
    14.0
    """

    def probabilities(self, scores: Any) -> NDArray[np.float64]:
        """Return the probability of each candidate: private, for tests and for the data's owner.

        Parameters
        ----------
        scores : sequence or array of shape (n,)

        Returns
        -------
        float64 array of shape (n,)
            Right to 1e-12 of each value, or to 1e-70.
        """
        steps = self._steps(scores)
        weights = powers(self._rate).floats(steps.max() - steps)
        return np.asarray(weights / weights.sum())

    def _price(self, scale: Fraction) -> PrivacyLoss:
        return leaf.Exponential(self.range / scale, neighboring=self.neighboring)  # type: ignore[arg-type]

    def _draw(self, steps: Steps, size: int, source: RandomSource) -> Steps:
        return choose(-steps, self._rate, size=size, rng=source)

    def _shortfall(self, beta: float, candidates: int, scale: Fraction) -> int:
        return steps_of_log_odds(scale, (candidates - 1) * (1 - beta) / beta)
