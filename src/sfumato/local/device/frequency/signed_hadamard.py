"""The client half of signed Hadamard response: one bit about an index and its sign."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.block_design import NumberedRandomizer
from sfumato.local.device.frequency.hadamard import parity
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["SignedHadamardRandomizer"]

_LARGEST: Final = 1 << 26


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHadamardRandomizer(NumberedRandomizer):
    r"""A column of a Hadamard matrix, drawn evenly, and the index's entry times the sign, or its opposite.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most 2**26 categories. The indices 2v and 2v + 1 of the domain are the
        plus and the minus at v; of an odd number the last is a plus without a minus.

    Attributes
    ----------
    size : int
        Of the matrix: the smallest power of two with a row for each v.

    Notes
    -----
    Entry (v, j) is -1 to the number of bits that v and j share. The report :math:`2j + b` supports the plus
    at v where that entry is :math:`(-1)^b`, and the minus at v where it is not: each is supported by half of
    the reports. It estimates the difference of the frequencies of plus and minus at v, not either frequency.

    Guarantee: see `DesignRandomizer`; the column is independent of the truth.

    References
    ----------
    Cormode, Kulkarni, Srivastava (2019), "Answering range queries under local differential privacy",
    HaarHRR.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = SignedHadamardRandomizer(epsilon=1.0, domain=Domain(range(2048)))
    >>> device.size, device.width
    (1024, 6)
    """

    wire_name: ClassVar[str] = "signed-hadamard"

    size: int = field(init=False, repr=False, compare=False)

    def _arrange(self, odds: Fraction) -> None:
        count = len(self.domain)
        if count > _LARGEST:
            _check.refuse("domain", "have at most 2**26 categories", count, "take fewer")
        self._set(size=1 << (-(-count // 2) - 1).bit_length())

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
        """Return a column and the signed entry there, or else the other sign.

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
        minus = (codes & 1).astype(np.bool_)
        signs = parity(columns & (codes >> 1)) ^ minus ^ ~true
        return self.layout.pack((2 * columns + signs).astype(np.uint64))

    def supporting(self, code: int) -> NDArray[np.bool_]:
        """Return which columns and signs support an index in the domain.

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
        return np.asarray((parity(columns & (code >> 1)) ^ bool(code & 1)) == signs)
