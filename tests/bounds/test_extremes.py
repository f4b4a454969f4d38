"""Numbers at the ends of floats: lower bounds stay below the truth, and what has no bound is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato import bounds
from sfumato.errors import ParameterError
from sfumato.privacy import PureDP

TINY = 5e-324
EXTREMES = {
    "smallest": (np.array([[1.0, 2.0], [1.0, -1.0]]), -1074),
    "small": (np.tril(np.ones((4, 4))), -700),
    "large": (np.array([[1.0, 1.0], [1.0, -1.0]]), 1023),
}


@pytest.mark.sharpest("smallest", "large")
@pytest.mark.parametrize("name", EXTREMES)
def test_workloads_in_any_unit(name: str) -> None:
    """Bounds of a workload in another unit are those in that unit, rounded to their own side."""
    plain, exponent = EXTREMES[name]
    matrix, unit = np.ldexp(plain, exponent), Fraction(2) ** exponent
    with mpmath.workdps(40):
        sizes = mpmath.svd_r(mpmath.matrix(plain.tolist()), compute_uv=False)
        truth = mpmath.fsum(sizes) / mpmath.sqrt(plain.size)
        svd = Fraction(bounds.svd_error_bound(matrix, mu=1.0).error) / unit
        assert mpmath.mpf(svd.numerator) / svd.denominator <= truth
    for make in (bounds.mean_error_bound, bounds.maximum_error_bound):
        here, there = make(matrix, mu=1.0), make(plain, mu=1.0)
        assert here.reached is not None
        assert there.reached is not None
        assert Fraction(here.error) <= Fraction(there.error) * unit * (1 + Fraction(1, 2**40))
        assert Fraction(here.reached) >= Fraction(there.reached) * unit * (1 - Fraction(1, 2**40))
        assert abs(Fraction(here.error) / unit - Fraction(there.error)) < 1 + 1e-9
        assert name == "smallest" or here.ratio == pytest.approx(there.ratio, rel=1e-9)
    norm = bounds.factorization_norm(matrix)
    lower, upper, _ = bounds.factorization_norm(plain).bounds
    assert Fraction(norm.bounds.lower) <= Fraction(upper) * unit
    assert Fraction(norm.bounds.upper) >= Fraction(lower) * unit
    if name == "small":
        assert np.allclose((norm.left @ norm.right) / 2.0**exponent, plain)


def test_a_bound_of_zero_has_an_infinite_ratio() -> None:
    bound = bounds.mean_error_bound(np.eye(3), mu=1e200, unbiased=True)
    assert (bound.error, bound.ratio) == (0.0, math.inf)
    assert bounds.svd_error_bound(np.eye(3), mu=TINY).error > 1e307


def test_halves_of_the_smallest_numbers_are_rounded_down() -> None:
    bound = bounds.two_point_bound(PureDP(1.0), separation=6 * TINY)
    truth = Fraction(6 * TINY) * Fraction(bound.overlap) / 2
    assert Fraction(bound.absolute_error) <= truth
    root = bounds.two_point_bound(PureDP(0.01), separation=math.sqrt(6.5 * TINY))
    truth = Fraction(root.separation) ** 2 * Fraction(root.overlap) / 4
    assert Fraction(root.squared_error) <= truth


def test_packing_of_extremes() -> None:
    apart = 1 - np.eye(2, dtype=int)
    for norm, found in ((1000.0, False), (1e300, False), (2.0, False), (1.0, True)):
        # Answers 3 apart in one place, or 6 in all of four: powers of 3 are beyond floats.
        places = 1 if norm != 1 else 4
        bound = bounds.packing_bound([[0.0] * places, [3.0] * places], apart, epsilon=1.0, error=5, norm=norm)
        assert (bound.failure > 0) is found
    for norm in (1000.0, 1e300, np.inf):
        near = bounds.packing_bound([[0.0], [3.0]], apart, epsilon=1.0, error=1, norm=norm)
        assert near.failure == pytest.approx(1 / (1 + math.e), rel=1e-12)
    for norm in (2.0, np.inf):
        ends = bounds.packing_bound([-1e308, 1e308], apart, epsilon=1.0, error=1e300, norm=norm)
        assert ends.failure > 0.2
    same = bounds.packing_bound([7.0, 7.0], apart, epsilon=1.0, error=1e-300, norm=2)
    assert same.failure == 0
    with pytest.raises(ParameterError, match=r"distances must be at most 2\*\*53"):
        bounds.packing_bound([0, 1], apart.astype(np.uint64) * np.uint64(2**63), epsilon=1.0, error=0.5)
    far = bounds.packing_bound([0, 1], apart * 2**53, epsilon=1e-16, error=0.5)
    assert far.failure == pytest.approx(1 / (1 + math.exp(2**53 * 1e-16)), rel=1e-12)


def test_rows_and_deviations_of_any_size() -> None:
    counts = bounds.NoisyCounts(epsilon=1.0)
    assert counts.stddev(10**400) == bounds.NoisyMean(bounds=(0, 1), epsilon=1.0).stddev(10**400) == 0
    assert bounds.free_rows(counts, population_stddev=1e200) == 1
    (cell,) = bounds.tradeoff_table(counts, rows=[100], epsilons=[1.0], population_stddev=TINY)
    assert cell.inflation == math.inf
    with pytest.raises(ParameterError, match=r"entries must be at most 2\*\*1000"):
        bounds.NoisyCounts(epsilon=1.0, entries=10**400)
    with pytest.raises(ParameterError, match=r"rows must be at most 2\*\*53"):
        bounds.local_against_central(rows=2**53 + 1, epsilon=1.0)
    assert bounds.local_against_central(rows=2**53, epsilon=2.0**-40).local > 1e3
    with pytest.raises(ParameterError, match=r"epsilon must be at least 2\*\*-40"):
        bounds.local_against_central(rows=9, epsilon=TINY)
    with pytest.raises(ParameterError, match=r"sizes must make at most 2\*\*1000 cells"):
        bounds.marginals_error_bound([10**200] * 3, orders=[3], mu=1.0)
    assert bounds.marginals_error_bound([2**500] * 2, orders=[2], mu=1.0).error == pytest.approx(1)


def test_both_models_are_rounded_to_their_own_sides() -> None:
    with mpmath.workdps(40):
        for rows, epsilon in itertools.product((1, 3, 10, 777, 10**6), (1e-3, 0.1, 0.7, 1.0, 5.0)):
            found = bounds.local_against_central(rows=rows, epsilon=epsilon)
            local = 1 / (2 * mpmath.tanh(mpmath.mpf(epsilon) / 2) * mpmath.sqrt(rows))
            ratio = mpmath.exp(-mpmath.mpf(epsilon))
            variance = 2 * ratio / (1 - ratio) ** 2
            central = mpmath.sqrt(mpmath.mpf(1) / (4 * rows) + variance / rows**2)
            assert local * (1 - mpmath.mpf(2) ** -44) <= found.local <= local
            assert central <= found.central <= central * (1 + mpmath.mpf(2) ** -38)


def test_marginals_are_rounded_down() -> None:
    for sizes, orders in (((3, 5, 7), [2]), ((2, 3, 3, 11), [1, 3]), ((6,), [1]), ((10, 10), [0, 1, 2])):
        columns, total = range(len(sizes)), mpmath.mpf(0)
        tables = [part for order in orders for part in itertools.combinations(columns, order)]
        with mpmath.workdps(40):
            for order in range(len(sizes) + 1):
                for part in itertools.combinations(columns, order):
                    above = [
                        1 / mpmath.mpf(math.prod(sizes[i] for i in t)) for t in tables if {*part} <= {*t}
                    ]
                    total += math.prod(sizes[i] - 1 for i in part) * mpmath.sqrt(mpmath.fsum(above))
            cells = sum(math.prod(sizes[i] for i in table) for table in tables)
            truth = total / mpmath.sqrt(cells)
            error = bounds.marginals_error_bound(sizes, orders=orders, mu=1.0).error
            assert truth * (1 - mpmath.mpf(2) ** -48) <= error <= truth


def test_orders_of_extremes() -> None:
    small = bounds.fingerprinting_order(10, error=TINY, epsilon=0.1)
    assert small.without_constants == "inf"
    assert bounds.threshold_order(9, error=TINY, epsilon=0.1, pure=True).without_constants == "inf"
    for make in (
        bounds.reconstruction_order,
        lambda size: bounds.fingerprinting_order(size, error=0.1, epsilon=1.0),
    ):
        assert make(2**1000).quantity in ("rows", "error")
        with pytest.raises(ParameterError, match=r"must be at most 2\*\*1000"):
            make(2**1000 + 1)


def test_what_is_no_array_is_refused() -> None:
    for workload in ([[1, 2], [3]], [["a"]], [[1j]], None, np.zeros((0, 3)), [[math.inf]]):
        with pytest.raises(ParameterError, match="workload must be a matrix of finite numbers, not all 0"):
            bounds.svd_error_bound(workload, mu=1.0)  # type: ignore[arg-type]
