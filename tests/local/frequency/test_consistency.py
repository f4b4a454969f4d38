"""The named steps, each against what its paper says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.local.frequency.consistency import made_consistent

SHARES = arrays(np.float64, st.integers(1, 30), elements=st.floats(-2, 2).map(lambda x: round(x, 6)))


def made(shares: object, step: str) -> np.ndarray:
    values = np.asarray(shares, float)
    return made_consistent(values, np.full(len(values), 0.01**2), step)


@given(SHARES)
def test_norm_sub_is_the_nearest_point_of_the_simplex(shares: np.ndarray) -> None:
    found = made(shares, "norm-sub")
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    # The conditions of Karush, Kuhn and Tucker: one shift on the kept ones, no less on the others.
    kept = found > 0
    shift = (shares - found)[kept]
    assert np.ptp(shift) < 1e-9
    assert (shares[~kept] <= shift.mean() + 1e-9).all()
    assert (made(shares, "simplex") == found).all()


@given(SHARES)
def test_sums_and_signs(shares: np.ndarray) -> None:
    assert made(shares, "norm").sum() == pytest.approx(1)
    assert np.allclose(np.diff(made(shares, "norm")), np.diff(shares), atol=1e-9)
    assert made(shares, "base-pos").tolist() == [max(0.0, x) for x in shares]
    multiplied = made(shares, "norm-mul")
    assert multiplied.sum() == pytest.approx(1)
    assert multiplied.min() >= 0
    cut = made(shares, "norm-cut")
    assert cut.min() >= 0
    assert cut.sum() <= 1 + 1e-9


def test_by_hand() -> None:
    shares = [0.7, 0.5, 0.02, -0.1]
    assert made(shares, "norm-sub") == pytest.approx([0.6, 0.4, 0, 0])
    assert made(shares, "norm-mul") == pytest.approx(np.array([0.7, 0.5, 0.02, 0]) / 1.22)
    assert made(shares, "norm-cut") == pytest.approx([0.7, 0, 0, 0])
    assert made(shares, "norm") == pytest.approx([0.67, 0.47, -0.01, -0.13])
    # 5 % over 4 values: 2.24 deviations of 0.01
    assert made([0.0223, 0.0225, -0.5, 0.9], "base-cut") == pytest.approx([0, 0.0225, 0, 0.9])
    assert made([-1.0, -2.0], "norm-mul").tolist() == [0.5, 0.5]
    assert made([1.5, 0.2], "norm-cut").tolist() == [1.0, 0.0]


def test_estimates_that_tell_nothing_become_shares_too() -> None:
    # A single report with epsilon 1e-17 makes shares so large that a 1 beside them is lost.
    found = made([3e17, -1e17, -1e17, 3e17], "norm-sub")
    assert found.tolist() == [0.5, 0.0, 0.0, 0.5]
    assert made([1.2e17, 0.0], "simplex").tolist() == [1.0, 0.0]
