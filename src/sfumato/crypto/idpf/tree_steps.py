"""One level of the tree of an incremental point function: seeds to two seeds, and a seed to a value."""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields.field import FIELD255, Elements
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.crypto.xof.fixed_key_aes import XofFixedKeyAes128
from sfumato.crypto.xof.turboshake import XofTurboShake128

__all__ = ["KEY_SIZE", "Bits", "Bytes", "TreeSteps", "Words"]

KEY_SIZE: Final = 16
"""Bytes of a key, and of every node's seed."""

Bytes = NDArray[np.uint8]
"""Rows of bytes, one report each."""

Bits = NDArray[np.uint8]
"""Zeros and ones."""

Words = NDArray[np.uint64]
"""Seeds as two words, so that they are combined at once."""

_EXTEND, _CONVERT = 0, 1
_FUNCTION_CLASS: Final = 1


@final
class TreeSteps:
    """The two functions of a level, for reports with given nonces.

    Parameters
    ----------
    bits : int
        How many levels the tree has.
    value_length : int
        Elements of a value.
    context : bytes
        The application's name.
    version : int
        The first byte of domain separation tags.
    nonces : numpy.ndarray
        Of shape ``(rows, 16)``.

    Examples
    --------
    >>> import numpy as np
    >>> steps = TreeSteps(4, 2, b"", 18, np.zeros((3, 16), np.uint8))
    >>> seeds, bits = steps.extend(0, np.zeros((3, 1, 2), np.uint64))
    >>> seeds.shape, bits.shape
    ((3, 1, 2, 2), (3, 1, 2))
    """

    def __init__(self, bits: int, value_length: int, context: bytes, version: int, nonces: Bytes) -> None:
        self._leaf, self._length, self._nonces = bits - 1, value_length, nonces
        head = bytes([version, _FUNCTION_CLASS, 0, 0, 0, 0])
        self._tags = [head + usage.to_bytes(2, "big") + context for usage in (_EXTEND, _CONVERT)]
        self._hashes = [XofFixedKeyAes128(tag, nonces) for tag in self._tags]

    def part(self, rows: slice) -> TreeSteps:
        """Return the functions for some of the reports.

        Parameters
        ----------
        rows : slice
            Which.

        Returns
        -------
        TreeSteps
        """
        chosen = object.__new__(TreeSteps)
        chosen._leaf, chosen._length, chosen._tags = self._leaf, self._length, self._tags
        chosen._nonces, chosen._hashes = self._nonces[rows], [each.part(rows) for each in self._hashes]
        return chosen

    def extend(self, level: int, seeds: Words) -> tuple[Words, Bits]:
        """Return the seeds and control bits of both children, before correction.

        Parameters
        ----------
        level : int
            The children's, from 0.
        seeds : numpy.ndarray
            Of shape ``(rows, nodes, 2)``.

        Returns
        -------
        tuple of numpy.ndarray
            Seeds of shape ``(rows, nodes, 2, 2)``, and bits of shape ``(rows, nodes, 2)``.
        """
        out = self._stream(_EXTEND, level, seeds, 2 * KEY_SIZE)
        out = np.ascontiguousarray(out).reshape(*seeds.shape[:2], 2, KEY_SIZE)
        bits: Bits = out[..., 0] & np.uint8(1)
        out[..., 0] &= 0xFE
        return out.view(np.uint64), bits

    def next_seeds(self, level: int, seeds: Words) -> Words:
        """Return the seeds that corrected ones become, above the leaves, where no value is asked for.

        Parameters
        ----------
        level : int
            Their level.
        seeds : numpy.ndarray
            Of shape ``(rows, nodes, 2)``.

        Returns
        -------
        numpy.ndarray
            Of the same shape.
        """
        return np.ascontiguousarray(self._stream(_CONVERT, level, seeds, KEY_SIZE)).view(np.uint64)

    def convert(self, level: int, seeds: Words) -> tuple[Words, Elements]:
        """Return the seeds that corrected ones become, and their values before correction.

        Parameters
        ----------
        level : int
            Their level.
        seeds : numpy.ndarray
            Of shape ``(rows, nodes, 2)``.

        Returns
        -------
        tuple of numpy.ndarray
            Seeds of the same shape, and elements of shape ``(rows, nodes, value_length, limbs)``.
        """
        if level < self._leaf:
            fresh, values = self._hashes[_CONVERT].elements(_as_bytes(seeds), FIELD64, self._length)
            return np.ascontiguousarray(fresh).view(np.uint64), values
        out = self._stream(_CONVERT, level, seeds, KEY_SIZE + self._length * FIELD255.size)
        encoded = out[..., KEY_SIZE:].reshape(-1, FIELD255.size).copy()
        encoded[:, -1] &= 127
        values, _ = FIELD255.decoded(encoded)  # one of 2**250 would be passed over
        return seeds, values.reshape(*seeds.shape[:2], self._length, FIELD255.limbs)

    def _stream(self, usage: int, level: int, seeds: Words, length: int) -> Bytes:
        if level < self._leaf:
            return self._hashes[usage].stream(_as_bytes(seeds), length)
        rows, nodes = seeds.shape[:2]
        flat = np.ascontiguousarray(seeds).view(np.uint8).reshape(rows * nodes, KEY_SIZE)
        xof = XofTurboShake128(flat, self._tags[usage], self._nonces.repeat(nodes, axis=0))
        return xof.stream(length).reshape(rows, nodes, length)


def _as_bytes(seeds: Words) -> Bytes:
    return np.ascontiguousarray(seeds).view(np.uint8)
