"""The bootstrap: its noise is the release's own, it clamps as the query does, and its intervals cover."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from sfumato import adaptive
from sfumato.errors import ParameterError
from sfumato.mechanisms import BoundedSum, Count, Gaussian, Histogram, Laplace
from sfumato.privacy import Neighboring

REPLACE = Neighboring.REPLACE_ONE
ROWS = 200


def _compared(seen: float, value: Any) -> list[float]:
    return [value - seen, 2.0 * value]


def test_without_sampling_the_errors_are_the_release_s_noise() -> None:
    data = np.full(50, 2)
    query = BoundedSum(bounds=(0, 4))
    for mechanism in (
        Laplace.for_query(query, epsilon=0.5, neighboring=REPLACE),
        Gaussian.for_query(query, epsilon=0.5, delta=1e-5, neighboring=REPLACE),
    ):
        release = mechanism.release(data, rng=1)
        seen = float(release.value)
        found = adaptive.parametric_bootstrap(
            release,
            estimate=lambda one: one.value,
            simulate=lambda _parameters, _generator: data,
            quantity=partial(_compared, seen),
            draws=4999,
            rng=2,
        )
        assert found.estimate.tolist() == [0.0, 2.0 * seen]
        # Estimates are 100 and noise; the release's own noise is an error of what was released.
        noise, half = 100.0 - seen, release.interval(0.95).upper - seen
        assert found.lower[0] == pytest.approx(-noise - half, abs=0.12 * half)
        assert found.upper[0] == pytest.approx(-noise + half, abs=0.12 * half)
        assert found.standard_error[0] == pytest.approx(release.stddev, rel=0.06)
        assert found.bias[0] == pytest.approx(noise, abs=5 * release.stddev / math.sqrt(4999))
        assert found.upper[1] - found.lower[1] == pytest.approx(2 * (found.upper[0] - found.lower[0]))


def test_ends_are_order_statistics_with_one_draw_more_counted() -> None:
    """Errors of 1 to 39, without noise to speak of: at 0.95 the first and the last."""
    measured = Laplace.for_query(Count(), epsilon=60.0).release(np.ones(100), rng=1)
    sizes = iter(range(101, 140))
    found = adaptive.parametric_bootstrap(
        measured,
        estimate=lambda one: one.value,
        simulate=lambda _parameters, _generator: np.ones(next(sizes)),
        draws=39,
        rng=1,
    )
    assert (found.lower, found.upper, found.bias) == (100 - 39, 100 - 1, 20.0)


def test_several_releases_of_differently_many_records() -> None:
    query = Histogram(categories=(True, False))
    noisy = Laplace.for_query(query, epsilon=2.0)
    rng = np.random.default_rng(3)
    first, second = rng.random(900) < 0.4, rng.random(500) < 0.3
    found = adaptive.parametric_bootstrap(
        [noisy.release(first, rng=1), noisy.release(second, rng=2)],
        estimate=lambda one, other: [x.value[0] / max(1, x.value.sum()) for x in (one, other)],
        simulate=lambda p, generator: (generator.random(900) < p[0], generator.random(500) < p[1]),
        quantity=lambda p: p[0] - p[1],
        draws=199,
        rng=4,
    )
    assert found.lower < 0.1 < found.upper
    assert found.standard_error == pytest.approx(math.sqrt(0.24 / 900 + 0.21 / 500), rel=0.2)


def coverage(upper: float, estimate: Any, runs: int) -> float:
    """Return how often intervals hold the mean 2 of an exponential population, clamped to [0, upper]."""
    noisy = Laplace.for_query(BoundedSum(bounds=(0.0, upper)), epsilon=1.0, neighboring=REPLACE)
    rng, inside = np.random.default_rng(1), 0
    for _ in range(runs):
        found = adaptive.parametric_bootstrap(
            noisy.release(rng.exponential(2.0, ROWS), rng=rng),
            estimate=lambda release: estimate(release.value / ROWS, upper),
            simulate=lambda mean, generator: generator.exponential(mean, ROWS),
            draws=79,
            rng=rng,
        )
        inside += bool(found.lower <= 2.0 <= found.upper)
    return inside / runs


def plain(mean: float, _upper: float) -> float:
    """Take the mean of what was clamped for that of the population."""
    return max(1e-3, mean)


def unclamped(mean: float, upper: float) -> float:
    """Return the mean of an exponential population whose clamped mean is given."""
    seen, low, high = min(max(mean, 1e-3), 0.99 * upper), 1e-4, 1e4
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if -middle * math.expm1(-upper / middle) < seen else (low, middle)
    return low


@pytest.mark.exhaustive
def test_intervals_cover_the_population_unless_clamping_hides_it() -> None:
    runs = 100
    # Five deviations of a share of 0.95 among the runs; wide bounds, then such as cut a fifth of all records.
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / runs)
    assert coverage(20.0, plain, runs) >= least
    assert coverage(3.0, unclamped, runs) >= least
    assert coverage(3.0, plain, runs) < 0.6


def test_what_names_no_query_and_data_of_another_number_are_refused() -> None:
    noise = Laplace(sensitivity=1, scale=1.0)
    measured = Laplace.for_query(Count(), epsilon=1.0).release(np.ones(5), rng=1)

    def run(release: Any, **options: Any) -> object:
        given: Any = {"estimate": lambda *all: 1.0, "simulate": lambda *_: np.ones(5), "draws": 19} | options
        return adaptive.parametric_bootstrap(release, **given)

    refused: list[tuple[Any, str]] = [
        (lambda: run(noise.release(3, rng=1)), "be of a query that it names"),
        (lambda: run([measured, 3]), "be of a query that it names"),
        (lambda: run([]), "be one or more releases"),
        (lambda: run([measured, measured]), "return a tuple of 2"),
        (lambda: run(measured, level=0.0), "level"),
        (lambda: run(measured, draws=18), "draws"),
    ]
    for call, message in refused:
        with pytest.raises(ParameterError, match=message):
            call()
