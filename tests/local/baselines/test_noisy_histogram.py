"""Summed and thresholded histograms: the same reports, read in two ways."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.local import Domain
from sfumato.local.baselines import SummationHistogram, ThresholdHistogram
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.privacy import Neighboring, PureDP
from tests.chance import accepts_only, rate


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 30.0])
def test_moments_are_those_of_the_noise(epsilon: float) -> None:
    summed = SummationHistogram(epsilon=epsilon, domain=Domain(range(5)))
    counted = ThresholdHistogram(epsilon=epsilon, domain=Domain(range(5)))
    law = DiscreteLaplaceDistribution(summed.device.scale)
    assert summed.variance(1) == pytest.approx((law.stddev / 64) ** 2, rel=1e-9)
    tail = law.upper_tail(counted.threshold)
    assert tail.lower - 1e-15 <= float(counted.support.other) <= tail.upper + 1e-15
    beyond = law.upper_tail(65 - counted.threshold)
    assert 1 - beyond.upper - 1e-15 <= float(counted.support.true) <= 1 - beyond.lower + 1e-15
    # each category has noise of its own, and so two are supported together by the product of their chances
    assert counted.support.with_true == counted.support.true * counted.support.other
    assert counted.support.both_others == counted.support.other**2


@pytest.mark.parametrize(("epsilon", "figure"), [(0.5, 17.83), (1.0, 4.81), (2.0, 1.28), (4.0, 0.285)])
def test_no_threshold_is_better(epsilon: float, figure: float) -> None:
    oracle = ThresholdHistogram(epsilon=epsilon, domain=Domain(range(5)))

    def variance(at: float) -> float:
        true, other = 1 - math.exp((at - 1) * epsilon / 2) / 2, math.exp(-at * epsilon / 2) / 2
        return other * (1 - other) / (true - other) ** 2

    best = min(variance(at) for at in np.linspace(0.5, 1, 5001))
    assert oracle.variance(1) == pytest.approx(best, rel=1e-3)
    assert best == pytest.approx(figure, rel=0.005)
    assert 32 <= oracle.threshold <= 64


def test_both_read_the_same_reports() -> None:
    domain = Domain(list("abcd"))
    summed, counted = (
        SummationHistogram(epsilon=2.0, domain=domain),
        ThresholdHistogram(epsilon=2.0, domain=domain),
    )
    batch = summed.randomize_batch(["a"] * 6000 + ["c"] * 4000, 1)
    numbers = summed.device.numbers(batch.records)
    one, other = summed.aggregator(), counted.aggregator()
    assert one.add_batch(batch) == other.add_batch(batch) == 10_000
    assert one.totals.tolist() == numbers.sum(axis=0).tolist()
    assert other.totals.tolist() == (numbers >= counted.threshold).sum(axis=0).tolist()
    for aggregator in (one, other):
        ends = aggregator.estimate().interval(1 - 1e-9)
        assert (ends.lower <= [0.6, 0, 0.4, 0]).all()
        assert (ends.upper >= [0.6, 0, 0.4, 0]).all()


def test_sums_of_noise_have_intervals_that_cover() -> None:
    oracle = SummationHistogram(epsilon=1.0, domain=Domain(range(20)))
    truth = np.full(20, 0.05)
    generator = np.random.default_rng(1)
    ends = [oracle.simulate(np.full(20, 50_000), generator).interval(0.95) for _ in range(1000)]
    held = sum(int(((end.lower <= truth) & (truth <= end.upper)).sum()) for end in ends)
    accepts_only(rate(held, 20_000), 0.95, as_of_93=0.93, as_of_97=0.97)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_loss_is_exactly_that_of_two_numbers(epsilon: float) -> None:
    for kind in (SummationHistogram, ThresholdHistogram):
        oracle = kind(epsilon=epsilon, domain=Domain(range(5)))
        loss, scale = oracle.privacy_loss, float(oracle.device.scale)
        far = int(64 + 40 * scale)
        noise = np.exp(-np.abs(np.arange(-far, far + 1)) / scale)
        noise /= noise.sum()
        here, there = np.pad(noise, (0, 64)), np.pad(noise, (64, 0))
        # One number goes up by 64 steps where the other goes down; losses of each on its lattice.
        losses = np.rint(np.log(np.maximum(here, 1e-300) / np.maximum(there, 1e-300)) * scale)
        keep = (here > 0) & (there > 0)
        masses = np.bincount(losses[keep].astype(int) + 64, here[keep], 129)
        both = np.convolve(masses, masses)
        at = (np.arange(257) - 128) / scale
        for part in (0.0, 0.3, 0.9):
            exact = float(both @ -np.minimum(np.expm1(part * epsilon - at), 0))
            assert exact * (1 - 1e-9) <= loss.delta(part * epsilon) <= exact * (1 + 1e-6)
        # Composition is the tighter for it: pure DP alone would allow much more.
        pure = PureDP(epsilon, neighboring=Neighboring.REPLACE_ONE)
        assert (loss * 50).epsilon(1e-6) < 0.95 * (pure * 50).epsilon(1e-6)
