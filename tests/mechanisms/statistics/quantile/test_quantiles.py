"""Quantiles: the exact distribution against the loss over all small datasets."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Grid, Quantile, Quantiles
from sfumato.mechanisms.statistics.quantile import quantiles as statistics
from sfumato.mechanisms.statistics.quantile import rank_sampling
from sfumato.mechanisms.statistics.quantile.rank_sampling import (
    PartitionedNumbers,
    RankSampler,
    SortedNumbers,
)
from sfumato.numerics.randomness.source import random_source
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

TOP = 4
Data = tuple[int, ...]


def distribution(draw: RankSampler, data: Data) -> np.ndarray:
    """Probabilities of the points from ``lower`` to ``upper``, by the definition."""
    a, b, n = draw.target.numerator, draw.target.denominator, len(data)
    gaps = [
        max(0, b * sum(y < x for y in data) - a * n, b * sum(y > x for y in data) - (b - a) * n)
        for x in range(draw.lower, draw.upper + 1)
    ]
    weights = np.exp(-float(draw.rate) * np.array(gaps))
    return np.asarray(weights / weights.sum())


def neighbors(relation: Neighboring, largest: int) -> Iterator[tuple[Data, Data]]:
    for size in range(largest + 1):
        for data in itertools.combinations_with_replacement(range(TOP + 1), size):
            for value in range(TOP + 1):
                if relation is Neighboring.ADD_REMOVE:
                    yield data, (*data, value)
                elif relation is Neighboring.ZERO_OUT and data:
                    yield data, (0, *data[1:])
                elif data:
                    yield data, (value, *data[1:])


def quantile_distribution(mechanism: Quantile, data: Data) -> dict[Any, float]:
    draw = mechanism._draw(Fraction(mechanism.quantile), Fraction(mechanism.epsilon), 0, TOP)
    return dict(enumerate(distribution(draw, data).tolist()))


def quantiles_distribution(mechanism: Quantiles, data: Data) -> dict[Any, float]:
    """The distribution of all quantiles, by the recursion in the class's notes."""
    epsilon = Fraction(mechanism.epsilon) / len(mechanism.quantiles).bit_length()
    epsilon /= 1 if mechanism.neighboring is Neighboring.ADD_REMOVE else 2

    def released(
        wanted: tuple[Fraction, ...], part: Data, ends: tuple[int, int], share: tuple[Fraction, Fraction]
    ) -> dict[Any, float]:
        if not wanted:
            return {(): 1.0}
        at = len(wanted) // 2
        target = (wanted[at] - share[0]) / (share[1] - share[0])
        rate = epsilon / (2 * max(target.numerator, target.denominator - target.numerator))
        found: dict[Any, float] = {}
        for x, p in enumerate(distribution(RankSampler(target, rate, *ends), part), ends[0]):
            lower, upper = tuple(y for y in part if y <= x), tuple(y for y in part if y > x)
            left = released(wanted[:at], lower, (ends[0], x), (share[0], wanted[at]))
            right = released(wanted[at + 1 :], upper, (x, ends[1]), (wanted[at], share[1]))
            for (one, q), (two, r) in itertools.product(left.items(), right.items()):
                found[*one, x, *two] = found.get((*one, x, *two), 0.0) + p * q * r
        return found

    wanted = tuple(Fraction(quantile) for quantile in mechanism.quantiles)
    return released(wanted, data, (0, TOP), (Fraction(0), Fraction(1)))


@cases("relation", list(Neighboring))
@cases("quantile", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
def test_losses_have_the_range_that_is_paid_for(relation: Neighboring, quantile: Fraction) -> None:
    mechanism = Quantile(quantile=quantile, bounds=(0, TOP), epsilon=1.0, neighboring=relation)
    assert mechanism.privacy_loss.epsilon(0.0) == 1.0
    widest = 0.0
    for one, other in neighbors(relation, 4):
        here, there = quantile_distribution(mechanism, one), quantile_distribution(mechanism, other)
        losses = [math.log(here[k] / there[k]) for k in here]
        widest = max(widest, max(losses) - min(losses))
    assert widest <= 1 + 1e-12
    assert widest > 0.45


@cases("relation", [Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE])
@cases("quantiles", [(0.5,), (0.25, 0.75), (0.1, 0.5, 0.75)])
def test_many_quantiles_cost_what_they_say(relation: Neighboring, quantiles: tuple[float, ...]) -> None:
    mechanism = Quantiles(
        quantiles=quantiles, bounds=(0, TOP), epsilon=1.0, neighboring=relation, joint=False
    )
    assert mechanism.privacy_loss.epsilon(0.0) == 1.0
    worst = 0.0
    for one, other in neighbors(relation, 2):
        here, there = quantiles_distribution(mechanism, one), quantiles_distribution(mechanism, other)
        worst = max(worst, *(abs(math.log(p / there[k])) for k, p in here.items()))
    assert 0.2 < worst <= 1 + 1e-12


DATASETS: list[Data] = [
    (),
    (3,),
    (3,) * 8,
    (0, 1, 5, 5, 9, 2, 7),
    (0,) * 20 + (4,) + (8,) * 20,
    tuple(int(x) for x in np.random.default_rng(0).integers(0, 13, 300)),
]


@pytest.mark.parametrize("data", DATASETS, ids=len)
@pytest.mark.parametrize("target", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
@pytest.mark.parametrize("negligible", [45.0, 0.5])
def test_points_come_as_often_as_the_distribution_says(
    data: Data, target: Fraction, negligible: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With a narrow window, what lies beyond it is drawn often.
    monkeypatch.setattr(rank_sampling, "_NEGLIGIBLE", negligible)
    draw, count = RankSampler(target, Fraction(1, 3), 0, 12), 600
    expected, array = distribution(draw, data), np.array(data, np.int64)
    # Where the distribution is nearly even, a point that is left out shows more than a shift.
    without = np.where(np.arange(13) == expected.argmax(), 0.0, expected)
    wrong = np.roll(expected, 1) if expected.max() > 0.2 else without
    for given in (SortedNumbers(np.sort(array)), PartitionedNumbers(array, Grid(exponent=0), 0, 12)):
        source = random_source(6)
        seen = np.bincount([draw.draw(given, source) for _ in range(count)], minlength=13)
        accepts_only(
            frequencies(dict(enumerate(seen.tolist()))),
            dict(enumerate(expected)),
            moved=dict(enumerate(wrong)),
        )


@pytest.mark.parametrize(
    ("count", "relation"), [(400, Neighboring.ADD_REMOVE), (1200, Neighboring.REPLACE_ONE)]
)
def test_releases_follow_the_distribution(
    count: int, relation: Neighboring, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the spread of each record, whose distribution is then a mixture over all spreads.
    monkeypatch.setattr(statistics, "_TIE_BITS", 0)
    data = (0, 2, 2, 4)
    rng = np.random.default_rng(5)
    one = Quantile(quantile=0.25, bounds=(0, TOP), epsilon=1.0, neighboring=relation)
    many = Quantiles(quantiles=(0.25, 0.75), bounds=(0, TOP), epsilon=1.0, neighboring=relation, joint=False)
    seen = Counter(one.release(np.array(data), rng).value for _ in range(count))
    pairs = Counter(tuple(many.release(np.array(data), rng).value.tolist()) for _ in range(count))

    def far_more(mechanism: Any) -> Any:
        return replace(mechanism, epsilon=mechanism.epsilon * 4)

    accepts_only(
        frequencies(seen),
        quantile_distribution(one, data),
        steeper=quantile_distribution(far_more(one), data),
    )
    accepts_only(
        frequencies(pairs),
        quantiles_distribution(many, data),
        steeper=quantiles_distribution(far_more(many), data),
    )


def test_error_of_the_median_is_the_published_one() -> None:
    rng = np.random.default_rng(3)

    def error(relation: Neighboring) -> float:
        mechanism = Quantile(bounds=(0.0, 1.0), epsilon=1.0, neighboring=relation)
        drawn = [rng.random(1001) for _ in range(300)]
        return float(np.mean([abs(mechanism.release(x, rng).value - np.median(x)) for x in drawn]))

    # .00231 was measured with sensitivity 1; a standard error of 300 means is about .00014.
    assert error(Neighboring.REPLACE_ONE) == pytest.approx(0.00231, abs=6e-4)
    assert error(Neighboring.ADD_REMOVE) == pytest.approx(0.00231 / 2, abs=4e-4)


def test_quantiles_of_equal_records_are_their_value() -> None:
    rng = np.random.default_rng(4)
    deciles = [k / 10 for k in range(1, 10)]
    for relation in (Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE):
        mechanism = Quantiles(quantiles=deciles, bounds=(0, 120), epsilon=1.0, neighboring=relation)
        assert mechanism.release(np.full(2000, 50), rng).value.tolist() == [50] * 9
        ages = np.repeat([10, 20, 30, 40, 50, 60, 70, 80, 90, 100], 2000)
        released = mechanism.release(ages, rng).value
        assert all(abs(found - 10 * k - 5) <= 5 for k, found in enumerate(released, 1))
    zeros = np.append(np.zeros(7000), rng.uniform(1, 100, 13_000))
    released = Quantiles(quantiles=deciles, bounds=(0.0, 1e6), epsilon=1.0).release(zeros, rng).value
    assert released == pytest.approx(np.quantile(zeros, deciles), abs=3)


def test_the_rank_bound_holds() -> None:
    mechanism = Quantile(quantile=0.5, bounds=(0, 1000), epsilon=0.2)
    rng = np.random.default_rng(9)
    data = np.sort(rng.integers(0, 1001, 500))
    answers = np.array([mechanism.release(data, rng).value for _ in range(400)])
    below, above = np.searchsorted(data, answers), 500 - np.searchsorted(data, answers, side="right")
    far = np.maximum(0, np.maximum(below - 250, above - 250))

    def held(bound: float) -> None:
        assert np.count_nonzero(far > bound) <= 80

    bound = mechanism.rank_bound(0.2)
    accepts_only(held, bound, tenth=bound / 10)


def test_a_thousand_quantiles_at_once() -> None:
    data = np.random.default_rng(1).random(200_000)
    wanted = [(k + 1) / 1001 for k in range(1000)]
    released = Quantiles(quantiles=wanted, bounds=(0.0, 1.0), epsilon=2.0).release(data, rng=4).value
    assert (np.diff(released) >= 0).all()
    assert np.abs(released - wanted).max() < 0.01


def test_odd_data_is_answered_at_the_usual_cost() -> None:
    mechanism = Quantile(bounds=(-1.0, 1.0), epsilon=1.0)
    many = Quantiles(quantiles=(0.3, 0.6), bounds=(-1.0, 1.0), epsilon=1.0)
    odd = np.array([math.nan, math.inf, -math.inf, 1e308, 0.5])
    for data in (np.zeros(0), odd, np.full(100, math.nan), np.full(1000, math.inf), np.zeros(5, np.int64)):
        assert -1 <= mechanism.release(data).value <= 1
        assert many.release(data).value.shape == (2,)
    assert mechanism.release(np.full(10_000, math.inf)).value == 1
    assert abs(mechanism.release(np.full(10_000, math.nan)).value) < 1e-9
    assert odd[1] == math.inf


@pytest.mark.parametrize("grid", [None, Grid(exponent=-2), Grid(exponent=-50)])
def test_answers_do_not_pass_bounds_that_are_no_grid_points(grid: Grid | None) -> None:
    mechanism = Quantile(bounds=(0.1, 0.85), epsilon=1.0, grid=grid)  # type: ignore[arg-type]
    for value in (-1.0, 2.0):
        assert 0.1 <= mechanism.release(np.full(1000, value)).value <= 0.85


@cases(
    ("kind", "parameters", "error", "message"),
    [
        (Quantile, {"bounds": (1, 1), "epsilon": 1.0}, ParameterError, "bounds must"),
        (Quantile, {"bounds": (2, 1), "epsilon": 1.0}, ParameterError, "bounds must"),
        (Quantile, {"bounds": (0, math.inf), "epsilon": 1.0}, UnboundedSensitivity, "bounds must"),
        (Quantile, {"bounds": (-(2**62), 2**62), "epsilon": 1}, ParameterError, "bounds must be from 1 to"),
        (Quantile, {"bounds": (2**63, 2**64), "epsilon": 1}, ParameterError, "bounds must be from 1 to"),
        (Quantile, {"bounds": (1.0, 1 + 2.0**-50), "epsilon": 1}, ParameterError, "bounds must be from 1 to"),
        (Quantile, {"bounds": (0.0, 1e308), "epsilon": 1}, ParameterError, "bounds must be at most"),
        (Quantile, {"bounds": (0, 1), "epsilon": 0}, ParameterError, "epsilon must"),
        (Quantile, {"bounds": (0, 1), "epsilon": 1e-12}, ParameterError, "epsilon must be at least"),
        (Quantile, {"bounds": (0, 1), "epsilon": 1, "quantile": 0.0}, ParameterError, "quantile must"),
        (Quantile, {"bounds": (0, 1), "epsilon": 1, "quantile": 1.0}, ParameterError, "quantile must"),
        (Quantiles, {"bounds": (0, 1), "epsilon": 1}, ParameterError, "quantiles must"),
        (
            Quantiles,
            {"bounds": (0, 1), "epsilon": 1, "quantiles": (0.5, 0.5)},
            ParameterError,
            "quantiles must",
        ),
        (Quantiles, {"bounds": (0, 1), "epsilon": 1, "quantiles": "half"}, ParameterError, "quantiles must"),
        (
            Quantiles,
            {"bounds": (0, 1), "epsilon": 1, "quantiles": [k / 40 for k in range(1, 40)], "joint": True},
            ParameterError,
            "joint must be False",
        ),
        (
            Quantiles,
            {"bounds": (0, 1), "epsilon": 1, "quantiles": (0.5,), "joint": 1},
            ParameterError,
            "joint must be a bool",
        ),
        (
            Quantiles,
            {"bounds": (0, 1), "epsilon": 5e-4, "quantiles": [(k + 1) / 1001 for k in range(1000)]},
            ParameterError,
            "ask for fewer quantiles",
        ),
    ],
)
def test_bad_parameters_are_refused(
    kind: Any, parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind(**parameters)


def test_data_of_another_shape_is_refused() -> None:
    mechanism = Quantile(bounds=(0, 1), epsilon=1)
    for data in (np.zeros((2, 2)), np.array(["a"]), {1, 2}, 5):
        with pytest.raises(ParameterError, match="data must"):
            mechanism.release(data)
