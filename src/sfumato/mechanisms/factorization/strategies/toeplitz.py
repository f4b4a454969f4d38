"""The base class of Toeplitz strategies: an input's weight depends on its age only."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.integer_toeplitz import IntegerToeplitz
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.mechanisms.factorization.strategies.power_series import (
    inverse,
    is_decreasing,
    prefix_weights,
    product,
    toeplitz_matrix,
    worst_participation,
)
from sfumato.mechanisms.factorization.strategies.strategy import (
    Array,
    Draw,
    NoiseStream,
    Strategy,
    check_unfinished,
)
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import mul_down, mul_up, sqrt_down, sqrt_up

__all__ = ["ToeplitzStrategy"]

_UNIT = 2.0**-53
_DENSE = 2048


class ToeplitzStrategy(Strategy):
    r"""A strategy with :math:`C_{t,i} = c_{t-i}`, where :math:`c_0 = 1`.

    Notes
    -----
    *Sensitivity* where no :math:`c` is negative and none exceeds the one before. For steps :math:`i \le j`,
    :math:`X_{ij} = (C^T C)_{ij} = \sum_{m < n - j} c_m c_{m + j - i}` falls in :math:`j` at a fixed lag, and
    in the lag at a fixed :math:`j`. The l-th step of any pattern is at least :math:`(l-1)b`, and its lags to
    the others are at least those of :math:`\{0, b, 2b, \dots\}`; so that pattern has the greatest
    :math:`\sum X_{ij}`, which is the squared norm of the sum of its columns (proved for square roots by
    Kalinin and Lampert 2024, Theorem 2). Other strategies take
    `sfumato.privacy.participation_sensitivity` on the dense matrix.

    References
    ----------
    Kalinin, Lampert (2024), "Banded square root matrix factorization for differentially private model
    training".
    """

    __slots__ = ()

    @abstractmethod
    def coefficients(self) -> Array:
        """Return c, from 1 on; trailing zeros are left out."""

    @property
    def entries(self) -> int:
        """One for each step."""
        return self.steps

    def matrix(self) -> Array:
        """Return C, shape (steps, steps)."""
        return toeplitz_matrix(self.coefficients(), self.steps)

    def sensitivity(self, participation: Participation = ONCE) -> Interval:
        """Bound how far one unit moves C x; see the class's notes."""
        c = self.coefficients()
        if not is_decreasing(c):
            if self.steps > _DENSE:
                remedy = "pass coefficients of which none is negative or exceeds the one before"
                _check.refuse("steps", f"be at most {_DENSE} for such coefficients", self.steps, remedy)
            return participation.sensitivity(self.matrix())
        column = worst_participation(c, participation, self.steps)
        squares = float(np.square(column).sum())
        # Sums of non-negative floats err by one rounding for each addition, and squares by twice that.
        slack = 2 * _UNIT * (2 * participation.max_steps(self.steps) + self.steps + 8)
        return Interval(sqrt_down(mul_down(squares, 1 - slack)), sqrt_up(mul_up(squares, 1 + slack)))

    def variances(self, workload: ArrayLike | None = None) -> Array:
        """Return the variance of each answer's noise: partial sums of the squares of B's weights."""
        return np.cumsum(np.square(self.decoder(workload)))

    def decoder(self, workload: ArrayLike | None = None) -> Array:
        """Return the first column of B, which is Toeplitz too, shape (steps,)."""
        weights = prefix_weights(workload, self.steps)
        return product(weights, inverse(self.coefficients(), self.steps), self.steps)

    def in_integers(self, bits: int) -> IntegerToeplitz:
        """Return the strategy with its coefficients rounded to multiples of ``2**-bits``."""
        return IntegerToeplitz(self.coefficients(), self.steps, bits)

    def noise(self) -> NoiseStream:
        """Return a fresh stream of ``C^-1 z``: memory for one array fewer than there are coefficients."""
        return _Recurrence(self.coefficients(), self.steps)


class _Recurrence(NoiseStream):
    """Solves C w = z forward: ``w[t] = z[t] - c[1] w[t-1] - ...``."""

    def __init__(self, coefficients: Array, steps: int) -> None:
        self._weights = coefficients[1:].tolist()
        self._past: deque[Array] = deque(maxlen=len(self._weights))
        self._steps = self._left = steps

    @property
    def memory(self) -> int:
        return len(self._weights)

    def send(self, draw: Draw) -> Array:
        check_unfinished(self._steps - self._left, self._steps)
        self._left -= 1
        noise = np.array(draw())
        # The newest comes first; weights beyond the first step meet nothing.
        for weight, past in zip(self._weights, self._past, strict=False):
            noise -= weight * past
        if self._weights:
            self._past.appendleft(noise.copy())
        return noise
