"""Bounds found privately: bins, thresholds, what they cost, odd data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.mechanisms import PrivateBounds
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases


@settings(max_examples=300)
@given(st.floats(allow_nan=False), st.sampled_from([(-3, 4), (-1022, 1023), (0, 1), (5, 60)]))
def test_a_record_lies_between_the_borders_of_its_bin(x: float, exponents: tuple[int, int]) -> None:
    mechanism = PrivateBounds(scale=1, exponents=exponents)
    counts = mechanism._counts(np.array([x]))
    assert counts.sum() == 1
    place = int(counts.argmax())
    lower, upper = mechanism._border(place), mechanism._border(place + 1)
    assert lower < upper
    clamped = min(max(x, mechanism._border(0)), mechanism._border(len(counts)))
    assert lower <= clamped <= upper


def test_bounds_hold_nearly_all_records_and_no_empty_bins() -> None:
    rng = np.random.default_rng(1)
    mechanism = PrivateBounds.calibrated(epsilon=0.5)
    for data, expected in (
        (rng.uniform(20, 900, 5000), (16.0, 1024.0)),
        (rng.uniform(-3.9, 7.9, 5000), (-4.0, 8.0)),
        (-rng.uniform(1.1, 1.9, 5000), (-2.0, -1.0)),
        (np.append(rng.uniform(1.1, 1.9, 5000), [1e15, -1e15]), (1.0, 2.0)),
        (np.full(5000, math.nan), (-(2.0**-64), 2.0**-64)),
    ):
        assert mechanism.release(data, rng).value == expected


def test_no_data_has_bounds_too() -> None:
    for data in (np.zeros(0), np.array([math.inf, -math.inf, 1.0])):
        lower, upper = PrivateBounds.calibrated(epsilon=1.0).release(data).value
        assert math.isfinite(lower)
        assert lower < upper
        assert math.isfinite(upper)


def test_empty_bins_pass_as_rarely_as_promised() -> None:
    mechanism = PrivateBounds(scale=2, exponents=(-8, 8), beta=0.05)
    distribution, bins = mechanism._noise.distribution, 33
    assert bins * distribution.upper_tail(mechanism.threshold).upper <= 0.05
    assert bins * distribution.upper_tail(mechanism.threshold - 1).upper > 0.05


@pytest.mark.parametrize(
    ("relation", "bins"),
    [(Neighboring.ADD_REMOVE, 1), (Neighboring.REPLACE_ONE, 2), (Neighboring.ZERO_OUT, 2)],
)
def test_the_loss_is_that_of_the_bins_that_a_record_moves(relation: Neighboring, bins: int) -> None:
    mechanism = PrivateBounds(scale=4, neighboring=relation)
    assert mechanism.privacy_loss.epsilon(0.0) == bins / 4
    assert PrivateBounds.calibrated(epsilon=0.3, neighboring=relation).privacy_loss.epsilon(0.0) <= 0.3
    one, other = (mechanism._counts(np.array([x, 7.0])) for x in (0.0, 100.0))
    assert np.count_nonzero(one - other) == 2
    assert np.abs(one - other).max() == 1


@cases(
    ("parameters", "message"),
    [
        ({"scale": 0}, "scale must"),
        ({"scale": 1, "exponents": (3, 3)}, "exponents must"),
        ({"scale": 1, "exponents": (-2000, 3)}, "exponents must"),
        ({"scale": 1, "exponents": (0, 1024)}, "exponents must"),
        ({"scale": 1, "exponents": 5}, "exponents must"),
        ({"scale": 1, "exponents": (0.5, 2)}, "exponents must"),
        ({"scale": 1, "beta": 0.0}, "beta must"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        PrivateBounds(**parameters)
