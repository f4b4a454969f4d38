"""The mean from wide bounds: cost, coverage, narrowing, odd data."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import CoinPress, Gaussian, Mean
from sfumato.mechanisms.statistics import coinpress
from sfumato.privacy.loss import compose
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_least
from tests.mechanisms.statistics.coverage import covers


@cases(("relation", "steps"), [*zip(Neighboring, (1, 2, 4), strict=True), (Neighboring.ADD_REMOVE, 4)])
def test_the_loss_meets_the_request_whatever_the_bounds(relation: Neighboring, steps: int) -> None:
    wide, narrow = (
        CoinPress.calibrated(
            epsilon=0.8, delta=1e-6, bounds=(-top, top), stddev=1.0, steps=steps, neighboring=relation
        )
        for top in (1e9, 1.0)
    )
    assert 0.8 * (1 - 1e-4) < wide.privacy_loss.epsilon(1e-6) <= 0.8 * (1 + 1e-6)
    assert wide.privacy_loss == narrow.privacy_loss
    assert wide.neighboring is wide.privacy_loss.neighboring is relation


@pytest.mark.parametrize("size", [40, 3000])
@pytest.mark.parametrize("population", ["normal", "sub-gaussian"])
def test_the_interval_covers_the_population_mean(size: int, population: Any) -> None:
    mechanism = CoinPress.calibrated(
        epsilon=1.0, delta=1e-6, bounds=(-1e4, 1e4), stddev=2.0, level=0.9, population=population
    )
    rng = np.random.default_rng(size)
    released = []
    for _ in range(70):
        release = mechanism.release(rng.normal(123.0, 2.0, size), rng)
        assert release.interval.lower <= release.value <= release.interval.upper
        released.append((release.value, *release.interval[:2]))
    accepts_only(covers(123, released, 0.9), 1, tenth=1 / 10)


def test_intervals_are_as_wide_as_the_error_and_cover() -> None:
    rng, runs = np.random.default_rng(5), 120
    widths, hits = {}, {}
    populations: tuple[Literal["normal"], Literal["sub-gaussian"]] = ("normal", "sub-gaussian")
    for population in populations:
        mechanism = CoinPress.calibrated(
            epsilon=1.0, delta=1e-6, bounds=(-50, 50), stddev=1.0, population=population
        )
        releases = [mechanism.release(rng.normal(30, 1, 1000), rng) for _ in range(runs)]
        errors = np.array([release.value - 30 for release in releases])
        central = float(np.diff(np.quantile(errors, [0.025, 0.975]))[0])
        ends = np.array([release.interval[:2] for release in releases])
        widths[population] = float(np.median(ends[:, 1] - ends[:, 0])) / central
        hits[population] = int(((ends[:, 0] <= 30) & (ends[:, 1] >= 30)).sum())
    assert 0.85 < widths["normal"] < 1.3
    assert 1.15 < widths["sub-gaussian"] < 1.7
    accepts_only(at_least(hits["normal"], runs), 0.95, more_often=0.99999)


def test_an_interval_ends_where_the_sum_is_that_many_deviations_off() -> None:
    query, times, stddev = Mean(bounds=(-4.0, 9.0)), 2.2, 1.7
    noisy = Gaussian.for_query(query, epsilon=1.0, delta=1e-6)
    for size in (60, 1000):
        release = noisy.release(np.random.default_rng(size).normal(1, stddev, size), rng=1)
        found = coinpress._mean_interval(query, release, stddev=stddev, size=size, times=times)
        high, low = release.value
        for end in found[:2]:
            q = (end + 4) / 13
            variance = size * (stddev / 13) ** 2 + release.stddev**2 * (q**2 + (1 - q) ** 2)
            assert abs(high * (1 - q) - low * q) == pytest.approx(times * math.sqrt(variance), rel=1e-4)
    empty = noisy.release(np.zeros(0), rng=1)
    assert coinpress._mean_interval(query, empty, stddev=stddev, size=0, times=times)[:2] == (-4.0, 9.0)


def test_steps_beat_clamping_to_the_wide_bounds() -> None:
    data = np.random.default_rng(3).normal(-7000.0, 1.0, 20_000)
    press = CoinPress.calibrated(epsilon=0.5, delta=1e-6, bounds=(-1e4, 1e4), stddev=1.0)
    plain = Gaussian.for_query(Mean(bounds=(-1e4, 1e4)), epsilon=0.5, delta=1e-6)
    rng = np.random.default_rng(4)
    errors = [
        [abs(press.release(data, rng).value + 7000) for _ in range(30)],
        [abs(plain.query.estimate(plain.release(data, rng)) + 7000) for _ in range(30)],
    ]
    assert 100 * np.mean(errors[0]) < np.mean(errors[1])


def test_a_spread_that_leaves_no_finite_bounds_is_refused() -> None:
    for bounds, stddev in (((0.0, 1.0), 1e308), ((-8e307, 8e307), 5e306)):
        with pytest.raises(ParameterError, match="stddev must leave"):
            CoinPress(bounds=bounds, stddev=stddev, noise=1.0)


def test_odd_data_is_answered_within_the_bounds() -> None:
    mechanism = CoinPress.calibrated(epsilon=1.0, delta=1e-6, bounds=(-5.0, 5.0), stddev=1.0)
    odd = np.array([math.nan, math.inf, -math.inf, 1e300])
    for data in (np.zeros(0), odd, np.full(2000, math.inf), np.arange(5)):
        release = mechanism.release(data, rng=1)
        assert -5 <= release.interval.lower <= release.value <= release.interval.upper <= 5


@cases(
    ("change", "message"),
    [
        ({"bounds": (1.0, 1.0)}, "bounds must"),
        ({"bounds": (1.0, 0.0)}, "bounds must"),
        ({"bounds": (-1e308, 1e308)}, "bounds must"),
        ({"stddev": 0.0}, "stddev must"),
        ({"stddev": math.inf}, "stddev must"),
        ({"noise": 0}, "noise must"),
        ({"steps": 0}, "steps must"),
        ({"level": 1.0}, "level must"),
        ({"population": "skewed"}, "population must"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"bounds": (0.0, 1.0), "stddev": 1.0, "noise": 3}
    with pytest.raises(ParameterError, match=message):
        CoinPress(**good | change)


@cases("steps", [1, 2, 3, 5])
def test_what_a_release_measures_costs_what_is_stated(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = CoinPress.calibrated(epsilon=1.0, delta=1e-6, bounds=(-9, 9), stddev=1.0, steps=steps)
    measure, spent = CoinPress._measurement, []

    def measured(self: CoinPress, query: Mean, *, last: bool) -> Any:
        spent.append(measure(self, query, last=last).privacy_loss)
        return measure(self, query, last=last)

    loss = mechanism.privacy_loss
    with monkeypatch.context() as patched:
        patched.setattr(CoinPress, "_measurement", measured)
        mechanism.release(np.zeros(100), 1)
    # The first measurements are a release's own; its statement of the loss looks at others after them.
    assert compose(spent[:steps]) == loss


def test_steps_follow_from_the_ratio_of_bounds_and_deviation() -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "stddev": 1.0}
    chosen = {width: CoinPress.calibrated(**given, bounds=(-width, width)) for width in (0.1, 10.0, 1e3, 1e6)}
    assert [mechanism.steps for mechanism in chosen.values()] == [2, 2, 5, 10]
    assert all(mechanism.privacy_loss.epsilon(1e-6) <= 1.0 for mechanism in chosen.values())
    rng, errors = np.random.default_rng(3), np.zeros((25, 2))
    three = CoinPress.calibrated(**given, bounds=(-1e6, 1e6), steps=3)
    for run in errors:
        data = rng.normal(3000, 1, 1000)
        run[:] = [mechanism.release(data, rng).value - 3000 for mechanism in (chosen[1e6], three)]
    root = np.sqrt((errors**2).mean(axis=0))
    assert root[0] < 0.1
    assert root[1] > 10  # where the interval has not become narrow
