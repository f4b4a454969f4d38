"""The layout of a record in bytes: the payload's bits from the first byte on, then a tag to the end.

The tag is the beginning of the specification's digest. It fills the spare high bits, at least 32: a single
record that was made under another version, protocol or domain is recognised as foreign, except with
probability 2^-32 or less. A record inside of another one, whose tag covers it, has no more of a tag than the
spare bits of its last byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["TAG_BITS", "Layout", "Records"]

Records = NDArray[np.uint8]
"""Records as rows of bytes."""

TAG_BITS: Final = 32
"""Bits of the tag of a record that stands alone, at least."""


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
    tag_bits : int
        Fewest bits of the tag: `TAG_BITS`, or 0 within another record; no other number.

    Examples
    --------
    >>> layout = Layout(10, bytes(32))
    >>> layout.width, layout.pack(np.array([1, 513], np.uint64)).tolist()
    (6, [[1, 0, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0]])
    """

    bits: int
    digest: bytes
    tag_bits: int = TAG_BITS

    @property
    def width(self) -> int:
        """Bytes of a record."""
        return -(-(self.bits + self.tag_bits) // 8)

    @property
    def payload_width(self) -> int:
        """Bytes that hold payload, the last one perhaps with the first bits of the tag."""
        return -(-self.bits // 8)

    @property
    def _tag(self) -> int:
        """The tag as a number, above the payload's bits in the byte that both share."""
        shift, size = self.bits % 8, self.width - self.bits // 8
        return int.from_bytes(self.digest[:size], "little") << shift & (1 << 8 * size) - (1 << shift)

    def _parts(self) -> tuple[tuple[int, int], Records]:
        """Return the tag's bits in a byte that it shares with their mask, and its whole bytes."""
        size, shared = self.width - self.bits // 8, self.bits % 8
        written = np.frombuffer(self._tag.to_bytes(size, "little"), np.uint8)
        if not shared:
            return (0, 0), written
        return (int(written[0]), 256 - (1 << shared)), written[1:]

    def stamp(self, records: Records) -> None:
        """Write the tag into records, in place, over whatever bits are there.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Changed in place.
        """
        (bits, mask), whole = self._parts()
        if mask:
            last = records[:, self.payload_width - 1]
            last &= 255 - mask
            last |= bits
        records[:, self.payload_width :] = whole

    def genuine(self, records: Records) -> NDArray[np.bool_]:
        """Return which records have the tag.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
        """
        (bits, mask), whole = self._parts()
        found = np.ones(len(records), np.bool_)
        if mask:
            found &= records[:, self.payload_width - 1] & mask == bits
        if len(whole):
            given = np.ascontiguousarray(records[:, self.payload_width :])
            found &= given.view(np.uint32)[:, 0] == whole.view(np.uint32)[0]
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
        if 8 * self.width <= 64:
            tag = np.uint64(self._tag << self.bits - self.bits % 8)
            whole = payloads & np.uint64((1 << self.bits) - 1) | tag
            return whole.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)[:, : self.width].copy()
        records = np.empty((len(payloads), self.width), np.uint8)
        given = payloads.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
        records[:, : self.payload_width] = given[:, : self.payload_width]
        self.stamp(records)
        return records

    def unpack(self, records: Records) -> NDArray[np.uint64]:
        """Return the payloads of records as whole numbers; see `pack`.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            The tag may be missing.

        Returns
        -------
        uint64 array, shape (records,)
        """
        wide = np.zeros((len(records), 8), np.uint8)
        wide[:, : self.payload_width] = records[:, : self.payload_width]
        payloads = wide.view("<u8")[:, 0] & np.uint64((1 << self.bits) - 1)
        return payloads.astype(np.uint64, copy=False)
