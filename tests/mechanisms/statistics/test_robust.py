"""Extremes, trimmed means and regressions: sensitivities by search, costs, accuracy, odd data."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import (
    Extreme,
    Gaussian,
    JointQuantiles,
    LeastSquares,
    Mean,
    Measurement,
    Norm,
    Quantile,
    TheilSen,
    TrimmedMean,
)
from sfumato.mechanisms.statistics import theil_sen, trimmed_mean
from sfumato.mechanisms.statistics.quantile.rank_sampling import RankSampler
from sfumato.numerics.randomness.source import random_source
from sfumato.privacy.loss import compose
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_least, frequencies

TOP = 4

REPLACED: dict[str, Any] = {"neighboring": Neighboring.REPLACE_ONE}


def extreme_distribution(mechanism: Extreme, data: tuple[int, ...]) -> np.ndarray:
    """Probabilities of the points 0 to TOP, by the class's notes."""
    off = []
    for x in range(TOP + 1):
        beyond, from_here = (sum(y > x for y in data), sum(y >= x for y in data))
        if mechanism.side == "min":
            beyond, from_here = (sum(y < x for y in data), sum(y <= x for y in data))
        off.append(max(0, beyond - mechanism.rank, mechanism.rank - from_here))
    weights = np.exp(-float(mechanism.epsilon) / 2 * np.array(off))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("side", ["max", "min"])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_extremes_follow_their_distribution_at_their_cost(side: Any, rank: int) -> None:
    mechanism = Extreme(side=side, bounds=(0, TOP), epsilon=1.5, rank=rank)
    assert mechanism.privacy_loss.epsilon(0.0) == 1.5
    for size in range(4):
        for data in itertools.combinations_with_replacement(range(TOP + 1), size):
            here = extreme_distribution(mechanism, data)
            others = [(*data, value) for value in range(TOP + 1)]
            others += [(value, *data[1:]) for value in range(TOP + 1) if data]
            for other in others:
                losses = np.log(here / extreme_distribution(mechanism, other))
                assert losses.max() - losses.min() <= 1.5 + 1e-12
    data, count = (0, 1, 1, 4, 3), 4000
    rng = np.random.default_rng(1)
    seen = np.bincount([mechanism.release(np.array(data), rng).value for _ in range(count)], minlength=5)
    accepts_only(
        frequencies(dict(enumerate(seen.tolist()))),
        dict(enumerate(extreme_distribution(mechanism, data))),
        flatter=dict(enumerate(extreme_distribution(replace(mechanism, epsilon=1.0), data))),
        steeper=dict(enumerate(extreme_distribution(replace(mechanism, epsilon=2.25), data))),
        one_rank_more=dict(enumerate(extreme_distribution(replace(mechanism, rank=rank + 1), data))),
    )


def test_extremes_leave_out_about_as_many_as_they_say() -> None:
    data = np.random.default_rng(2).exponential(1.0, 100_000)
    for side in ("max", "min"):
        mechanism = Extreme(side=side, bounds=(0.0, 1e6), epsilon=1.0)
        released = mechanism.release(data, rng=3).value
        beyond = int((data > released).sum() if side == "max" else (data < released).sum())
        assert 0 < beyond < 3 * mechanism.rank
    draw = RankSampler(Fraction(1), Fraction(1), 0, 10, -2)
    assert draw.offset == -2


def test_trimmed_means_ignore_outliers_at_their_cost() -> None:
    rng = np.random.default_rng(4)
    data = np.append(rng.normal(50, 1, 20_000), np.full(500, 1e9))
    for relation in Neighboring:
        mechanism = TrimmedMean(trim=0.05, bounds=(-1e6, 1e6), epsilon=1.0, neighboring=relation)
        assert 1 - 1e-6 < mechanism.privacy_loss.epsilon(0.0) <= 1 + 1e-9
        assert mechanism.release(data, rng).value == pytest.approx(50, abs=0.5)
    for odd in (np.zeros(0), np.array([math.nan, math.inf, -math.inf]), np.full(10_000, 3.0)):
        assert -1e6 <= TrimmedMean(trim=0.1, bounds=(-1e6, 1e6), epsilon=1.0).release(odd).value <= 1e6


WIDE: dict[str, Any] = {"trim": 0.1, "bounds": (-1e6, 1e6), "epsilon": 1.0}


def test_wide_bounds_cost_a_trimmed_mean_little() -> None:
    rng, errors = np.random.default_rng(10), np.zeros((12, 3))
    for run in errors:
        data = rng.normal(50, 1, 1000)
        run[:2] = [
            TrimmedMean(**WIDE, neighboring=relation).release(data, rng).value - 50
            for relation in (Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE)
        ]
        run[2] = np.sort(data)[100:-100].mean() - 50
    root = np.sqrt((errors**2).mean(axis=0))
    assert (root[:2] < 1.5 * root[2]).all()  # thousands, where quantiles are drawn between the wide bounds
    half = np.append(np.zeros(3000), rng.uniform(1, 3, 2000))
    exact = np.sort(half)[500:-500].mean()
    assert TrimmedMean(**WIDE).release(half, rng).value == pytest.approx(exact, abs=0.05)


@cases("relation", list(Neighboring))
def test_each_part_of_a_trimmed_mean_sees_one_record_change(
    relation: Neighboring, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism, rng = TrimmedMean(**WIDE, neighboring=relation), np.random.default_rng(11)
    seen: dict[str, list[Any]] = {"median": [], "quantiles": [], "mean": []}
    losses = []

    def answers(part: str, value: Any) -> Any:
        def release(self: Any, data: Any, source: Any) -> Any:
            losses.append(self.privacy_loss)
            seen[part].append((self, np.asarray(data)))
            return SimpleNamespace(value=value)

        return release

    total = np.zeros(2) if relation is not Neighboring.REPLACE_ONE else 0.0
    for kind, part, value in (
        (Quantile, "median", 40.0),
        (JointQuantiles, "quantiles", np.array([-700, 700])),
        (Measurement, "mean", total),
    ):
        monkeypatch.setattr(kind, "release", answers(part, value))
    monkeypatch.setattr(Mean, "estimate", lambda self, release: 40.0)
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300, 40.0, 40.0000001])
    records = np.concatenate([odd, rng.normal(40, 30, 40), rng.normal(0, 1e6, 40)])
    for old, new in itertools.product(odd, (*odd, 7.0) if relation is Neighboring.REPLACE_ONE else (7.0,)):
        one = np.append(records, old)
        other = np.append(records, new) if relation is Neighboring.REPLACE_ONE else records
        seen = {part: [] for part in seen}
        for data in (one, other):
            losses = []
            mechanism.release(data, 1)
            assert compose(losses) == mechanism.privacy_loss
        for (_, first), (_, second) in (seen["median"], seen["quantiles"]):
            assert len(second) == len(first) - (relation is not Neighboring.REPLACE_ONE)
            np.testing.assert_array_equal(first[:-1], second[: len(records)])
        (measured, first), (again, second) = seen["mean"]
        assert measured == again
        move = np.abs(np.atleast_1d(measured.query.steps(first) - measured.query.steps(second)))
        assert move.sum() <= measured.query.shift(relation).l1


def test_places_rise_with_distances_and_come_back() -> None:
    steps = np.concatenate([np.arange(0.0, 200.0), np.geomspace(200, 2.0**60, 3000)])
    places = trimmed_mean._places(np.concatenate([-steps[::-1], steps]))
    assert (np.diff(places) >= 0).all()
    assert places[-1] < 3000
    back = trimmed_mean._distances(places[len(steps) :])
    assert np.abs(back - steps).max() <= 0.012 * steps.max()
    assert (np.abs(back - steps) <= 1 + 0.012 * steps).all()


RECORD = st.tuples(*[st.floats(allow_nan=True, allow_infinity=True)] * 3)


@settings(max_examples=100)
@given(RECORD, RECORD)
def test_one_record_moves_second_moments_within_the_bound(one: Any, other: Any) -> None:
    query = LeastSquares(bounds=((0.0, 1.0), (-3.0, 5.0), (0.0, 1e-3)))
    first, second = query.steps(np.array([one])), query.steps(np.array([other]))
    for move, relation in ((first, Neighboring.ADD_REMOVE), (first - second, Neighboring.REPLACE_ONE)):
        bound = query.shift(relation)
        assert np.abs(move).sum() <= bound.l1
        assert (move.astype(object) ** 2).sum() <= bound.l2_squared
        assert np.abs(move).max() <= bound.linf


def test_the_bound_of_second_moments_is_nearly_reached() -> None:
    query = LeastSquares(bounds=((-1.0, 1.0), (-1.0, 1.0)))
    corner = query.steps(np.array([[1.0, -1.0]])).astype(float)
    bound = query.sensitivity(Neighboring.ADD_REMOVE, Norm.L2)
    assert 3 - 1e-4 < np.linalg.norm(corner) / 2**20 <= bound < 3 + 1e-4
    total = query.sensitivity(Neighboring.ADD_REMOVE, Norm.L1)
    assert 7.242 < np.abs(corner).sum() / 2**20 <= total < 7.243  # 3 + 3 sqrt(2)


def test_a_ridge_is_added_only_where_noise_is_as_large_as_the_features() -> None:
    rng, bounds = np.random.default_rng(8), ((0, 10), (0, 10))
    query = LeastSquares(bounds=bounds)
    for n, epsilon, plain in ((40, 0.5, False), (5000, 5.0, True)):
        x = rng.uniform(0, 10, n)
        data = np.column_stack([x, 2 + 0.5 * x + rng.normal(0, 0.3, n)])
        release = Gaussian.for_query(query, epsilon=epsilon, delta=1e-6).release(data, rng)
        fit, without = query.estimate(release), query.estimate(release, ridge=0.0)
        assert (abs(fit.slopes[0] - without.slopes[0]) < 1e-9) == plain
        flat = query.estimate(release, ridge=1e9)
        assert abs(flat.slopes[0]) < 1e-3
    with pytest.raises(ParameterError, match="ridge must be non-negative"):
        query.estimate(release, ridge=-1.0)


@pytest.mark.parametrize("n", [800, 5000])
def test_coefficients_are_held_as_often_as_promised(n: int) -> None:
    rng, runs = np.random.default_rng(n), 100
    query = LeastSquares(bounds=((0, 10), (0, 10)))
    noisy = Gaussian.for_query(query, epsilon=1.0, delta=1e-6)
    held, widths, slopes = np.zeros(2), [], []
    for _ in range(runs):
        x = rng.normal(5, 1.5, n)
        release = noisy.release(np.column_stack([x, 3 + 0.5 * x + rng.normal(0, 0.5, n)]), rng)
        errors = query.coefficient_errors(release, 0.8, draws=39, rng=rng)
        held += (errors.lower <= [3, 0.5]) & (errors.upper >= [3, 0.5])
        widths.append(errors.upper[1] - errors.lower[1])
        slopes.append(query.estimate(release).slopes[0])
    for hits in held:
        accepts_only(at_least(int(hits), runs), 0.8, too_narrow=0.99)
    assert 0.8 < np.median(widths) / (2 * 1.28 * np.std(slopes)) < 1.4
    for odd in (np.zeros((0, 2)), np.full((50, 2), math.nan)):
        assert np.isfinite(query.coefficient_errors(noisy.release(odd, rng), draws=19, rng=rng).upper).all()


def test_least_squares_find_the_line() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform([-2, 0], [2, 100], (60_000, 2))
    y = 7 - 2 * x[:, 0] + 0.05 * x[:, 1] + rng.normal(0, 0.3, 60_000)
    query = LeastSquares(bounds=((-2, 2), (0, 100), (0, 20)))
    fit = Gaussian.for_query(query, epsilon=1.0, delta=1e-6)
    line = query.estimate(fit.release(np.column_stack([x, y]), rng))
    assert line.intercept == pytest.approx(7, abs=0.3)
    assert line.slopes == pytest.approx([-2, 0.05], rel=0.05)
    for odd in (np.zeros((0, 3)), np.full((50, 3), math.nan), np.full((50, 3), math.inf)):
        found = query.estimate(fit.release(odd, rng))
        assert math.isfinite(found.intercept)
        assert np.isfinite(found.slopes).all()


@cases("matchings", [1, 5, None])
def test_theil_sen_finds_the_line_of_most_records(matchings: int | None) -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(0, 10, 8000)
    y = np.where(rng.random(8000) < 0.15, 1e5, 3 + 0.5 * x + rng.normal(0, 0.1, 8000))
    mechanism = TheilSen(
        slope_bounds=(-10.0, 10.0),
        intercept_bounds=(-100.0, 100.0),
        epsilon=1.0,
        matchings=matchings,
        neighboring=Neighboring.REPLACE_ONE,
    )
    assert mechanism.privacy_loss.epsilon(0.0) == 1.0
    line = mechanism.release(np.stack([x, y], axis=1), rng).value
    assert line.slopes == pytest.approx([0.5], abs=0.1)
    assert line.intercept == pytest.approx(3, abs=0.5)
    for odd in (np.zeros((0, 2)), np.zeros((1, 2)), np.full((9, 2), math.inf), np.full((8, 2), math.nan)):
        assert abs(mechanism.release(odd).value.intercept) <= 100


def test_several_slopes_are_found_where_records_do_not_fit() -> None:
    rng, slopes, errors = np.random.default_rng(12), np.array([0.5, -1.0, 2.0]), np.zeros((3, 2))
    mechanism = TheilSen(
        slope_bounds=[(-10.0, 10.0)] * 3,
        intercept_bounds=(-100.0, 100.0),
        epsilon=2.0,
        neighboring=Neighboring.REPLACE_ONE,
    )
    assert mechanism.privacy_loss.epsilon(0.0) == pytest.approx(2.0, rel=1e-9)
    query = LeastSquares(bounds=(*[(0.0, 10.0)] * 3, (-30.0, 100.0)))
    squares = Gaussian.for_query(query, epsilon=2.0, delta=1e-6, neighboring=Neighboring.REPLACE_ONE)
    for run in errors:
        x = rng.uniform(0, 10, (3000, 3))
        y = np.where(rng.random(3000) < 0.1, 100.0, 3 + x @ slopes + rng.normal(0, 2, 3000))
        data = np.column_stack([x, y])
        found = mechanism.release(data, rng).value
        assert found.intercept == pytest.approx(3, abs=2)
        run[0] = np.abs(found.slopes - slopes).max()
        run[1] = np.abs(query.estimate(squares.release(data, rng)).slopes - slopes).max()
    ours, theirs = errors.mean(axis=0)
    assert ours < 0.15
    assert theirs > 2 * ours
    for odd in (np.zeros((0, 4)), np.zeros((3, 4)), np.full((9, 4), math.inf), np.full((8, 4), math.nan)):
        line = mechanism.release(odd, 1).value
        assert np.abs(line.slopes).max() <= 10
        assert abs(line.intercept) <= 100


NUMBER = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, 1.0, 2.0]))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda features: st.tuples(
            st.lists(st.tuples(*[NUMBER] * (features + 1)), min_size=1, max_size=12),
            st.tuples(*[NUMBER] * (features + 1)),
            st.integers(0, 2**32),
        )
    )
)
def test_a_replaced_record_moves_one_group_of_each_matching(drawn: Any) -> None:
    rows, new, seed = drawn
    data = np.array(rows)
    other = data.copy()
    other[seed % len(data)] = new
    here, there = (theil_sen._slopes_of_matchings(each, 3, random_source(seed)) for each in (data, other))
    assert here.shape == there.shape == (3 * (len(data) // data.shape[1]), data.shape[1] - 1)
    moved = (here != there).any(axis=1).reshape(3, -1)
    assert (moved.sum(axis=1) <= 1).all()


def test_medians_of_slopes_share_epsilon_among_matchings(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[tuple[Fraction, int]] = []

    def release(self: Quantile, value: Any, source: Any) -> Any:
        spent.append((Fraction(self.epsilon), len(value)))
        return SimpleNamespace(value=0.0)

    monkeypatch.setattr(Quantile, "release", release)
    for features, matchings in ((1, 7), (3, 5)):
        mechanism = TheilSen(
            slope_bounds=[(-1, 1)] * features,
            intercept_bounds=(-1, 1),
            epsilon=2.0,
            matchings=matchings,
            neighboring=Neighboring.REPLACE_ONE,
        )
        mechanism.release(np.ones((20, features + 1)), 1)
        share = Fraction(2, features + 1)
        groups = 20 // (features + 1) * matchings
        assert spent == [(share / matchings, groups)] * features + [(share, 20)]
        spent.clear()


def test_systems_are_solved_one_by_one() -> None:
    rng = np.random.default_rng(13)
    for size in (1, 2, 5):
        systems = rng.normal(size=(200, size, size + 1))
        found = theil_sen._solved(systems)
        exact = np.linalg.solve(systems[:, :, :-1], systems[:, :, -1:])[..., 0]
        assert found == pytest.approx(exact, rel=1e-6, abs=1e-6)
        np.testing.assert_array_equal(theil_sen._solved(systems[17:18]), found[17:18])


def test_many_matchings_halve_the_error_of_a_slope() -> None:
    rng, errors = np.random.default_rng(0), np.zeros((20, 2))
    bounds: dict[str, Any] = {"slope_bounds": (-10.0, 10.0), "intercept_bounds": (-100.0, 100.0)}
    for run in errors:
        x = rng.uniform(0, 10, 1000)
        data = np.stack([x, 3 + 0.5 * x + rng.normal(0, 2, 1000)], axis=1)
        for place, matchings in enumerate((1, None)):
            line = (
                TheilSen(**bounds, epsilon=2.0, matchings=matchings, neighboring=Neighboring.REPLACE_ONE)
                .release(data, rng)
                .value
            )
            run[place] = line.slopes[0] - 0.5
    one, many = np.sqrt((errors**2).mean(axis=0))
    assert many < 0.7 * one


@cases(
    ("make", "error", "message"),
    [
        (lambda: Extreme(bounds=(0, 1), epsilon=1, side="top"), ParameterError, "side must"),  # type: ignore[arg-type]
        (lambda: Extreme(bounds=(0, 1), epsilon=1, rank=-1), ParameterError, "rank must"),
        (lambda: Extreme(bounds=(0, 1), epsilon=1, rank=2**70), ParameterError, "rank must"),
        (lambda: Extreme(bounds=(0, 1), epsilon=1e-30), ParameterError, "epsilon must be at least"),
        (lambda: Extreme(bounds=(0, 1), epsilon=1e-310), ParameterError, "epsilon must be at least"),
        (lambda: LeastSquares(bounds=((2**53, 2**53 + 1), (0, 1))), ParameterError, "bounds must"),
        (lambda: TrimmedMean(trim=0.5, bounds=(0, 1), epsilon=1), ParameterError, "trim must"),
        (lambda: TrimmedMean(trim=0, bounds=(0, 1), epsilon=1), ParameterError, "trim must"),
        (lambda: TrimmedMean(trim=0.1, bounds=(0, 1), epsilon=0), ParameterError, "epsilon must"),
        (lambda: TrimmedMean(trim=0.1, bounds=(-1e308, 1e308), epsilon=1), ParameterError, "bounds must"),
        (lambda: LeastSquares(bounds=((0, 1),)), ParameterError, "bounds must"),
        (lambda: LeastSquares(bounds=((0, 1), (1, 1))), ParameterError, "bounds must"),
        (
            lambda: TheilSen(
                slope_bounds=(0, 1),
                intercept_bounds=(0, 1),
                epsilon=1,
                matchings=0,
                neighboring=Neighboring.REPLACE_ONE,
            ),
            ParameterError,
            "matchings must",
        ),
        (
            lambda: TheilSen(slope_bounds=[(0, 1)] * 17, intercept_bounds=(0, 1), epsilon=1, **REPLACED),
            ParameterError,
            "slope_bounds must",
        ),
        (
            lambda: TheilSen(slope_bounds=[(0, 1), (1, 1)], intercept_bounds=(0, 1), epsilon=1, **REPLACED),
            ParameterError,
            "bounds must",
        ),
        (
            lambda: TheilSen(
                slope_bounds=(0, 1), intercept_bounds=(0, 1), epsilon=1, neighboring=Neighboring.ADD_REMOVE
            ),
            NeighboringMismatch,
            "neighboring must",
        ),
    ],
)
def test_bad_parameters_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_data_of_another_shape_is_refused() -> None:
    with pytest.raises(ParameterError, match="data must"):
        LeastSquares(bounds=((0, 1), (0, 1))).steps(np.zeros((3, 3)))
    with pytest.raises(ParameterError, match=r"its records have the shape \(3,\) and are float64"):
        LeastSquares(bounds=((0, 1), (0, 1))).steps(np.zeros((77, 3)))
    line = TheilSen(
        slope_bounds=(0, 1), intercept_bounds=(0, 1), epsilon=1, neighboring=Neighboring.REPLACE_ONE
    )
    with pytest.raises(ParameterError, match="value must"):
        line.release(np.zeros(3))
