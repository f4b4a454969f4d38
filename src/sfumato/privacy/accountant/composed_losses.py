"""The input of a numerical composition: loss distributions with their counts, and a Gaussian part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.pairs.discrete_loss import DiscreteLoss

__all__ = ["ComposedLosses", "added"]

_Array = NDArray[np.float64]


class ComposedLosses(NamedTuple):
    """What is inverted: distributions of losses with their counts, and the variance of a Gaussian part."""

    distributions: Sequence[tuple[DiscreteLoss, _Array]]
    variance: float

    def log_moments(self, tilts: _Array) -> _Array:
        """Return the log of the moment generating function at real points, up to round-off."""
        total = 0.5 * self.variance * (tilts * tilts + tilts)
        for distribution, count in self.distributions:
            total = total + added(count, distribution.log_moments(tilts))
        return total

    @property
    def infinite(self) -> float:
        """Probability of an infinite loss, rounded up by no more than a few roundings."""
        masses = [
            (float(mass), float(times))
            for distribution, count in self.distributions
            if np.any(distribution.infinite)
            for mass, times in np.broadcast(np.ravel(distribution.infinite), np.ravel(count))
            if mass > 0
        ]
        if len(masses) == 1 and masses[0][1] == 1:
            return masses[0][0]
        if any(mass >= 1 for mass, _ in masses):
            return 1.0
        return -math.expm1(math.fsum(count * math.log1p(-mass) for mass, count in masses))


def added(counts: _Array, values: NDArray[Any]) -> NDArray[Any]:
    """Add up values of distributions that are side by side, each as often as it counts."""
    return np.asarray(np.atleast_1d(counts) @ np.atleast_2d(values))
