"""The input of a numerical composition, and the interface of a bound on its delta at any epsilon."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.pairs.discrete_loss import DiscreteLoss

__all__ = ["ComposedLosses", "DeltaBound", "added"]

_Array = NDArray[np.float64]

_STEPS: Final = 60
_CLOSE: Final = 1e-9
"""Relative width at which a root is found well enough."""


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
    def losses(self) -> int:
        """Losses of all distributions together."""
        return sum(distribution.loss.size for distribution, _ in self.distributions)

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


class DeltaBound(ABC):
    """A bound on ``g(x)``, the divergence over the finite losses; it falls as x rises.

    Parameters
    ----------
    work : Work
        What is composed.
    upper : bool
        On which side of the truth the bound is.
    scale : float
        A change of x that matters.
    """

    def __init__(self, work: ComposedLosses, *, upper: bool, scale: float) -> None:
        self._upper, self._scale, self.infinite = upper, scale, work.infinite
        self._losses = float(work.losses)

    @property
    def cost(self) -> float:
        """Elementary steps that reading the bound takes."""
        return self._losses

    @property
    def cut_short(self) -> bool:
        """Whether more steps than are allowed would prove more."""
        return False

    @abstractmethod
    def log_bound(self, x: float) -> tuple[float, float]:
        """Return the wanted bound on the log of ``g(x)`` (minus infinity for none below), and its slope."""

    @abstractmethod
    def log_chernoff(self, x: float) -> float:
        """Return a quick upper bound on the log of ``g(x)``."""

    @abstractmethod
    def chernoff_epsilon(self, log_delta: float) -> float:
        """Return quickly an x at which ``g`` is at most ``exp(log_delta)``."""

    def solve(self, log_delta: float) -> float:
        """Return an x at which the bound is certified: at most ``log_delta`` above, or at least it below.

        Minus infinity where no such lower bound is found, and no upper one below 0 is looked for. Newton's
        method, confined to a bracket.
        """
        high = max(0.0, self.chernoff_epsilon(log_delta))
        low, step = high, 500 * self._scale
        for _ in range(_STEPS):
            low, step = max(0.0, low - step), 2 * step
            value, slope = self.log_bound(low)
            if value >= log_delta:
                break
            if low == 0:
                return low if self._upper else -math.inf
            high = low if self._upper else high
        else:
            return high if self._upper else -math.inf
        x = low
        for _ in range(_STEPS):
            width = _CLOSE * max(high, self._scale)
            if high - low <= width:
                break
            move = (log_delta - value) / slope if slope < 0 else math.nan
            aim = x + move + math.copysign(0.25 * width, move)
            x = aim if low < aim < high else 0.5 * (low + high)
            value, slope = self.log_bound(x)
            if value > log_delta or (value == log_delta and not self._upper):
                low = x
            else:
                high = x
        return high if self._upper else low
