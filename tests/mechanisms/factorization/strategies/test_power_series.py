"""Series: inverses, and the pattern of steps that moves most."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.power_series import (
    inverse,
    product,
    worst_participation,
)
from tests.cases import cases


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
