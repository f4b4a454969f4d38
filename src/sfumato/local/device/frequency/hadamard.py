"""The client halves of Hadamard response: one bit of information, or a column of several matrices."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.block_design import NumberedRandomizer
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["HadamardResponseRandomizer", "OneBitHadamardRandomizer"]

_LARGEST: Final = 1 << 26


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitHadamardRandomizer(NumberedRandomizer):
    r"""A column of a Hadamard matrix, drawn evenly, and the sign that the value's row has there, or not.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most 2**26 categories.

    Attributes
    ----------
    size : int
        Of the matrix: the smallest power of two with a row for each value.

    Notes
    -----
    Entry (x, j) is -1 to the number of bits that x and j share. The report :math:`2j + b` supports the rows
    whose sign in column j is :math:`(-1)^b`: half of them.

    Guarantee: see `DesignRandomizer`; the column is independent of the truth.

    References
    ----------
    Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms"; Cormode, Kulkarni,
    Srivastava (2018), "Marginal release under local differential privacy".

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> OneBitHadamardRandomizer(epsilon=1.0, domain=Domain(range(65_536))).width
    7
    """

    wire_name: ClassVar[str] = "one-bit-hadamard"

    size: int = field(init=False, repr=False, compare=False)

    def _arrange(self, odds: Fraction) -> None:
        self._set(size=1 << (_checked(len(self.domain)) - 1).bit_length())

    def _arrangement(self) -> dict[str, Any]:
        return {"size": self.size}

    @property
    def part(self) -> Fraction:
        """A half."""
        return Fraction(1, 2)

    @property
    def number(self) -> int:
        """Two signs a column."""
        return 2 * self.size

    def draw(self, codes: NDArray[np.int64], true: NDArray[np.bool_], source: RandomSource) -> Records:
        """Return a column and its sign in the rows of some indices, or else the other sign.

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
        columns = uniform_integers(self.size, len(codes), source)
        return self.layout.pack((2 * columns + (parity(columns & codes) ^ ~true)).astype(np.uint64))

    def supporting(self, code: int) -> NDArray[np.bool_]:
        """Return which columns and signs a row has.

        Parameters
        ----------
        code : int
            Index of a category in the domain.

        Returns
        -------
        bool array, shape (reports,)
            In the order of `reports`.
        """
        columns, signs = np.divmod(np.arange(self.number), 2)
        return np.asarray(parity(columns & code) == signs)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponseRandomizer(NumberedRandomizer):
    r"""A column of one of several Hadamard matrices, most likely one where the value's row has a plus.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most 2**26 categories.

    Attributes
    ----------
    blocks : int
        How many matrices, B.
    size : int
        Of each: b, the smallest power of two for which the rows suffice, the first of each left out.

    Notes
    -----
    The value at index x is row :math:`1 + x \bmod (b-1)` of matrix :math:`\lfloor x/(b-1) \rfloor`; the
    report :math:`ib + z` is column z of matrix i, and it supports the rows of matrix i with a plus there. So
    a value is supported by one in 2B of all reports. B minimises the variance, as a mean over values whose
    matrices are equally frequent: about :math:`(e^\epsilon - 1)/2`.

    Guarantee: see `DesignRandomizer`.

    References
    ----------
    Acharya, Sun, Zhang (2019), "Hadamard response: estimating distributions privately, efficiently, and with
    little communication", where B is a power of two.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = HadamardResponseRandomizer(epsilon=3.0, domain=Domain(range(1000)))
    >>> device.blocks, device.size, device.width
    (10, 128, 6)
    """

    wire_name: ClassVar[str] = "hadamard-response"

    blocks: int = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)

    def _arrange(self, odds: Fraction) -> None:
        count = _checked(len(self.domain))
        low = min(count, max(1, int((odds - 1) / 2)))
        blocks = min(range(low, min(count, low + 1) + 1), key=lambda number: _mean_variance(odds, number))
        self._set(blocks=blocks, size=1 << (-(-count // blocks)).bit_length())

    def _arrangement(self) -> dict[str, Any]:
        return {"blocks": self.blocks, "size": self.size}

    @property
    def part(self) -> Fraction:
        """Half of a matrix."""
        return Fraction(1, 2 * self.blocks)

    @property
    def number(self) -> int:
        """Columns of all matrices."""
        return self.blocks * self.size

    def draw(self, codes: NDArray[np.int64], true: NDArray[np.bool_], source: RandomSource) -> Records:
        """Return columns where the rows of some indices have a plus, or else any others.

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
        size, count = self.size, len(codes)
        block, row = np.divmod(codes, size - 1)
        row += 1
        own = uniform_integers(size, count, source)
        # Each other column twice: those of the own matrix as the two that one bit makes alike.
        other = uniform_integers(2 * self.blocks * size - size, count, source)
        beside = other - size >> 1
        inside = true | (other < size)
        column = np.where(true, own, other & (size - 1))
        column ^= np.where(parity(column & row) == true, row & -row, 0)
        away = beside // size
        named = np.where(
            inside, block * size + column, (away + (away >= block)) * size + (beside & (size - 1))
        )
        return self.layout.pack(named.astype(np.uint64))

    def supporting(self, code: int) -> NDArray[np.bool_]:
        """Return which columns have a plus in a row.

        Parameters
        ----------
        code : int
            Index of a category in the domain.

        Returns
        -------
        bool array, shape (reports,)
            In the order of `reports`.
        """
        at, row = divmod(code, self.size - 1)
        block, column = np.divmod(np.arange(self.number), self.size)
        return np.asarray((block == at) & ~parity(column & (row + 1)))


def parity(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which whole numbers, of at least 0 and below 2**32, have an odd number of bits.

    Parameters
    ----------
    numbers : array of whole numbers

    Returns
    -------
    bool array of the same shape
    """
    folded = numbers.astype(np.uint32)
    for shift in (16, 8, 4, 2, 1):
        folded ^= folded >> np.uint32(shift)
    return (folded & np.uint32(1)).astype(np.bool_)


def _checked(count: int) -> int:
    if count > _LARGEST:
        _check.refuse("domain", "have at most 2**26 categories", count, "hash the values to fewer")
    return count


def _mean_variance(odds: Fraction, blocks: int) -> Fraction:
    """Return the variance of a rare value's estimate, but for a factor, over equally frequent matrices."""
    return (2 + (odds - 1) / blocks) * (odds + 2 * blocks - 1)
