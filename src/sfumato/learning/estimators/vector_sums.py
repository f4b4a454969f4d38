"""Sums of bounded vectors with exact noise: all that these models learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.rational import sqrt_up
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.loss import PrivacyLoss, compose

__all__ = ["SumSpecification", "VectorSum", "planned", "products"]

_Array = NDArray[np.float64]

_ONE: Final = 1 << 20
_CHUNK: Final = 1 << 21
_MAX_ENTRIES: Final = 1 << 20
"""The squares of so many entries, of up to 2^42 each, add up within 64 bits."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumSpecification:
    """One kind of sum that a model will ask for.

    Parameters
    ----------
    norm : float
        The most that one row adds, in the L2 norm.
    entries : int
        How many entries one row has.
    times : int
        How many such sums are released.
    weight : float
        The noise relative to the other parts', each in its own norm: large is cheap.
    """

    norm: float
    entries: int
    times: int = 1
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.entries > _MAX_ENTRIES:
            rule = f"need at most {_MAX_ENTRIES} numbers a row"
            _check.refuse("X", rule, self.entries, "take fewer features")

    @property
    def max_squared_norm(self) -> int:
        """The most that a rounded row's entries, in steps, squared, add up to."""
        return (_ONE + math.isqrt(self.entries) // 2 + 2) ** 2

    def noise(self, multiplier: float) -> int:
        """Return the standard deviation in steps."""
        return max(1, math.ceil(multiplier * self.weight * math.sqrt(self.max_squared_norm)))

    def loss(self, multiplier: float) -> PrivacyLoss:
        """Return the loss of all sums of this kind."""
        return DiscreteGaussianVector(self.noise(multiplier), self.max_squared_norm) * self.times


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSum:
    """The sum of vectors of bounded L2 norm, with discrete Gaussian noise on a grid.

    Parameters
    ----------
    part : SumSpecification
    stddev : int
        Of the noise, in steps of the grid, which is a 2^20th of the norm.

    Notes
    -----
    Guarantee: add/remove of one row, ``DiscreteGaussianVector(stddev, part.most)``. A row is rounded to whole
    steps, and left out if the sum of their squares, an exact integer, is then above ``part.most``: the bound
    holds whatever the caller's floating-point arithmetic did. Sums of integers are exact.
    """

    part: SumSpecification
    stddev: int

    def release(self, rows: _Array, source: RandomSource, groups: Any = None, count: int = 1) -> _Array:
        """Add up rows, all together or by group.

        Parameters
        ----------
        rows : float64 array of shape (n, entries)
            NaN counts as 0.
        source : RandomSource
        groups : int64 array of shape (n,), optional
            The group of each row, from 0 to ``count - 1``.
        count : int

        Returns
        -------
        float64 array of shape (count, entries)
        """
        return self.noisy(self.total(rows, groups, count), source)

    def total(self, rows: _Array, groups: Any = None, count: int = 1) -> NDArray[np.int64]:
        """Return the exact sums in steps, to be added up and made `noisy`: private."""
        total = np.zeros((count, self.part.entries), np.int64)
        size = max(1, _CHUNK // self.part.entries)
        for start in range(0, len(rows), size):
            steps = self._steps(rows[start : start + size])
            if groups is None:
                total[0] += steps.sum(axis=0)
            else:
                np.add.at(total, groups[start : start + size], steps)
        return total

    def noisy(self, total: NDArray[np.int64], source: RandomSource) -> _Array:
        """Release exact sums in steps."""
        noise = self._mechanism.distribution.sample(total.shape, source)
        return np.asarray((total + noise) * (self.part.norm / _ONE))

    def deviation(self) -> float:
        """Return the standard deviation of the noise of each entry, in the rows' unit."""
        return self.stddev * self.part.norm / _ONE

    @property
    def _mechanism(self) -> Gaussian:
        return Gaussian(l2=sqrt_up(Fraction(self.part.max_squared_norm)), stddev=self.stddev, integral=True)

    def _steps(self, rows: _Array) -> NDArray[np.int64]:
        limit = float(2 * _ONE)
        scaled = np.nan_to_num(rows * (_ONE / self.part.norm), nan=0.0, posinf=limit, neginf=-limit)
        steps = np.rint(np.clip(scaled, -limit, limit)).astype(np.int64)
        steps[(steps * steps).sum(axis=1) > self.part.max_squared_norm] = 0
        return steps


def products(rows: _Array, vectors: _Array) -> _Array:
    """Return ``rows @ vectors.T``, of which each row is a function of that row alone.

    BLAS rounds a row's products otherwise where there are more rows, so that one row would move others.
    """
    return np.asarray(np.einsum("ij,kj->ik", rows, vectors))


def planned(
    parts: Sequence[SumSpecification], *, epsilon: float, delta: float
) -> tuple[list[VectorSum], PrivacyLoss]:
    """Return sums with the smallest noise at which all of them together meet (epsilon, delta).

    Parameters
    ----------
    parts : sequence of SumSpecification
    epsilon, delta : float
        Delta must be positive.

    Returns
    -------
    tuple
        The sums, and the loss of all releases together.

    Notes
    -----
    Guarantee: that of the loss, whose epsilon at delta was seen to be at most ``epsilon``. On so fine a grid
    the composition is that of Gaussian DP: the squares of the parts' mu add (`DiscreteGaussianVector`).
    """
    epsilon = _check.positive("epsilon", epsilon)
    delta = _check.unit_interval("delta", delta, "use 1e-6, say: well below one over the number of rows")
    together = math.sqrt(sum(part.times / part.weight**2 for part in parts))
    multiplier = analytic_gaussian_stddev(sensitivity=together, epsilon=epsilon, delta=delta)
    slack = 1e-7
    while True:
        loss = compose([part.loss(multiplier) for part in parts])
        if loss.quick_epsilon(delta) <= epsilon:
            return [VectorSum(part=part, stddev=part.noise(multiplier)) for part in parts], loss
        multiplier *= 1 + slack
        slack *= 2
