"""Numbers on devices: the exact laws on small grids, that they are drawn, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import (
    HybridMeanRandomizer,
    LaplaceMeanRandomizer,
    OneBitMeanRandomizer,
    PiecewiseMeanRandomizer,
    Randomizer,
    SquareWaveRandomizer,
    StochasticRoundingMeanRandomizer,
)
from tests.cases import cases
from tests.chance import accepts_only, frequencies
from tests.local.laws import SEVEN_SIGMA, below_exponential, reports, within, worst_odds

FINITE: list[Any] = [
    OneBitMeanRandomizer,
    PiecewiseMeanRandomizer,
    StochasticRoundingMeanRandomizer,
    SquareWaveRandomizer,
    HybridMeanRandomizer,
]
KINDS: list[Any] = [*FINITE, LaplaceMeanRandomizer]


def small(kind: Any, epsilon: float, steps: int = 9) -> Any:
    more = {} if kind is OneBitMeanRandomizer else {"steps": steps}
    return kind(epsilon=epsilon, bounds=(-1.0, 2.0), **more)


@pytest.mark.parametrize("kind", FINITE)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("steps", [1, 2, 9, 30])
def test_the_odds_of_all_reports_are_those_of_epsilon(kind: Any, epsilon: float, steps: int) -> None:
    made = small(kind, epsilon, steps)
    odds = worst_odds(made.probabilities, range(made.steps + 1))
    assert below_exponential(odds, epsilon, 1 - 1e-6)


def test_noise_is_priced_as_it_is_drawn() -> None:
    for epsilon in (0.3, 1.0, 7.7):
        made = LaplaceMeanRandomizer(epsilon=epsilon, bounds=(0, 1), steps=100)
        assert made.steps / made.scale == Fraction(epsilon)
        assert made.reach >= 64 * made.scale > made.reach - 1


@cases("kind", FINITE)
@cases("epsilon", [0.5, 3.0])
def test_what_is_drawn_is_the_law(kind: Any, epsilon: float) -> None:
    made, n = small(kind, epsilon, 4), 60_000
    for place in range(made.steps + 1):
        value = -1.0 + 3.0 * place / made.steps
        law = made.probabilities(place)
        records = made.randomize_batch(np.full(n, value), place + 1).records
        seen, first, counts = np.unique(records[:, 0], return_index=True, return_counts=True)
        found = dict(zip((row.tobytes() for row in records[first]), counts.tolist(), strict=True))
        assert (made.width, len(seen)) == (5, len(found))
        assert set(found) <= set(law)
        another = made.probabilities(place + 1 if place < made.steps else place - 1)
        accepts_only(reports(found, law), law, of_the_next_place=another)


def test_laplace_noise_is_drawn_by_its_law() -> None:
    made, n = small(LaplaceMeanRandomizer, 2.0, 4), 200_000
    noisy = made.opened(made.randomize_batch(np.full(n, 0.5), 3).records)
    ratio = float(np.exp(-1 / float(made.scale)))

    def law(ratio: float) -> dict[int, float]:
        return {2 + away: (1 - ratio) / (1 + ratio) * ratio ** abs(away) for away in range(-6, 7)}

    # Not that of a scale that is a twentieth off.
    accepts_only(
        frequencies(Counter(noisy.tolist())), law(ratio), wider=law(ratio**0.95), narrower=law(ratio**1.05)
    )


@cases(
    "kind",
    [
        OneBitMeanRandomizer,
        PiecewiseMeanRandomizer,
        StochasticRoundingMeanRandomizer,
        SquareWaveRandomizer,
        LaplaceMeanRandomizer,
    ],
)
def test_numbers_between_places_go_to_both(kind: Any) -> None:
    made = small(kind, 30.0, 3)
    n, value = 100_000, 1.3
    if kind is LaplaceMeanRandomizer:
        places = made.opened(made.randomize_batch(np.full(n, value), 1).records)
    else:
        law = {place: made.probabilities(place) for place in range(made.steps + 1)}
        likely = {max(found, key=lambda report: found[report]): place for place, found in law.items()}
        records = made.randomize_batch(np.full(n, value), 1).records
        places = np.array([likely.get(bytes(row), -1) for row in records])
    wanted = (value + 1) / 3 * made.steps
    mean = within(places.mean(), 0.5 / np.sqrt(n) + 1e-4 / SEVEN_SIGMA)
    accepts_only(mean, wanted, rounded=round(wanted), cut_off=int(wanted), a_fiftieth_off=wanted + 0.02)
    between = np.isin(places, (int(wanted), int(wanted) + 1))
    assert between.mean() > 0.999


@cases("kind", KINDS)
def test_both_bounds_may_be_true(kind: Any) -> None:
    made = small(kind, 1.0)
    for value in (-1, 2, np.float32(-1), 2.0):
        assert len(made.randomize(value)) == made.width
    assert len(made.randomize_batch([])) == 0


@cases("kind", KINDS)
@cases(
    "values",
    [
        [7.125],
        [float("nan")],
        [-1.0000001],
        ["1"],
        [None],
        [[1.0]],
        1.0,
        [[1.0], [1.0, 2.0]],
        [True],
        [10**400],
    ],
)
def test_other_numbers_are_refused_and_not_shown(kind: Any, values: Any) -> None:
    with pytest.raises(ParameterError, match=r"values must be numbers from -1\.0 to 2\.0") as caught:
        small(kind, 1.0).randomize_batch(values)
    assert "7.125" not in str(caught.value)


@cases("kind", KINDS)
@cases("epsilon", [0.1, 1.0, 4.5])
def test_a_specification_makes_the_same_randomizer(kind: Any, epsilon: float) -> None:
    made = small(kind, epsilon)
    told = json.loads(json.dumps(made.specification()))
    again: Any = Randomizer.from_specification(told)
    assert type(again) is kind
    assert again == made
    assert again.digest == made.digest
    assert again.randomize(0.25, 5) == made.randomize(0.25, 5)
    assert kind(epsilon=epsilon, bounds=(-1.0, 2.5)).digest != made.digest
    for change in (
        {"bounds": [0, 1, 2]},
        {"bounds": None},
        {"bounds": "ab"},
        {"steps": "x"},
        {"epsilon": None},
    ):
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, **change})


@cases("kind", FINITE)
def test_payloads_beyond_the_law_are_not_well_formed(kind: Any) -> None:
    made = small(kind, 1.0, 5)
    law = set().union(*(made.probabilities(place) for place in range(made.steps + 1)))
    records = made.layout.pack(np.arange(16, dtype=np.uint64))
    assert made.well_formed(records).tolist() == [row.tobytes() in law for row in records]


def test_parameters_that_break_a_rule() -> None:
    wrong: list[Any] = [(1, 1), (2, 1), (0, float("inf")), (-1e308, 1e308), (0,), 3, (0, True)]
    for bounds in wrong:
        with pytest.raises(ParameterError, match="bounds must"):
            OneBitMeanRandomizer(epsilon=1.0, bounds=bounds)
    with pytest.raises(ParameterError, match="steps must be at most 16384"):
        PiecewiseMeanRandomizer(epsilon=1.0, bounds=(0, 1), steps=1 << 15)
    with pytest.raises(ParameterError, match="steps must be at most 4096"):
        SquareWaveRandomizer(epsilon=1.0, bounds=(0, 1), steps=4097)
    with pytest.raises(ParameterError, match="epsilon must be at least"):
        LaplaceMeanRandomizer(epsilon=1e-4, bounds=(0, 1))
    with pytest.raises(ParameterError, match="epsilon must be above about"):
        OneBitMeanRandomizer(epsilon=1e-20, bounds=(0, 1))
