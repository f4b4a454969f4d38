"""Report-noisy-max with Gaussian noise, which costs as much as releasing the whole noisy vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from sfumato import _check
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.selection.noisy_max import random_argmax
from sfumato.mechanisms.selection.selection import (
    as_candidates,
    candidate_count,
    failure_probability,
    require_candidates,
    score_steps,
)
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["GaussianNoisyMax", "gaussian_shortfall"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoisyMax(Mechanism):
    r"""The candidate whose score is largest after Gaussian noise; no score is released.

    Parameters
    ----------
    mechanism : Gaussian
        The noise on the vector of scores, with the sensitivity of its entries and how many of them one unit
        moves, or with a bound on their L2 norm.
    candidates : sequence, optional
        What is chosen from; public. Unless given, the release is the chosen index.

    Notes
    -----
    Guarantee: that of ``mechanism``, of whose noisy vector the choice is a function (of several that are
    largest a uniform one is released). That not all of the vector is released earns nothing in this theorem:
    where one unit moves many scores, `NoisyMax` and `Exponential` cost less.

    *Utility.* The noise Z has :math:`E e^{tZ} \le e^{t^2\sigma^2/2}`: completing the square leaves a sum of
    :math:`e^{-(k - t\sigma^2)^2/(2\sigma^2)}`, which by Poisson's formula is greatest at :math:`t = 0`. So
    one of m candidates that are g or more steps below the best wins with probability at most :math:`m P(Z' -
    Z \ge g) \le m e^{-g^2/(4\sigma^2)}`.

    References
    ----------
    Dwork, Roth (2014), post-processing; Canonne, Kamath, Steinke (2020), the noise.

    Examples
    --------
    >>> noise = Gaussian.calibrated(sensitivity=1, l0=3, epsilon=0.5, delta=1e-6)
    >>> GaussianNoisyMax(mechanism=noise).release([40, 90, 10], rng=1).value
    1
    """

    mechanism: Gaussian
    candidates: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        remedy = "pass Gaussian(...), or take GaussianNoisyMax.calibrated"
        _check.instance("mechanism", self.mechanism, Gaussian, remedy)
        if self.candidates is not None:
            object.__setattr__(self, "candidates", as_candidates(self.candidates))
            require_candidates(len(self.candidates))

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, candidates: Sequence[Any] | None = None, **parameters: Any
    ) -> GaussianNoisyMax:
        """Return the mechanism with the smallest noise whose loss meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
        candidates : sequence, optional
        **parameters
            Those of `Gaussian.calibrated`.

        Returns
        -------
        GaussianNoisyMax
        """
        noise = Gaussian.calibrated(epsilon=epsilon, delta=delta, **parameters)
        return cls(mechanism=noise, candidates=candidates)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """That of the noisy vector."""
        return self.mechanism.privacy_loss

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected."""
        return self.mechanism.neighboring

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Choose.

        Parameters
        ----------
        value : sequence or array of shape (n,)
            One private score for each candidate, larger is better. NaN is the worst, infinities are clamped.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Its value is the chosen candidate, or its index.
        """
        source = random_source(rng)
        return self._release_as(Release, self.outputs(value, 1, source)[0], source)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw many choices at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        array or list of length size
            Candidates, or their indices.
        """
        size = _check.integer("size", size, minimum=1)
        noise, source = self.mechanism, random_source(rng)
        steps = score_steps(Lattice(noise.grid, noise.integral), value, self.candidates)
        require_candidates(len(steps))
        chosen = random_argmax(steps + noise.distribution.sample((size, steps.size), source), source).tolist()
        return chosen if self.candidates is None else [self.candidates[index] for index in chosen]

    def utility_bound(self, beta: float, *, candidates: int | None = None) -> float:
        """Return how far the chosen score may fall short of the best one.

        Parameters
        ----------
        beta : float
            From 1e-200 to below 1.
        candidates : int, optional
            How many there are, where the mechanism was not given them.

        Returns
        -------
        float
            With probability at least ``1 - beta`` the chosen score is within it of the best.
        """
        beta = failure_probability(beta)
        odds = (candidate_count(self.candidates, candidates) - 1) / beta
        grid, integral = self.mechanism.grid, self.mechanism.integral
        steps = gaussian_shortfall(odds, Fraction(self.mechanism.stddev) / grid.step)
        return fraction_up((steps + (0 if integral else 1)) * grid.step)


def gaussian_shortfall(odds: float, stddev: Fraction) -> int:
    """Return a gap, less one, that two scores' noises differ by with at most one over the odds."""
    if odds <= 1:
        return 0
    # The odds and their log are right to a few units of 2^-53, and so is the root.
    deviations = 2 * math.sqrt(math.log(odds) * (1 + 2.0**-50) + 2.0**-50) * (1 + 2.0**-50)
    return max(0, math.ceil(Fraction(deviations) * stddev) - 1)
