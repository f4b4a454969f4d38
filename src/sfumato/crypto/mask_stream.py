"""Masks from seeds: the keystream of AES-256 in counter mode, as vectors that are added modulo 2^bits.

Both ends of a pair expand one seed to the same vector; added by one and subtracted by the other, it is gone
from the sum. A seed is used for one vector only: the counter starts at 0.

>>> import numpy as np
>>> total = np.zeros(3, np.uint32)
>>> stream = MaskStream(3, bits=20)
>>> stream.add(total, bytes(32))
>>> bool(total.any())
True
>>> stream.subtract(total, bytes(32))
>>> total.tolist()
[0, 0, 0]

Guarantee: if AES-256 is a pseudo-random permutation, the masks of distinct secret seeds are indistinguishable
from independent uniform vectors modulo 2^bits, up to the advantage of blocks that do not repeat (2^-129 m^2
for m blocks). A word of more bits than the modulus is uniform modulo 2^bits, since that divides its range.
"""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields import _kernel

__all__ = ["SEED", "MaskStream", "Words", "word_type"]

SEED: Final = 32
"""Bytes of a seed: a key of AES-256."""

Words = NDArray[np.unsignedinteger[Any]]

_BLOCK: Final = 16
_PIECE: Final = 1 << 18
"""Bytes that are expanded at a time, so that a piece is added while it is in the cache."""
_HAS_AES: Final = _kernel.has_aes()
"""Whether the processor adds keystreams by instructions for AES: in one pass, without a buffer."""


def word_type(bits: int) -> type[np.unsignedinteger[Any]]:
    """Return the type of the words that hold numbers modulo 2^bits.

    Parameters
    ----------
    bits : int
        From 1 to 64.

    Returns
    -------
    type
        ``numpy.uint32`` up to 32 bits, ``numpy.uint64`` above.

    Examples
    --------
    >>> word_type(33).__name__
    'uint64'
    """
    if _check.integer("bits", bits, minimum=1) > 64:
        _check.refuse("bits", "be at most 64", bits, "use a smaller modulus")
    return np.uint32 if bits <= 32 else np.uint64


@final
class MaskStream:
    """Expands seeds to vectors of one length, and adds them.

    Parameters
    ----------
    length : int
        Entries of a vector.
    bits : int
        The modulus is 2^bits; from 1 to 64.

    Notes
    -----
    Sums are taken modulo 2^32 or 2^64, whichever the words have, and hold modulo 2^bits; `reduce` cuts them.
    One object must not be used by two threads at a time.

    Examples
    --------
    >>> MaskStream(2, bits=8).mask(bytes(32)).tolist()
    [220, 162]
    """

    __slots__ = ("_buffer", "_type", "_zeros", "bits", "length")

    def __init__(self, length: int, *, bits: int) -> None:
        self.length = _check.integer("length", length, minimum=1)
        self._type = word_type(bits)
        self.bits = bits
        size = min(_PIECE, length * np.dtype(self._type).itemsize)
        self._zeros = memoryview(bytes(size))
        self._buffer = np.empty(size + _BLOCK, np.uint8)  # an update may write up to a block more

    def add(self, total: Words, seed: bytes) -> None:
        """Add a seed's vector to a sum in place.

        Parameters
        ----------
        total : ndarray of word_type(bits), shape (length,)
            Changed.
        seed : bytes
            `SEED` bytes.
        """
        self._apply(total, seed, less=False)

    def subtract(self, total: Words, seed: bytes) -> None:
        """Subtract a seed's vector from a sum in place.

        Parameters
        ----------
        total : ndarray of word_type(bits), shape (length,)
            Changed.
        seed : bytes
            `SEED` bytes.
        """
        self._apply(total, seed, less=True)

    def _apply(self, total: Words, seed: bytes, *, less: bool) -> None:
        if _HAS_AES:
            _kernel.add_keystream(total.itemsize, less, False, seed, total[: self.length])
        else:
            self._apply_pieces(np.subtract if less else np.add, total, seed)

    def _apply_pieces(self, operation: np.ufunc, total: Words, seed: bytes) -> None:
        encryptor = Cipher(algorithms.AES(seed), modes.CTR(bytes(_BLOCK))).encryptor()
        itemsize = total.itemsize
        step = len(self._zeros) // itemsize
        into = self._buffer.data
        words = self._buffer.view(f"<u{itemsize}")
        for start in range(0, self.length, step):
            piece = total[start : start + step]
            encryptor.update_into(self._zeros[: piece.size * itemsize], into)
            operation(piece, words[: piece.size], out=piece)

    def mask(self, seed: bytes) -> Words:
        """Return a seed's vector modulo 2^bits.

        Parameters
        ----------
        seed : bytes
            `SEED` bytes.

        Returns
        -------
        ndarray of word_type(bits), shape (length,)
        """
        total = np.zeros(self.length, self._type)
        self.add(total, seed)
        return self.reduce(total)

    def reduce(self, total: Words) -> Words:
        """Return a sum modulo 2^bits, in place.

        Parameters
        ----------
        total : ndarray of word_type(bits)
            Changed.

        Returns
        -------
        ndarray of word_type(bits)
            The argument.
        """
        np.bitwise_and(total, self._type((1 << self.bits) - 1), out=total)
        return total
