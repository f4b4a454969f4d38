"""Intervals of quantiles of rows by bin: exact coverage on the worst tables, their law, their price."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms.statistics.quantile.binned_quantile_ends import ENDS_LEVEL, BinnedQuantileEnds
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinnedRows
from sfumato.mechanisms.statistics.quantile.count_tree import TreeCounts


def _law(mechanism: BinnedQuantileEnds, counts: Sequence[int], side: int) -> dict[int, float]:
    """The probability of each end by the definition; -1 and the number of bins stand for what is beyond."""
    order, total = Fraction(mechanism.quantile), sum(counts)
    away = Fraction(math.ceil(2 * mechanism.ranks_out(len(counts))), 2)
    target = order * (total - 1) + Fraction(1, 2) + side * away
    rate = Fraction(mechanism.epsilon) / (2 * mechanism.rows * max(order, 1 - order))
    below = [0, *itertools.accumulate(counts)]
    zero = Fraction(0)
    gaps = {leaf: max(zero, below[leaf] - target, target - below[leaf + 1]) for leaf in range(len(counts))}
    gaps[-1 if side < 0 else len(counts)] = max(zero, target if side < 0 else total - target)
    weights = {leaf: math.exp(-float(rate * gap)) for leaf, gap in gaps.items()}
    whole = math.fsum(weights.values())
    return {leaf: weight / whole for leaf, weight in weights.items()}


def _misses(mechanism: BinnedQuantileEnds, counts: Sequence[int]) -> tuple[float, float]:
    """How likely the lower end is above the lower of the two rows, and the upper end below the other."""
    rows = np.repeat(np.arange(len(counts)), counts)
    place = Fraction(mechanism.quantile) * (len(rows) - 1)
    low, high = int(rows[math.floor(place)]), int(rows[math.ceil(place)])
    lower = math.fsum(p for leaf, p in _law(mechanism, counts, -1).items() if leaf > low)
    upper = math.fsum(p for leaf, p in _law(mechanism, counts, 1).items() if leaf < high)
    return lower, upper


@pytest.mark.parametrize(
    "order", [Fraction(1, 2), Fraction(1, 10), Fraction(199, 200), Fraction(0), Fraction(1)]
)
def test_coverage_is_what_is_stated_whatever_the_rows(order: Fraction) -> None:
    """Exactly, on tables of one, few and many rows, at the ends and apart: two heaps apart are the worst."""
    mechanism = BinnedQuantileEnds(quantile=order, epsilon=Fraction(1, 2), rows=5)
    allowed, worst = (1 - ENDS_LEVEL) / 2, 0.0
    bins = 40
    tables: list[list[int]] = []
    for many in (1, 2, 7, 100, 1000, 4000):
        share = int(order * many)
        tables += [[many] + [0] * (bins - 1), [0] * (bins - 1) + [many], [many // bins + 1] * bins]
        tables += [[max(0, share)] + [0] * (bins - 2) + [many - share]]
    for counts in tables:
        if sum(counts):
            worst = max(worst, *_misses(mechanism, counts))
    assert worst <= allowed
    assert worst > 0.8 * allowed or order != Fraction(1, 2)


def test_neighbors_are_within_the_range_of_each_end() -> None:
    mechanism = BinnedQuantileEnds(quantile=Fraction(7, 10), epsilon=Fraction(4, 5), rows=2)
    worst = 0.0
    for counts in itertools.product((0, 1, 40), repeat=3):
        for more in itertools.product((0, 1, 2), repeat=3):
            if not 0 < sum(more) <= 2:
                continue
            other = [a + b for a, b in zip(counts, more, strict=True)]
            for side in (-1, 1):
                one, two = _law(mechanism, counts, side), _law(mechanism, other, side)
                ratios = [math.log(one[leaf] / two[leaf]) for leaf in one]
                worst = max(worst, max(ratios) - min(ratios))
    assert 0.4 < worst <= 0.8 * (1 + 1e-12)
    assert mechanism.privacy_loss.epsilon() == pytest.approx(1.6)


def test_what_is_drawn_has_that_law() -> None:
    """The frequencies of 4000 pairs, each within 7 of its standard deviations."""
    mechanism, counts, many = BinnedQuantileEnds(epsilon=2, rows=1), (30, 5, 0, 9, 40), 4000
    leaves = np.tile(np.flatnonzero(counts), many)
    groups = np.repeat(np.arange(many), 4)
    held = np.tile(np.array(counts)[np.flatnonzero(counts)], many)
    drawn = mechanism.release(BinnedRows(TreeCounts(groups, leaves, held), 5, many), 5).value
    lower, upper = _law(mechanism, counts, -1), _law(mechanism, counts, 1)
    for end, law, beyond, nearest in ((0, lower, -1, 0), (1, upper, 5, 4)):
        expected = {leaf: chance for leaf, chance in law.items() if leaf != beyond}
        expected[nearest] += law[beyond]
        for leaf, chance in expected.items():
            off = (drawn[:, end] == leaf).mean() - chance
            # both ends are sorted where they cross, which they hardly ever do
            assert abs(off) < 7 * math.sqrt(chance * (1 - chance) / many) + 0.003
    assert (drawn[:, 0] <= drawn[:, 1]).all()


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
        BinnedQuantileEnds(**{"epsilon": 1, **given})
