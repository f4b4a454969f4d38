"""Certified values of ``exp(-rate k)`` for whole arrays of integers k, as floats or to any number of bits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.exact import exp_bounds

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
    than it keeps, each of which loses less than 3 units there (`exp_bounds` loses 2, the floor 1), so a
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

    def exact(self, k: NDArray[np.int64]) -> NDArray[Any]:
        """Return lower bounds on ``2^bits exp(-rate k)`` as an object array of ints."""
        return self._product(k, self._objects, lambda x, y: x * y >> self.bits)

    def floats(self, k: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return floats within a factor of 1 +- `RELATIVE_ERROR` of ``exp(-rate k)``, or within 2^-254.

        Only for ``bits`` of `FLOAT_BITS`. At most seven factors, each rounded once, make at most 13 rounding
        errors of 2^-53.
        """
        out = np.empty(k.size)
        for start in range(0, k.size, _CHUNK):  # the temporaries stay in the cache
            part = slice(start, start + _CHUNK)
            out[part] = self._product(k[part], self._nearest, np.multiply)
        return out

    def _product(self, k: NDArray[np.int64], tables: tuple[NDArray[Any], ...], times: Any) -> NDArray[Any]:
        rest = np.minimum(k, self.limit)
        low = (1 << self._width) - 1
        product: NDArray[Any] | None = None
        for place, table in enumerate(tables):
            last = place == len(tables) - 1
            factor = table[rest if last else rest & low]
            product = factor if product is None else times(product, factor)
            if not last:
                rest = rest >> self._width
        assert product is not None  # noqa: S101  # there is a first digit
        return product

    @cached_property
    def _objects(self) -> tuple[NDArray[Any], ...]:
        return tuple(np.array(factor, dtype=object) for factor in self._factors)

    @cached_property
    def _nearest(self) -> tuple[NDArray[np.float64], ...]:
        one = 1 << self.bits
        return tuple(np.array([value / one for value in factor]) for factor in self._factors)


@lru_cache(maxsize=32)
def powers(rate: Fraction, bits: int = FLOAT_BITS) -> Powers:
    """Return the tables of a rate; the last 32 are kept.

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
