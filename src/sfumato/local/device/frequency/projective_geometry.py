"""The client half of projective geometry response: low error with reports of a few bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.block_design import NumberedRandomizer, mean_variance
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["ProjectiveGeometryResponseRandomizer"]

_LARGEST: Final = 1 << 24
_WORK: Final = 1 << 30
"""Approximate limit on the additions of an aggregator's last step."""
_ORDER: Final = 1 << 20
_BLOCK: Final = 1 << 15
_WASTE: Final = Fraction(101, 100)
"""Variance is given up to here for fewer points."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectiveGeometryResponseRandomizer(NumberedRandomizer):
    r"""A point of a projective space over a finite field, most likely one orthogonal to the value's own.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most 2**24 categories.

    Attributes
    ----------
    order : int
        The prime q: the field's size.
    dimension : int
        The number t of coordinates.

    Notes
    -----
    A report is one of the :math:`K = (q^t-1)/(q-1)` points with t coordinates in the field. The value at
    index x is the point whose first t - 1 coordinates are the digits of x in base q, the lowest first, and
    whose last one is 1; it is supported by the points y with :math:`\langle x, y \rangle = 0`: about one in q
    of all, and one in q of these for any second value. So q near :math:`e^\epsilon + 1` is best for many
    values. Candidates are the primes next to that number and the smallest that has room for all values, in
    every dimension, if they leave the aggregator at most about :math:`2^{30}` additions. Chosen is the one
    with the fewest points whose variance is within 1 % of the minimum. Prime powers that are no primes are
    left out, which costs up to 4 %.

    *Points as numbers.* The point 0 is (0, ..., 0, 1). Any other is :math:`1 + qu + s`: s is its last
    coordinate, and u the number of the point that the others make. Of these, number :math:`(q^l-1)/(q-1) +
    v` has as coordinates the l digits of v, then a 1, then zeros. *Drawing.* With u even among all, exactly
    one s makes y orthogonal to x, and that draws evenly from the points that support x. Of the others there
    are :math:`q^{t-1}`: point 0, and for each u the q - 1 remaining values of s.

    Guarantee: see `DesignRandomizer`.

    References
    ----------
    Feldman, Nelson, Nguyen, Talwar (2022), "Private frequency estimation via projective geometry", section 3.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = ProjectiveGeometryResponseRandomizer(epsilon=1.0, domain=Domain(range(65_536)))
    >>> device.order, device.dimension, device.width
    (3, 12, 7)
    """

    wire_name: ClassVar[str] = "projective-geometry-response"

    order: int = field(init=False, repr=False, compare=False)
    dimension: int = field(init=False, repr=False, compare=False)

    def _arrange(self, odds: Fraction) -> None:
        count = len(self.domain)
        if count > _LARGEST:
            _check.refuse("domain", "have at most 2**24 categories", count, "hash the values to fewer")
        spaces = {
            space: _variance(odds, *space, count) for space in _spaces(count, min(int(odds) + 1, _ORDER))
        }
        maximum = min(spaces.values()) * _WASTE
        order, dimension = min((_points(*space), space) for space in spaces if spaces[space] <= maximum)[1]
        self._set(order=order, dimension=dimension)

    def _arrangement(self) -> dict[str, Any]:
        return {"order": self.order, "dimension": self.dimension}

    @property
    def number(self) -> int:
        """How many reports there are."""
        return _points(self.order, self.dimension)

    @property
    def part(self) -> Fraction:
        """Part of all points that is orthogonal to a point."""
        return Fraction(_points(self.order, self.dimension - 1), self.number)

    def draw(self, codes: NDArray[np.int64], true: NDArray[np.bool_], source: RandomSource) -> Records:
        """Return points that are orthogonal to those of some indices, or else are not.

        Parameters
        ----------
        codes : int64 array, shape (n,)
            Indices of categories in the domain.
        true : bool array, shape (n,)
            Whether the report supports that category.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, width)
            One stamped record for each index.
        """
        others, planes = self.order - 1, self.order ** (self.dimension - 1)
        drawn = uniform_integers(planes, len(codes), source) - 1
        # Point 0, here -1, supports nothing; any other number is a u and one of the values beside the true s.
        again = np.flatnonzero(true & (drawn < 0))
        drawn[again] = uniform_integers(planes - 1, len(again), source)
        start = np.maximum(drawn, 0) // others
        last = np.where(true, self.order, drawn - start * others + 1 + self.order)
        last -= self._products(codes, start)
        last -= np.where(last >= self.order, self.order, 0)
        named = np.where(drawn < 0, 0, 1 + self.order * start + last)
        return self.layout.pack(named.astype(np.uint64))

    def _products(self, codes: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the scalar products of the first t - 1 coordinates of values and of points."""
        order, free = self.order, self.dimension - 1
        kind = np.dtype(np.uint32 if free * order**2 < 1 << 32 and order**free < 1 << 31 else np.uint64)
        firsts = [_points(order, length) for length in range(1, free)]
        lifts = np.array([order**length - _points(order, length) for length in range(free)], kind)
        found = np.empty(len(codes), np.int64)
        for at in range(0, len(codes), _BLOCK):
            x, y = codes[at : at + _BLOCK].astype(kind), starts[at : at + _BLOCK].astype(kind)
            length = np.zeros(len(y), np.uint8)
            for first in firsts:
                length += y >= kind.type(first)
            y += lifts[length]
            total = np.zeros(len(y), kind)
            for _ in range(free):
                rest, more = x // kind.type(order), y // kind.type(order)
                total += (x - rest * kind.type(order)) * (y - more * kind.type(order))
                x, y = rest, more
            found[at : at + _BLOCK] = total % kind.type(order)
        return found

    def supporting(self, code: int) -> NDArray[np.bool_]:
        """Return which points are orthogonal to a value's.

        Parameters
        ----------
        code : int
            Index of a category in the domain.

        Returns
        -------
        bool array, shape (reports,)
            In the order of `reports`.
        """
        starts, last = np.divmod(np.arange(self.number - 1), self.order)
        products = self._products(np.full(len(starts), code), starts)
        return np.concatenate([[False], (products + last) % self.order == 0])


def _points(order: int, dimension: int) -> int:
    return int((order**dimension - 1) // (order - 1))


def _spaces(count: int, near: int) -> Iterator[tuple[int, int]]:
    """Yield orders and dimensions that have room for so many values."""
    for dimension in range(2, max(3, count.bit_length() + 2)):
        minimum = _root(count, dimension - 1)
        maximum = _root(_WORK // dimension, dimension if dimension > 2 else 1)
        if minimum <= maximum:
            aim = max(minimum, min(near, maximum))
            yield _prime(minimum, 1), dimension
            yield _prime(aim + 1, 1), dimension
            if (below := _prime(aim, -1)) >= minimum:
                yield below, dimension


def _root(number: int, power: int) -> int:
    """Return the smallest whole number, at least 2, whose power is at least ``number``."""
    low, high = 2, max(2, number)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if middle**power >= number else (middle + 1, high)
    return low


def _prime(start: int, step: int) -> int:
    """Return the next prime from a number on, upward or downward; 0 if there is none."""
    while start >= 2 and any(start % factor == 0 for factor in range(2, int(start**0.5) + 1)):
        start += step
    return max(0, start)


def _variance(odds: Fraction, order: int, dimension: int, count: int) -> Fraction:
    """Return the variance of an estimate from one report, as a mean over so many values."""
    points, one, two = (_points(order, dimension - values) for values in range(3))
    return mean_variance(odds, Fraction(one, points), Fraction(two, points), count)
