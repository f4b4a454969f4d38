"""Vectors of residues modulo 2^bits as bytes: ``bits`` bits an entry, without waste.

The bits of an entry are cut into planes of 32, 16, 8, 4, 2 or 1 bits, as the binary digits of ``bits`` say,
and each plane is written by itself: whole bytes are copied, smaller parts are joined to bytes by shifts.

>>> import numpy as np
>>> len(packed(np.arange(8, dtype=np.uint32), 18))
18
>>> unpacked(packed(np.arange(3, dtype=np.uint32), 18), 3, 18).tolist()
[0, 1, 2]
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.mask_stream import Words, word_type

__all__ = ["add_unpacked", "packed", "packed_size", "unpacked"]

_BLOCK: Final = 1 << 14
"""Entries that are added at a time: a temporary array of so many stays in the cache."""


def _planes(bits: int) -> Iterator[tuple[int, int]]:
    """Yield the lowest bit and the number of bits of each plane."""
    low = 0
    for width in (32, 16, 8, 4, 2, 1):
        if bits & width:
            yield low, width
            low += width


def packed_size(length: int, bits: int) -> int:
    """Return how many bytes `packed` needs.

    >>> packed_size(100_000, 18)
    225000
    """
    return sum(-(-length * width // 8) for _, width in _planes(bits))


def packed(values: Words, bits: int) -> bytes:
    """Return the bytes of residues below 2^bits; bits is at most 63."""
    parts = []
    for low, width in _planes(bits):
        plane = values >> values.dtype.type(low)
        if width >= 8:
            parts.append(plane.astype(f"<u{width // 8}").tobytes())
            continue
        each = 8 // width
        small = np.zeros(-(-len(values) // each) * each, np.uint8)
        small[: len(values)] = plane.astype(np.uint8) & ((1 << width) - 1)
        joined = small[::each].copy()
        for at in range(1, each):
            joined |= small[at::each] << (at * width)
        parts.append(joined.tobytes())
    return b"".join(parts)


def unpacked(data: bytes | memoryview, length: int, bits: int) -> Words:
    """Return the residues of `packed_size` bytes; every such bytes are of some residues."""
    total: Words = np.zeros(length, word_type(bits))
    add_unpacked(total, data, bits)
    return total


def add_unpacked(total: Words, data: bytes | memoryview, bits: int) -> None:
    """Add the residues of `packed_size` bytes to a sum of ``word_type(bits)`` in place, modulo its words."""
    start, length = 0, len(total)
    for low, width in _planes(bits):
        size = -(-length * width // 8)
        plane = np.frombuffer(data[start : start + size], f"<u{max(1, width // 8)}")
        start += size
        for at in range(0, length, _BLOCK):
            piece = total[at : at + _BLOCK]
            if width < 8:
                rows = np.take(
                    _table(low, width, total.itemsize),
                    plane[at * width // 8 : (at + _BLOCK) * width // 8],
                    axis=0,
                )
                piece += rows.reshape(-1).view(total.dtype)[: len(piece)]
            elif low:
                piece += plane[at : at + _BLOCK].astype(total.dtype) << total.dtype.type(low)
            else:
                piece += plane[at : at + _BLOCK]


@functools.lru_cache(maxsize=16)
def _table(low: int, width: int, itemsize: int) -> NDArray[Any]:
    """Return, for each byte of a plane, its entries in their place, as few items: so the look-up is fast."""
    entries = (np.arange(256)[:, None] >> np.arange(0, 8, width)) & ((1 << width) - 1)
    words = np.ascontiguousarray((entries.astype(np.uint64) << np.uint64(low)).astype(f"u{itemsize}"))
    items = words.view(np.complex128 if words.shape[1] * itemsize % 16 == 0 else np.uint64)
    return items[:, 0] if items.shape[1] == 1 else items
