"""Bloom filters with hash functions that are the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.record_layout import Records

__all__ = ["MAX_HASHES", "bloom_filters", "bloom_indices", "encoded"]

MAX_HASHES = 8


def encoded(value: object) -> bytes:
    """Return the bytes that a string or bytes are hashed as; the two never alike.

    Parameters
    ----------
    value : str or bytes

    Returns
    -------
    bytes
    """
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if not isinstance(value, bytes):
        _check.refuse_type("values", "be strings or bytes", value, "pass str(value)")
    return b"b" + value


def bloom_indices(
    values: Iterable[bytes], cohorts: Iterable[int], hashes: int, bits: int
) -> NDArray[np.int64]:
    """Return the positions that hash functions map values to.

    Parameters
    ----------
    values : iterable of bytes
        What `encoded` returned.
    cohorts : iterable of int
        The cohort of each: every cohort has hash functions of its own.
    hashes, bits : int
        How many functions, at most `MAX_HASHES`, and how many positions.

    Returns
    -------
    ndarray of int64, shape (values, hashes)

    Notes
    -----
    The positions are the words of 64 bits of BLAKE2b of cohort and value, modulo ``bits``.

    Examples
    --------
    >>> bloom_indices([b"sfumato", b"sfumato"], [0, 1], 2, 128).tolist()
    [[59, 51], [10, 30]]
    """
    make, size = hashlib.blake2b, 8 * hashes
    digests = b"".join(
        make(cohort.to_bytes(4, "little") + value, digest_size=size, person=b"sfumato bloom").digest()
        for value, cohort in zip(values, cohorts, strict=True)
    )
    words = np.frombuffer(digests, "<u8").reshape(-1, hashes)
    return (words % np.uint64(bits)).astype(np.int64)


def bloom_filters(indices: NDArray[np.int64], bits: int) -> Records:
    """Return rows of ``bits`` bits, eight to a byte, with those at the given positions set.

    Parameters
    ----------
    indices : int64 array, shape (values, hashes)
        Positions of bits, each below ``bits``.
    bits : int
        Of a filter, a multiple of 8.

    Returns
    -------
    uint8 array, shape (values, bits / 8)
    """
    rows = np.zeros((len(indices), bits // 8), np.uint8)
    lines = np.arange(len(indices))
    for column in indices.T:
        rows[lines, column >> 3] |= np.left_shift(1, column & 7).astype(np.uint8)
    return rows
