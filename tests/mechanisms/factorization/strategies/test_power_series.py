"""Series: products in whole numbers are exact to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.power_series import (
    exact_product,
    inverse,
    product,
    worst_participation,
)
from tests.cases import cases


def python_product(weights: list[int], values: list[int]) -> list[int]:
    """With Python's integers, of any size: one product of two long numbers (Kronecker's substitution)."""
    width, n = 192, len(values)
    low = -(1 << 80)
    shifted = [value - low for value in values]

    def joined(parts: list[int]) -> int:
        return int.from_bytes(b"".join(part.to_bytes(width // 8, "little") for part in parts), "little")

    raw = (joined(weights) * joined(shifted)).to_bytes(width // 8 * (n + len(weights) + 1), "little")
    sums = [int.from_bytes(raw[i * width // 8 : (i + 1) * width // 8], "little") for i in range(n)]
    ahead = np.cumsum(np.array([*weights, *[0] * n][:n], dtype=object)).tolist()
    return [total + low * weight for total, weight in zip(sums, ahead, strict=True)]


@cases(("terms", "length"), [(3, 10), (48, 60), (49, 60), (700, 500), (5000, 5000)])
@cases("bits", [1, 20, 42])
def test_exact_product(terms: int, length: int, bits: int) -> None:
    generator = np.random.default_rng(terms)
    weights = generator.integers(0, 1 << bits, terms, endpoint=True)
    reach = 1 << (61 - bits - int(min(terms, length)).bit_length())
    values = generator.integers(-reach, reach, length, endpoint=True)
    assert exact_product(weights, values).tolist() == python_product(weights.tolist(), values.tolist())
    both = np.stack([values, -values], axis=1)
    assert (exact_product(weights, both) == exact_product(weights, values)[:, None] * [1, -1]).all()


def test_exact_product_of_the_largest_digits() -> None:
    """Every digit at its greatest magnitude, where the transform errs most."""
    weights = np.full(1 << 15, 1024 + 1024 * 2048, dtype=np.int64)
    values = np.full(1 << 15, -(1024 + 1024 * 2048), dtype=np.int64)
    expected = -(int(weights[0]) ** 2) * np.arange(1, (1 << 15) + 1, dtype=object)
    assert exact_product(weights, values).tolist() == expected.tolist()


def test_beyond_64_bits_it_wraps() -> None:
    values = np.full(100, 1 << 62)
    weights = np.full(100, 3)
    expected = [((3 << 62) * (i + 1) + (1 << 63)) % (1 << 64) - (1 << 63) for i in range(100)]
    assert exact_product(weights, values).tolist() == expected


@pytest.mark.parametrize("length", [1, 2, 30, 1000])
def test_inverse(length: int) -> None:
    series = 1 / (1 + np.arange(length))
    unit = product(series, inverse(series, length), length)
    np.testing.assert_allclose(unit, np.eye(1, length)[0], atol=1e-12)


@cases("gap", [1, 2, 5])
@cases("most", [1, 2, 4, None])
def test_worst_pattern(gap: int, most: int | None) -> None:
    weights = np.arange(9, 0, -1)
    participation = Participation(max_participations=most, separation=gap)
    expected = np.zeros(13, dtype=int)
    for start in range(0, 13, gap)[: participation.max_steps(13)]:
        expected[start : start + 9] += weights[: 13 - start]
    assert worst_participation(weights, participation, 13).tolist() == expected.tolist()


def test_too_long() -> None:
    with pytest.raises(ParameterError, match="values must have at most 1048576 terms"):
        exact_product(np.ones(3, dtype=np.int64), np.zeros((1 << 20) + 1, dtype=np.int64))
