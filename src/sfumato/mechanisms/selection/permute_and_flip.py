"""Permute-and-flip, sampled exactly: report-noisy-max with exponential noise."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.selection.selection import Selection, Steps, random_true_index, steps_of_log_odds
from sfumato.numerics.certified.exponentials import powers
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.rounding import fraction_down
from sfumato.numerics.sampling.choice import flip
from sfumato.privacy.leaves.noisy_max import MaxNoise, ReportNoisyMax
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["PermuteAndFlip", "noisy_max_loss", "permute_and_flip", "permute_and_flip_shortfall"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(Selection):
    r"""One candidate, with less expected shortfall than the exponential mechanism at the same epsilon.

    Parameters
    ----------
    sensitivity, scale, candidates, monotone, grid, neighboring, integral
        As in `Selection`.

    Notes
    -----
    Guarantee: ``2 s / scale``-DP, or ``s / scale`` if monotone, with the sensitivity s in steps, rounding
    counted, under ``neighboring`` (see `sfumato.privacy.ReportNoisyMax` with exponential noise, of which this
    is the distribution). Its loss is not of bounded range: many releases cost more than as many of
    `Exponential`.

    *Sampling.* Candidates are gone through in random order, and one whose score is g steps below the best is
    taken with probability :math:`e^{-g/b}`, else the next. Flipping all coins first changes nothing, and the
    first head in a random order is a uniform one of the heads. The best candidate always shows heads.

    *Utility.* One of m candidates that are g or more steps below the best is released with probability
    :math:`E[B/(B + H)]`, B and :math:`H \ge 1` the heads among them and among the others. This grows with B,
    falls with H and is greatest at g exactly, where :math:`B` is binomial and :math:`H = 1`: with :math:`p =
    e^{-g/b}` and :math:`n = m + 1` it is :math:`1 - (1 - (1-p)^n)/(np)`. It is below :math:`mp/2`, as
    :math:`B/(B+1) \le B/2`, and by Jensen's inequality below the exponential mechanism's :math:`mp/(1+mp)`.

    References
    ----------
    McKenna, Sheldon, "Permute-and-flip: a new mechanism for differentially private selection" (NeurIPS 2020);
    Ding, Kifer, Sayed, Steinke, Wang, Xiao, Zhang, "The permute-and-flip mechanism is identical to
    report-noisy-max with exponential noise" (2021).

    Examples
    --------
    >>> mechanism = PermuteAndFlip.calibrated(sensitivity=1, epsilon=0.5, candidates=("red", "green", "blue"))
    >>> mechanism.release([40, 90, 10], rng=1).value, mechanism.utility_bound(0.05)
    ('green', 11.0)
    """

    def probabilities(self, scores: Any) -> NDArray[np.float64]:
        """Return the probability of each candidate: private, for tests and for the data's owner.

        Parameters
        ----------
        scores : sequence or array of shape (n,)

        Returns
        -------
        float64 array of shape (n,)
            Right to about 1e-13 for up to hundreds of candidates; the time grows with the square of n.

        Notes
        -----
        A candidate with chance p is released with probability ``p E[1 / (1 + B)]``, B the heads of the
        others, which is p times the integral of ``product(1 - p_j + p_j x)`` over x from 0 to 1: a polynomial
        of degree n - 1, for which Gauss and Legendre's rule with n // 2 + 1 nodes is exact.
        """
        steps = self._steps(scores)
        chances = powers(self._rate).floats(steps.max() - steps)
        nodes, rule = np.polynomial.legendre.leggauss(steps.size // 2 + 1)
        logs = np.log1p(chances[:, None] * ((nodes[None, :] + 1) / 2 - 1))
        return np.asarray(chances * (np.exp(logs.sum(axis=0)[None, :] - logs) * (rule / 2)).sum(axis=1))

    def _price(self, scale: Fraction) -> PrivacyLoss:
        return noisy_max_loss(self, scale, MaxNoise.EXPONENTIAL)

    def _draw(self, steps: Steps, size: int, source: RandomSource) -> Steps:
        return permute_and_flip(steps, self._rate, size, source)

    def _shortfall(self, beta: float, candidates: int, scale: Fraction) -> int:
        return permute_and_flip_shortfall(beta, candidates, scale)


def noisy_max_loss(selection: Selection, scale: Fraction, noise: MaxNoise) -> PrivacyLoss:
    """Return the loss of report-noisy-max with a scale in steps."""
    return ReportNoisyMax(
        fraction_down(scale / selection.shift),
        noise=noise,
        monotone=selection.monotone,
        neighboring=selection.neighboring,
    )


def permute_and_flip(steps: Steps, rate: Fraction, size: int, source: RandomSource) -> Steps:
    """Return the indices that permute-and-flip chooses in so many runs."""
    return random_true_index(flip(np.tile(steps.max() - steps, size), rate, source).reshape(size, -1), source)


def permute_and_flip_shortfall(beta: float, candidates: int, scale: Fraction) -> int:
    """Return by how many steps the choice falls short at most, but with probability ``beta``."""

    def chance(gap: int) -> float:
        p = math.exp(-float(gap / scale)) * (1 + 2.0**-48)
        if p >= 1:
            return 1.0
        stays = -math.expm1(candidates * math.log1p(-p)) / (candidates * p)
        return min((candidates - 1) * p / 2, 1 - stays + 1e-12)

    # The smallest gap that is too far falls with the chance; the exponential mechanism's is one.
    far = steps_of_log_odds(scale, (candidates - 1) * (1 - beta) / beta) + 1
    return 0 if candidates == 1 else bisect_left(range(1, far), x=True, key=lambda gap: chance(gap) <= beta)
