"""TurboSHAKE128 (RFC 9861), and the extendable output function that Prio3 builds on it.

The permutation is Keccak-p[1600] with 12 rounds, half of SHAKE128's, which ``hashlib`` does not offer; the
compiled code of `sfumato.crypto.fields` runs it on many messages of one length in one call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields import _kernel
from sfumato.crypto.fields.field import Elements, PrimeField

__all__ = ["SEED_SIZE", "XofTurboShake128", "turboshake128"]

SEED_SIZE: Final = 32
"""Bytes of a seed of `XofTurboShake128`."""

_XOF_DOMAIN: Final = 1


def turboshake128(message: bytes, domain: int, length: int) -> bytes:
    """Return output of TurboSHAKE128.

    Parameters
    ----------
    message : bytes
        Of any length.
    domain : int
        The domain separation byte, from 1 to 127.
    length : int
        Bytes of output, at least 1.

    Returns
    -------
    bytes

    Examples
    --------
    >>> turboshake128(b"", 0x1F, 8).hex()
    '1e415f1c5983aff2'
    """
    if _check.integer("domain", domain, minimum=1) > 127:
        _check.refuse("domain", "be from 1 to 127", domain, "use 31 where no other is agreed")
    out = bytearray(_check.integer("length", length, minimum=1))
    _kernel.turboshake(0, domain, 1, message, out)
    return bytes(out)


class XofTurboShake128:
    """The function XofTurboShake128 of the VDAF draft, on a batch of seeds and binders.

    Parameters
    ----------
    seeds : numpy.ndarray
        Rows of bytes, all of one length below 256; one row may serve for all binders.
    tag : bytes
        The domain separation tag, below 65,536 bytes.
    binders : numpy.ndarray
        Rows of bytes; one row may serve for all seeds.

    Examples
    --------
    >>> import numpy as np
    >>> seeds = np.zeros((2, 32), np.uint8)
    >>> binders = np.array([[1], [2]], np.uint8)
    >>> XofTurboShake128(seeds, b"tag", binders).stream(4).shape
    (2, 4)
    """

    def __init__(self, seeds: NDArray[np.uint8], tag: bytes, binders: NDArray[np.uint8]) -> None:
        if len(tag) >= 1 << 16:
            _check.refuse("len(tag)", "be below 65,536", len(tag), "use a shorter context")
        if seeds.shape[1] >= 1 << 8:
            _check.refuse("seeds.shape[1]", "be below 256", seeds.shape[1], "use seeds of 32 bytes")
        self._rows = len(seeds) if len(binders) == 1 else len(binders)
        head = len(tag).to_bytes(2, "little") + tag + bytes([seeds.shape[1]])
        size, after = len(head), len(head) + seeds.shape[1]
        self._messages = np.empty((self._rows, after + binders.shape[1]), np.uint8)
        self._messages[:, :size] = np.frombuffer(head, np.uint8)
        self._messages[:, size:after] = seeds
        self._messages[:, after:] = binders

    def stream(self, length: int) -> NDArray[np.uint8]:
        """Return the first bytes of each output.

        Parameters
        ----------
        length : int
            How many of each.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, length)``.
        """
        out = np.empty((self._rows, length), np.uint8)
        if out.size:
            _kernel.turboshake(0, _XOF_DOMAIN, self._rows, self._messages, out)
        return out

    def elements(self, field: PrimeField, count: int) -> Elements:
        """Return uniform field elements of each output, by rejection of what is not below the modulus.

        Parameters
        ----------
        field : PrimeField
            The field.
        count : int
            How many elements of each.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, count, limbs)``.
        """
        out = field.zeros(self._rows, count)
        if out.size:
            _kernel.turboshake(field.limbs, _XOF_DOMAIN, self._rows, self._messages, out)
        return out

    def runs(self, lengths: Sequence[tuple[PrimeField, int]]) -> list[Elements]:
        """Return runs of uniform elements of several fields, one after another in each output.

        Parameters
        ----------
        lengths : sequence of tuple
            Fields, and how many elements of each.

        Returns
        -------
        list of numpy.ndarray
            Of shape ``(rows, count, limbs)``.
        """
        stream, start, out = self.stream(sum(field.size * count for field, count in lengths)), 0, []
        again = np.zeros(self._rows, np.bool_)
        for field, count in lengths:
            words = stream[:, start : start + field.size * count].reshape(-1, field.size).copy()
            words[:, -1] &= _highest(field)
            elements, sound = field.decoded(words)
            again |= ~sound.reshape(self._rows, count).all(axis=1)
            out.append(elements.reshape(self._rows, count, field.limbs))
            start += field.size * count
        for row in np.flatnonzero(again):  # what is not below a modulus is passed over, and shifts the rest
            for run, elements in zip(out, self._slowly(int(row), lengths), strict=True):
                run[row] = elements
        return out

    def _slowly(self, row: int, lengths: Sequence[tuple[PrimeField, int]]) -> Iterator[Elements]:
        stream, start = b"", 0
        for field, count in lengths:
            found: list[int] = []
            while len(found) < count:
                if len(stream) < start + field.size:
                    stream = turboshake128(self._messages[row].tobytes(), _XOF_DOMAIN, 2 * len(stream) + 1024)
                word = bytearray(stream[start : start + field.size])
                word[-1] &= _highest(field)
                value, start = int.from_bytes(word, "little"), start + field.size
                if value < field.modulus:
                    found.append(value)
            yield field.vector(found)


def _highest(field: PrimeField) -> int:
    return 255 >> 8 * field.size - field.modulus.bit_length()
