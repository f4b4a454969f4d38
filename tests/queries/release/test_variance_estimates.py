"""What means leave possible of variances and covariances: against all small data, and a grid of means."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np

from sfumato.queries.release.variance_estimates import MomentSum, possible_covariances, possible_variances

TERMS = (-3, 1)


def _known(total: int, rows: int) -> tuple[MomentSum, tuple[np.ndarray, np.ndarray]]:
    sums, counts = np.array([float(total)]), np.array([float(rows)])
    return MomentSum(sums, sums, 0, TERMS), (counts, counts)


def test_all_small_columns_have_a_possible_covariance_and_some_have_the_extreme_ones() -> None:
    attained = {"high": 0, "low": 0}
    for rows in (1, 2, 3):
        extremes: dict[tuple[int, int], list[Fraction]] = {}
        for points in combinations_with_replacement(list(product((-3, -1, 1), repeat=2)), rows):
            x, y = (sum(values) for values in zip(*points, strict=True))
            together = sum(one * other for one, other in points)
            extremes.setdefault((x, y), []).append(Fraction(together, rows) - Fraction(x * y, rows**2))
        for (x, y), found in extremes.items():
            (one, counts), (other, _) = _known(x, rows), _known(y, rows)
            low, high = (float(end[0]) for end in possible_covariances(one, other, counts))
            assert low - 1e-12 <= min(found)
            assert max(found) <= high + 1e-12
            attained["low"] += low > float(min(found)) - 1e-9
            attained["high"] += high < float(max(found)) + 1e-9
    assert min(attained.values()) >= 20


def test_all_small_columns_have_a_possible_variance_and_those_at_the_ends_the_largest() -> None:
    for values in combinations_with_replacement(range(TERMS[0], TERMS[1] + 1), 4):
        column, counts = _known(sum(values), 4)
        low, high = (float(end[0]) for end in possible_variances(column, counts))
        assert low == 0
        assert np.var(values) <= high + 1e-12
        if set(values) <= set(TERMS):
            assert high <= np.var(values) + 1e-9


def test_intervals_of_means_leave_what_any_means_in_them_leave() -> None:
    rng, grid = np.random.default_rng(3), np.linspace(0, 1, 9)
    counts = np.array([1.0]), np.array([1.0])
    for _ in range(200):
        (left, right), (down, up) = (np.sort(rng.choice(grid, 2)) for _ in range(2))
        one = MomentSum(np.array([left]), np.array([right]), 0, (0, 1))
        other = MomentSum(np.array([down]), np.array([up]), 0, (0, 1))
        some = [np.linspace(*ends, 41) for ends in ((left, right), (down, up))]
        p, q = np.meshgrid(*some)
        low, high = possible_covariances(one, other, counts)
        largest = np.minimum(p * (1 - q), q * (1 - p)).max()
        smallest = np.maximum(-p * q, -(1 - p) * (1 - q)).min()
        assert largest <= high[0] <= largest + 0.02
        assert smallest - 0.02 <= low[0] <= smallest
