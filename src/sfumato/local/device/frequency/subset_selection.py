"""The client half of subset selection: a random set of categories, most likely with the truth in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.block_design import DesignRandomizer, mean_variance
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["SubsetSelectionRandomizer"]

_LARGEST: Final = 1 << 20
_CELLS: Final = 1 << 23


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelectionRandomizer(DesignRandomizer):
    r"""A set of k categories, most likely one with the truth in it.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most 2**20 categories.

    Attributes
    ----------
    subset_size : int
        k: the whole number next to :math:`d/(e^\epsilon+1)`, of d categories, with less variance as a mean
        over all.
    listed : bool
        Whether a record lists the indices of the members, ascending, which then takes fewer bits; else it has
        a bit for each category.

    Notes
    -----
    Either encoding describes the set alone: the order in which members were drawn does not show. Members
    are drawn by Floyd's method, evenly from all sets: of k others or, if the truth is a member, of k - 1.

    Guarantee: see `DesignRandomizer`.

    References
    ----------
    Ye, Barg (2018), "Optimal schemes for discrete distribution estimation under locally differential
    privacy". Bentley, Floyd (1987), "A sample of brilliance".

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = SubsetSelectionRandomizer(epsilon=1.0, domain=Domain(range(1024)))
    >>> device.subset_size, device.width
    (275, 132)
    """

    wire_name: ClassVar[str] = "subset-selection"

    subset_size: int = field(init=False, repr=False, compare=False)

    def _arrange(self, odds: Fraction) -> None:
        count = len(self.domain)
        if count > _LARGEST:
            remedy = "use projective geometry response, whose reports are short"
            _check.refuse("domain", "have at most 2**20 categories", count, remedy)
        low = max(1, int(count / (odds + 1)))
        sizes = range(low, min(low + 1, count // 2) + 1)
        best = min(sizes, key=lambda size: mean_variance(odds, *_parts(count, size)[:2], count))
        self._set(subset_size=best)

    def _arrangement(self) -> dict[str, Any]:
        return {"subset_size": self.subset_size}

    @property
    def part(self) -> Fraction:
        """Part of all sets with a given member."""
        return self.parts[0]

    @property
    def parts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Parts of all sets with one given member, with two and with three."""
        return _parts(len(self.domain), self.subset_size)

    @property
    def _member_bits(self) -> int:
        return (len(self.domain) - 1).bit_length()

    @property
    def listed(self) -> bool:
        """Whether a record lists the members."""
        return self.subset_size * self._member_bits < len(self.domain)

    @property
    def _bits(self) -> int:
        return self.subset_size * self._member_bits if self.listed else len(self.domain)

    def draw(self, codes: NDArray[np.int64], true: NDArray[np.bool_], source: RandomSource) -> Records:
        """Return sets that contain given indices, or else do not.

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
        found = np.empty((len(codes), self.width), np.uint8)
        rows = max(1, _CELLS // len(self.domain))
        for at in range(0, len(codes), rows):
            piece = slice(at, at + rows)
            found[piece] = self._written(self._sets(codes[piece], true[piece], source))
        return found

    def _sets(
        self, codes: NDArray[np.int64], true: NDArray[np.bool_], source: RandomSource
    ) -> NDArray[np.bool_]:
        count, size, rows = len(self.domain), self.subset_size, np.arange(len(codes))
        held = np.zeros((len(codes), count), np.bool_)
        for step in range(size):
            # Floyd: a repeated draw is replaced by the last index, which makes every set equally likely.
            last = count - 1 - size + step
            drawn = uniform_integers(last + 1, len(codes), source)
            drawn = np.where(held[rows, drawn], last, drawn)
            held[rows, drawn] = True if step else ~true
        # The draws were from all indices but one; the last one stands for it.
        held[:, -1] = held[rows, codes]
        held[rows, codes] = true
        return held

    def _written(self, held: NDArray[np.bool_]) -> Records:
        """Return sets as records."""
        bits: NDArray[Any] = held
        if self.listed:
            members = np.nonzero(held)[1].reshape(len(held), self.subset_size)
            bits = members[:, :, None] >> np.arange(self._member_bits) & 1
        packed = np.packbits(bits.reshape(len(held), -1).astype(np.bool_), axis=1, bitorder="little")
        records = np.zeros((len(held), self.width), np.uint8)
        records[:, : packed.shape[1]] = packed
        self.layout.stamp(records)
        return records

    def members(self, records: Records) -> NDArray[np.int64]:
        """Return the members of sets, from records that list them.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        int64 array, shape (records, subset_size)
            Indices of categories, ascending.
        """
        size, bits = self.subset_size, self._member_bits
        listed = np.unpackbits(records, axis=1, count=size * bits, bitorder="little")
        return listed.reshape(-1, size, bits) @ (1 << np.arange(bits))

    def flags(self, records: Records) -> NDArray[np.uint8]:
        """Return a 1 for each member in records that have a bit for each category.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        uint8 array, shape (records, categories)
        """
        return np.unpackbits(records, axis=1, count=len(self.domain), bitorder="little")

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records hold a set of the right size, in its one encoding.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        sound = np.empty(len(records), np.bool_)
        rows = max(1, _CELLS // self._bits)
        for at in range(0, len(records), rows):
            piece = records[at : at + rows]
            if self.listed:
                members = self.members(piece)
                rising = (np.diff(members, axis=1) > 0).all(axis=1)
                sound[at : at + rows] = rising & (members[:, -1] < len(self.domain))
            else:
                sound[at : at + rows] = self.flags(piece).sum(axis=1, dtype=np.int64) == self.subset_size
        return sound

    def _all_sets(self) -> NDArray[np.bool_]:
        held = [
            np.isin(np.arange(len(self.domain)), members)
            for members in combinations(range(len(self.domain)), self.subset_size)
        ]
        return np.array(held)

    def reports(self) -> Records:
        """Return all sets of the right size; for small domains.

        Returns
        -------
        uint8 array, shape (sets, width)
        """
        return self._written(self._all_sets())

    def supporting(self, code: int) -> NDArray[np.bool_]:
        """Return which sets contain a value.

        Parameters
        ----------
        code : int
            Index of a category in the domain.

        Returns
        -------
        bool array, shape (reports,)
            In the order of `reports`.
        """
        return self._all_sets()[:, code]


def _parts(count: int, size: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return the parts of all subsets with one, two and three given members."""
    one = Fraction(size, count)
    two = one * Fraction(size - 1, count - 1)
    return one, two, two * Fraction(size - 2, count - 2) if count > 2 else Fraction(0)
