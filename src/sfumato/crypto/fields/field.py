"""Prime fields on whole arrays: elements of one, two or four 64-bit limbs, the lowest first.

An element is always below the modulus; an array of elements has the limbs as its last axis, and all
operations work elementwise over the axes before it. Arithmetic is exact. The time that an operation takes is
not promised to be independent of the values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields import _kernel

__all__ = ["FIELD255", "Elements", "PrimeField", "PseudoMersenneField"]

Elements: TypeAlias = NDArray[np.uint64]
"""Field elements: the last axis holds the limbs."""

_ADD, _SUBTRACT, _MULTIPLY = 0, 1, 2
_BLOCK: Final = 1 << 13
"""Elements that stay in a processor's cache."""


@dataclass(frozen=True, slots=True)
class PrimeField:
    """What all fields share: codes, sums and products.

    Parameters
    ----------
    modulus : int
        The prime.
    limbs : int
        64-bit words of an element.

    Examples
    --------
    >>> from sfumato.crypto.fields.ntt_field import FIELD64
    >>> isinstance(FIELD64, PrimeField), isinstance(FIELD255, PrimeField)
    (True, True)
    """

    modulus: int
    limbs: int

    @property
    def size(self) -> int:
        """Bytes of an encoded element."""
        return 8 * self.limbs

    def vector(self, values: Iterable[int]) -> Elements:
        """Return integers as elements, taken modulo the prime.

        Parameters
        ----------
        values : iterable of int
            Of any size and sign.

        Returns
        -------
        numpy.ndarray
            Of shape ``(len(values), limbs)``.
        """
        encoded = b"".join((int(value) % self.modulus).to_bytes(self.size, "little") for value in values)
        return np.frombuffer(encoded, "<u8").astype(np.uint64).reshape(-1, self.limbs)

    def zeros(self, *shape: int) -> Elements:
        """Return an array of zeros.

        Parameters
        ----------
        *shape : int
            The axes before the limbs.

        Returns
        -------
        numpy.ndarray
        """
        return np.zeros((*shape, self.limbs), np.uint64)

    def small(self, values: NDArray[np.uint64]) -> Elements:
        """Return unsigned integers below 2**32 as elements.

        Parameters
        ----------
        values : numpy.ndarray
            Of any shape.

        Returns
        -------
        numpy.ndarray
            With one axis more.
        """
        out = self.zeros(*values.shape)
        out[..., 0] = values
        return out

    def integers(self, elements: Elements) -> list[int]:
        """Return a vector's elements as integers from 0 up.

        Parameters
        ----------
        elements : numpy.ndarray
            Of shape ``(count, limbs)``.

        Returns
        -------
        list of int
        """
        columns = [elements[:, limb].tolist() for limb in range(self.limbs)]
        return [
            sum(word << 64 * limb for limb, word in enumerate(words)) for words in zip(*columns, strict=True)
        ]

    def encoded(self, elements: Elements) -> NDArray[np.uint8]:
        """Return rows of elements as rows of bytes, the lowest byte first.

        Parameters
        ----------
        elements : numpy.ndarray
            Of shape ``(rows, count, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, count * size)``.
        """
        rows, count = elements.shape[:2]
        return np.ascontiguousarray(elements, "<u8").view(np.uint8).reshape(rows, count * self.size)

    def decoded(self, rows: NDArray[np.uint8]) -> tuple[Elements, NDArray[np.bool_]]:
        """Return rows of bytes as elements, and which rows hold only values below the modulus.

        Parameters
        ----------
        rows : numpy.ndarray
            Of shape ``(rows, count * size)``.

        Returns
        -------
        tuple
            The elements, of which those of malformed rows are zero, and a flag for each row.
        """
        out = np.ascontiguousarray(rows).view("<u8").astype(np.uint64)
        out = out.reshape(len(rows), rows.shape[1] // self.size, self.limbs)
        good = np.asarray(self.below(out).all(axis=1))
        out[~good] = 0
        return out, good

    def below(self, words: Elements) -> NDArray[np.bool_]:
        """Return which words are below the modulus, and so are elements.

        Parameters
        ----------
        words : numpy.ndarray
            Of shape ``(..., limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(...)``.
        """
        top = [np.uint64(self.modulus >> 64 * limb & (1 << 64) - 1) for limb in range(self.limbs)]
        low: NDArray[np.bool_] = np.asarray(words[..., 0] < top[0])
        for limb in range(1, self.limbs):
            word = words[..., limb]
            low = np.asarray((word < top[limb]) | (word == top[limb]) & low)
        return low

    def added(self, left: Elements, right: Elements) -> Elements:
        """Return left + right, broadcast as numpy does."""
        return self._combined(_ADD, left, right)

    def subtracted(self, left: Elements, right: Elements) -> Elements:
        """Return left - right, broadcast as numpy does."""
        return self._combined(_SUBTRACT, left, right)

    def multiplied(self, left: Elements, right: Elements) -> Elements:
        """Return left * right, broadcast as numpy does."""
        return self._combined(_MULTIPLY, left, right)

    def _combined(self, kind: int, left: Elements, right: Elements) -> Elements:
        shape = np.broadcast_shapes(left.shape, right.shape)
        out = np.empty(shape, np.uint64)
        a, b = (np.ascontiguousarray(np.broadcast_to(side, shape)) for side in (left, right))
        _kernel.combine(self.limbs, kind, a, b, out)
        return out

    def summed(self, elements: Elements) -> Elements:
        """Return the sums over the axis before the limbs.

        Parameters
        ----------
        elements : numpy.ndarray
            With at least one axis before the limbs.

        Returns
        -------
        numpy.ndarray
            With one axis less.
        """
        out = self.zeros(*elements.shape[:-2])
        values = np.ascontiguousarray(elements)
        if values.size:
            _kernel.dots(self.limbs, True, elements.shape[-2], 1, values, values, out)
        return out

    def total(self, rows: Elements) -> Elements:
        """Return the sum over the first axis, without another array of that size.

        Parameters
        ----------
        rows : numpy.ndarray
            Of shape ``(rows, count, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(count, limbs)``.
        """
        block = max(1, _BLOCK // max(1, rows.shape[1]))
        sums = self.zeros(min(block, len(rows)), rows.shape[1])
        for start in range(0, len(rows), block):
            part = np.ascontiguousarray(rows[start : start + block])
            _kernel.combine(self.limbs, _ADD, sums[: len(part)], part, sums[: len(part)])
        return self.summed(sums.swapaxes(0, 1))

    def dots(self, elements: Elements, weights: Elements) -> Elements:
        """Return for each row the sums of products of its vectors with the row's weights.

        Parameters
        ----------
        elements : numpy.ndarray
            Of shape ``(rows, vectors, count, limbs)``.
        weights : numpy.ndarray
            Of shape ``(rows, count, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, vectors, limbs)``.
        """
        out = self.zeros(*elements.shape[:2])
        if elements.size:
            a, b = np.ascontiguousarray(elements), np.ascontiguousarray(weights)
            _kernel.dots(self.limbs, False, elements.shape[2], elements.shape[1], a, b, out)
        return out


@final
@dataclass(frozen=True, slots=True)
class PseudoMersenneField(PrimeField):
    """A field whose modulus is just below a power of two, without transforms.

    Examples
    --------
    >>> FIELD255.integers(FIELD255.multiplied(FIELD255.vector([2**128]), FIELD255.vector([2**127])))
    [19]
    """


FIELD255: Final = PseudoMersenneField(2**255 - 19, 4)
"""The field of 2**255 - 19 elements."""
