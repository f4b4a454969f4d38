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

from collections.abc import Iterator
from typing import Any

import numpy as np

from sfumato.crypto.mask_stream import Words, word_type

__all__ = ["packed", "packed_size", "unpacked"]


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
    kind = word_type(bits)
    total: Words = np.zeros(length, kind)
    start = 0
    for low, width in _planes(bits):
        size = -(-length * width // 8)
        plane = _read(data[start : start + size], length, width, kind)
        start += size
        if low:
            total |= plane << kind(low)
        else:
            total = plane
    return total


def _read(data: bytes | memoryview, length: int, width: int, kind: type[np.unsignedinteger[Any]]) -> Words:
    if width >= 8:
        return np.frombuffer(data, f"<u{width // 8}").astype(kind)
    # One number for each byte, whose own bytes are the entries: a look-up of whole words is the fastest.
    shifts = np.arange(0, 8, width)
    entries = ((np.arange(256)[:, None] >> shifts) & ((1 << width) - 1)).astype(np.uint8)
    words = entries.view(f"u{len(shifts)}")[:, 0]
    return np.take(words, np.frombuffer(data, np.uint8)).view(np.uint8)[:length].astype(kind)
