"""The base class of strategies in integers: exact measurements, and estimates from noisy ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.factorization.strategies.participation import Participation

__all__ = ["FLOATS", "Array", "IntegerStrategy", "IntegerStrategyStream", "Integers", "in_units"]

FLOATS = 2.0**-40
"""What float arithmetic may lose, relative to all measurements' magnitudes in an answer."""

Array: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def in_units(measured: Any, bits: int) -> Any:
    """Return whole multiples of ``2**-bits``, an int or an array of them, as floats."""
    if isinstance(measured, int):
        return math.ldexp(measured, -bits)
    return np.ldexp(measured.astype(np.float64), -bits)


class IntegerStrategy(ABC):
    r"""A strategy whose entries are multiples of :math:`2^{-bits}`: what it measures is whole.

    Attributes
    ----------
    limit : int
        Inputs are clamped to this magnitude, so that no measurement leaves 62 bits.
    variances, magnitudes, draws : array of shape (steps,)
        Of each answer: the squares and the magnitudes of its weights on the measurements' noise, added up,
        and how many measurements it reads. In units of one measurement, inputs being in theirs.
    floats : float
        What float arithmetic may add to an answer, over the greatest measurement and in the same units.
    """

    limit: int
    variances: Array
    magnitudes: Array
    draws: Array
    floats: float

    @abstractmethod
    def squared_sensitivity(self, participation: Participation) -> int:
        """Return the squared L2 norm, in measured units, by which one unit moves all measurements, exactly.

        Each of its inputs moves by at most 1 in the L2 norm.
        """

    @abstractmethod
    def measure(self, values: Integers) -> Integers:
        """Return the exact measurements of inputs of shape (steps so far, ...), shape (rows so far, ...)."""

    @abstractmethod
    def estimate(self, measured: Integers, steps: int) -> Array:
        """Return the prefix sums, shape (steps, ...), from noisy measurements."""

    @abstractmethod
    def stream(self) -> IntegerStrategyStream:
        """Return the same, step by step."""


class IntegerStrategyStream(ABC):
    """An integer strategy's exact measurements and estimates, for one step or some steps after the others.

    Each step is either measured and then estimated alone, or with others. Values are all ints, or all arrays
    of one shape.
    """

    @abstractmethod
    def measure(self, value: Any) -> list[Any]:
        """Return the step's measurements, each an int or an array as the value is."""

    @abstractmethod
    def estimate(self, measured: list[Any]) -> Any:
        """Return the prefix sum so far from the step's noisy measurements."""

    @abstractmethod
    def measure_steps(self, values: Integers) -> Integers:
        """Return the measurements of steps of shape (steps, ...), shape (rows of the steps, ...)."""

    @abstractmethod
    def estimate_steps(self, measured: Integers, steps: int) -> Array:
        """Return the prefix sums after each of the steps, from their noisy measurements."""
