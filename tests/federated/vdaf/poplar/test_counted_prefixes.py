"""What is found among noisy counts, and how near they are to exact ones."""

from __future__ import annotations

from typing import Any

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
