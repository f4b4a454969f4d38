"""The two prime fields of Prio3, with transforms of lengths that are powers of two.

An element is one or two 64-bit limbs, the lowest first, and always below the modulus; an array of elements
has the limbs as its last axis, and all operations work elementwise over the axes before it. Arithmetic is
exact. The time that an operation takes is not promised to be independent of the values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields import _kernel

__all__ = ["FIELD64", "FIELD128", "Elements", "NttField"]

Elements: TypeAlias = NDArray[np.uint64]
"""Field elements: the last axis holds the limbs."""

_ADD, _SUBTRACT, _MULTIPLY = 0, 1, 2


@final
@dataclass(frozen=True, slots=True)
class NttField:
    """A prime field with a root of unity of a large power of two.

    Parameters
    ----------
    modulus : int
        The prime.
    limbs : int
        64-bit words of an element.
    generator : int
        A root of unity of order 2 to the power ``order_bits``.
    order_bits : int
        Transforms reach that length.

    Examples
    --------
    >>> FIELD128.integers(FIELD128.inverted(FIELD128.vector([2])))
    [170141183460469231473432886683950383105]
    """

    modulus: int
    limbs: int
    generator: int
    order_bits: int

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
        return np.ascontiguousarray(elements, "<u8").view(np.uint8).reshape(len(elements), -1)

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
        top = [np.uint64(self.modulus >> 64 * limb & (1 << 64) - 1) for limb in range(self.limbs)]
        high: NDArray[np.bool_] = np.asarray(out[..., 0] >= top[0])
        if self.limbs == 2:
            high = np.asarray((out[..., 1] > top[1]) | (out[..., 1] == top[1]) & high)
        good = np.asarray(~high.any(axis=1))
        out[~good] = 0
        return out, good

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
        if out.size:
            a, b = np.ascontiguousarray(elements), np.ascontiguousarray(weights)
            _kernel.dots(self.limbs, False, elements.shape[2], elements.shape[1], a, b, out)
        return out

    def inverted(self, elements: Elements) -> Elements:
        """Return the inverses.

        Parameters
        ----------
        elements : numpy.ndarray
            None of them zero.

        Returns
        -------
        numpy.ndarray

        Raises
        ------
        ParameterError
            If one is zero.
        """
        if not elements.any(axis=-1).all():
            _check.refuse_type("elements", "not be zero", elements, "zero has no inverse")
        out = elements.copy(order="C")
        _kernel.invert(self.limbs, out)
        return out

    def root(self, length: int) -> int:
        """Return the root of unity of an order that is a power of two.

        Parameters
        ----------
        length : int
            A power of two.

        Returns
        -------
        int
        """
        bits = length.bit_length() - 1
        if length < 1 or length != 1 << bits or bits > self.order_bits:
            _check.refuse("length", f"be a power of two up to 2**{self.order_bits}", length, "pad the values")
        return pow(self.generator, 1 << self.order_bits - bits, self.modulus)

    def powers(self, length: int) -> Elements:
        """Return the powers 0, 1, ... of the root of unity of an order, one for each.

        Parameters
        ----------
        length : int
            A power of two.

        Returns
        -------
        numpy.ndarray
            Of shape ``(length, limbs)``, not to be written to.
        """
        return _powers(self, self.root(length), length)

    def values(self, coefficients: Elements) -> Elements:
        """Return polynomials' values at the powers of the root of unity.

        Parameters
        ----------
        coefficients : numpy.ndarray
            Of shape ``(..., length, limbs)``, the constant first; the length a power of two.

        Returns
        -------
        numpy.ndarray
            Of the same shape.
        """
        length = coefficients.shape[-2]
        out = coefficients.copy(order="C")
        _kernel.transform(self.limbs, length, out, self.powers(length))
        return out

    def coefficients(self, values: Elements) -> Elements:
        """Return the coefficients of polynomials given by their values: the inverse of `values`.

        Parameters
        ----------
        values : numpy.ndarray
            Of shape ``(..., length, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of the same shape.
        """
        length = values.shape[-2]
        out = values.copy(order="C")
        back = pow(self.root(length), -1, self.modulus)
        _kernel.transform(self.limbs, length, out, _powers(self, back, length))
        return self.multiplied(out, self.vector([pow(length, -1, self.modulus)]))

    def doubled(self, values: Elements) -> Elements:
        """Return polynomials' values at twice as many powers, of the root of twice the order.

        Parameters
        ----------
        values : numpy.ndarray
            Of shape ``(..., length, limbs)``, of polynomials of degrees below the length.

        Returns
        -------
        numpy.ndarray
            Of shape ``(..., 2 * length, limbs)``.
        """
        length = values.shape[-2]
        between = self.multiplied(self.coefficients(values), self.powers(2 * length)[:length])
        return np.stack([values, self.values(between)], axis=-2).reshape(
            *values.shape[:-2], 2 * length, self.limbs
        )

    def power(self, elements: Elements, doublings: int) -> Elements:
        """Return elements to the power of 2 to ``doublings``.

        Parameters
        ----------
        elements : numpy.ndarray
            Of any shape.
        doublings : int
            How often to square.

        Returns
        -------
        numpy.ndarray
        """
        for _ in range(doublings):
            elements = self.multiplied(elements, elements)
        return elements

    def lagrange_weights(self, points: Elements, length: int) -> Elements:
        """Return weights that turn values at the powers of a root of unity into the value at a point.

        Parameters
        ----------
        points : numpy.ndarray
            Of shape ``(rows, limbs)``.
        length : int
            How many values; a power of two.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, length, limbs)``; the polynomial's degree must be below the length.
        """
        nodes, one = self.powers(length), self.vector([1])
        gaps = self.subtracted(points[:, None, :], nodes)
        hit = ~gaps.any(axis=-1)
        gaps[hit] = one[0]
        vanishing = self.subtracted(self.power(points, int(math.log2(length))), one)
        scale = self.multiplied(vanishing, self.vector([pow(length, -1, self.modulus)]))
        weights = self.multiplied(self.multiplied(self.inverted(gaps), nodes), scale[:, None, :])
        weights[hit] = one[0]
        return weights


@lru_cache(maxsize=64)
def _powers(field: NttField, root: int, length: int) -> Elements:
    powers = [1]
    for _ in range(length - 1):
        powers.append(powers[-1] * root % field.modulus)
    out = field.vector(powers)
    out.flags.writeable = False
    return out


FIELD64: Final = NttField(2**64 - 2**32 + 1, 1, pow(7, 2**32 - 1, 2**64 - 2**32 + 1), 32)
"""The field of 2**64 - 2**32 + 1 elements."""

FIELD128: Final = NttField(2**128 - 7 * 2**66 + 1, 2, pow(7, 2**62 - 7, 2**128 - 7 * 2**66 + 1), 66)
"""The field of 2**128 - 7 * 2**66 + 1 elements."""
