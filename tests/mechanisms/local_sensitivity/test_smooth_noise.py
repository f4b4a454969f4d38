"""Smooth statistics: the exact distribution of the rounded noise against the loss, the sampler against it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import ParameterError
from sfumato.mechanisms import Grid, SmoothQuantile, SmoothTrimmedMean
from sfumato.mechanisms.local_sensitivity.smooth_noise import SmoothStatistic
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

TOP = 4
NOISES = ["student", "cauchy", "laplace", "gaussian"]
CDF: dict[str, Callable[[Any], Any]] = {
    "student": stats.t(3).cdf,
    "cauchy": stats.cauchy.cdf,
    "laplace": stats.laplace.cdf,
    "gaussian": stats.norm.cdf,
}
Data = tuple[int, ...]


@functools.cache
def distribution(mechanism: SmoothStatistic, data: Data) -> np.ndarray:
    """Probabilities of the points from the lower to the upper bound."""
    centre, spread = mechanism._around(np.array(data, np.int64))
    lower, upper = mechanism._column.ends
    edges = (np.arange(lower, upper) + 0.5 - centre) / float(Fraction(mechanism.noise_multiplier) * spread)
    cdf = np.concatenate([[0.0], CDF[mechanism.noise](edges), [1.0]])
    upper_tail = np.concatenate([[1.0], CDF[mechanism.noise](-edges), [0.0]])
    # From whichever side keeps the digits.
    return np.where(cdf[1:] < 0.5, np.diff(cdf), -np.diff(upper_tail))


def neighbors(relation: Neighboring, largest: int) -> Iterator[tuple[Data, Data]]:
    for size in range(largest + 1):
        for data in itertools.combinations_with_replacement(range(TOP + 1), size):
            for new in range(TOP + 1):
                if relation is Neighboring.ADD_REMOVE:
                    yield data, tuple(sorted((*data, new)))
                elif relation is Neighboring.ZERO_OUT and data:
                    yield data, tuple(sorted((0, *data[1:])))
                elif data:
                    yield data, tuple(sorted((new, *data[1:])))


def make(kind: type[SmoothStatistic], **given: Any) -> SmoothStatistic:
    extra: dict[str, Any] = {"trim": Fraction(1, 3)} if kind is SmoothTrimmedMean else {}
    return kind.calibrated(bounds=(0, TOP), **extra, **given)


@pytest.mark.parametrize("noise", ["student", "cauchy"])
@pytest.mark.parametrize("relation", list(Neighboring))
@pytest.mark.parametrize("kind", [SmoothQuantile, SmoothTrimmedMean])
def test_pure_losses_hold(noise: Any, relation: Neighboring, kind: type[SmoothStatistic]) -> None:
    if kind is SmoothTrimmedMean and relation is Neighboring.ADD_REMOVE:
        return
    mechanism = make(kind, epsilon=1.0, noise=noise, neighboring=relation)
    assert 0.999999 < mechanism.privacy_loss.epsilon(0.0) <= 1
    worst = 0.0
    for one, other in neighbors(relation, 3):
        worst = max(
            worst, float(np.abs(np.log(distribution(mechanism, one) / distribution(mechanism, other))).max())
        )
    assert 0.15 < worst <= 1 + 1e-9


@pytest.mark.sharpest("SmoothTrimmedMean-gaussian")
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", [SmoothQuantile, SmoothTrimmedMean])
def test_other_losses_hold(noise: Any, kind: type[SmoothStatistic]) -> None:
    relation = Neighboring.REPLACE_ONE if kind is SmoothTrimmedMean else Neighboring.ADD_REMOVE
    mechanism = make(kind, epsilon=1.0, delta=1e-2, noise=noise, neighboring=relation)
    assert mechanism.privacy_loss.epsilon(1e-2) <= 1
    for epsilon in (0.3, 0.7, 1.0, 2.0):
        claimed, worst = mechanism.privacy_loss.delta(epsilon), 0.0
        for one, other in neighbors(relation, 3):
            for here, there in ((one, other), (other, one)):
                gap = distribution(mechanism, here) - math.exp(epsilon) * distribution(mechanism, there)
                worst = max(worst, float(gap[gap > 0].sum()))
        assert worst <= claimed * (1 + 1e-9)


def test_the_trimmed_mean_moves_by_its_sensitivity_at_most() -> None:
    mechanism = make(SmoothTrimmedMean, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    factor = math.exp(float(mechanism.smoothness)) * (1 + 1e-13)
    for one, other in neighbors(Neighboring.REPLACE_ONE, 4):
        (here, near), (there, far) = (mechanism._around(np.array(data)) for data in (one, other))
        assert abs(here - there) <= min(near, far)
        assert max(near, far) <= factor * min(near, far)


@pytest.mark.parametrize("noise", NOISES)
def test_releases_follow_the_distribution(noise: Any) -> None:
    data, count = (1, 1, 2, 4, 4), 1500 if noise == "gaussian" else 700
    delta = 0.0 if noise in ("student", "cauchy") else 1e-3
    mechanism = SmoothQuantile.calibrated(quantile=0.3, bounds=(-3, 9), epsilon=4.0, delta=delta, noise=noise)
    rng = np.random.default_rng(8)
    seen = np.bincount([mechanism.release(np.array(data), rng).value + 3 for _ in range(count)], minlength=13)

    def probabilities(times: Fraction) -> dict[int, float]:
        other = replace(mechanism, noise_multiplier=Fraction(mechanism.noise_multiplier) * times)
        return dict(enumerate(distribution(other, data)))

    accepts_only(
        frequencies(dict(enumerate(seen.tolist()))),
        probabilities(Fraction(1)),
        less_noise=probabilities(Fraction(1, 2)),
        more_noise=probabilities(Fraction(2)),
    )


def test_reals_are_released_on_the_grid() -> None:
    mechanism = SmoothQuantile.calibrated(bounds=(0.0, 1.0), epsilon=1.0, grid=Grid(exponent=-10))
    for seed in range(20):
        release = mechanism.release(np.linspace(0, 1, 101), rng=seed)
        assert (release.value * 1024).is_integer()
        assert release.simulated
        assert release.loss == mechanism.privacy_loss
        assert not hasattr(release, "interval")


@pytest.mark.parametrize("noise", NOISES)
def test_the_median_of_many_is_close(noise: Any) -> None:
    delta = 0.0 if noise in ("student", "cauchy") else 1e-6
    mechanism = SmoothQuantile.calibrated(bounds=(0.0, 1.0), epsilon=1.0, delta=delta, noise=noise)
    data, rng = np.random.default_rng(0).random(20_001), np.random.default_rng(1)
    errors = [abs(mechanism.release(data, rng).value - np.median(data)) for _ in range(40)]
    assert np.median(errors) < 0.02
    assert mechanism.smooth_sensitivity(data) < 0.01


@pytest.mark.parametrize("kind", [SmoothQuantile, SmoothTrimmedMean])
def test_odd_data_is_answered_at_the_usual_cost(kind: Any) -> None:
    extra = {"trim": 0.1} if kind is SmoothTrimmedMean else {}
    mechanism = kind.calibrated(bounds=(-1.0, 1.0), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE, **extra)
    odd = np.array([math.nan, math.inf, -math.inf, 1e308, 0.5])
    for data in (np.zeros(0), odd, np.full(99, math.nan), np.full(999, math.inf), np.zeros(5, np.int64)):
        release = mechanism.release(data)
        assert -1 <= release.value <= 1
        assert release.loss == mechanism.privacy_loss
    assert abs(mechanism.release(np.full(10_000, math.nan)).value) < 1e-3
    assert mechanism.release(np.full(10_000, math.inf)).value > 0.999


def test_a_share_is_the_fraction_that_its_digits_say() -> None:
    # The float 0.1 lies above a tenth, so that the rank of ten records would be the second; 0.3 lies below.
    data = np.arange(1, 11)
    for share in (0.1, 0.3, 0.7, 0.9):
        deciles = SmoothQuantile(quantile=share, bounds=(0, 20), noise_multiplier=1, smoothness=1)
        assert deciles._around(data)[0] == round(10 * share)
    trimmed = SmoothTrimmedMean(
        trim=0.3, bounds=(0, 40), noise_multiplier=1, smoothness=1, neighboring=Neighboring.REPLACE_ONE
    )
    assert trimmed._around(np.array([0, 0, 0, 7, 7, 7, 7, 7, 7, 40]))[0] == 7


def test_sums_of_far_more_steps_than_fit_are_exact() -> None:
    mechanism = SmoothTrimmedMean(
        trim=0.25, bounds=(0, 1 << 60), noise_multiplier=1, smoothness=1, neighboring=Neighboring.REPLACE_ONE
    )
    centre, _ = mechanism._around(np.full(1000, (1 << 60) - 1))
    assert centre == (1 << 60) - 1


@pytest.mark.parametrize("noise", NOISES)
def test_calibration_meets_every_request(noise: Any) -> None:
    for epsilon in (0.1, 1.0, 5.0):
        delta = 0.0 if noise in ("student", "cauchy") else 1e-7
        mechanism = SmoothQuantile.calibrated(bounds=(0, 9), epsilon=epsilon, delta=delta, noise=noise)
        assert 0.999 * epsilon < mechanism.privacy_loss.epsilon(delta) <= epsilon


def test_calibration_takes_a_smoothness_and_chooses_noise_by_delta() -> None:
    given = SmoothQuantile.calibrated(bounds=(0, 9), epsilon=1.0, smoothness=0.25)
    assert given.smoothness == 0.25
    assert SmoothQuantile.calibrated(bounds=(0, 9), epsilon=1.0, delta=1e-6).noise == "laplace"


@cases(
    ("parameters", "message"),
    [
        ({"bounds": (1, 1)}, "bounds must"),
        ({"noise_multiplier": 0}, "noise_multiplier must"),
        ({"noise_multiplier": math.inf}, "noise_multiplier must"),
        ({"smoothness": 1e-9}, "smoothness must"),
        ({"smoothness": 65}, "smoothness must"),
        ({"smoothness": -1}, "smoothness must"),
        ({"noise": "uniform"}, "noise must"),
        ({"quantile": 0}, "quantile must"),
        ({"quantile": 1.0}, "quantile must"),
        ({"grid": 1}, "grid must"),
        ({"neighboring": "add"}, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"bounds": (0, 9), "noise_multiplier": 1, "smoothness": 0.5}
    with pytest.raises(ParameterError, match=message):
        SmoothQuantile(**(good | parameters))


def test_bad_requests_are_refused() -> None:
    for given, message in (
        ({"noise": "laplace"}, "delta must"),
        ({"noise": "gaussian"}, "delta must"),
        ({"noise": "uniform"}, "noise must"),
        ({"smoothness": 1.0}, "smoothness must be small enough to cost less than epsilon, got"),
        (
            {"smoothness": 3.0, "delta": 1e-6},
            "smoothness must be small enough to cost less than epsilon, got",
        ),
    ):
        with pytest.raises(ParameterError, match=message):
            SmoothQuantile.calibrated(bounds=(0, 9), epsilon=1.0, **given)
    for trim, relation in (
        (0.5, Neighboring.REPLACE_ONE),
        (0, Neighboring.REPLACE_ONE),
        (0.1, Neighboring.ADD_REMOVE),
    ):
        with pytest.raises(ParameterError, match=r"trim must|neighboring must"):
            SmoothTrimmedMean(
                trim=trim, bounds=(0, 9), noise_multiplier=1, smoothness=1, neighboring=relation
            )
    with pytest.raises(ParameterError, match="data must"):
        SmoothQuantile(bounds=(0, 9), noise_multiplier=1, smoothness=1).release(np.array(["a"]))
