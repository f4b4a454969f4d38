"""Symmetric matrices as vectors of the same norm, and their sums."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.mechanisms.statistics.upper_triangle import (
    entries_of,
    product_sums,
    symmetric_matrix,
    without_negative_eigenvalues,
)


def test_entries_have_the_norm_of_the_matrix_and_give_it_back() -> None:
    rng = np.random.default_rng(1)
    half = rng.normal(size=(5, 5))
    matrix = half + half.T
    entries = entries_of(matrix)
    assert entries.shape == (15,)
    assert np.linalg.norm(entries) == pytest.approx(np.linalg.norm(matrix), rel=1e-12)
    np.testing.assert_allclose(symmetric_matrix(entries, 5), matrix, rtol=1e-14)


def test_sums_are_those_of_the_records_rounded_one_by_one() -> None:
    z = np.random.default_rng(2).uniform(-1, 1, size=(40, 3))
    each = [np.rint(entries_of(np.outer(row, row)) * 64) for row in z]
    assert product_sums(z, 64).tolist() == np.sum(each, axis=0).tolist()
    assert product_sums(z[:0], 64).tolist() == [0] * 6


def test_the_nearest_matrix_of_moments_keeps_what_is_positive() -> None:
    rotation, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))
    matrix = rotation @ np.diag([2.0, 0.5, -1.0]) @ rotation.T
    values = np.linalg.eigvalsh(without_negative_eigenvalues(matrix))
    assert values == pytest.approx([0.0, 0.5, 2.0], abs=1e-12)
