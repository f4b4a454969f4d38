"""Integers from 0 to a bound as zeros and ones with weights that cannot sum to more than the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import NttField

__all__ = ["RangedIntegers", "whole_numbers"]

_MOST = 1 << 62


@final
@dataclass(frozen=True, slots=True)
class RangedIntegers:
    """The encoding of an integer from 0 to ``maximum`` by bits.

    All weights but the last are powers of two, and the last is what is missing for them to sum to the bound:
    every choice of bits is a number in range, and every number in range has a choice of bits.

    Parameters
    ----------
    field : NttField
        The field of the bits.
    maximum : int
        The bound, from 1 to 2**62.

    Examples
    --------
    >>> from sfumato.crypto.fields.ntt_field import FIELD64
    >>> RangedIntegers(FIELD64, 6).weights
    (1, 2, 3)
    """

    field: NttField
    maximum: int

    def __post_init__(self) -> None:
        if _check.integer("maximum", self.maximum, minimum=1) > _MOST:
            _check.refuse("maximum", "be at most 2**62", self.maximum, "scale the measurements down")

    @property
    def bits(self) -> int:
        """How many bits."""
        return self.maximum.bit_length()

    @property
    def weights(self) -> tuple[int, ...]:
        """The bits' weights."""
        powers = tuple(1 << bit for bit in range(self.bits - 1))
        return (*powers, self.maximum - sum(powers))

    def encode(self, values: NDArray[np.uint64]) -> Elements:
        """Return numbers in range as bits.

        Parameters
        ----------
        values : numpy.ndarray
            Of shape ``(rows, count)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, count * bits, limbs)``.
        """
        last = np.uint64(self.weights[-1])
        over = values > np.uint64((1 << self.bits - 1) - 1)
        rest = np.where(over, values - last, values)
        shifts = np.arange(self.bits - 1, dtype=np.uint64)
        bits = np.concatenate([rest[..., None] >> shifts & np.uint64(1), over[..., None]], axis=-1)
        return self.field.small(bits.reshape(len(values), values.shape[1] * self.bits).astype(np.uint64))

    def decode(self, encoded: Elements) -> Elements:
        """Return the numbers that bits, or shares of them, stand for.

        Parameters
        ----------
        encoded : numpy.ndarray
            Of shape ``(rows, count * bits, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, count, limbs)``.
        """
        rows, length = encoded.shape[:2]
        count = length // self.bits
        flat = np.ascontiguousarray(encoded).reshape(1, rows * count, self.bits, self.field.limbs)
        return self.field.dots(flat, self.field.vector(self.weights)[None]).reshape(
            rows, count, self.field.limbs
        )


def whole_numbers(measurements: Any, maximum: int, shape: tuple[int, ...]) -> NDArray[np.uint64]:
    """Return measurements as an array of integers from 0 to a bound.

    Parameters
    ----------
    measurements : array_like
        The measurements.
    maximum : int
        The bound.
    shape : tuple of int
        The axes of one measurement.

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    ParameterError
        If the shape is another or one is out of range; the message shows no measurement.

    Examples
    --------
    >>> whole_numbers([3, 4], 6, ()).tolist()
    [3, 4]
    """
    rule = f"be integers from 0 to {maximum}, in measurements of shape {shape}"
    try:
        values = np.asarray(measurements)
    except ValueError:  # rows of different lengths
        _check.refuse_type("measurements", rule, measurements, "clip each measurement to the range")
    if values.size == 0 and values.shape[:1] == (0,):
        return np.zeros((0, *shape), np.uint64)
    if values.dtype.kind not in "bui" or values.shape[1:] != shape or values.ndim == 0:
        _check.refuse_type("measurements", rule, values, "clip each measurement to the range")
    if (values < 0).any() or (values > maximum).any():
        _check.refuse_type("measurements", rule, values, "clip each measurement to the range")
    return values.astype(np.uint64)
