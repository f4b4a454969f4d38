"""Adaptive histograms: exact chances of trees against the loss, the bins, and the error beside even ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import AdaptiveHistogram, Histogram, Laplace
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

UNIT = ((0.0, 1.0),)


def chances(counts: list[int], scale: Fraction, threshold: int) -> list[float]:
    """The chances that a path of boxes with these counts ends at each depth, from tails by hand."""
    bias, found, alive = math.ceil(float(scale) * math.log(2)), [], 1.0
    noise = DiscreteLaplaceDistribution(scale)
    for depth, count in enumerate(counts):
        value = max(threshold - bias, count - depth * bias)
        halved = float(noise.upper_tail(threshold + 1 - value).upper)
        found.append(alive * (1 - halved))
        alive *= halved
    return [*found, alive]


@cases("scale", [Fraction(1, 2), Fraction(3), Fraction(73, 16)])
@cases("depth", [1, 2, 5])
@cases("neighboring", [Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE])
def test_no_tree_is_likelier_than_the_loss_allows_and_one_is_as_likely(
    scale: Fraction, depth: int, neighboring: Any
) -> None:
    noise = Laplace.calibrated(sensitivity=1, l0=2, epsilon=1.0, neighboring=neighboring)
    mechanism = AdaptiveHistogram(bounds=UNIT, scale=scale, noise=noise, depth=depth, threshold=2)
    bias, up, down = math.ceil(float(scale) * math.log(2)), 0.0, 0.0
    for most in range(2 + (depth + 2) * bias):
        for falls in range(depth):
            counts = [most] * (depth - falls) + [most // 2] * falls
            less, more = (chances([count + added for count in counts], scale, 2) for added in (0, 1))
            ratios = [math.log(b / a) for a, b in zip(less, more, strict=True)]
            up, down = max(up, *ratios), max(down, *(-ratio for ratio in ratios))
    worst = up + (down if neighboring is Neighboring.REPLACE_ONE else 0.0)
    assert worst <= mechanism.split_epsilon * (1 + 1e-9)
    assert worst > mechanism.split_epsilon * 0.999
    assert down <= 1 / scale + 1e-9


def test_trees_are_drawn_as_the_proof_says() -> None:
    noise = Laplace.calibrated(sensitivity=1, epsilon=1.0)
    mechanism = AdaptiveHistogram(bounds=UNIT, scale=2, noise=noise, depth=3, threshold=3)
    rng, data, seen = np.random.default_rng(1), np.full(7, 0.01), dict.fromkeys(range(4), 0)
    for _ in range(250):
        release = mechanism.release(data, rng)
        seen[round(-math.log2(release.upper[0, 0] - release.lower[0, 0]))] += 1
    right, other = (dict(enumerate(chances([count] * 3, Fraction(2), 3))) for count in (7, 12))
    accepts_only(frequencies(seen), right, five_records_more=other)


def test_one_record_moves_one_count_of_given_bins_or_two() -> None:
    mechanism = AdaptiveHistogram.calibrated(bounds=((0, 8), (-1, 1)), epsilon=2.0, threshold=0)
    rng = np.random.default_rng(2)
    data = rng.normal([2, 0], [1, 0.2], (400, 2))
    release = mechanism.release(data, rng)
    inside = np.clip(data, [0, -1], [8, 1])[:, None]
    low, high = release.lower, release.upper
    there = ((low <= inside) & ((inside < high) | (high == [8, 1]))).all(axis=-1)
    assert (there.sum(axis=1) == 1).all()
    assert np.prod(high - low, axis=1).sum() == pytest.approx(16)
    wide = 2 * release.distribution.half_width(1 - 1e-9)[0]
    assert np.abs(release.value - there.sum(axis=0)).max() <= wide
    assert release.count_between([0, -1], [8, 1]) == pytest.approx(release.value.sum())
    assert (release.density() * np.prod(high - low, axis=1)).sum() == pytest.approx(1)


@cases("epsilon", [0.05, 8.0])
@cases("neighboring", list(Neighboring))
def test_calibrated_costs_no_more_and_not_much_less(epsilon: float, neighboring: Any) -> None:
    mechanism = AdaptiveHistogram.calibrated(bounds=UNIT, epsilon=epsilon, neighboring=neighboring)
    assert 0.99 * epsilon < mechanism.privacy_loss.epsilon(0.0) <= epsilon
    assert mechanism.neighboring is neighboring
    assert 0.25 * epsilon < mechanism.split_epsilon <= 0.3 * epsilon


def test_intervals_hold_the_counts_of_the_bins_shown() -> None:
    mechanism, rng = AdaptiveHistogram.calibrated(bounds=UNIT, epsilon=1.0), np.random.default_rng(3)
    data, held, seen = rng.beta(2, 30, 3000), 0, 0
    for _ in range(20):
        release = mechanism.release(data, rng)
        edges = np.append(release.lower[:, 0], 1.0)
        exact = np.histogram(data, edges)[0]
        lower, upper, _ = release.interval(0.8)
        held, seen = held + int(((lower <= exact) & (exact <= upper)).sum()), seen + len(exact)
    assert held / seen > 0.8


def test_where_records_are_dense_bins_are_small_and_errors_below_those_of_even_bins() -> None:
    rng = np.random.default_rng(4)
    data = np.where(rng.random(20_000) < 0.5, rng.normal(1e5, 500, 20_000), rng.uniform(0, 1e6, 20_000))
    ends = np.sort(rng.choice(data, (100, 2)), axis=1)
    ordered = np.sort(data)
    exact = np.searchsorted(ordered, ends[:, 1]) - np.searchsorted(ordered, ends[:, 0])
    release = AdaptiveHistogram.calibrated(bounds=((0.0, 1e6),), epsilon=1.0).release(data, rng)
    adaptive = np.abs(release.count_between(ends[:, 0], ends[:, 1]) - exact).mean()
    for bins in (64, 1024):
        edges = np.linspace(0, 1e6, bins + 1)
        counts = Laplace.for_query(Histogram(edges=edges.tolist()), epsilon=1.0).release(data, rng).value
        up_to = np.append(0, np.cumsum(counts))
        even = np.abs(np.interp(ends[:, 1], edges, up_to) - np.interp(ends[:, 0], edges, up_to) - exact)
        assert adaptive < even.mean() / 4
    sizes = (release.upper - release.lower)[:, 0]
    assert sizes[(release.lower[:, 0] < 1e5) & (release.upper[:, 0] > 1e5)].max() < 1000 < sizes.max() / 4


def test_odd_data_has_bins() -> None:
    mechanism = AdaptiveHistogram.calibrated(bounds=((-1, 1), (0, 1)), epsilon=0.1, depth=10)
    for odd in (np.zeros((0, 2)), np.full((5, 2), math.nan), np.array([[math.inf, -math.inf]] * 5)):
        release = mechanism.release(odd, rng=1)
        assert np.prod(release.upper - release.lower, axis=1).sum() == pytest.approx(2)
        assert np.isfinite(release.density()).all()


@cases(
    "make, message",
    [
        (lambda: AdaptiveHistogram.calibrated(bounds=(), epsilon=1.0), "bounds must hold a pair"),
        (lambda: AdaptiveHistogram.calibrated(bounds=UNIT, epsilon=1.0, depth=0), "depth must"),
        (
            lambda: AdaptiveHistogram.calibrated(bounds=UNIT, epsilon=1.0, depth=49),
            "depth must be at most 48",
        ),
        (lambda: AdaptiveHistogram.calibrated(bounds=UNIT, epsilon=1.0, split_share=1.0), "split_share must"),
        (lambda: AdaptiveHistogram.calibrated(bounds=UNIT, epsilon=1.0, threshold=-1), "threshold must"),
        (
            lambda: AdaptiveHistogram(
                bounds=UNIT,
                scale=1,
                depth=3,
                noise=Laplace.calibrated(sensitivity=1, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE),
            ),
            "noise must have an l0 of at least 2",
        ),
        (
            lambda: AdaptiveHistogram(
                bounds=UNIT, scale=1, depth=3, noise=Laplace.calibrated(sensitivity=2, epsilon=1.0)
            ),
            "noise must be Laplace noise on whole numbers",
        ),
        (
            lambda: AdaptiveHistogram.calibrated(bounds=UNIT, epsilon=1.0).release(np.zeros((3, 2))),
            "value must be an array of real numbers of shape",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()
