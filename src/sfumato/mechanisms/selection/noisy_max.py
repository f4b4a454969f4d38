"""Report-noisy-max: adds noise to every score and releases only the index of the largest."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from sfumato import _check
from sfumato.mechanisms.selection.permute_and_flip import (
    noisy_max_loss,
    permute_and_flip,
    permute_and_flip_shortfall,
)
from sfumato.mechanisms.selection.selection import Selection, Steps, random_true_index, steps_of_log_odds
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.choice import choose
from sfumato.numerics.sampling.integer_noise import discrete_laplace
from sfumato.privacy.leaves.noisy_max import MaxNoise
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["NoisyMax", "laplace_shortfall", "random_argmax"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMax(Selection):
    r"""The candidate whose score is largest after independent noise; no score is released.

    Parameters
    ----------
    sensitivity, scale, candidates, monotone, grid, neighboring, integral
        As in `Selection`; ``scale`` is that of the noise.
    noise : {"laplace", "exponential", "gumbel"}
        Exponential noise is permute-and-flip and the smallest in error, Gumbel noise is the exponential
        mechanism and composes best; Laplace noise is the textbook's. `GaussianNoisyMax` is apart.

    Notes
    -----
    Guarantee: ``2 s / scale``-DP, or ``s / scale`` if monotone, with the sensitivity s in steps, rounding
    counted, under ``neighboring``; for Gumbel noise of bounded range besides
    (`sfumato.privacy.ReportNoisyMax`).

    *Exponential and Gumbel noise* are continuous, and no real number is drawn for them: the winner is drawn
    from its exact distribution, by `PermuteAndFlip` and by `Exponential`.

    *Laplace noise* is the discrete distribution on whole steps, and of several that are largest a uniform one
    wins: the first in a random order that is independent of the data. Given that order and all noise but that
    of candidate i, it wins if its noise is at least a whole number r, such that it exceeds those before it
    and reaches those behind it. On a neighbor it wins from a whole number of at most :math:`r + 2s` on, or of
    at most :math:`r + s` if its score and the others' move in one direction. The distribution has :math:`P(Z
    \ge r + k) \ge e^{-k/b} P(Z \ge r)` for all whole r and :math:`k \ge 0`, since :math:`P(Z = r + 1) \ge
    e^{-1/b} P(Z = r)`. Averaging over the order and the other noise ends the proof.

    *Utility* with Laplace noise: one of m candidates that are g or more steps below the best wins with
    probability at most :math:`m P(Z' - Z \ge g)`, and with :math:`q = e^{-1/b}` summing the convolution of
    the two distributions gives :math:`P(Z' - Z \ge g) = q^g ((1-q)(g+1) + q + 2q^2/(1+q))/(1+q)^2`.

    References
    ----------
    Dwork, Roth (2014), "The algorithmic foundations of differential privacy", report noisy max.

    Examples
    --------
    >>> mechanism = NoisyMax.calibrated(sensitivity=1, epsilon=0.5, noise="laplace")
    >>> mechanism.release([40, 90, 10], rng=1).value, mechanism.utility_bound(0.05, candidates=3)
    (1, 16.0)
    """

    noise: Literal["laplace", "exponential", "gumbel"] = "laplace"

    def _check_own(self) -> None:
        if self.noise not in ("laplace", "exponential", "gumbel"):
            remedy = "take GaussianNoisyMax for Gaussian noise"
            _check.refuse("noise", "be 'laplace', 'exponential' or 'gumbel'", self.noise, remedy)

    def _price(self, scale: Fraction) -> PrivacyLoss:
        return noisy_max_loss(self, scale, MaxNoise(self.noise))

    def _draw(self, steps: Steps, size: int, source: RandomSource) -> Steps:
        if self.noise == "gumbel":
            return choose(-steps, self._rate, size=size, rng=source)
        if self.noise == "exponential":
            return permute_and_flip(steps, self._rate, size, source)
        return random_argmax(steps + discrete_laplace(1 / self._rate, (size, steps.size), source), source)

    def _shortfall(self, beta: float, candidates: int, scale: Fraction) -> int:
        if self.noise == "gumbel":
            return steps_of_log_odds(scale, (candidates - 1) * (1 - beta) / beta)
        if self.noise == "exponential":
            return permute_and_flip_shortfall(beta, candidates, scale)
        return laplace_shortfall((candidates - 1) / beta, scale)


def random_argmax(noisy: Steps, source: RandomSource) -> Steps:
    """Return the index of the largest in each row, a uniform one of several."""
    return random_true_index(noisy == noisy.max(axis=1, keepdims=True), source)


def laplace_shortfall(odds: float, scale: Fraction) -> int:
    """Return a gap, less one, that two scores' noises differ by with at most one over the odds."""
    rate = float(1 / scale)
    q, gap = math.exp(-rate), -math.expm1(-rate)

    def chance(g: int) -> float:
        tail = math.exp(-float(g / scale)) * (gap * (g + 1) + q + 2 * q * q / (1 + q)) / (1 + q) ** 2
        return odds * tail * (1 + 1e-12)

    low, high = 0, 1
    while chance(high) > 1:
        low, high = high, 2 * high
    return low + bisect_left(range(low + 1, high), x=True, key=lambda g: chance(g) <= 1)
