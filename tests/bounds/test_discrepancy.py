"""Discrepancies against all colorings, and their bound against the best mechanism of all."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.optimize import linprog

from sfumato import bounds
from sfumato.errors import ParameterError
from sfumato.privacy import ApproximateDP, Gaussian, PureDP

SMALL = {
    "signs": np.array([[1, 1], [1, -1]]),
    "prefixes": np.tril(np.ones((3, 3))),
    "all subsets": np.array(list(itertools.product([0, 1], repeat=3))[1:]),
    "not whole": np.array([[0.1, -0.7, 0.3], [0.25, 0.2, 0.9]]),
}


def least(matrix: np.ndarray, columns: tuple[int, ...]) -> Fraction:
    """Return a discrepancy in rationals, from its definition."""
    exact = [[Fraction(float(entry)) for entry in row] for row in matrix]
    return min(
        max(abs(sum((s * row[j] for s, j in zip(signs, columns, strict=True)), Fraction(0))) for row in exact)
        for signs in itertools.product((-1, 1), repeat=len(columns))
    )


def subsets(cells: int) -> list[tuple[int, ...]]:
    """Return all sets of columns but the empty one."""
    return [part for size in range(1, cells + 1) for part in itertools.combinations(range(cells), size)]


@pytest.mark.sharpest("not whole")
@pytest.mark.parametrize("name", SMALL)
def test_discrepancies_are_the_least_over_all_colorings(name: str) -> None:
    matrix = SMALL[name]
    found = bounds.hereditary_discrepancy(matrix)
    cells = matrix.shape[1]
    whole = least(matrix, tuple(range(cells)))
    most = max(least(matrix, part) for part in subsets(cells))
    for interval, truth in ((found.whole, whole), (found.hereditary, most)):
        assert Fraction(interval.lower) <= truth <= Fraction(interval.upper)
        if name == "not whole":
            assert interval.lower < interval.upper < interval.lower * (1 + 1e-12)
        else:
            assert interval.lower == interval.upper
    assert Fraction(found.hereditary.lower) <= least(matrix, found.columns) == most


def test_known_discrepancies() -> None:
    # Intervals have discrepancy 1, and so have all their subsets: they are totally unimodular.
    assert bounds.hereditary_discrepancy(np.tril(np.ones((6, 6)))).hereditary.upper == 1
    # For Hadamard matrices it is at least the root of the size.
    assert bounds.hereditary_discrepancy(hadamard(8)).whole.lower == 4 >= math.sqrt(8)
    found = bounds.hereditary_discrepancy(np.ones((1, 4)))
    assert (found.whole.upper, found.hereditary.upper, found.columns) == (0, 1, (0,))


def test_exact_where_floats_are() -> None:
    assert len(set(bounds.hereditary_discrepancy([[2.0**53 - 1]]).whole[:2])) == 1
    assert len(set(bounds.hereditary_discrepancy([[2.0**53]]).whole[:2])) == 2
    # What is lost is in the unit of the largest entry.
    lower, upper, _ = bounds.hereditary_discrepancy([[0.1, 1000.3]]).whole
    assert lower + 1e-12 < 1000.2 < upper - 1e-12
    assert bounds.hereditary_discrepancy(np.ones((1, 13))).whole.upper == 1


def determinant(square: np.ndarray) -> int:
    """Return a determinant by its definition."""
    size = len(square)
    total = 0
    for order in itertools.permutations(range(size)):
        turned = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        total += (-1) ** turned * math.prod(int(square[i, order[i]]) for i in range(size))
    return total


def test_the_determinant_bound_is_the_best_submatrix() -> None:
    rng = np.random.default_rng(7)
    for queries, cells in ((3, 4), (4, 4), (5, 2), (1, 3)):
        matrix = rng.integers(-3, 4, (queries, cells))
        matrix[0, 0] = 1
        found = bounds.determinant_bound(matrix)
        best = max(
            abs(determinant(matrix[np.ix_(rows, columns)])) ** (1 / len(rows))
            for rows in subsets(queries)
            for columns in subsets(cells)
            if len(rows) == len(columns)
        )
        assert found.root == pytest.approx(best, rel=1e-12)
        chosen = abs(determinant(matrix[np.ix_(found.rows, found.columns)]))
        degree = len(found.rows)
        assert Fraction(found.root) ** degree <= chosen
        assert Fraction(math.nextafter(found.root, math.inf)) ** degree > chosen
        assert found.hereditary_discrepancy <= bounds.hereditary_discrepancy(matrix).hereditary.lower
        assert found.factorization_norm <= bounds.factorization_norm(matrix).bounds.upper


def test_determinants_of_odd_matrices() -> None:
    assert bounds.determinant_bound([[5e-324]]).root == 5e-324
    assert bounds.determinant_bound([[1e308, 0], [0, 1e308]]).root == 1e308
    large = 1e308 * np.array([[1, 1, 1], [1, -1, -1], [1, -1, 1], [0, 0, 0]])
    assert bounds.determinant_bound(large).root == pytest.approx(4 ** (1 / 3) * 1e308)
    tiny = bounds.determinant_bound([[5e-324, 5e-324], [5e-324, -5e-324]])
    assert tiny.root == 5e-324  # the root of 2 of them, rounded down
    assert tiny.hereditary_discrepancy == 0
    # Of equal roots the smaller submatrix is taken; a zero pivot changes rows.
    assert bounds.determinant_bound(np.eye(3)).rows == (0,)
    assert bounds.determinant_bound([[0, 3], [3, 1]]).root == 3
    assert bounds.determinant_bound([[0, 3, 0], [9, 0, 9], [9, 0, -9]]).rows == (1, 2)
    assert bounds.determinant_bound(np.ones((3, 90))).root == 1


def least_failure(matrix: np.ndarray, epsilon: float, delta: float, error: float) -> float:
    """Return the least worst-case probability of an error of so much, over all mechanisms, by a program.

    Boxes that meet pairwise meet in one point, so that an output is right for a set of datasets whose answers
    are pairwise nearer than twice the error.
    """
    data = np.array(list(itertools.product([0, 1], repeat=matrix.shape[1])))
    answers = data @ matrix.T
    near = np.abs(answers[:, None] - answers[None]).max(axis=2) < 2 * error
    count = len(data)
    right = [
        part
        for part in subsets(count)
        if near[np.ix_(part, part)].all()
        and not any(
            near[np.ix_([*part, other], [*part, other])].all() for other in set(range(count)) - {*part}
        )
    ]
    size = len(right)
    pairs = [(i, j) for i in range(count) for j in range(count) if np.abs(data[i] - data[j]).sum() == 1]
    # Variables: probabilities by dataset and output, what a pair exceeds, and the failure.
    width = count * size + len(pairs) * size + 1
    rows, limits = [], []
    for pair, (i, j) in enumerate(pairs):
        total = np.zeros(width)
        for y in range(size):
            row = np.zeros(width)
            spare = count * size + pair * size + y
            row[i * size + y], row[j * size + y], row[spare] = 1, -math.exp(epsilon), -1
            total[spare] = 1
            rows.append(row)
            limits.append(0.0)
        rows.append(total)
        limits.append(delta)
    for i in range(count):
        row = np.zeros(width)
        row[[i * size + y for y in range(size) if i not in right[y]]] = 1
        row[-1] = -1
        rows.append(row)
        limits.append(0.0)
    sums = np.zeros((count, width))
    for i in range(count):
        sums[i, i * size : (i + 1) * size] = 1
    goal = np.zeros(width)
    goal[-1] = 1
    found = linprog(goal, A_ub=np.array(rows), b_ub=limits, A_eq=sums, b_eq=np.ones(count), bounds=(0, 1))
    return float(np.asarray(found.x)[-1])


@pytest.mark.parametrize("name", ["signs", "prefixes"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.1)])
def test_no_mechanism_is_better_than_the_bound(name: str, epsilon: float, delta: float) -> None:
    matrix = SMALL[name]
    loss = ApproximateDP(epsilon, delta) if delta else PureDP(epsilon)
    seen = set()
    for failure in (0.01, 0.1, 0.2, 0.3):
        bound = bounds.discrepancy_error_bound(matrix, loss, failure=failure)
        assert bound.failure >= failure or bound.error == 0
        seen.add(bound.wrong)
        if bound.error:
            assert least_failure(matrix, epsilon, delta, bound.error) >= bound.failure - 1e-9
    assert 0 in seen


def test_some_bits_may_be_wrong() -> None:
    """With a bit wrong of three the answers of signs must be apart by 2: error 1 in place of 1/2."""
    matrix = np.array([[1, 1, 1], [1, -1, 1], [1, 1, -1], [1, -1, -1]])
    bound = bounds.discrepancy_error_bound(matrix, PureDP(0.1), failure=0.2)
    overlap = 2 / (1 + math.exp(0.1))
    assert (bound.error, bound.columns, bound.wrong) == (1.0, (0, 1, 2), 1)
    assert bound.failure == pytest.approx((3 * overlap / 2 - 1) / 2, rel=1e-12)
    assert least_failure(matrix, 0.1, 0.0, bound.error) >= bound.failure
    assert bound.expected_error == pytest.approx(bound.failure, rel=1e-12)
    # A failure that is too probable for it leaves the bound of two points.
    one = bounds.discrepancy_error_bound(matrix, PureDP(0.1), failure=0.3)
    two = bounds.two_point_bound(PureDP(0.1), separation=1.0)
    assert (one.error, one.columns, one.wrong) == (0.5, (0,), 0)
    assert one.failure == pytest.approx(two.failure, rel=1e-12)
    assert "Maximum error of at least 0.5" in str(one)


def test_sizes_are_least_over_larger_supports() -> None:
    """Brute force over the definition of the bound, for the greatest and the mean error."""
    matrix = np.random.default_rng(3).integers(-2, 3, (4, 4))
    overlap = 1 - math.tanh(0.1)
    vectors = np.array(list(itertools.product((-1, 0, 1), repeat=4)))
    for target in ("maximum", "mean"):
        moved = vectors @ matrix.T
        sizes = np.abs(moved).max(axis=1) if target == "maximum" else np.sqrt((moved**2).mean(axis=1))
        for failure in (0.05, 0.25, 0.4):
            best = 0.0
            for part in subsets(4):
                inside = (vectors[:, [j for j in range(4) if j not in part]] == 0).all(axis=1)
                for wrong in range(len(part)):
                    if (len(part) * overlap / 2 - wrong) / (len(part) - wrong) >= failure:
                        many = (vectors != 0).sum(axis=1) > wrong
                        best = max(best, float(sizes[inside & many].min()) / 2)
            bound = bounds.discrepancy_error_bound(matrix, PureDP(0.2), failure=failure, target=target)
            assert bound.error == pytest.approx(best, rel=1e-11)
            assert bound.error <= best


def test_groups_of_units() -> None:
    ten = bounds.discrepancy_error_bound(np.eye(2), PureDP(0.1), failure=0.2, units=10)
    one = bounds.discrepancy_error_bound(np.eye(2), PureDP(1.0), failure=0.2)
    assert (ten.error, ten.units) == (5.0, 10)
    assert ten.failure == pytest.approx(one.failure, rel=1e-12)


def test_where_nothing_follows() -> None:
    bound = bounds.discrepancy_error_bound(np.eye(2), PureDP(5.0), failure=0.4)
    assert (bound.error, bound.columns, bound.expected_error) == (0.0, (), 0.0)
    assert bounds.discrepancy_error_bound(np.eye(2), ApproximateDP(0.0, 0.999), failure=0.01).error == 0
    assert bounds.discrepancy_error_bound([[5e-324]], Gaussian(1.0)).error == 0  # half of it, rounded down
    assert bounds.discrepancy_error_bound([[1e308, 1e308]], Gaussian(1.0)).error == pytest.approx(5e307)


def test_the_order_is_no_number() -> None:
    order = bounds.discrepancy_order(hadamard(8))
    assert float(order.without_constants) == pytest.approx(5 / math.log(8), rel=1e-5)
    assert bounds.discrepancy_order([[3.0]]).without_constants == "3"
    assert float(bounds.discrepancy_order(np.ones((1, 8))).without_constants) == pytest.approx(0.480898)
    with pytest.raises(TypeError, match="up to constants"):
        float(order)


def test_what_cannot_be_enumerated_is_refused() -> None:
    wide = np.ones((1, 14))
    for make in (
        bounds.hereditary_discrepancy,
        bounds.discrepancy_order,
        lambda matrix: bounds.discrepancy_error_bound(matrix, PureDP(1.0)),
    ):
        with pytest.raises(ParameterError, match="workload must have at most 13 cells"):
            make(wide)
        with pytest.raises(ParameterError, match="workload must be a matrix of finite numbers, not all 0"):
            make(np.zeros((2, 2)))
    with pytest.raises(ParameterError, match="workload must have at most 131072 square submatrices"):
        bounds.determinant_bound(np.ones((10, 10)))
    with pytest.raises(ParameterError, match="loss must be a PrivacyLoss"):
        bounds.discrepancy_error_bound(np.eye(2), 1.0)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="failure must be strictly between 0 and 1"):
        bounds.discrepancy_error_bound(np.eye(2), PureDP(1.0), failure=0.0)
    with pytest.raises(ParameterError, match="units must be an integer of at least 1"):
        bounds.discrepancy_error_bound(np.eye(2), PureDP(1.0), units=0)
    with pytest.raises(ParameterError, match="target must be 'maximum' or 'mean'"):
        bounds.discrepancy_error_bound(np.eye(2), PureDP(1.0), target="median")
