"""Coins by the word and counts of reports: the kernels, on all instruction sets, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.local.device.frequency.local_hashing import hashed
from sfumato.numerics import _kernels
from tests.cases import cases

VARIANTS = _kernels.variants()


@pytest.fixture(autouse=True)
def _fastest_again() -> Iterator[None]:
    yield
    _kernels.use(VARIANTS[-1])


def bits_of(words: np.ndarray) -> np.ndarray:
    return (words[..., None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(np.uint8)


@given(
    st.integers(1, 64),
    st.integers(0, 2**64 - 1),
    st.sampled_from([0, 1, 7, 512, 513, 1100]),
    st.integers(0, 99),
)
@settings(max_examples=40)
def test_coins_compare_uniform_bits_with_the_threshold(bits: int, given: int, count: int, seed: int) -> None:
    threshold = given >> (64 - bits)
    words = np.random.default_rng(seed).integers(0, 2**64, (bits, count), dtype=np.uint64)
    # A one among the random bits is a zero of the uniform, the least bit in the first row.
    zeros = 1 - bits_of(words).astype(np.uint64)
    uniform = sum(zeros[level] << np.uint64(level) for level in range(bits))
    for variant in VARIANTS:
        _kernels.use(variant)
        out = np.zeros(count, np.uint64)
        _kernels.coins(words, threshold, bits, out)
        assert (bits_of(out) == (uniform < np.uint64(threshold))).all()


@cases(
    ("rows", "width"),
    [(0, 3), (1, 1), (7, 129), (8, 512), (9, 513), (65_528, 2), (65_529, 1), (140_000, 3), (40, 1030)],
)
def test_bits_are_counted(rows: int, width: int) -> None:
    data = np.random.default_rng(rows).integers(0, 256, (rows, width), dtype=np.uint8)
    expected = np.unpackbits(data, axis=1, bitorder="little").sum(axis=0) + 5
    for variant in VARIANTS:
        _kernels.use(variant)
        counts = np.full(8 * width, 5, np.int64)
        _kernels.count_bits(data, width, counts)
        assert (counts == expected).all()


def test_full_rows_do_not_overflow() -> None:
    counts = np.zeros(16, np.int64)
    _kernels.count_bits(np.full((200_000, 2), 255, np.uint8), 2, counts)
    assert (counts == 200_000).all()


@cases(("reports", "values"), [(0, 3), (1, 1), (2047, 4), (2049, 7), (5000, 33), (3, 0)])
def test_hashes_are_counted(reports: int, values: int) -> None:
    source = np.random.default_rng(reports)
    seeds, low, keys = (source.integers(0, 2**32, n, dtype=np.uint32) for n in (reports, reports, values))
    span = source.integers(0, 2**31, reports, dtype=np.uint32)
    hashes = hashed(seeds[:, None], keys[None, :])
    expected = (hashes - low[:, None] < span[:, None]).sum(axis=0) + 9
    for variant in VARIANTS:
        _kernels.use(variant)
        counts = np.full(values, 9, np.int64)
        _kernels.count_hashes(seeds, low, span, keys, counts)
        assert (counts == expected).all()


def test_the_hash_is_fixed_for_ever() -> None:
    seeds, keys = np.array([0, 1, 2**32 - 1], np.uint32), np.array([5, 0x9E3779B1, 77], np.uint32)
    assert hashed(seeds, keys).tolist() == [3812518360, 1713272879, 2499552457]


def test_refuses_buffers_that_do_not_fit() -> None:
    words, whole = np.zeros(6, np.uint64), np.zeros(3, np.uint32)
    for bits, room in ((0, 6), (65, 6), (2, 4), (3, 3), (-1, 6)):
        with pytest.raises(ValueError, match="words must hold"):
            _kernels.coins(words, 1, bits, np.zeros(room, np.uint64))
    with pytest.raises(ValueError, match="out must hold whole"):
        _kernels.coins(words, 1, 1, np.zeros(7, np.uint8))
    for width, room in ((0, 8), (-1, 8), (5, 40), (3, 8), (3, 23)):
        with pytest.raises(ValueError, match="rows must be of"):
            _kernels.count_bits(np.zeros(12, np.uint8), width, np.zeros(room, np.int64))
    with pytest.raises(ValueError, match="counts must hold whole"):
        _kernels.count_bits(np.zeros(1, np.uint8), 1, np.zeros(9, np.uint8))
    good = np.zeros(3, np.int64)
    for arrays in (
        (whole[:2], whole, whole, whole, good),
        (whole, whole[:2], whole, whole, good),
        (whole, whole, whole[:2], whole, good),
        (whole, whole, whole, whole[:2], good),
        (whole, whole, whole, whole, good[:2]),
        (whole.view(np.uint8)[:-1], whole, whole, whole, good),
        (np.zeros(13, np.uint8)[1:], whole, whole, whole, good),
    ):
        with pytest.raises(ValueError, match="seeds, lows and spans"):
            _kernels.count_hashes(*arrays)
    frozen = np.zeros(8, np.int64)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError, TypeError)):
        _kernels.count_bits(np.zeros(1, np.uint8), 1, frozen)
