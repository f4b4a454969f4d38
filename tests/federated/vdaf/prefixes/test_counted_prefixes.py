"""What is found among noisy counts, and how near they are to exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import AggregatorNoise, CountedPrefixes
from sfumato.mechanisms import Laplace
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.privacy import Neighboring
from tests.cases import cases

ONE = Laplace(sensitivity=1, scale=30, l0=2, neighboring=Neighboring.REPLACE_ONE)
NOISE = AggregatorNoise(mechanism=ONE, shift=Shift.entries(2, 1))


def answer(**changed: Any) -> CountedPrefixes:
    chosen = {
        "bits": 2,
        "prefixes": ("00", "01", "10", "11"),
        "counts": (5_000, -7, 600, 5_000),
        "threshold": 600,
        "reports": 9_000,
        "noise": NOISE,
        "loss": ONE.privacy_loss,
        "levels": 1,
        **changed,
    }
    return CountedPrefixes(**chosen)


def test_what_reaches_the_threshold_is_found() -> None:
    told = answer()
    assert told.top(9) == [("00", 5_000), ("11", 5_000), ("10", 600)]
    assert told.top(1) == [("00", 5_000)]
    assert told.top(0) == []
    assert told.found == ["00", "11", "10"]
    assert answer(threshold=601).found == ["00", "11"]
    assert told.of("01") == -7
    assert not told.simulated
    assert "noise" not in repr(told)
    assert "loss" not in repr(told)


def test_shorter_prefixes_are_no_strings() -> None:
    assert answer(bits=3).found == []
    assert answer(bits=3).of("10") == 600


def test_bands_hold_for_all_prefixes_at_once() -> None:
    told, margin = answer(), NOISE.margin(1 - 0.05 / 4)
    assert margin > NOISE.margin(0.95)
    bands = told.bands()
    assert bands.lower.tolist() == [5_000 - margin, 0, 600 - margin, 5_000 - margin]
    assert bands.upper.tolist() == [5_000 + margin, margin - 7, 600 + margin, 5_000 + margin]
    assert not bands.tight
    assert answer(reports=5_001).bands().upper.tolist()[0] == 5_001
    wider = told.bands(0.99)
    assert (wider.lower[0], wider.upper[0]) == (
        5_000 - NOISE.margin(1 - 0.01 / 4),
        5_000 + NOISE.margin(1 - 0.01 / 4),
    )


def test_bands_hold_at_whatever_level_the_descent_ends() -> None:
    # One string whose count is just so far above the threshold that only rare noise ends the descent early.
    runs, levels, exact = 400, 24, (600 + NOISE.margin(1 - 0.1 / 4), 0)
    first, second = (np.array(NOISE.draw(2 * runs * levels, seed)) for seed in (1, 2))
    both = (first + second).reshape(runs, levels, 2)
    missed = early = 0
    for run in range(runs):
        level = next((i for i in range(levels) if exact[0] + both[run, i, 0] < 600), levels - 1)
        told = answer(
            bits=levels,
            prefixes=tuple("0" * level + end for end in "01"),
            counts=tuple((exact + both[run, level]).tolist()),
            levels=levels,
        )
        lower, upper, _ = told.bands(0.9)
        missed += not ((lower <= exact) & (exact <= upper)).all()
        early += level < levels - 1
    assert early > runs / 5
    assert missed <= runs / 10


def test_the_error_is_shared_by_the_levels() -> None:
    for bits, levels, shared in [(2, 1, 1), (2, 2, 2), (2, 5, 2), (3, 2, 2), (9, 5, 8)]:
        bands, margin = answer(bits=bits, levels=levels).bands(), NOISE.margin(1 - 0.05 / 4 / shared)
        assert bands.lower[0] == 5_000 - margin
        assert bands.upper[0] == 5_000 + margin


def test_columns() -> None:
    table = answer().to_dict(0.99)
    margin = NOISE.margin(1 - 0.01 / 4)
    assert table["string"] == ["00", "11", "10"]
    assert table["count"] == [5_000, 5_000, 600]
    assert table["lower"] == [5_000 - margin, 5_000 - margin, 600 - margin]
    assert table["upper"] == [5_000 + margin, 5_000 + margin, 600 + margin]
    assert table["stddev"] == [NOISE.stddev] * 3


@cases("call", [lambda: answer().of("0"), lambda: answer().top(-1), lambda: answer().bands(1.0)])
def test_refusals(call: Any) -> None:
    with pytest.raises(ParameterError):
        call()
