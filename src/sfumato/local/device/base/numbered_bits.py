"""Records of whole bytes and a number: bits of a sketch or a filter, and which hash functions made them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Layout, Records

__all__ = ["joined", "parted"]


def joined(rows: Records, numbers: NDArray[np.int64], layout: Layout) -> Records:
    """Return stamped records of some bytes each, followed by a number.

    Parameters
    ----------
    rows : uint8 array, shape (records, bytes)
    numbers : int64 array, shape (records,)
        Of as many bits as the layout has beyond the bytes, at most 56.
    layout : Layout
        Of the whole record.

    Returns
    -------
    uint8 array, shape (records, layout.width)

    Examples
    --------
    >>> layout = Layout(8 + 3, bytes(32))
    >>> records = joined(np.array([[255], [7]], np.uint8), np.array([5, 2]), layout)
    >>> records.tolist()
    [[255, 5, 0, 0, 0, 0], [7, 2, 0, 0, 0, 0]]
    """
    whole = rows.shape[1]
    tail = Layout(layout.bits - 8 * whole, layout.digest, layout.tag_bits)
    return np.hstack([rows, tail.pack(numbers.astype(np.uint64))])


def parted(records: Records, whole: int, layout: Layout) -> tuple[Records, NDArray[np.int64]]:
    """Return the bytes and the numbers that `joined` put together.

    Parameters
    ----------
    records : uint8 array, shape (records, layout.width)
    whole : int
        Bytes before the number.
    layout : Layout
        Of the whole record.

    Returns
    -------
    rows : uint8 array, shape (records, whole)
    numbers : int64 array, shape (records,)

    Examples
    --------
    >>> rows, numbers = parted(np.array([[255, 5], [7, 2]], np.uint8), 1, Layout(11, bytes(32)))
    >>> rows.tolist(), numbers.tolist()
    ([[255], [7]], [5, 2])
    """
    tail = Layout(layout.bits - 8 * whole, layout.digest, layout.tag_bits)
    return records[:, :whole], tail.unpack(records[:, whole:]).astype(np.int64)
