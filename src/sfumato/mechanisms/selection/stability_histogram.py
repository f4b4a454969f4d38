"""Stability histograms: noisy counts of keys from an unknown domain, above a threshold."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.calibration import PrivacyTarget
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.selection.key_counts import descending_order, positive_counts
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.mechanisms.selection.selection import failure_probability
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.thresholded import ThresholdedSelection

__all__ = ["StabilityHistogram"]

Noise: TypeAlias = Laplace | Gaussian

_USUAL = "use StabilityHistogram.calibrated"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityHistogram(Mechanism):
    r"""Noisy counts of the keys that occur, of those whose noisy count reaches a threshold.

    Parameters
    ----------
    noise : Laplace or Gaussian
        On each count, of sensitivity 1 on whole numbers; its ``l0`` is the most keys whose count one unit
        moves (under replace-one twice as many as a unit may have), its relation the mechanism's.
    threshold : int
        The smallest noisy count that is shown.
    probability : int, float or Fraction
        With which a noisy count of just the threshold is shown, by a coin for each key: a multiple of 2**-62,
        above 0 and at most 1. So all of delta is used: a whole threshold is up to one unit late.

    Notes
    -----
    Guarantee: ``ThresholdedSelection(noise, threshold, probability) * l0``: the noise's, but for the exact
    probability that a key of a single unit is shown (proof in `sfumato.privacy.ThresholdedSelection`).
    Condition: a count is that of distinct units. Keys without a unit are never shown, and the order of the
    keys shown follows from what is shown.

    References
    ----------
    Korolova, Kenthapadi, Mishra, Ntoulas (2009), "Releasing search queries and clicks privately"; Bun,
    Nissim, Stemmer (2016), "Simultaneous private learning of multiple concepts", stability-based histograms.

    Examples
    --------
    >>> mechanism = StabilityHistogram.calibrated(epsilon=1.0, delta=1e-6)
    >>> mechanism.threshold, round(float(mechanism.probability), 3)
    (14, 0.375)
    >>> sorted(mechanism.release({"red": 50, "green": 900, "blue": 3}, rng=1).value)
    ['green', 'red']
    """

    noise: Noise
    threshold: int
    probability: Number = 1

    def __post_init__(self) -> None:
        noise: object = self.noise
        if not isinstance(noise, Laplace | Gaussian) or (noise.sensitivity, noise.integral) != (1, True):
            _check.refuse("noise", "be Laplace or Gaussian on whole numbers that move by 1", noise, _USUAL)
        _check.integer("threshold", self.threshold, minimum=1, remedy=_USUAL)
        exact = _check.fraction("probability", self.probability, _USUAL)
        object.__setattr__(self, "probability", RandomizedThreshold(self.threshold, exact).probability)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        l0: int = 1,
        distribution: Literal["laplace", "gaussian"] = "laplace",
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> StabilityHistogram:
        """Return the mechanism with the lowest threshold for noise that meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            Delta must be positive: what keys there are is private.
        l0 : int
            The most keys whose count one unit moves.
        distribution : {"laplace", "gaussian"}
            Laplace noise is pure, and all of delta goes into the threshold. Gaussian noise is the smallest
            that meets half of delta; it is less where one unit moves many keys.
        neighboring : Neighboring

        Returns
        -------
        StabilityHistogram
        """
        if distribution not in ("laplace", "gaussian"):
            remedy = "pass 'gaussian' where a unit has many keys"
            _check.refuse("distribution", "be 'laplace' or 'gaussian'", distribution, remedy)
        request = PrivacyTarget.approximate(epsilon, delta, "use Laplace with a list of the keys")
        count = _check.integer("l0", l0, minimum=1)
        if distribution == "laplace":
            noise: Noise = Laplace.calibrated(
                epsilon=request.epsilon, sensitivity=1, l0=count, neighboring=neighboring
            )
        else:
            noise = Gaussian.calibrated(
                epsilon=request.epsilon,
                delta=request.delta / 2,
                sensitivity=1,
                l0=count,
                neighboring=neighboring,
            )
        start = 1 + noise.distribution.quantile_above(request.delta / (4 * count))
        found = RandomizedThreshold.lowest(lambda each: request.met_by(_loss(noise, each)), start)
        return cls(noise=noise, threshold=found.units, probability=found.probability)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return _loss(self.noise, self._randomized)

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected."""
        return self.noise.neighboring

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Count with noise, and show what reaches the threshold.

        Parameters
        ----------
        value : mapping of keys to ints
            How many distinct units have each key; private. Keys without a unit are as good as absent.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            A dict of keys to noisy counts, the largest first.

        Raises
        ------
        ParameterError
            If it is no mapping, or a count no int; never for a key or a count.
        """
        source = random_source(rng)
        return self._release_as(Release, self.outputs(value, 1, source)[0], source)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> list[dict[Hashable, int]]:
        """Draw many histograms at once; see `Mechanism.outputs`.

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
        list of dict
            Noisy counts by key, for each release.
        """
        size = _check.integer("size", size, minimum=1)
        keys, counts = positive_counts(value)
        source, distribution = random_source(rng), self.noise.distribution
        released = []
        for noisy in counts + np.asarray(distribution.sample((size, counts.size), source)):
            order = descending_order(noisy, source.words(counts.size))
            passed = self._randomized.select(counts, noisy, distribution, source)
            shown = order[passed[order]]
            released.append({keys[index]: int(noisy[index]) for index in shown.tolist()})
        return released

    def utility_bound(self, beta: float) -> int:
        """Return the count from which on a key is shown with probability at least ``1 - beta``.

        Parameters
        ----------
        beta : float
            From 1e-200 to below 1.

        Returns
        -------
        int
        """
        # A key of count c is hidden where the noise is at most threshold - 1 - c, and by the coin at most
        # threshold - c: by symmetry, their mirrors.
        beta, noise = failure_probability(beta), self.noise.distribution
        count = max(1, self.threshold - 1 + noise.quantile_above(beta))
        below, at = (Fraction(noise.upper_tail(count + more - self.threshold).upper) for more in (1, 0))
        heads = Fraction(self.probability)
        return count if heads * below + (1 - heads) * at <= beta else count + 1

    @property
    def _randomized(self) -> RandomizedThreshold:
        return RandomizedThreshold(self.threshold, Fraction(self.probability))


def _loss(noise: Noise, threshold: RandomizedThreshold) -> PrivacyLoss:
    ((one, count),) = noise.privacy_loss.terms
    return ThresholdedSelection(one, threshold.units, threshold.probability) * count
