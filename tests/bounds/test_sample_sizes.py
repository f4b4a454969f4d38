"""Rows and epsilons against brute force over the exact distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.linalg import hadamard

from sfumato import bounds
from sfumato.errors import ParameterError
from sfumato.mechanisms import Gaussian, Laplace, StabilityHistogram
from sfumato.privacy import Neighboring


def all_within(mechanism: Laplace | Gaussian, reach: int, entries: int) -> float:
    """Return the probability that all entries' noise is within some steps, by adding up the masses."""
    inner = math.fsum(mechanism.distribution.pmf(k).upper for k in range(-reach, reach + 1))
    return float(inner**entries)


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 0.5},
        {"epsilon": 1.0, "entries": 40},
        {"epsilon": 1.0, "entries": 60, "tables": 6, "delta": 1e-6},
        {"epsilon": 2.0, "entries": 9, "neighboring": Neighboring.REPLACE_ONE},
    ],
    ids=str,
)
@pytest.mark.parametrize("confidence", [0.3, 0.95, 0.999])
def test_the_greatest_error_is_exact(settings: dict[str, Any], confidence: float) -> None:
    mechanism = bounds.NoisyCounts(**settings)
    reach = round(mechanism.error(1, confidence))
    assert all_within(mechanism.mechanism, reach, mechanism.entries) >= confidence * (1 - 1e-9)
    assert reach == 0 or all_within(mechanism.mechanism, reach - 1, mechanism.entries) < confidence
    assert mechanism.mechanism.privacy_loss.epsilon(mechanism.delta) <= mechanism.epsilon
    assert mechanism.stddev(10) == mechanism.mechanism.distribution.stddev / 10


def scale_of(**settings: Any) -> object:
    """Return the scale of the Laplace noise."""
    mechanism = bounds.NoisyCounts(**settings).mechanism
    assert isinstance(mechanism, Laplace)
    return mechanism.scale


def test_the_mechanism_is_that_of_the_relation() -> None:
    replaced = Neighboring.REPLACE_ONE
    assert scale_of(epsilon=1.0, entries=9, neighboring=replaced) == 2
    assert scale_of(epsilon=1.0, neighboring=replaced) == 1
    assert scale_of(epsilon=1.0, entries=9, tables=3) == 3
    assert isinstance(bounds.NoisyCounts(epsilon=1.0, delta=1e-9).mechanism, Laplace)
    assert isinstance(bounds.NoisyCounts(epsilon=1.0, delta=1e-6, entries=99, tables=99).mechanism, Gaussian)


def test_noisy_mean_holds_with_its_rounding() -> None:
    mechanism = bounds.NoisyMean(bounds=(-3.0, 7.0), epsilon=1.0)
    assert mechanism.mechanism.neighboring is Neighboring.REPLACE_ONE
    # Laplace noise of scale 10 is within 10 log 20 with 95 %.
    assert mechanism.error(100, 0.95) == pytest.approx(0.1 * math.log(20), rel=1e-5)
    assert mechanism.error(100, 0.95) > 0.1 * math.log(20)
    assert mechanism.stddev(100) == pytest.approx(0.1 * math.sqrt(2), rel=1e-5)
    grid = mechanism.mechanism.grid.step
    steps = int(mechanism.error(1, 0.95) / grid)
    assert 1 - 2 * mechanism.mechanism.distribution.upper_tail(steps + 1).upper >= 0.95
    values = [mechanism.mechanism.release(0.3, rng=seed).value for seed in range(200)]
    assert np.mean(np.abs(np.array(values) - 0.3) <= mechanism.error(1, 0.95)) > 0.8  # 1e-9 of being wrong


def test_sample_size_is_the_first() -> None:
    for mechanism in (
        bounds.NoisyCounts(epsilon=0.5, entries=100),
        bounds.NoisyMean(bounds=(0.0, 1.0), epsilon=1.0),
    ):
        rows = bounds.sample_size(mechanism, error=0.01, confidence=0.9)
        assert mechanism.error(rows, 0.9) <= 0.01 < mechanism.error(rows - 1, 0.9)
    assert bounds.sample_size(bounds.NoisyCounts(epsilon=0.5), error=1e6) == 1


class Mine:
    """An error model of a user's own."""

    def error(self, rows: int, confidence: float) -> float:
        return 1 / rows / (1 - confidence)


def test_an_error_model_of_ones_own() -> None:
    assert bounds.sample_size(Mine(), error=0.25, confidence=0.5) == 8
    assert isinstance(Mine(), bounds.ErrorModel)
    assert not isinstance(Mine(), bounds.EpsilonErrorModel)
    with pytest.raises(ParameterError, match="mechanism must have a method with_epsilon"):
        bounds.epsilon_for(Mine(), rows=9, error=0.1)  # type: ignore[arg-type]


def test_epsilon_is_the_smallest() -> None:
    for mechanism, error in (
        (bounds.NoisyCounts(epsilon=1.0, entries=5), 0.02),
        (bounds.NoisyMean(bounds=(0, 1), epsilon=1.0), 0.05),
    ):
        found = bounds.epsilon_for(mechanism, rows=500, error=error)
        assert mechanism.with_epsilon(found).error(500, 0.95) <= error
        assert mechanism.with_epsilon(found * (1 - 3e-6)).error(500, 0.95) > error
    assert bounds.epsilon_for(bounds.NoisyCounts(epsilon=1.0), rows=1 << 40, error=0.5) == 2.0**-20
    with pytest.raises(ParameterError, match="error must be reached by an epsilon of at most 64"):
        bounds.epsilon_for(bounds.NoisyMean(bounds=(0, 1), epsilon=1.0), rows=1, error=1e-9)


def test_when_privacy_is_free() -> None:
    mechanism = bounds.NoisyCounts(epsilon=0.5)
    rows = bounds.free_rows(mechanism, population_stddev=0.5, slack=0.02)
    here, before = bounds.tradeoff_table(
        mechanism, rows=[rows, rows - 1], epsilons=[0.5], population_stddev=0.5, confidence=0.9
    )
    assert here.inflation <= 1.02 < before.inflation
    assert here.error == mechanism.error(rows, 0.9)
    assert here.sampling == 0.5 / math.sqrt(rows)
    # By hand: variance of the noise over (0.25 (1.02^2 - 1)).
    assert rows == math.ceil(mechanism.stddev(1) ** 2 / (0.25 * (1.02**2 - 1)))


def test_the_table_goes_by_rows() -> None:
    grid = bounds.tradeoff_table(
        bounds.NoisyCounts(epsilon=1.0), rows=[10, 20], epsilons=[0.5, 1.0], population_stddev=0.5
    )
    assert [(cell.rows, cell.epsilon) for cell in grid] == [(10, 0.5), (10, 1.0), (20, 0.5), (20, 1.0)]
    assert grid[0].noise == 2 * grid[2].noise > grid[1].noise


def test_mean_in_many_dimensions_needs_root_d_rows() -> None:
    """The exact n of the Gaussian mechanism lies above a bound of its class, and grows with sqrt(d)."""
    rows = []
    for dimension in (64, 256):
        mechanism = bounds.NoisyMean(bounds=(0.0, 1.0), epsilon=1.0, delta=1e-6, dimension=dimension)
        assert isinstance(mechanism.mechanism, Gaussian)
        deviation = mechanism.stddev(1)
        # A row that is replaced by its complement moves the sum by a vector of signs.
        mu = math.sqrt(dimension) / deviation
        least = bounds.svd_error_bound(hadamard(dimension), mu=mu, unbiased=True).error
        found = math.ceil(deviation / 0.1)
        assert least / 0.1 <= found <= 1.05 * least / 0.1
        rows.append(found)
    assert rows[1] / rows[0] == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("dimension", [16, 64])
def test_mean_in_many_dimensions_as_it_is_drawn(dimension: int) -> None:
    """Drawn noise at the n of an error lies between the bound of its class and the Gaussian's own error."""
    target = 0.02
    model = bounds.NoisyMean(bounds=(0.0, 1.0), epsilon=1.0, delta=1e-6, dimension=dimension)
    rows = math.ceil(model.stddev(1) / target)
    mu = math.sqrt(dimension) / model.stddev(1)
    least = bounds.svd_error_bound(hadamard(dimension), mu=mu, unbiased=True).error / rows
    total = np.full(dimension, rows / 2)
    drawn = [model.mechanism.release(total, rng=seed).value for seed in range(40)]
    squares = np.square(np.array(drawn) / rows - 0.5)
    # The seeds are fixed. The mean of 640 squares or more is within 1 +- 0.4 of its mean, but for one of 1e9.
    error = math.sqrt(squares.mean())
    assert 0.98 * target < least < target
    assert least * math.sqrt(0.6) < error < target * math.sqrt(1.4)
    # Half of the rows would not do, by far more than chance.
    assert math.sqrt(squares.mean()) * 2 > target * math.sqrt(1.4)
    assert rows * target / math.sqrt(dimension) == pytest.approx(1 / mu, rel=0.01)


def packed(points: int, rows: int) -> float:
    """Return how often the place of equal records is missed, by packing; all of them are replaced."""
    apart = rows * (1 - np.eye(points, dtype=int))
    return bounds.packing_bound(np.arange(points), apart, epsilon=0.5, error=0.5).failure


def test_thresholds_and_histograms_pure_and_approximate() -> None:
    """Pure: rows grow with log(points), in bound and mechanism. Approximate: log(1/delta) is enough."""
    least, ours = [], []
    for points in (16, 64, 256):
        # A threshold at one of the points: with fewer rows it is missed in a third of all cases.
        rows = next(n for n in range(1, 100) if packed(points, n) < 1 / 3)
        assert rows == math.ceil(2 * math.log(2 * (points - 1)))
        least.append(rows)
        # A histogram shows the value if the greatest noise of all cells is below half of its count.
        histogram = bounds.NoisyCounts(epsilon=0.5, entries=points, neighboring=Neighboring.REPLACE_ONE)
        ours.append(2 * histogram.error(1, 2 / 3))
    for k in range(3):
        assert least[k] <= ours[k]
    assert (least[2] - least[0]) / math.log(16) == pytest.approx(2, abs=0.4)  # 1 / epsilon for each log
    assert (ours[2] - ours[0]) / math.log(16) == pytest.approx(8, abs=0.8)
    # What releases only cells that are there does not know how many there are.
    stable = StabilityHistogram.calibrated(epsilon=0.5, delta=1e-6, neighboring=Neighboring.REPLACE_ONE)
    assert stable.threshold == pytest.approx(math.log(1e6) / 0.5, rel=0.2)
    assert bounds.histogram_order(1 << 60, epsilon=0.5, delta=1e-6).without_constants == "27.631"
    pure, approximate = (
        [
            bounds.threshold_order(1 << k, error=0.1, epsilon=1.0, pure=pure).without_constants
            for k in (16, 32)
        ]
        for pure in (True, False)
    )
    assert float(pure[1]) == pytest.approx(2 * float(pure[0]), rel=1e-5)
    assert approximate == ["4", "5"]


def test_histogram_beside_its_order() -> None:
    """The exact error of ours grows as log(cells) / epsilon does."""
    errors = [bounds.NoisyCounts(epsilon=1.0, entries=1 << k).error(1, 0.95) for k in (5, 10, 20)]
    slopes = np.diff(errors) / (np.array([5, 10]) * math.log(2))
    assert slopes == pytest.approx([1, 1], rel=0.2)


def test_bad_parameters_are_refused() -> None:
    counts = bounds.NoisyCounts(epsilon=1.0)
    with pytest.raises(ParameterError, match="tables must be at most the number of entries"):
        bounds.NoisyCounts(epsilon=1.0, tables=2)
    with pytest.raises(ParameterError, match="neighboring must be a Neighboring"):
        bounds.NoisyCounts(epsilon=1.0, neighboring="add-remove")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="bounds must rise"):
        bounds.NoisyMean(bounds=(1.0, 1.0), epsilon=1.0)
    with pytest.raises(ParameterError, match="confidence must be strictly between 0 and 1"):
        bounds.sample_size(counts, error=0.1, confidence=1.0)
    with pytest.raises(ParameterError, match=r"error must be reached by at most 2\*\*50 rows"):
        bounds.sample_size(counts, error=1e-18)
    with pytest.raises(ParameterError, match="mechanism must have a method error"):
        bounds.sample_size("counts", error=0.1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="mechanism must have a method stddev"):
        bounds.free_rows(Mine(), population_stddev=0.5)  # type: ignore[arg-type]
    for number in (counts.error, lambda rows, _: counts.stddev(rows)):
        with pytest.raises(ParameterError, match="rows must be an integer of at least 1"):
            number(0, 0.95)
