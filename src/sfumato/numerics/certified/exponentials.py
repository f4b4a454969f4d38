"""Certified values of ``exp(-rate k)`` for arrays of integers k, as floats or to any number of bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.certified.fixed_point import exp_bounds

__all__ = ["FLOAT_BITS", "RELATIVE_ERROR", "Powers", "powers"]

FLOAT_BITS = 256
"""Floats are right to `RELATIVE_ERROR`, or to ``2^-254`` absolutely."""

RELATIVE_ERROR = 2.0**-49

_LARGEST = 2**63 - 1
_DIGIT = 11
_GUARD = 32
_LN2 = Fraction(6932, 10000)  # above log(2)
_CHUNK = 1 << 15


@final
@dataclass(frozen=True)
class Powers:
    """``exp(-rate k)`` for integers k from 0 on, by a product of one looked-up factor for each digit of k.

    Parameters
    ----------
    rate : Fraction
        Positive.
    bits : int
        Fixed-point position of the factors.

    Notes
    -----
    A digit has at most 11 bits. A factor is made by at most 2^11 products that are floored at 32 bits more
    than it retains, each of which loses less than 3 units there (`exp_bounds` loses 2, the floor 1), so a
    factor f has ``f <= 2^bits exp(-rate k) <= f + 2``.

    From ``limit`` on, where ``exp(-rate k) < 2^-bits``, every k is looked up as ``limit``, whose factors'
    product is 0 in fixed point.
    """

    rate: Fraction
    bits: int
    limit: int = field(init=False)
    _width: int = field(init=False)
    _factors: tuple[list[int], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        limit = min(math.ceil(self.bits * _LN2 / self.rate), _LARGEST)
        digits = -(-limit.bit_length() // _DIGIT)
        width = -(-limit.bit_length() // digits)
        work = self.bits + _GUARD
        factors = []
        for shift in range(0, digits * width, width):
            step = exp_bounds(self.rate * 2**shift, work)[0]
            count = min(1 << width, (limit >> shift) + 1)
            values = [1 << work]
            for _ in range(count - 1):
                values.append(values[-1] * step >> work)
            factors.append([value >> _GUARD for value in values])
        object.__setattr__(self, "limit", limit)
        object.__setattr__(self, "_width", width)
        object.__setattr__(self, "_factors", tuple(factors))

    @property
    def error(self) -> int:
        """By how many units of ``2^-bits`` `exact` may lie below the truth.

        Of two factors that are at most a and b units too low, the floored product is at most a + b + 2 too
        low, as neither exceeds 1.
        """
        return 4 * len(self._factors)

    def exact(self, k: NDArray[np.int64], origin: int = 0) -> NDArray[Any]:
        """Return lower bounds on ``2^bits exp(-rate (k - origin))`` as an object array of ints.

        Where k is below ``origin``, it is taken as ``origin``.
        """
        product: NDArray[Any] | None = None
        for table, digit in zip(self._objects, self._digits(k, origin), strict=True):
            factor = table[digit]
            product = factor if product is None else product * factor >> self.bits
        return np.empty(0, object) if product is None else product

    def floats(self, k: NDArray[np.int64], origin: int = 0) -> NDArray[np.float64]:
        """Return ``exp(-rate (k - origin))`` to a factor of 1 +- `RELATIVE_ERROR`, or to within 2^-254.

        Only for ``bits`` of `FLOAT_BITS`. At most seven factors, each rounded once, make at most 13 rounding
        errors of 2^-53. Where k is below ``origin``, it is taken as ``origin``.
        """
        out = np.ones(k.size)
        for start in range(0, k.size, _CHUNK):  # the temporaries stay in the cache
            part = out[start : start + _CHUNK]
            for table, digit in zip(
                self._nearest, self._digits(k[start : start + _CHUNK], origin), strict=True
            ):
                part *= table.take(digit, mode="clip")  # quicker than looking for digits out of range
        return out

    def _digits(self, k: NDArray[np.int64], origin: int) -> Iterator[NDArray[np.int64]]:
        rest = np.clip(k - origin, 0, self.limit)
        for _ in self._factors[1:]:
            yield rest & ((1 << self._width) - 1)
            rest = rest >> self._width
        yield rest

    @cached_property
    def _objects(self) -> tuple[NDArray[Any], ...]:
        return tuple(np.array(factor, dtype=object) for factor in self._factors)

    @cached_property
    def _nearest(self) -> tuple[NDArray[np.float64], ...]:
        one = 1 << self.bits
        return tuple(np.array([value / one for value in factor]) for factor in self._factors)


@lru_cache(maxsize=32)
def powers(rate: Fraction, bits: int = FLOAT_BITS) -> Powers:
    """Return the tables of a rate; the last 32 are cached.

    Parameters
    ----------
    rate : Fraction
        Positive.
    bits : int

    Examples
    --------
    >>> values = powers(Fraction(1, 3)).floats(np.array([0, 3, 10**6]))
    >>> [round(float(value), 6) for value in values]
    [1.0, 0.367879, 0.0]
    """
    return Powers(rate, bits)
