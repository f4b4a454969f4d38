"""Quantiles of rows by bin: their exact law on all small tables, neighbors, the cut of draws, errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.audit import exact_audit
from sfumato.errors import ParameterError
from sfumato.mechanisms.statistics.quantile import binned_quantiles
from sfumato.mechanisms.statistics.quantile.bin_sampling import BinnedPart, BinSampler
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinnedQuantiles, BinnedRows
from sfumato.mechanisms.statistics.quantile.count_tree import TreeCounts
from sfumato.numerics.randomness.source import random_source
from tests.chance import accepts_only

_BINS = 4


def _rows(*groups: Sequence[int]) -> BinnedRows:
    """Groups by how many rows each bin holds."""
    table = np.array(groups, np.int64)
    of, leaves = np.nonzero(table)
    return BinnedRows(TreeCounts(of, leaves, table[of, leaves]), table.shape[1], len(groups))


def _below(counts: Sequence[int], at: Fraction) -> Fraction:
    """How many rows lie below a place, those of a bin spread evenly over it."""
    return sum(
        (many * min(Fraction(1), max(Fraction(0), at - leaf)) for leaf, many in enumerate(counts)),
        Fraction(0),
    )


_Place = tuple[Fraction, Fraction]


def _scores(
    mechanism: BinnedQuantiles,
    counts: Sequence[int],
    order: Fraction,
    ends: tuple[_Place | None, _Place | None],
) -> Callable[[Fraction, Fraction], float]:
    """How far the part of the group between two ends has its quantile from a candidate, times the rate."""
    (p, a), (q, b) = ends[0] or (Fraction(0),) * 2, ends[1] or (Fraction(1), Fraction(len(counts)))
    within = ((order - p) / (q - p)).limit_denominator(1 << 12)
    first, whole = _below(counts, a), _below(counts, b) - _below(counts, a)
    target = within * whole + ((1 - within) * (ends[0] is None) - within * (ends[1] is None)) / 2
    rate = Fraction(mechanism.epsilon) / (2 * mechanism.rows * max(within, 1 - within))

    def gap(start: Fraction, end: Fraction) -> float:
        under, upto = _below(counts, max(a, start)) - first, _below(counts, min(b, end)) - first
        return float(rate * max(Fraction(0), under - target, target - upto))

    return gap


def _candidates(
    bins: int, parts: int, ends: tuple[_Place | None, _Place | None], *, inner: bool
) -> list[Fraction]:
    """The points between two ends, or the bins that have a place between them."""
    a, b = ends[0][1] if ends[0] else Fraction(0), ends[1][1] if ends[1] else Fraction(bins)
    if inner:
        return [at for k in range(bins * parts) if a <= (at := Fraction(2 * k + 1, 2 * parts)) <= b]
    return [Fraction(leaf) for leaf in range(math.floor(a), max(math.floor(a), math.ceil(b) - 1) + 1)]


def _law(mechanism: BinnedQuantiles, counts: Sequence[int], parts: int) -> dict[tuple[Any, ...], float]:
    """The probability of all that is chosen, by the definition: no windows, blocks or whole numbers."""
    orders = [Fraction(order) for order in mechanism.quantiles]

    def choose(
        first: int, last: int, low: _Place | None, high: _Place | None
    ) -> Iterator[tuple[dict[int, Fraction], float]]:
        if first >= last:
            yield {}, 1.0
            return
        middle, inner = (first + last) // 2, last - first > 1
        gap = _scores(mechanism, counts, orders[middle], (low, high))
        places = _candidates(len(counts), parts, (low, high), inner=inner)
        weights = [math.exp(-gap(at, at if inner else at + 1)) for at in places]
        for at, weight in zip(places, weights, strict=True):
            chance, here = weight / math.fsum(weights), (orders[middle], at)
            if not inner:
                yield {middle: at}, chance
                continue
            for one, p in choose(first, middle, low, here):
                for other, q in choose(middle + 1, last, here, high):
                    yield {middle: at, **one, **other}, chance * p * q

    law: dict[tuple[Any, ...], float] = {}
    for picked, chance in choose(0, len(orders), None, None):
        key = tuple(picked[k] for k in range(len(orders)))
        law[key] = law.get(key, 0.0) + chance
    return law


def _neighbors(counts: Sequence[int], rows: int) -> Iterator[tuple[int, ...]]:
    """All tables in which one unit has its rows more."""
    for more in itertools.product(range(rows + 1), repeat=len(counts)):
        if 0 < sum(more) <= rows:
            yield tuple(a + b for a, b in zip(counts, more, strict=True))


@pytest.mark.parametrize(
    "order", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 10), Fraction(0), Fraction(1)]
)
@pytest.mark.parametrize("rows", [1, 3])
def test_one_quantile_has_its_range_on_all_small_tables_and_attains_it(order: Fraction, rows: int) -> None:
    """The log-ratios of any two answers differ by at most epsilon: what bounded range means."""
    mechanism = BinnedQuantiles(quantiles=(order,), epsilon=Fraction(7, 10), rows=rows)
    worst = 0.0
    for counts in (*itertools.product((0, 1, 5), repeat=3), (100, 20, 0, 0), (0, 0, 20, 100)):
        law = _law(mechanism, counts, 1)
        for other in _neighbors(counts, rows):
            moved = _law(mechanism, other, 1)
            ratios = [math.log(law[key] / moved[key]) for key in law]
            worst = max(worst, max(ratios) - min(ratios))
    assert worst <= 0.7 * (1 + 1e-12)
    # scores do move against one another by all that is allowed: half of the noise would be too little
    assert worst > 0.69 or order in (0, 1)


def test_the_audit_finds_what_is_claimed_and_no_more() -> None:
    mechanism = BinnedQuantiles(quantiles=(0.5,), epsilon=1, rows=2)
    laws = [_law(mechanism, counts, 1) for counts in ((6, 0, 0, 6), (6, 0, 0, 8))]
    assert not exact_audit((laws[0], laws[1]), epsilon=1.0).violated
    assert exact_audit((laws[0], laws[1]), epsilon=0.3).violated


@pytest.mark.parametrize("orders", [(0.25, 0.5, 0.75), (0.1, 0.2), (0.0, 0.5, 1.0)])
def test_several_cost_their_levels_whatever_parts_a_units_rows_are_in(orders: tuple[float, ...]) -> None:
    """Of all that is chosen, points included, on all small tables: rows of one unit lie in both halves."""
    mechanism = BinnedQuantiles(quantiles=orders, epsilon=Fraction(1, 2), rows=2)
    assert mechanism.choices == 2
    worst = 0.0
    for counts in ((0, 0, 0), (1, 0, 2), (0, 4, 0), (3, 1, 0), (2, 2, 2)):
        law = _law(mechanism, counts, 2)
        for other in _neighbors(counts, 2):
            moved = _law(mechanism, other, 2)
            assert law.keys() == moved.keys()
            worst = max(worst, *(abs(math.log(law[key] / moved[key])) for key in law))
    assert 0.3 < worst <= mechanism.privacy_loss.epsilon() * (1 + 1e-12)
    assert mechanism.privacy_loss.epsilon() == pytest.approx(1.0)


@pytest.mark.parametrize("orders", [(0.5,), (0.2,), (0.0,), (0.25, 0.5, 0.75), (0.3, 0.9)])
def test_what_is_drawn_has_that_law(orders: tuple[float, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pearson's statistic of 4000 draws; of a law with half the epsilon it is far too large."""
    parts, counts, many = 2, (3, 0, 7, 1), 4000
    monkeypatch.setattr(binned_quantiles, "_PARTS", parts)
    mechanism = BinnedQuantiles(quantiles=orders, epsilon=Fraction(3, 2), rows=1)
    drawn = mechanism.release(_rows(*[counts] * many), 11).value
    seen: dict[tuple[int, ...], int] = {}
    for row in drawn.tolist():
        seen[tuple(row)] = seen.get(tuple(row), 0) + 1

    def statistic(epsilon: Fraction) -> float:
        claimed = BinnedQuantiles(quantiles=orders, epsilon=epsilon, rows=1)
        law: dict[tuple[int, ...], float] = {}
        for key, chance in _law(claimed, counts, parts).items():
            bins = tuple(math.floor(at) for at in key)
            law[bins] = law.get(bins, 0.0) + chance
        assert seen.keys() <= law.keys()
        common = {key: chance for key, chance in law.items() if chance * many > 5}
        off = sum((seen.get(key, 0) - chance * many) ** 2 / (chance * many) for key, chance in common.items())
        return (off - len(common)) / math.sqrt(2 * len(common) + 40)

    def check(deviations: float) -> None:
        assert deviations < 7

    accepts_only(check, statistic(Fraction(3, 2)), half_the_epsilon=statistic(Fraction(3, 4)))


@pytest.mark.parametrize("seed", range(12))
def test_blocks_are_all_points_once_with_rising_gaps(seed: int) -> None:
    """A draw is exact wherever runs are cut, if they are all points, each once, from the least gap on."""
    rng = np.random.default_rng(seed)
    parts, bins = int(rng.integers(1, 9)), int(rng.integers(1, 7))
    counts = rng.choice([0, 0, 1, 3, 1000, 10**6], bins)
    span = 2 * parts * bins
    ends = sorted(2 * int(k) + 1 for k in rng.integers(0, parts * bins, 2))
    low, high = ends[0] if rng.random() < 0.5 else 0, ends[1] if rng.random() < 0.5 else span
    held = np.flatnonzero(counts)
    part = BinnedPart(held, counts[held], parts, low, high)
    order = Fraction(int(rng.integers(0, 11)), 10)
    sampler = BinSampler(order, Fraction(1, 40 * parts), outer_low=low == 0, outer_high=high == span)
    blocks, runs = sampler._blocks(part), sampler._runs(part)

    def gap(point: int) -> Fraction:
        under = _below(counts.tolist(), Fraction(point, 2 * parts)) - _below(
            counts.tolist(), Fraction(low, 2 * parts)
        )
        whole = _below(counts.tolist(), Fraction(high, 2 * parts)) - _below(
            counts.tolist(), Fraction(low, 2 * parts)
        )
        target = order * whole + ((1 - order) * (low == 0) - order * (high == span)) / 2
        return order.denominator * 2 * parts * abs(under - target)

    found = []
    known = [*sampler._gap_at(part, blocks.first, blocks.bins), *sampler._gaps(part, *sampler._between(part))]
    everything = zip(*(np.concatenate(pair) for pair in zip(blocks, runs, strict=True)), strict=True)
    for (first, size, step, of), least in zip(everything, known, strict=True):
        points = [int(first) + int(step) * k for k in range(int(size))]
        gaps = [gap(point) for point in points]
        assert gaps == sorted(gaps)
        assert not gaps or gaps[0] == least
        assert of >= 0 or len(set(gaps)) <= 1
        found += points
    assert sorted(found) == [point for point in range(1, span, 2) if low <= point <= high]


def test_groups_of_very_many_rows_are_as_exact() -> None:
    counts = TreeCounts(np.zeros(3, np.int64), np.array([1, 5, 9]), np.array([2**40, 2**40, 2**40]))
    several = BinnedQuantiles(quantiles=(0.1, 0.5, 0.9), epsilon=1)
    assert several.release(BinnedRows(counts, 12, 1), 1).value.tolist() == [[1, 5, 9]]
    one = BinnedQuantiles(quantiles=(Fraction(123456, 1000003),), epsilon=1)
    assert one.release(BinnedRows(counts, 12, 1), 1).value.tolist() == [[1]]


def test_the_order_of_counts_is_no_matter_and_a_bin_may_come_twice() -> None:
    once = TreeCounts(np.array([0, 0, 1]), np.array([2, 5, 5]), np.array([7, 3, 4]))
    again = TreeCounts(
        np.array([1, 0, 0, 1, 0, 0]), np.array([5, 5, 2, 9, 2, 5]), np.array([4, 1, 5, 0, 2, 2])
    )
    median = BinnedQuantiles(quantiles=(0.5,), epsilon=0.5)
    one, other = (median.release(BinnedRows(counts, 12, 2), 8).value.tolist() for counts in (once, again))
    assert one == other


def test_answers_do_not_cross_and_stay_within_the_bins() -> None:
    rng = np.random.default_rng(5)
    table = rng.choice([0, 0, 0, 1, 40], (40, 9))
    found = BinnedQuantiles(quantiles=[k / 8 for k in range(9)], epsilon=0.3).release(_rows(*table), 2).value
    assert (np.diff(found, axis=1) >= 0).all()
    assert 0 <= found.min() <= found.max() < 9
    alone = BinnedQuantiles(quantiles=(0.5,), epsilon=1).release(_rows([0] * 5), random_source(1))
    assert alone.value.shape == (1, 1)
    assert alone.simulated


def test_errors_are_about_what_is_told() -> None:
    rows = _rows(*[[2] * 400] * 120)
    for orders in ((0.5,), (0.1, 0.2, 0.5, 0.8, 0.9)):
        mechanism = BinnedQuantiles(quantiles=orders, epsilon=0.5)
        targets = np.array(orders) * 799 + 0.5
        off = mechanism.release(rows, 4).value * 2 + 1 - targets
        typical = mechanism.typical_stddev(orders)
        worst = float(np.sqrt((off**2).mean(axis=0)).max())
        assert 0.7 * typical < worst < 1.3 * typical + 1
        assert worst < mechanism.rank_stddev(400)


def test_the_loss_is_of_all_levels_and_groups() -> None:
    several = BinnedQuantiles(quantiles=(0.1, 0.5, 0.7, 0.9), epsilon=0.25, rows=5, groups=3)
    assert several.choices == 3
    assert several.privacy_loss.epsilon() == pytest.approx(0.25 * 9)
    assert several.scale == 40


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quantiles": ()}, "quantiles must be numbers from 0 to 1"),
        ({"quantiles": (0.5, 0.5)}, "each above the one before it"),
        ({"quantiles": (0.5, 1.5)}, "quantiles must be numbers from 0 to 1"),
        ({"quantiles": "half"}, "quantiles must be numbers from 0 to 1"),
        ({"quantiles": (-0.1,)}, "quantiles must be positive"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"epsilon": 1e-12}, "epsilon must be at least 2"),
        ({"rows": 0}, "rows must be"),
        ({"groups": 1.5}, "groups must be"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        BinnedQuantiles(**{"quantiles": (0.5,), "epsilon": 1, **given})
