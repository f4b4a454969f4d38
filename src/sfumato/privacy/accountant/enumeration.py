"""Exact composition of few losses by enumerating their sums, merged where there are too many."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sfumato.privacy._outward import UNIT
from sfumato.privacy.accountant.composed_losses import ComposedLosses, DeltaBound
from sfumato.privacy.accountant.loss_distribution import LossDistribution, Sums

__all__ = ["Enumeration", "condensed", "enumerated"]

_MAXIMUM: Final = 1 << 18
"""Sums in one step where the distributions are exact; some ten milliseconds."""
_FEW: Final = 1 << 14
"""Sums in all where the distributions are a choice of cuts, for which the line does as well."""
_STEPS: Final = 64
"""Steps in which distributions are added up that lose detail."""


def enumerated(work: ComposedLosses, *, upper: bool, exact: bool) -> Enumeration | None:
    """Return a bound from all sums of losses, or None where they are too many.

    Parameters
    ----------
    work : Work
    upper : bool
        Whether the distributions of ``work`` are from above, and a bound from above is wanted.
    exact : bool
        Whether the distributions are all there is to know of their pairs.
    """
    combinations = 0.0
    for distribution, counts in work.distributions:
        combinations += float(np.sum(np.log1p(counts * (distribution.loss.shape[-1] - 1.0))))
        if combinations > math.log(_MAXIMUM if exact else _FEW) + 1e-9:
            return None
    return _summed(work, Sums(1.0 if upper else -1.0, _MAXIMUM))


def condensed(work: ComposedLosses, tilt: float, *, upper: bool) -> Enumeration | None:
    """Return a bound from sums of losses that lose detail on the way, or None where they are too many."""
    steps = sum(float(np.sum(1 + 2 * np.log2(counts))) for _, counts in work.distributions)
    return _summed(work, Sums(1.0 if upper else -1.0, _MAXIMUM, tilt)) if steps <= _STEPS else None


def _summed(work: ComposedLosses, sums: Sums) -> Enumeration | None:
    if work.variance or not work.distributions:
        return None
    total = LossDistribution(np.zeros(1), np.zeros(1))
    for distribution, counts in work.distributions:
        rows = np.atleast_2d(distribution.loss), np.atleast_2d(distribution.log_mass), np.atleast_1d(counts)
        for loss, log_mass, count in zip(*rows, strict=True):
            selected = log_mass > -np.inf
            if not selected.any():
                return None
            power = sums.times(sums.distribution(loss[selected], log_mass[selected]), int(count))
            found = None if power is None else sums.plus(total, power)
            if found is None:
                return None
            total = found
    return Enumeration(work, total, upper=sums.side > 0)


class Enumeration(DeltaBound):
    """The divergence of one finite distribution, summed over its losses.

    Parameters
    ----------
    work : Work
        What was composed.
    distribution : Distribution
        Of the composed loss.
    upper : bool
    """

    def __init__(self, work: ComposedLosses, distribution: LossDistribution, *, upper: bool) -> None:
        super().__init__(work, upper=upper, scale=1e-12 * max(1e-290, float(np.abs(distribution.loss).max())))
        self._distribution = distribution

    def log_bound(self, x: float) -> tuple[float, float]:
        r"""Return the log of :math:`\sum_{l > x} m_l (1 - e^{x - l})`, moved to the safe side."""
        first = int(np.searchsorted(self._distribution.loss, x, "right"))
        loss, log_mass = self._distribution.loss[first:], self._distribution.log_mass[first:]
        if not len(loss):
            return -math.inf, math.nan
        top = float(log_mass.max())
        weights = np.exp(log_mass - top)
        # The difference of two floats has a rounding relative to itself.
        value = float(-weights @ np.expm1(x - loss))
        if value <= 0:
            return -math.inf, math.nan
        error = UNIT * (len(loss) + 1024 + 4 * abs(top) + 4 * abs(math.log(value)))
        slope = float(-weights @ np.exp(x - loss)) / value
        return top + math.log(value) + (error if self._upper else -error), slope

    def log_chernoff(self, x: float) -> float:
        """Return 0: no divergence is greater."""
        del x
        return 0.0

    def chernoff_epsilon(self, log_delta: float) -> float:
        """Return the largest loss."""
        del log_delta
        return float(self._distribution.loss[-1])
