"""Arithmetic modulo the Mersenne prime 2^61 - 1, on whole arrays and exact.

A product of two 61-bit numbers has 122 bits, more than any type of numpy. It is computed from halves of 32
and 29 bits, and reduced by 2^61 = 1: what stands above bit 61 is added to what stands below.

>>> import numpy as np
>>> product = multiply(np.array([PRIME - 1], np.uint64), np.array([PRIME - 2], np.uint64))
>>> int(product[0]) == (PRIME - 1) * (PRIME - 2) % PRIME
True
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.randomness.source import RandomSource

__all__ = ["PRIME", "inverse", "multiply", "product", "reduced", "subtract", "uniform"]

PRIME: Final = (1 << 61) - 1

Field = NDArray[np.uint64]

_PRIME: Final = np.uint64(PRIME)
_LOW: Final = np.uint64((1 << 32) - 1)
_LOW_29: Final = np.uint64((1 << 29) - 1)
_3, _29, _32, _61 = (np.uint64(shift) for shift in (3, 29, 32, 61))


def reduced(value: Field) -> Field:
    """Return 64-bit words modulo the prime.

    >>> reduced(np.array([PRIME, PRIME + 5], np.uint64)).tolist()
    [0, 5]
    """
    folded = (value & _PRIME) + (value >> _61)
    return np.where(folded >= _PRIME, folded - _PRIME, folded)


def multiply(left: Field, right: Field) -> Field:
    """Return the products of elements below the prime; shapes broadcast.

    Notes
    -----
    With left = a 2^32 + b and right = c 2^32 + d, the product is ac 2^64 + (ad + bc) 2^32 + bd. Here a and c
    are below 2^29, so that ad + bc is below 2^62; 2^64 is 8, and (e 2^29 + f) 2^32 is e + f 2^32. The four
    terms that are left sum to less than 2^61 + 2^33 + 2^61 + 2^61 + 8, which a word holds.
    """
    a, b = left >> _32, left & _LOW
    c, d = right >> _32, right & _LOW
    middle, low = a * d + b * c, b * d
    total = ((a * c) << _3) + (middle >> _29) + ((middle & _LOW_29) << _32)
    return reduced(total + (low & _PRIME) + (low >> _61))


def subtract(left: Field, right: Field) -> Field:
    """Return the differences of elements below the prime.

    >>> int(subtract(np.array([1], np.uint64), np.array([2], np.uint64))[0]) == PRIME - 1
    True
    """
    return reduced(left + (_PRIME - right))


def product(values: Field) -> Field:
    """Return the products along the last axis, which has at least one element.

    >>> product(np.array([[2, 3, 4]], np.uint64)).tolist()
    [24]
    """
    while (width := values.shape[-1]) > 1:
        half = width // 2
        paired = multiply(values[..., :half], values[..., half : 2 * half])
        values = np.concatenate([paired, values[..., 2 * half :]], axis=-1)
    return values[..., 0]


def inverse(values: Field) -> Field:
    """Return the inverses of elements other than 0, along the last axis, which has at least one element.

    Two neighbors a and b have the inverses (1 / ab) b and (1 / ab) a, so that half as many are inverted; the
    last one is value^(p - 2) (Fermat).

    >>> multiply(inverse(np.array([7, 9], np.uint64)), np.array([7, 9], np.uint64)).tolist()
    [1, 1]
    """
    width = values.shape[-1]
    if width == 1:
        return _power(values, PRIME - 2)
    left, right = values[..., : width // 2], values[..., width // 2 : width // 2 * 2]
    both = multiply(left, right)
    rest = values[..., width // 2 * 2 :]
    inverted = inverse(np.concatenate([both, rest], axis=-1))
    pairs = inverted[..., : width // 2]
    return np.concatenate(
        [multiply(pairs, right), multiply(pairs, left), inverted[..., width // 2 :]], axis=-1
    )


def _power(value: Field, exponent: int) -> Field:
    result = np.ones_like(value)
    while exponent:
        if exponent & 1:
            result = multiply(result, value)
        value = multiply(value, value)
        exponent >>= 1
    return result


def uniform(shape: tuple[int, ...], source: RandomSource) -> Field:
    """Return independent uniform elements: 61 random bits each, drawn again where all of them are set."""
    drawn = source.words(int(np.prod(shape, dtype=np.int64))) & _PRIME
    while (again := np.flatnonzero(drawn == _PRIME)).size:
        drawn[again] = source.words(again.size) & _PRIME
    return drawn.reshape(shape)
