"""The public rotation keeps lengths and sums, and spreads a vector over its entries."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated.distributed_noise.rotation import padded_dimension, rotate, rotate_back


def test_it_is_the_signs_and_then_the_hadamard_matrix() -> None:
    matrix = np.array([rotate(row, b"seed") for row in np.eye(8)]).T * math.sqrt(8)
    assert np.allclose(np.abs(matrix), 1)
    signs = matrix[0]  # the first row of Hadamard's matrix is ones
    hadamard = np.array([[(-1) ** (i & j).bit_count() for j in range(8)] for i in range(8)])
    assert np.allclose(matrix, hadamard * signs)
    assert set(np.sign(signs)) == {-1.0, 1.0}


def test_a_rotation_is_undone_and_sums_pass_through() -> None:
    rng = np.random.default_rng(1)
    for dimension in (1, 2, 3, 100, 1025):
        first, second = rng.normal(size=(2, dimension))
        rotated = rotate(first, b"1") + rotate(second, b"1")
        assert len(rotated) == padded_dimension(dimension)
        assert np.allclose(rotate_back(rotated, b"1", dimension), first + second, atol=1e-12)
        assert np.linalg.norm(rotate(first, b"1")) == pytest.approx(np.linalg.norm(first))
        assert not dimension > 3 or not np.allclose(rotate(first, b"2"), rotate(first, b"1"))


def test_one_large_entry_is_spread() -> None:
    spike = np.zeros(4096)
    spike[7] = 64.0
    assert np.allclose(np.abs(rotate(spike, b"x")), 1.0)


def test_signs_are_those_of_the_keystream() -> None:
    """They must be the same on every machine and in every version."""
    spikes = [rotate(row, b"sfumato")[0] * 4 for row in np.eye(16)]  # the first row of Hadamard's is ones
    signs = [1, -1, -1, 1, -1, -1, -1, -1, 1, -1, -1, 1, -1, -1, 1, -1]
    assert np.round(spikes).astype(int).tolist() == signs


def test_a_seed_is_public_bytes() -> None:
    for seed in (b"", "text", 3, None):
        with pytest.raises(ParameterError, match=r"^seed must be public bytes"):
            rotate(np.ones(2), seed)  # type: ignore[arg-type]
