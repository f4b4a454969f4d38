"""The mean of heavy tails: cost, coverage, gain over wide bounds, odd data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import HeavyTailedMean, Laplace, Mean
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only
from tests.mechanisms.statistics.coverage import covers

WIDE = (-1e6, 1e6)


@pytest.mark.parametrize("relation", list(Neighboring))
def test_the_loss_is_what_was_asked(relation: Neighboring) -> None:
    mechanism = HeavyTailedMean(
        bounds=WIDE, moment_bound=3.0, expected_records=1000, epsilon=0.7, neighboring=relation
    )
    assert 0.7 * (1 - 1e-6) < mechanism.privacy_loss.epsilon(0.0) <= 0.7 * (1 + 1e-12)
    assert mechanism.neighboring is mechanism.privacy_loss.neighboring is relation


@pytest.mark.parametrize("size", [200, 20_000])
@pytest.mark.parametrize("guess", [100, 20_000])
def test_the_interval_covers_the_population_mean(size: int, guess: int) -> None:
    # Two values: mean 5, variance 99, and one record in a hundred far out.
    mechanism = HeavyTailedMean(
        bounds=WIDE, moment_bound=10.0, expected_records=guess, epsilon=1.0, level=0.9
    )
    rng, released = np.random.default_rng(size + guess), list[tuple[float, float, float]]()
    for _ in range(120):
        release = mechanism.release(np.where(rng.random(size) < 0.01, 104.0, 4.0), rng)
        assert release.interval.lower <= release.value <= release.interval.upper
        released.append((release.value, *release.interval[:2]))
    accepts_only(covers(5, released, 0.9), 1, tenth=1 / 10)
    if size == 20_000:
        assert np.mean([upper - lower for _, lower, upper in released]) < 30


def test_it_beats_wide_bounds() -> None:
    data = 40 + 2 * np.random.default_rng(5).standard_t(3, 20_000)
    heavy = HeavyTailedMean(bounds=WIDE, moment_bound=4.0, expected_records=20_000, epsilon=0.5)
    plain = Laplace.for_query(Mean(bounds=WIDE), epsilon=0.5)
    rng = np.random.default_rng(6)
    ours = np.mean([abs(heavy.release(data, rng).value - 40) for _ in range(20)])
    theirs = np.mean([abs(plain.query.estimate(plain.release(data, rng)) - 40) for _ in range(20)])
    assert 50 * ours < theirs


def test_odd_data_is_answered_within_the_bounds() -> None:
    mechanism = HeavyTailedMean(bounds=(-5.0, 5.0), moment_bound=1.0, expected_records=50, epsilon=1.0)
    for data in (np.zeros(0), np.array([math.nan, math.inf, -math.inf]), np.full(3000, math.inf)):
        release = mechanism.release(data, rng=2)
        assert -5 <= release.interval.lower <= release.value <= release.interval.upper <= 5


@cases(
    ("change", "message"),
    [
        ({"bounds": (1.0, 0.0)}, "bounds must"),
        ({"bounds": (-1e308, 1e308)}, "bounds must"),
        ({"moment_bound": 0.0}, "moment_bound must"),
        # Records are clamped to a single float around most medians: an error would tell which.
        ({"bounds": (-1e6, 1e6), "moment_bound": 1e-12}, "moment_bound must"),
        ({"bounds": (-1e300, 1e300)}, "moment_bound must"),
        ({"expected_records": 0}, "expected_records must"),
        ({"epsilon": -1.0}, "epsilon must"),
        ({"order": 1.5}, "order must"),
        ({"order": 100.0}, "order must"),
        ({"level": 0.0}, "level must"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"bounds": (0.0, 1.0), "moment_bound": 1.0, "expected_records": 9, "epsilon": 1.0}
    with pytest.raises(ParameterError, match=message):
        HeavyTailedMean(**good | change)
