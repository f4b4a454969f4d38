"""Discrete Gaussian noise on the integers, priced as it is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.privacy._outward import ceiling
from sfumato.privacy.leaf import Leaf
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.views import ZCDPView

__all__ = ["DiscreteGaussian"]


@final
@dataclass(frozen=True, slots=True, repr=False)
class DiscreteGaussian(Leaf):
    """Discrete Gaussian noise on an integer that moves by at most ``sensitivity``.

    ``DiscreteGaussian(stddev, s) * l0`` prices a vector of which at most ``l0`` entries move, each by at most
    ``s``.

    Parameters
    ----------
    stddev : int, float or Fraction
        The noise has mass proportional to ``exp(-x**2 / (2 * stddev**2))``; 0 is no noise.
    sensitivity : int
        At least 1.
    neighboring : Neighboring
        The relation that the sensitivity is about.
    """

    stddev: Fraction
    sensitivity: int = 1
    neighboring: Neighboring = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_exact("stddev", self.stddev)
        remedy = "a value that no unit can move needs neither noise nor a loss"
        self._set("sensitivity", _check.integer("sensitivity", self.sensitivity, minimum=1, remedy=remedy))
        self._set_relation(self.neighboring)

    def zcdp(self) -> ZCDPView:
        """Return the exact zCDP parameter."""
        return ZCDPView(ceiling((self.sensitivity / self.stddev) ** 2 / 2) if self.stddev else math.inf, 0.0)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``rho`` times the order."""
        return np.nextafter(self.zcdp().rho * orders, np.inf)
