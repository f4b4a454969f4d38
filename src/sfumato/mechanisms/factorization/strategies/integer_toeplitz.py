"""Toeplitz strategies in integers."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.grid import LIMIT
from sfumato.mechanisms.factorization.strategies.integer_strategy import (
    FLOATS,
    Array,
    Integers,
    IntegerStrategy,
    IntegerStrategyStream,
)
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.power_series import (
    exact_product,
    inverse,
    is_decreasing,
    product,
    worst_participation,
)

__all__ = ["IntegerToeplitz"]

_LARGEST = 1 << 42  # of an entry in whole numbers: `exact_product` is exact up to here


@final
class IntegerToeplitz(IntegerStrategy):
    """Coefficients rounded to multiples; a step's measurement looks back over earlier inputs.

    Parameters
    ----------
    coefficients : array
        From 1 on.
    steps, bits : int

    Raises
    ------
    ParameterError
        If coefficients do not fall, or the entries are too large to be multiplied exactly.
    """

    def __init__(self, coefficients: Array, steps: int, bits: int) -> None:
        c = np.rint(np.ldexp(coefficients, bits)).astype(np.int64)
        if not is_decreasing(c):
            rule = "have non-negative coefficients that decrease"
            remedy = "pass coefficients of which none is negative or exceeds the one before"
            _check.refuse_state("strategy", rule, "some rise or are negative", remedy)
        if c.max(initial=0) > _LARGEST:
            remedy = "pass a finer grid, or values in other units"
            _check.refuse("bits", "keep the strategy's entries within 2**42", bits, remedy)
        self.steps, self.bits = steps, bits
        self.weights = np.trim_zeros(c, "b")
        self.limit = LIMIT // int(c.sum())
        # Prefix sums are (1, 1, ...) / c of the measurements.
        inverted = inverse(np.ldexp(self.weights.astype(np.float64), -bits), self.steps)
        self.decoder = product(np.ones(self.steps), inverted, self.steps)
        self.variances = np.cumsum(np.square(self.decoder))
        self.magnitudes = np.cumsum(np.abs(self.decoder))
        self.draws = np.arange(1.0, self.steps + 1)
        self.floats = FLOATS * float(self.magnitudes[-1]) + self._off(inverted)

    def _off(self, inverted: Array) -> float:
        """Return by how much of the greatest measurement answers are off, for want of an exact inverse."""
        c = np.ldexp(self.weights.astype(np.float64), -self.bits)
        check = product(self.decoder, c, self.steps)
        # The check itself errs in the L2 norm, see `exact_product`, and so by the root of its terms in all.
        error = 2.0**-43 * float(np.linalg.norm(self.decoder) * np.linalg.norm(c)) * self.steps**0.5
        # Inputs are at most so many times the greatest measurement without its noise.
        return float(2 * np.abs(inverted).sum() * (np.abs(check - 1).sum() + error))

    def squared_sensitivity(self, participation: Participation) -> int:
        """See the notes of `ToeplitzStrategy`, whose argument holds for the rounded coefficients."""
        column = worst_participation(self.weights, participation, self.steps)
        return sum(entry * entry for entry in column.tolist())

    def measure(self, values: Integers) -> Integers:
        """Return the product with the matrix."""
        return exact_product(self.weights, values)

    def estimate(self, measured: Integers, steps: int) -> Array:
        """Return the product with the decoder."""
        return product(self.decoder, np.ldexp(measured.astype(np.float64), -self.bits), steps)

    def stream(self) -> IntegerStrategyStream:
        """Return the same, step by step; inputs and measurements so far are retained."""
        return _ToeplitzStream(self)


class _ToeplitzStream(IntegerStrategyStream):
    def __init__(self, strategy: IntegerToeplitz) -> None:
        self._integers = strategy
        self._backward = strategy.weights[::-1].copy()
        self._decoder = strategy.decoder[::-1].copy()
        self._values: Any = None
        self._measured: Any = None
        self._time = 0

    def measure(self, value: Integers) -> Integers:
        if self._values is None:
            self._values = np.zeros((self._integers.steps, *value.shape), dtype=np.int64)
            self._measured = np.zeros((self._integers.steps, *value.shape))
        self._values[self._time] = value
        self._time += 1
        reach = min(self._time, len(self._backward))
        past = self._values[self._time - reach : self._time]
        return np.asarray(np.tensordot(self._backward[-reach:], past, 1), dtype=np.int64)[np.newaxis]

    def estimate(self, measured: Integers) -> Array:
        self._measured[self._time - 1] = np.ldexp(measured[0].astype(np.float64), -self._integers.bits)
        past = self._measured[: self._time]
        return np.asarray(np.tensordot(self._decoder[-self._time :], past, 1))
