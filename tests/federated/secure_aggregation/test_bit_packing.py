"""Packed vectors: every number of bits, every length, no waste."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.crypto.mask_stream import word_type
from sfumato.federated.secure_aggregation.bit_packing import add_unpacked, packed, packed_size, unpacked


@pytest.mark.parametrize("length", [1, 7, 8, 9, 1000, 40_003])
def test_what_is_packed_is_read(length: int) -> None:
    rng = np.random.default_rng(length)
    for bits in range(1, 64):
        values = rng.integers(0, 1 << bits, length, dtype=np.uint64).astype(word_type(bits))
        values[-1] = (1 << bits) - 1
        data = packed(values, bits)
        assert len(data) == packed_size(length, bits) <= -(-length * bits // 8) + 3
        assert np.array_equal(unpacked(data, length, bits), values)
        total = np.full(length, 5, word_type(bits))
        add_unpacked(total, memoryview(data), bits)
        assert np.array_equal(total, values + word_type(bits)(5))


def test_the_bytes_do_not_change() -> None:
    values = np.array([0, 1, 0x2ABCD, 0x3FFFF, 0x10000], np.uint32)
    assert packed(values, 18).hex() == "00000100cdabffff0000e001"
