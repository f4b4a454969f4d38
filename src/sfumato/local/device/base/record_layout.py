"""The layout of a record in bytes: the payload's bits from the first byte on, then a tag to the end.

The tag comes from the digest of the specification. It fills the spare high bits, at least 4, so that a single
record made under another version, protocol or domain is recognised as foreign, except with probability 2^-4
or less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout", "Records"]

Records = NDArray[np.uint8]
"""Records as rows of bytes."""

_MIN_TAG: Final = 4


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """A payload of some bits and the tag after it, in whole bytes, the lowest bits first.

    Parameters
    ----------
    bits : int
        Of the payload, at least 1.
    digest : bytes
        Of the specification; the tag is its beginning.

    Examples
    --------
    >>> layout = Layout(10, bytes(32))
    >>> layout.width, layout.pack(np.array([1, 513], np.uint64)).tolist()
    (2, [[1, 0], [1, 2]])
    """

    bits: int
    digest: bytes

    @property
    def width(self) -> int:
        """Bytes of a record."""
        return -(-(self.bits + _MIN_TAG) // 8)

    @property
    def _whole(self) -> int:
        """Bytes that hold nothing but payload."""
        return self.bits // 8

    def _tag(self) -> tuple[Records, Records]:
        """Return the tag and the mask of its bits, in the one or two bytes that it lies in."""
        size, shift = self.width - self._whole, self.bits % 8
        mask = (1 << 8 * size) - (1 << shift)
        tag = int.from_bytes(self.digest[:2], "little") << shift & mask
        return tuple(np.frombuffer(x.to_bytes(size, "little"), np.uint8) for x in (tag, mask))  # type: ignore[return-value]

    def stamp(self, records: Records) -> None:
        """Write the tag into records, in place, over whatever bits are there.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Changed in place.
        """
        tag, mask = self._tag()
        for column, (bits, over) in enumerate(zip(tag, mask, strict=True), self._whole):
            records[:, column] = records[:, column] & ~over | bits

    def genuine(self, records: Records) -> NDArray[np.bool_]:
        """Return which records have the tag.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
        """
        tag, mask = self._tag()
        found = np.ones(len(records), np.bool_)
        for column, (bits, over) in enumerate(zip(tag, mask, strict=True), self._whole):
            found &= records[:, column] & over == bits
        return found

    def pack(self, payloads: NDArray[np.uint64]) -> Records:
        """Return records of payloads that are whole numbers below ``2**bits``, of at most 56 bits.

        Parameters
        ----------
        payloads : uint64 array, shape (records,)

        Returns
        -------
        uint8 array, shape (records, width)
        """
        records = payloads.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)[:, : self.width].copy()
        self.stamp(records)
        return records

    def unpack(self, records: Records) -> NDArray[np.uint64]:
        """Return the payloads of records as whole numbers; see `pack`.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        uint64 array, shape (records,)
        """
        wide = np.zeros((len(records), 8), np.uint8)
        wide[:, : self.width] = records
        payloads = wide.view("<u8")[:, 0] & np.uint64((1 << self.bits) - 1)
        return payloads.astype(np.uint64, copy=False)
