"""The two prime fields of Prio3, with transforms of lengths that are powers of two.

Elements and arithmetic are those of `sfumato.crypto.fields.field`, of one or two limbs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np

from sfumato import _check
from sfumato.crypto.fields import _kernel
from sfumato.crypto.fields.field import Elements, PrimeField

__all__ = ["FIELD64", "FIELD128", "NttField"]


@final
@dataclass(frozen=True, slots=True)
class NttField(PrimeField):
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

    generator: int
    order_bits: int

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

    def weighted_pairs(self, weights: Elements, elements: Elements, less: Elements) -> Elements:
        """Return elements times successive powers of a weight, each beside the element less a constant.

        Parameters
        ----------
        weights : numpy.ndarray
            Of shape ``(..., limbs)``.
        elements : numpy.ndarray
            Of shape ``(..., count, limbs)``; the first is multiplied by the weight, the next by its square.
        less : numpy.ndarray
            One element, of shape ``(limbs,)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(..., 2 * count, limbs)``.
        """
        out = self.zeros(*elements.shape[:-2], 2 * elements.shape[-2])
        if out.size:
            r, x, constant = (np.ascontiguousarray(part) for part in (weights, elements, less))
            _kernel.pairs(self.limbs, elements.shape[-2], r, x, constant, out)
        return out

    def combined_rows(self, elements: Elements, weights: Elements) -> Elements:
        """Return sums of vectors, each times a weight.

        Parameters
        ----------
        elements : numpy.ndarray
            Of shape ``(..., vectors, count, limbs)``.
        weights : numpy.ndarray
            Of shape ``(..., vectors, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(..., count, limbs)``.
        """
        return self._row_sums(False, elements, np.ascontiguousarray(weights))

    def paired_products(self, elements: Elements) -> Elements:
        """Return sums of the products of vectors, the first by the second, the third by the fourth.

        Parameters
        ----------
        elements : numpy.ndarray
            Of shape ``(..., 2 * pairs, count, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(..., count, limbs)``.
        """
        return self._row_sums(True, elements, elements[:0])

    def _row_sums(self, paired: bool, elements: Elements, weights: Elements) -> Elements:
        *batch, vectors, count, _ = elements.shape
        out = self.zeros(*batch, count)
        if elements.size:
            _kernel.row_sums(self.limbs, paired, count, vectors, np.ascontiguousarray(elements), weights, out)
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
        back = _powers(self, pow(self.root(length), -1, self.modulus), length)
        between = _between(self, length)
        out = np.empty((*values.shape[:-2], 2 * length, self.limbs), np.uint64)
        rows = np.ascontiguousarray(values)
        _kernel.doubled(self.limbs, length, rows, back, between, self.powers(length), out)
        return out

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


@lru_cache(maxsize=64)
def _between(field: NttField, length: int) -> Elements:
    """Return the finer root's powers over the length, in the order of their exponents' reversed bits."""
    order = np.zeros(1, np.intp)
    while len(order) < length:
        order = np.concatenate([2 * order, 2 * order + 1])
    scaled = field.multiplied(field.powers(2 * length)[order], field.vector([pow(length, -1, field.modulus)]))
    scaled.flags.writeable = False
    return scaled


FIELD64: Final = NttField(2**64 - 2**32 + 1, 1, pow(7, 2**32 - 1, 2**64 - 2**32 + 1), 32)
"""The field of 2**64 - 2**32 + 1 elements."""

FIELD128: Final = NttField(2**128 - 7 * 2**66 + 1, 2, pow(7, 2**62 - 7, 2**128 - 7 * 2**66 + 1), 66)
"""The field of 2**128 - 7 * 2**66 + 1 elements."""
