"""Half-widths in ranks: against exact probabilities of one choice, and noisy trees that are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinnedQuantiles, BinnedRows
from sfumato.mechanisms.statistics.quantile.count_tree import TreeCounts, TreeShape
from sfumato.mechanisms.statistics.quantile.tree_estimates import estimate_quantiles, rank_half_width
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from sfumato.numerics.randomness.source import random_source

BINS, ROWS = 200, 4000


def beyond(counts: np.ndarray, order: float, epsilon: float, distance: float) -> float:
    """Return the probability that the exponential mechanism is off by more than so many ranks."""
    ends = np.concatenate(([0], np.cumsum(counts)))
    target = order * ends[-1]
    off = np.maximum(0.0, np.maximum(ends[:-1] - target, target - ends[1:]))
    weights = np.exp(-epsilon * off / (2 * max(order, 1 - order)))
    return float(weights[off > distance].sum() / weights.sum())


def data(order: float, apart: int) -> list[np.ndarray]:
    """Return even rows, few full bins, and the least favorable: all bins but one just so far off."""
    at = round(order * ROWS)
    worst = np.zeros(BINS, np.int64)
    worst[0], worst[1] = max(0, at - apart), 2 * apart
    worst[2] = ROWS - worst.sum()
    empty_beyond = np.zeros(BINS, np.int64)
    empty_beyond[0], empty_beyond[1] = at + apart, ROWS - at - apart
    gap = np.zeros(BINS, np.int64)
    gap[0], gap[-1] = at + apart, ROWS - at - apart  # bins between are off by `apart`, all of them
    return [np.full(BINS, ROWS // BINS), worst, empty_beyond, gap]


@pytest.mark.parametrize("order", [0.5, 0.9, 0.25])
def test_one_choice_is_off_by_more_with_at_most_that_probability_which_some_data_attain(order: float) -> None:
    for epsilon in (0.1, 1.0):
        for level in (0.8, 0.95):
            stated = BinnedQuantiles(quantiles=(order,), epsilon=epsilon).rank_half_width(BINS, level)
            found = [beyond(counts, order, epsilon, stated) for counts in data(order, math.floor(stated) + 1)]
            assert max(found) <= 1 - level + 1e-12
            nearly = [beyond(c, order, epsilon, stated - 1.001) for c in data(order, math.floor(stated))]
            assert max(nearly) > (1 - level) * math.exp(-epsilon)  # a whole rank less is too little


def test_several_choices_are_off_by_no_more() -> None:
    orders = (0.1, 0.25, 0.5, 0.75, 0.9)
    mechanism = BinnedQuantiles(quantiles=orders, epsilon=0.5)
    stated = mechanism.rank_half_width(BINS, 0.9)
    assert stated > BinnedQuantiles(quantiles=(0.5,), epsilon=0.5).rank_half_width(BINS, 0.9)
    for counts in data(0.5, math.floor(stated) + 1):
        filled = np.flatnonzero(counts)
        many = 100
        groups = np.repeat(np.arange(many), filled.size)
        rows = TreeCounts(groups, np.tile(filled, many), np.tile(counts[filled], many))
        found = mechanism.release(BinnedRows(rows, BINS, many), rng=3).value
        ends, target = np.concatenate(([0], np.cumsum(counts))), np.array(orders) * ROWS
        off = np.maximum(ends[found] - target, target - ends[found + 1])
        # at most 0.1 of 100 each: more than 28 has a probability of 1e-6
        assert (off > stated).sum(axis=0).max() <= 28


@pytest.mark.parametrize("gaussian", [False, True])
def test_a_tree_is_off_by_no_more_and_a_fifth_of_it_would_be_too_little(gaussian: bool) -> None:
    noise = DiscreteGaussianDistribution(16) if gaussian else DiscreteLaplaceDistribution(16)
    orders, bins, many = np.array([0.1, 0.5, 0.9]), 5000, 100
    shape = TreeShape.of(bins)
    stated = rank_half_width(shape, noise, orders.tolist(), 0.9)
    counts = np.full(bins, 4)
    groups = np.repeat(np.arange(many), bins)
    tree = TreeCounts(groups, np.tile(np.arange(bins), many), np.tile(counts, many))
    found = estimate_quantiles(shape, noise, tree, orders, random_source(5), groups=many).leaves
    off = np.maximum(0, np.abs((found + 0.5) * 4 - orders * bins * 4) - 2)
    assert (off > stated).sum(axis=0).max() <= 22  # of 100: more has a probability of 1e-4
    assert (off > stated / 5).sum(axis=0).max() > 10


def test_more_bins_and_a_higher_level_are_wider() -> None:
    median = BinnedQuantiles(quantiles=(0.5,), epsilon=1)
    assert median.rank_half_width(1, 0.95) == 0
    assert median.rank_half_width(100, 0.95) < median.rank_half_width(1000, 0.95)
    assert median.rank_half_width(100, 0.9) < median.rank_half_width(100, 0.99)
