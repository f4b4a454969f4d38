"""What limits cut off, from noisy histograms: against brute force, and the coverage of the intervals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.plan.typed_expressions import column
from sfumato.queries.planner.contribution_histograms import EDGES, Counted, Histogram
from sfumato.queries.planner.limit_estimates import Distribution, Estimate, NoisyHistogram, tail_bound
from sfumato.queries.pricing.magnitude_bins import WHOLE

COST = Expression(column("cost", ColumnType.INTEGER).tree, ColumnType.INTEGER)


def noisy(counts: np.ndarray, scale: float, histogram: Histogram) -> NoisyHistogram:
    return NoisyHistogram(histogram, tuple(int(each) for each in counts), Fraction(scale))


def counted(sizes: np.ndarray) -> np.ndarray:
    """Count sizes by the bins of whole numbers."""
    return np.bincount(np.searchsorted(EDGES, np.minimum(sizes, EDGES[-1])), minlength=len(EDGES))


@given(st.floats(0.3, 300), st.floats(1e-9, 0.2), st.integers(1, 40))
def test_a_tail_is_at_least_the_exact_one(scale: float, tail: float, weight: int) -> None:
    noise = DiscreteLaplaceDistribution(Fraction(scale))
    reach = tail_bound(np.array([float(weight), 0.0]), scale, tail)
    # beyond `reach` there is no more than `tail`: one noise of a weight moves by whole multiples of it
    beyond = int(reach // weight) + 1
    assert noise.upper_tail(beyond).upper <= tail
    assert tail_bound(np.array([float(weight)]), scale, tail, times=2) > reach


def test_without_noise_the_shares_are_those_of_brute_force() -> None:
    sizes = np.random.default_rng(1).geometric(0.2, 5000)
    found = Distribution.of(noisy(counted(sizes), 1e-3, Histogram(Counted.GROUPS)), 0.95)
    assert found.limits[:8] == list(range(1, 9))
    for limit in (1, 3, 8, 12):
        share, cut = found.beyond(limit), np.maximum(0, sizes - limit).sum() / sizes.sum()
        assert share.above.value == pytest.approx((sizes > limit).mean(), abs=1e-6)
        assert share.cut.lower <= cut <= share.cut.upper
        assert share.cut.value == pytest.approx(cut, abs=0.01)
        assert found.cut(limit) == pytest.approx(share.cut.value, abs=1e-9)
    assert found.number.value == pytest.approx(5000, abs=1e-6)
    assert found.mean.lower <= sizes.mean() <= found.mean.upper


def test_values_count_by_magnitude_and_their_sign_is_seen() -> None:
    for sign in (1, -1):
        counts = np.zeros(WHOLE.many, dtype=np.int64)
        for value, many in ((0, 50), (3, 100), (700, 400)):
            counts[WHOLE.index(sign * value)] += many
        found = Distribution.of(noisy(counts, 1e-3, Histogram(Counted.VALUES, 1, COST)), 0.95)
        assert found.negative == (sign < 0)
        assert found.limits[0] == 4.0  # the bin of three: zero alone is no limit
        assert found.limits[-1] == 1024.0
        assert found.beyond(4).above.value == pytest.approx(400 / 550)
        assert found.beyond(1024).cut.value == 0.0


def test_intervals_cover_at_least_their_level() -> None:
    sizes = np.random.default_rng(2).geometric(0.3, 400)
    counts, limit = counted(sizes), 3
    noise, draws = Laplace(sensitivity=1, scale=20, l0=1), 1500
    above = cut = 0
    for seed in range(draws):
        drawn = noisy(np.asarray(noise.release(counts, seed).value), 20, Histogram(Counted.GROUPS))
        found = Distribution.of(drawn, 0.9)
        share = found.beyond(limit)
        top = found.upper[found.top] if found.top is not None else 0
        seen = sizes[sizes <= top]
        truth = np.maximum(0, seen - limit).sum() / max(1, seen.sum())
        above += share.above.lower <= (sizes > limit).mean() <= share.above.upper
        cut += share.cut.lower <= truth <= share.cut.upper
    # 7 standard errors below the level: a chance of 1e-12 at most if they cover it
    least = 0.9 - 7 * (0.9 * 0.1 / draws) ** 0.5
    assert min(above, cut) / draws >= least


def test_nothing_stands_out_of_noise_alone() -> None:
    found = Distribution.of(noisy(np.zeros(len(EDGES)), 50, Histogram(Counted.GROUPS)), 0.95)
    assert (found.top, found.limits, found.cut(1)) == (None, [], 0.0)
    assert found.beyond(1).above.upper == 1.0


def test_quotients_and_products_of_intervals() -> None:
    one, other = Estimate(4, 2, 6), Estimate(2, -1, 4)
    assert one.over(Estimate(2, 1, 4)) == Estimate(2, 0.5, 6)
    assert one.over(other).upper == float("inf")
    assert one.times(other) == Estimate(8, 0, 24)
    assert Estimate(1.5, -1, 2).share == Estimate(1, 0, 1)
