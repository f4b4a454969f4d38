"""The interface of an upper or lower bound on delta as a function of epsilon."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Final

from sfumato.privacy.accountant.composed_losses import ComposedLosses

__all__ = ["DeltaBound"]

_STEPS: Final = 60
_CLOSE: Final = 1e-9
"""Relative width at which a root is found well enough."""


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
        self.work, self._upper, self._scale = work, upper, scale

    @property
    def cost(self) -> float:
        """Elementary steps that reading the bound takes."""
        return float(sum(distribution.loss.size for distribution, _ in self.work.distributions))

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
