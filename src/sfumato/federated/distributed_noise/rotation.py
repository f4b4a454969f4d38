r"""A random rotation that is public: signs from a seed, then the Hadamard transform.

It spreads a vector over all entries, so that no entry of a sum is far larger than the others and fewer bits
hold it. The matrix is orthogonal: lengths and sums stay as they are.

>>> import numpy as np
>>> rotated = rotate(np.array([3.0, 4.0, 0.0]), b"round 1")
>>> rotated.shape, round(float(np.linalg.norm(rotated)), 12)
((4,), 5.0)
>>> rotate_back(rotated, b"round 1", 3).round().astype(int).tolist()
[3, 4, 0]

Privacy never rests on it: the seed is public, and a bad one only makes wrapping around more likely. For any
fixed vector :math:`x` and a uniform seed each entry of the result is subgaussian with the variance
:math:`\|x\|^2/d` (Hoeffding; Ailon, Chazelle 2009).
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.mask_stream import MaskStream

__all__ = ["MAX_DIMENSION", "padded_dimension", "rotate", "rotate_back"]

MAX_DIMENSION: Final = 1 << 28
_CONTEXT: Final = b"sfumato public rotation 1 "
_Vector = NDArray[np.float64]


def padded_dimension(dimension: int) -> int:
    """Return the power of two at or above a dimension.

    Parameters
    ----------
    dimension : int
        At least 1.

    Returns
    -------
    int

    Examples
    --------
    >>> padded_dimension(1), padded_dimension(5), padded_dimension(8)
    (1, 8, 8)
    """
    return 1 << (dimension - 1).bit_length()


def rotate(vector: _Vector, seed: bytes) -> _Vector:
    """Return a vector, padded by zeros to a power of two and rotated.

    Parameters
    ----------
    vector : ndarray of float
    seed : bytes
        Public, the same for all clients of a round.

    Returns
    -------
    ndarray of float
    """
    size = padded_dimension(len(vector))
    padded = np.zeros(size)
    padded[: len(vector)] = vector
    padded *= _signs(size, seed)
    return _hadamard(padded)


def rotate_back(rotated: _Vector, seed: bytes, dimension: int) -> _Vector:
    """Return what `rotate` made, or a sum of such, before it was rotated.

    Parameters
    ----------
    rotated : ndarray of float
        Its length is a power of two.
    seed : bytes
        That of `rotate`.
    dimension : int
        Entries without the padding.

    Returns
    -------
    ndarray of float, shape (dimension,)
    """
    return (_hadamard(rotated.copy()) * _signs(len(rotated), seed))[:dimension]


def _signs(size: int, seed: object) -> _Vector:
    """Return a uniform sign for each entry, from the keystream of the seed."""
    if not isinstance(seed, bytes) or not seed:
        _check.refuse_type("seed", "be public bytes, at least one", seed, "pass secrets.token_bytes(16)")
    words = MaskStream(-(-size // 32), bits=32).mask(hashlib.sha256(_CONTEXT + seed).digest())
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")[:size]
    signs: _Vector = 1.0 - 2.0 * bits.astype(np.float64)
    return signs


def _hadamard(values: _Vector) -> _Vector:
    """Apply the orthonormal Hadamard transform in place."""
    size, half = len(values), 1
    while half < size:
        pairs = values.reshape(-1, 2, half)
        upper = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = upper
        half *= 2
    values /= np.sqrt(size)
    return values
