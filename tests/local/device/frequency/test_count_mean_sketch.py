"""Sketches on the device: their exact law, that it is drawn, and hash functions that never change."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import Domain, Randomizer
from sfumato.local.device.frequency.count_mean_sketch import (
    CountMeanSketchRandomizer,
    HadamardCountMeanSketchRandomizer,
)
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.local.laws import below_exponential, of_more_epsilon, reports, worst_odds

KINDS: list[Any] = [CountMeanSketchRandomizer, HadamardCountMeanSketchRandomizer]
PLACES = [95, 963, 269, 156]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0])
def test_the_odds_of_all_reports_are_those_of_epsilon(kind: Any, epsilon: float) -> None:
    made = kind(epsilon=epsilon, domain=Domain(range(4)), size=8, hashes=3)
    assert below_exponential(worst_odds(made.probabilities, range(4)), epsilon)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_is_the_law(kind: Any) -> None:
    made, n = kind(epsilon=1.0, domain=Domain(range(4)), size=8, hashes=3), 60_000
    law = made.probabilities(1)
    batch = made.randomize_batch(np.full(n, 1), 9)
    assert made.layout.genuine(batch.records).all()
    assert made.well_formed(batch.records).all()
    found, counts = np.unique(batch.records, axis=0, return_counts=True)
    seen = {row.tobytes(): int(count) for row, count in zip(found, counts, strict=True)}
    assert set(seen) <= set(law)
    sharper = of_more_epsilon(law, 1.25)
    accepts_only(reports(seen, law), law, of_another=made.probabilities(2), of_epsilon_5_4=sharper)


def test_hash_functions_are_the_same_everywhere() -> None:
    made = CountMeanSketchRandomizer(epsilon=4.0, domain=Domain(range(3000)))
    functions, codes = np.array([0, 1, 2, 65_535]), np.array([0, 1, 2999, 77])
    assert made.indices(functions, codes).tolist() == PLACES
    other = CountMeanSketchRandomizer(epsilon=4.0, domain=Domain(range(3000)), key=1)
    assert other.indices(functions, codes).tolist() != PLACES
    assert other.digest != made.digest


def test_values_share_places_as_often_as_by_chance() -> None:
    made = HadamardCountMeanSketchRandomizer(epsilon=1.0, domain=Domain(range(300)), size=64)
    places = made.indices(np.arange(65_536)[:, None], np.array([0, 1, 2, 64, 255, 256, 299])[None, :])
    for one in range(7):
        counts = np.bincount(places[:, one], minlength=64)
        for count in (counts.min(), counts.max()):
            accepts_only(rate(int(count), 65_536), 1 / 64, half_as_many=1 / 32, twice_as_many=1 / 128)
        for other in range(one):
            alike = int((places[:, one] == places[:, other]).sum())
            accepts_only(rate(alike, 65_536), 1 / 64, half_as_many=1 / 32, never_alike=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_specifications_come_back(kind: Any) -> None:
    made = kind(epsilon=2.0, domain=Domain(["a", "b", "c"]), size=16, hashes=10, key=3)
    again = Randomizer.from_specification(json.loads(json.dumps(made.specification())))
    assert again == made
    assert again.randomize("b", 4) == made.randomize("b", 4)


@cases(
    ("parameters", "message"),
    [
        ({"size": 12}, "size must be a power of two"),
        ({"size": 4}, "size must be a power of two"),
        ({"size": 1 << 17}, "size must be a power of two"),
        ({"hashes": 1}, "hashes must be"),
        ({"hashes": 1 << 21}, "hashes must be at most"),
        ({"key": -1}, "key must be"),
        ({"key": 1 << 64}, "key must be below"),
        ({"domain": Domain(range(1 << 33))}, "domain must have at most"),
    ],
)
def test_odd_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    for kind in KINDS:
        with pytest.raises(ParameterError, match=message):
            kind(**{"epsilon": 1.0, "domain": Domain(range(4)), **parameters})


@pytest.mark.parametrize("kind", KINDS)
def test_functions_beyond_the_last_are_not_well_formed(kind: Any) -> None:
    made = kind(epsilon=1.0, domain=Domain(range(4)), size=8, hashes=3)
    records = made.randomize_batch([0] * 50, 1).records.copy()
    last = 8 if kind is CountMeanSketchRandomizer else 4
    records[:, last // 8] |= np.uint8(3 << last % 8)  # function 3 of 3
    assert not made.well_formed(records).any()


@cases("size", [8, 1 << 16])
def test_the_least_and_the_greatest_size_are_taken(size: int) -> None:
    assert HadamardCountMeanSketchRandomizer(epsilon=1.0, domain=Domain(range(4)), size=size).size == size
