"""Lower triangular strategies in integers."""

from __future__ import annotations

import math
from fractions import Fraction
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
    in_units,
)
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.numerics.blas_threads import one_thread

__all__ = ["IntegerTriangular"]


@final
class IntegerTriangular(IntegerStrategy):
    """Entries rounded to multiples.

    Parameters
    ----------
    rows : array of shape (steps, steps)
        Lower triangular.
    bits : int
    """

    @one_thread()
    def __init__(self, rows: Array, bits: int) -> None:
        self.rows = np.rint(np.ldexp(rows, bits)).astype(np.int64)
        if not np.diagonal(self.rows).all():
            _check.refuse("bits", "keep the diagonal of the strategy", bits, "pass more bits")
        self.steps, self.bits = len(rows), bits
        self.limit = LIMIT // int(np.abs(self.rows).sum(axis=1).max())
        floats = np.ldexp(self.rows.astype(np.float64), -bits)
        inverse = np.linalg.inv(floats)
        self.decoder = np.cumsum(inverse, axis=0)
        self.variances = np.square(self.decoder).sum(axis=1)
        self.magnitudes = np.abs(self.decoder).sum(axis=1)
        self.draws = np.arange(1.0, self.steps + 1)
        off = np.abs(self.decoder @ floats - np.tril(np.ones_like(floats))).sum(axis=1).max()
        self.floats = float(FLOATS * self.magnitudes.max() + 2 * np.abs(inverse).sum(axis=1).max() * off)

    def squared_sensitivity(self, participation: Participation) -> int:
        """Return the exact square for one participation, else the square of a bound that is rounded up."""
        if participation.max_steps(self.steps) == 1:
            return int(max(sum(entry * entry for entry in column) for column in self.rows.T.tolist()))
        bound = participation.sensitivity(self.rows).upper
        return math.ceil(Fraction(bound) ** 2)

    def measure(self, values: Integers) -> Integers:
        """Return the product with the matrix."""
        return np.asarray(np.tensordot(self.rows[: len(values), : len(values)], values, 1), dtype=np.int64)

    def estimate(self, measured: Integers, steps: int) -> Array:
        """Return the product with the decoder."""
        floats = np.ldexp(measured.astype(np.float64), -self.bits)
        return np.asarray(np.tensordot(self.decoder[:steps, :steps], floats, 1))

    def stream(self) -> IntegerStrategyStream:
        """Return the same, step by step; inputs and measurements so far are retained."""
        return _DenseStream(self)


class _DenseStream(IntegerStrategyStream):
    def __init__(self, strategy: IntegerTriangular) -> None:
        self._integers = strategy
        self._values: list[Any] = []
        self._measured: list[Any] = []

    def measure(self, value: Any) -> list[Any]:
        self._values.append(value)
        row = self._integers.rows[len(self._values) - 1, : len(self._values)]
        measured = np.tensordot(row, np.stack(self._values), 1)
        return [measured if measured.ndim else int(measured)]

    def estimate(self, measured: list[Any]) -> Any:
        self._measured.append(in_units(measured[0], self._integers.bits))
        row = self._integers.decoder[len(self._measured) - 1, : len(self._measured)]
        sums = np.tensordot(row, np.stack(self._measured), 1)
        return sums if sums.ndim else float(sums)

    def measure_steps(self, values: Integers) -> Integers:
        return np.concatenate([self.measure(value) for value in values])

    def estimate_steps(self, measured: Integers, steps: int) -> Array:
        return np.stack([self.estimate([row]) for row in measured])
