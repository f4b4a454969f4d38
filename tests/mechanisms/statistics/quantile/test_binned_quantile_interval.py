"""Intervals of quantiles of rows by bin: exact coverage on the worst tables, their law, price and width."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms.statistics.quantile.binned_quantile_interval import (
    INTERVAL_LEVEL,
    BinnedQuantileInterval,
    CenteredRows,
)
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinnedRows
from sfumato.mechanisms.statistics.quantile.count_tree import TreeCounts


def _candidates(bins: int, center: int) -> Iterator[tuple[int, int, int]]:
    """The ends of the candidates with their weights, by the definition."""
    away, weight, total = 0, 16, 0
    while True:
        weight = max(16, math.ceil(Fraction(3, 10) * total))
        yield max(0, center - away), min(bins - 1, center + away), weight
        total += weight
        if away == bins - 1:
            return
        away = min(bins - 1, max(away + 1, math.ceil(Fraction(5, 4) * away)))


def _law(mechanism: BinnedQuantileInterval, counts: Sequence[int], center: int) -> list[float]:
    """The probability of each candidate by the definition."""
    order, bins, total = Fraction(mechanism.quantile), len(counts), sum(counts)
    most, far = max(order, 1 - order), Fraction(10**9)
    aim = Fraction(math.ceil(order.denominator * mechanism.depth * (1 + 1e-9)), order.denominator)
    rate = Fraction(mechanism.epsilon) / (2 * mechanism.rows * most)
    before, logs = -far, []
    for low, high, weight in _candidates(bins, center):
        below = far if low == 0 else order * total - sum(counts[:low])
        above = far if high == bins - 1 else sum(counts[: high + 1]) - order * total
        depth = min(below, above)
        gap = max(Fraction(0), aim - depth, before - aim)
        logs.append(math.log(weight) - float(rate * gap))
        before = depth
    largest = max(logs)
    weights = [math.exp(each - largest) for each in logs]
    return [weight / math.fsum(weights) for weight in weights]


def _miss(mechanism: BinnedQuantileInterval, counts: Sequence[int], center: int) -> float:
    """How likely one of the two rows that the quantile lies between is outside of the interval."""
    rows = np.repeat(np.arange(len(counts)), counts)
    place = Fraction(mechanism.quantile) * (len(rows) - 1)
    first, last = int(rows[math.floor(place)]), int(rows[math.ceil(place)])
    law = zip(_candidates(len(counts), center), _law(mechanism, counts, center), strict=True)
    return math.fsum(chance for (low, high, _), chance in law if low > first or high < last)


@pytest.mark.parametrize(
    "order", [Fraction(1, 2), Fraction(1, 10), Fraction(199, 200), Fraction(0), Fraction(1)]
)
def test_coverage_is_what_is_stated_whatever_the_rows(order: Fraction) -> None:
    """Exactly, for all centers: two heaps with the center in a gap beside the quantile's are the worst."""
    mechanism = BinnedQuantileInterval(quantile=order, epsilon=Fraction(1, 2), rows=5)
    bins, tables = 40, list[list[int]]()
    for many in (1, 2, 7, 100, 1000, 4000):
        for share in {int(order * many), max(0, int(order * many) - 1), min(many, int(order * many) + 1)}:
            tables += [[share] + [0] * (bins - 2) + [many - share]]
            tables += [[share] + [0] * 19 + [many - share] + [0] * 19]
        tables += [[many] + [0] * (bins - 1), [0] * (bins - 1) + [many], [many // bins + 1] * bins]
        tables += [[0] * 20 + [many] + [0] * 19]
    worst = max(
        _miss(mechanism, counts, center) for counts in tables if sum(counts) for center in range(0, bins, 3)
    )
    assert worst <= 1 - INTERVAL_LEVEL
    assert worst > 0.8 * (1 - INTERVAL_LEVEL) or order in (0, 1)


def test_neighbors_are_within_the_range_of_one_choice() -> None:
    mechanism = BinnedQuantileInterval(quantile=Fraction(7, 10), epsilon=Fraction(4, 5), rows=2)
    worst = 0.0
    for counts in itertools.product((0, 1, 40), repeat=4):
        for more in itertools.product((0, 1, 2), repeat=4):
            if not 0 < sum(more) <= 2:
                continue
            other = [a + b for a, b in zip(counts, more, strict=True)]
            for center in (1, 3):
                one, two = _law(mechanism, counts, center), _law(mechanism, other, center)
                ratios = [math.log(a / b) for a, b in zip(one, two, strict=True) if a > 1e-200 and b > 1e-200]
                worst = max(worst, max(ratios) - min(ratios))
    assert 0.4 < worst <= 0.8 * (1 + 1e-12)
    assert mechanism.privacy_loss.epsilon() == pytest.approx(0.8)
    many = BinnedQuantileInterval(epsilon=Fraction(4, 5), rows=2, groups=3)
    assert many.privacy_loss.epsilon() == pytest.approx(2.4)


@pytest.mark.parametrize("center", [0, 2, 7])
def test_what_is_drawn_has_that_law(center: int) -> None:
    """The frequencies of 1500 intervals, each within 7 of its standard deviations."""
    mechanism, counts, many = BinnedQuantileInterval(epsilon=2, rows=1), (30, 5, 0, 9, 40, 0, 1, 8), 1500
    leaves = np.tile(np.flatnonzero(counts), many)
    groups = np.repeat(np.arange(many), np.count_nonzero(counts))
    held = np.tile(np.array(counts)[np.flatnonzero(counts)], many)
    rows = BinnedRows(TreeCounts(groups, leaves, held), len(counts), many)
    drawn = mechanism.release(CenteredRows(rows, np.full(many, center)), 5).value
    expected: dict[tuple[int, int], float] = {}
    law = _law(mechanism, counts, center)
    for (low, high, _), chance in zip(_candidates(len(counts), center), law, strict=True):
        expected[low, high] = expected.get((low, high), 0.0) + chance
    assert sum(expected.values()) == pytest.approx(1)
    for (low, high), chance in expected.items():
        off = ((drawn[:, 0] == low) & (drawn[:, 1] == high)).mean() - chance
        assert abs(off) <= 7 * math.sqrt(chance * (1 - chance) / many)


def test_rows_beyond_64_bits_are_exact() -> None:
    """A quantile of a large denominator times very many rows is no overflow."""
    order = Fraction(699_051, 1 << 20)  # two thirds, nearly
    mechanism = BinnedQuantileInterval(quantile=order, epsilon=1)
    leaves = np.array([10, 40, 60], dtype=np.int64)
    counts = np.array([1 << 45, 1 << 45, 1 << 45], dtype=np.int64)
    rows = BinnedRows(TreeCounts(np.zeros(3, np.int64), leaves, counts), 101, 1)
    (found,) = mechanism.release(CenteredRows(rows, np.array([38])), 1).value.tolist()
    # the quantile is of the rows at 60, 2**25 ranks beyond those at 40
    assert found[0] <= 60 <= found[1] < 100


def test_no_more_bins_need_more_ranks() -> None:
    """The target's depth is that of the docstring; among 65,536 bins the interval stays near it."""
    mechanism = BinnedQuantileInterval(epsilon=Fraction(1, 2))
    assert mechanism.depth == pytest.approx(0.5 + 2 * math.log(19 * 10 / 3))
    bins, many = 1 << 16, 200
    leaves = np.tile(np.arange(0, bins, 16), many)
    groups = np.repeat(np.arange(many), bins // 16)
    rows = BinnedRows(TreeCounts(groups, leaves, np.ones_like(leaves)), bins, many)
    drawn = mechanism.release(CenteredRows(rows, np.full(many, bins // 2)), 3).value
    ranks = np.diff(drawn, axis=1)[:, 0] / 2 / 16
    assert 8 < np.median(ranks) < 13


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quantile": 1.5}, "quantile must be from 0 to 1"),
        ({"quantile": -0.5}, "quantile must be positive"),
        ({"epsilon": -1}, "epsilon must be positive"),
        ({"rows": 0}, "rows must be"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        BinnedQuantileInterval(**{"epsilon": 1, **given})
