"""Toeplitz strategies in integers."""

from __future__ import annotations

import math
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.grid import LIMIT
from sfumato.mechanisms.factorization.strategies.integer_strategy import (
    FLOATS,
    Array,
    Integers,
    IntegerStrategy,
    IntegerStrategyStream,
    in_units,
)
from sfumato.mechanisms.factorization.strategies.online_product import OnlineProduct
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.power_series import (
    inverse,
    is_decreasing,
    product,
    worst_participation,
)
from sfumato.numerics.blas_threads import one_thread

__all__ = ["IntegerToeplitz"]

_LARGEST: Final = 1 << 42  # of an entry in whole numbers: `OnlineProduct` is exact up to here
_TRANSFORMS: Final = 2.0**-41.5  # what its products of floats lose


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

    @one_thread()
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
        transforms = _TRANSFORMS * math.sqrt(self.steps) * float(np.linalg.norm(self.decoder))
        self.floats = max(FLOATS * float(self.magnitudes[-1]), transforms) + self._off(inverted)

    def _off(self, inverted: Array) -> float:
        """Return by how much of the greatest measurement answers are off, for want of an exact inverse."""
        c = np.ldexp(self.weights.astype(np.float64), -self.bits)
        check = product(self.decoder, c, self.steps)
        # The check itself errs in the L2 norm, see `OnlineProduct`, and so by the root of its terms in all.
        error = 2.0**-43 * float(np.linalg.norm(self.decoder) * np.linalg.norm(c)) * self.steps**0.5
        # Inputs are at most so many times the greatest measurement without its noise.
        return float(2 * np.abs(inverted).sum() * (np.abs(check - 1).sum() + error))

    def squared_sensitivity(self, participation: Participation) -> int:
        """See the notes of `ToeplitzStrategy`, whose argument holds for the rounded coefficients."""
        column = worst_participation(self.weights, participation, self.steps)
        return sum(entry * entry for entry in column.tolist())

    def measure(self, values: Integers) -> Integers:
        """Return the product with the matrix."""
        return np.asarray(OnlineProduct(self.weights, len(values), largest=self.limit).extend(values))

    def estimate(self, measured: Integers, steps: int) -> Array:
        """Return the product with the decoder."""
        return product(self.decoder, np.ldexp(measured.astype(np.float64), -self.bits), steps)

    def stream(self) -> IntegerStrategyStream:
        """Return the same, step by step, in nearly linear time; all inputs and measurements are retained."""
        return _ToeplitzStream(self)


class _ToeplitzStream(IntegerStrategyStream):
    def __init__(self, strategy: IntegerToeplitz) -> None:
        self._bits = strategy.bits
        self._measurements = OnlineProduct(strategy.weights, strategy.steps, largest=strategy.limit)
        self._sums = OnlineProduct(strategy.decoder, strategy.steps)

    def measure(self, value: Any) -> list[Any]:
        return [self._measurements.send(value)]

    def estimate(self, measured: list[Any]) -> Any:
        return self._sums.send(in_units(measured[0], self._bits))

    def measure_steps(self, values: Integers) -> Integers:
        return np.asarray(self._measurements.extend(values))

    def estimate_steps(self, measured: Integers, steps: int) -> Array:
        return np.asarray(self._sums.extend(in_units(measured, self._bits)))
