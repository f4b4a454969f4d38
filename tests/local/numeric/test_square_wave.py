"""Distributions from windows: running sums against the matrix, and that shapes are found."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import SquareWave
from sfumato.local.numeric.square_wave import most_likely, unbiased_weights
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.local.laws import have_moments


def test_the_windows_are_those_of_most_information() -> None:
    # Li et al. 2020: half widths of 0.256 at epsilon 1.
    device = SquareWave(epsilon=1.0, bounds=(0, 1), steps=4096).device
    assert device.window / 2 / device.steps == pytest.approx(0.2561, abs=2e-4)
    assert SquareWave(epsilon=0.02, bounds=(0, 1), steps=4096).device.window == pytest.approx(
        4096 * (1 - 0.04 / 3), 1e-3
    )
    assert SquareWave(epsilon=0.005, bounds=(0, 1), steps=4096).device.window == pytest.approx(4082, abs=2)


@pytest.mark.parametrize("smooth", [False, True])
def test_running_sums_are_the_matrix(smooth: bool) -> None:
    device = SquareWave(epsilon=1.5, bounds=(0, 1), steps=12).device
    matrix = np.array([[float(p) for p in device.probabilities(k).values()] for k in range(13)]).T
    counts = np.random.default_rng(1).integers(0, 500, device.outputs).astype(float)
    shares, before = np.full(13, 1 / 13), -np.inf
    while True:
        law = matrix @ shares
        reached = counts @ np.log(law)
        if reached - before < 1e-3:
            break
        before = reached
        shares = shares * (matrix.T @ (counts / law)) / counts.sum()
        if smooth:
            wide = np.concatenate([shares[:1], shares, shares[-1:]])
            shares = np.convolve(wide, [0.25, 0.5, 0.25], mode="valid")
    found = most_likely(counts, device, smooth=smooth, tolerance=1e-3)
    assert np.allclose(found, shares, atol=1e-9)
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_smooth_distribution_is_found(epsilon: float) -> None:
    protocol, n = SquareWave(epsilon=epsilon, bounds=(0, 1), steps=200), 300_000
    numbers = np.random.default_rng(2).beta(5, 2, n)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(numbers, 7))
    found = aggregator.estimate()
    # Kolmogorov's distance; mostly what smoothing, and ending the rounds early, leave as bias.
    for smooth, most in ((True, 0.02), (False, 0.03)):
        reached = np.cumsum(found.shares(smooth=smooth))
        truth = np.searchsorted(np.sort(numbers), found.points + 0.5 / 200) / n
        assert np.abs(reached - truth).max() < most
    for share in (0.1, 0.5, 0.9):
        assert found.quantile(share) == pytest.approx(float(np.quantile(numbers, share)), abs=0.02)
    assert found.points[[0, -1]].tolist() == [0.0, 1.0]
    assert (found.shares() >= 0).all()


def test_a_step_is_found_without_smoothing() -> None:
    protocol = SquareWave(epsilon=4.0, bounds=(0, 10), steps=10)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch([2.0] * 60_000 + [7.0] * 40_000, 3))
    shares = aggregator.estimate().shares(smooth=False)
    assert shares[2] == pytest.approx(0.6, abs=0.03)
    assert shares[7] == pytest.approx(0.4, abs=0.03)


@cases(("steps", "epsilon"), [(1, 1.0), (7, 0.5), (12, 2.0), (30, 6.0), (200, 1.0)])
def test_weights_tell_any_mean_without_bias_and_with_the_least_squares(steps: int, epsilon: float) -> None:
    device = SquareWave(epsilon=epsilon, bounds=(0, 1), steps=steps).device
    near, far = device.inside.chance / device.window, (1 - device.inside.chance) / steps
    at, place = np.arange(device.outputs)[:, None], np.arange(steps + 1)[None, :]
    law = np.where((place <= at) & (at < place + device.window), float(near), float(far))
    for wanted in (np.random.default_rng(1).normal(size=steps + 1), np.arange(steps + 1) < 1 + steps // 3):
        weights = unbiased_weights(device, wanted.astype(float))
        assert np.allclose(law.T @ weights, wanted, atol=1e-8)
        # Any other solution, about any constant, has greater squares.
        least, even = (np.linalg.lstsq(law.T, part, rcond=None)[0] for part in (wanted, np.ones(steps + 1)))
        others = [least - z * even for z in np.linspace(-3, 3, 2001)]
        assert min(float(((weights - z) ** 2).sum()) for z in np.linspace(-3, 3, 2001)) <= 1.001 * min(
            float(other @ other) for other in others
        )
    assert np.allclose(unbiased_weights(device, np.ones(steps + 1)), 1)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_shares_between_points_are_unbiased_and_covered(epsilon: float) -> None:
    protocol, repeats = SquareWave(epsilon=epsilon, bounds=(0, 10), steps=20), 1500
    values, people = np.array([1.0, 2.5, 3.0, 7.5, 10.0]), np.array([1000, 3000, 2000, 2500, 1500])
    generator = np.random.default_rng(4)
    found = [
        protocol.simulate(values, people * 20, generator).share_between(2.5, 7.4) for _ in range(repeats)
    ]
    errors = np.array([each.mean for each in found]) - 0.5
    stated = float(np.mean([each.variance for each in found]))
    have_moments(errors, stated, tells=0.3)
    ends = [each.interval(0.95) for each in found]
    held = sum(end.lower <= 0.5 <= end.upper for end in ends)
    accepts_only(rate(held, repeats), 0.95, as_of_88=0.88, as_of_99=0.99)
    assert all(
        each.interval(0.95, method="exact").lower <= end.lower for each, end in zip(found, ends, strict=True)
    )
    everybody = protocol.simulate(values, people, 1).share_between(0, 10)
    assert everybody.mean == pytest.approx(1.0)
    assert everybody.stddev < 1e-4
    assert everybody.interval().upper == 1.0


def test_odd_ranges_are_refused() -> None:
    found = SquareWave(epsilon=1.0, bounds=(0, 10), steps=5).simulate([3.0, 4.0], rng=1)
    for lower, upper in ((5, 4), (4.1, 5.9), (11, 12), (-3, -1)):
        with pytest.raises(ParameterError, match="lower must be below upper"):
            found.share_between(lower, upper)
    with pytest.raises(ParameterError, match="upper must"):
        found.share_between(0, float("nan"))
    nobody = SquareWave(epsilon=1.0, bounds=(0, 1)).aggregator().estimate().share_between(0.2, 0.4)
    assert np.isnan(nobody.mean)
    assert nobody.interval()[:2] == (0.0, 1.0)


def test_nobody_has_no_distribution() -> None:
    empty = SquareWave(epsilon=1.0, bounds=(0, 1)).aggregator().estimate()
    with pytest.raises(ParameterError, match="reports must be at least 1"):
        empty.shares()
    with pytest.raises(ParameterError, match="share must"):
        empty.quantile(1.5)
