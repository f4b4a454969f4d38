from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.pufferfish import GaussianAttributeMechanism

BASE: dict[str, Any] = {
    "covariances": [[[4.0, 1.0], [1.0, 2.0]]],
    "sensitive": 0,
    "answered": 1,
    "secrets": (2, 10),
    "epsilon": 0.5,
}


def test_the_shift_is_that_of_the_conditional_means() -> None:
    # Of simulated rows with one sensitive mean or another, the answered means differ by r (a - b).
    generator = np.random.default_rng(1)
    rows = generator.multivariate_normal([0, 0], BASE["covariances"][0], size=(4000, 5)).mean(axis=1)
    slope = np.polyfit(rows[:, 0], rows[:, 1], 1)[0]
    assert slope == pytest.approx(0.25, abs=0.06)  # 6 standard errors
    mechanism = GaussianAttributeMechanism(**BASE)
    assert 4.0 < mechanism.scale < 4.0 * (1 + 1e-7)
    assert mechanism.guarantee.epsilon == 0.5
    assert mechanism.guarantee.secrets == "the mean of column 0, any two values from 2 to 10"
    released = mechanism.release(2.5, rng=1)
    assert isinstance(released.value, float)
    assert released.step == Fraction(1, 2**25)  # 26 bits below the shift of 2


def test_the_class_is_as_strong_as_its_strongest_link() -> None:
    weak, strong = [[4.0, -1.0], [-1.0, 2.0]], [[1.0, -1.0], [-1.0, 2.0]]
    both = GaussianAttributeMechanism(**{**BASE, "covariances": [weak, strong]})
    assert both.scale == pytest.approx(16.0, rel=1e-6)
    alone = GaussianAttributeMechanism(**{**BASE, "covariances": [strong]})
    assert both.scale == alone.scale
    assert both.guarantee.digest != alone.guarantee.digest


def test_bad_models_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"covariances": []}, "the class is empty"),
        ({"covariances": [[[1.0, 2.0], [2.0, 1.0]]]}, "positive semidefinite"),
        ({"covariances": [[[1.0, 0.5], [0.4, 1.0]]]}, "symmetric"),
        ({"covariances": [[[1.0, 0.0], [0.0, 1.0]]]}, "have correlated columns"),
        ({"covariances": [[1.0]]}, "symmetric"),
        ({"sensitive": 2}, "a column of every covariance"),
        ({"answered": -1}, "answered"),
        ({"secrets": (3, 3)}, "two ascending numbers"),
        ({"secrets": (3,)}, "be two numbers"),
        ({"epsilon": 0}, "epsilon"),
    ]
    for change, message in cases:
        with pytest.raises(ParameterError, match=message):
            GaussianAttributeMechanism(**{**BASE, **change})
