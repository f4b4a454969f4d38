"""Queries: exact answers, and sensitivities that no neighbor exceeds."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import (
    BoundedSum,
    Count,
    Gaussian,
    Grid,
    Histogram,
    Laplace,
    LinearWorkload,
    LipschitzMap,
    Mean,
    Measurement,
    Norm,
    Query,
    Stability,
    check_sensitivity,
)
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases

ADD, REPLACE, ZERO = Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE, Neighboring.ZERO_OUT
PREFIXES = LinearWorkload(matrix=np.tril(np.ones((4, 4))))
RAGGED = LinearWorkload(matrix=[[0.5, -1.25, 3.0], [2.0, 0.0, -0.75]])

PUBLIC_SIZE = Mean(bounds=(0.0, 8.0), n=4)  # it refuses add/remove

# Query, what its records are, and the neutral record of zero-out (None: it is not representable as a record).
CATALOGUE: list[tuple[Query, dict[str, Any], Any]] = [
    (BoundedSum(bounds=(0, 10)), {"bounds": (-20, 20)}, 0),
    (BoundedSum(bounds=(-3.0, 1.5)), {"bounds": (-5.0, 5.0)}, 0.0),
    (BoundedSum(bounds=(2.0, 5.0)), {"bounds": (-math.inf, math.inf)}, 0.0),
    (BoundedSum(bounds=(0.0, 1.0), grid=Grid(exponent=-1)), {"bounds": (0.0, 1.0)}, 0.0),
    (PUBLIC_SIZE, {"bounds": (-1.0, 9.0)}, 0.0),
    (Mean(bounds=(-1.0, 3.0)), {"bounds": (-2.0, 4.0)}, None),
    (Histogram(categories=("a", "b", "c")), {"values": ["a", "b", "c", "d"]}, "none"),
    (Histogram(edges=(0.0, 1.0, 2.5)), {"bounds": (-1.0, 3.0)}, math.nan),
    (PREFIXES, {"values": [0, 1, 2, 3, 4]}, 9),
    (RAGGED, {"values": [0, 1, 2, 3]}, 9),
    (
        LipschitzMap(
            query=PREFIXES,
            function=lambda x: 0.3 * np.asarray(x)[::-1],
            constant=0.3000001,
            norm=Norm.L2,
            size=4,
            grid=Grid(exponent=-4),
        ),
        {"values": [0, 1, 2, 3]},
        9,
    ),
    (
        Count().after(lambda data: np.repeat(data, 3), stability=Stability.rows(3)),
        {"bounds": (0.0, 1.0)},
        None,
    ),
]


@pytest.mark.parametrize(
    ("case", "neighboring"),
    [
        (case, n)
        for case in CATALOGUE
        for n in Neighboring
        if (n is not ZERO or case[2] is not None) and (n is not ADD or case[0] is not PUBLIC_SIZE)
    ],
    ids=lambda value: str(value) if isinstance(value, Neighboring) else type(value[0]).__name__,
)
@pytest.mark.parametrize("norm", list(Norm))
def test_no_neighbor_exceeds_the_sensitivity(
    case: tuple[Query, dict[str, Any], Any], neighboring: Neighboring, norm: Norm
) -> None:
    query, domain, neutral = case
    claimed = query.sensitivity(neighboring, norm)
    report = check_sensitivity(
        query,
        claimed=claimed,
        neighboring=neighboring,
        norm=norm,
        neutral=neutral,
        trials=200,
        sizes=(1, 6),
        **domain,
    )
    assert not report.violated, report


@pytest.mark.parametrize(
    ("case", "neighboring"),
    [
        (case, n)
        for case in CATALOGUE[:9]
        for n in (ADD, REPLACE)
        if n is REPLACE or case[0] is not PUBLIC_SIZE
    ],
    ids=lambda value: str(value) if isinstance(value, Neighboring) else type(value[0]).__name__,
)
@pytest.mark.parametrize("norm", list(Norm))
def test_sensitivity_is_attained(
    case: tuple[Query, dict[str, Any], Any], neighboring: Neighboring, norm: Norm
) -> None:
    query, domain, _ = case
    claimed = query.sensitivity(neighboring, norm)
    slightly_less = math.nextafter(claimed * (1 - 1e-6), 0)
    report = check_sensitivity(
        query, claimed=slightly_less, neighboring=neighboring, norm=norm, trials=300, sizes=(1, 6), **domain
    )
    assert report.violated, report


def norms(query: Query, neighboring: Neighboring) -> list[float]:
    return [query.sensitivity(neighboring, norm) for norm in (Norm.L1, Norm.L2, Norm.LINF)]


def test_published_sensitivities() -> None:
    root = pytest.approx(math.sqrt(2), rel=1e-15)
    assert norms(Count(), ADD) == norms(Count(), REPLACE) == [1, 1, 1]
    assert norms(Histogram(categories=range(5)), ADD) == [1, 1, 1]
    assert norms(Histogram(categories=range(5)), ZERO) == [1, 1, 1]
    assert norms(Histogram(categories=range(5)), REPLACE) == [2, root, 1]
    assert norms(BoundedSum(bounds=(-2, 7)), ADD) == [7, 7, 7]
    assert norms(BoundedSum(bounds=(-2, 7)), REPLACE) == [9, 9, 9]
    assert norms(Mean(bounds=(0.0, 10.0), n=5), REPLACE) == [2, 2, 2]
    assert norms(Mean(bounds=(0.0, 10.0)), ADD) == [1, 1, 1]
    assert norms(Mean(bounds=(0.0, 10.0)), REPLACE) == [2, root, 1]
    assert norms(PREFIXES, ADD) == [4, 2, 1]
    assert norms(PREFIXES, REPLACE) == [4, 2, 1]  # the record may leave every cell
    # RAGGED: columns (.5, 2), (-1.25, 0), (3, -.75); the largest difference is between the last two.
    assert norms(RAGGED, ADD) == [3.75, pytest.approx(math.hypot(3, 0.75), rel=1e-15), 3.0]
    assert norms(RAGGED, REPLACE) == [5.25, pytest.approx(math.hypot(4.25, 0.75), rel=1e-15), 4.25]


def test_a_mean_of_public_size_is_refused_under_add_remove() -> None:
    """It would be priced for a record that comes or goes, of which n tells; a replaced one moves it more."""
    query = Mean(bounds=(-1.0, 1.0), n=4)
    lowest, highest = np.array([-1.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])
    assert query(highest) - query(lowest) == query.sensitivity(REPLACE, Norm.L1) == 0.5
    assert query.sensitivity(ZERO, Norm.L1) == 0.25  # what add/remove was priced at
    refused = pytest.raises(UnboundedSensitivity, match=r"neighboring must be replace-one .* leave n out")
    for asked in (query, query.after(stability=Stability.rows(2))):
        with refused:
            asked.sensitivity(ADD, Norm.L1)
        with refused:
            Laplace.for_query(asked, epsilon=1.0)
        with refused:
            Gaussian.for_query(asked, epsilon=1.0, delta=1e-6)
        with refused:
            Measurement(query=asked, mechanism=Laplace(sensitivity=1 << 40, scale=1))


def test_l2_is_rounded_up() -> None:
    l2 = Histogram(categories=(0, 1)).sensitivity(REPLACE, Norm.L2)
    assert Fraction(l2) ** 2 >= 2
    assert Fraction(math.nextafter(l2, 0)) ** 2 < 2


def test_wide_workloads_are_bounded_not_searched() -> None:
    generator = np.random.default_rng(1)
    matrix = generator.integers(-3, 4, size=(3, 2100)).astype(float)
    wide = LinearWorkload(matrix=matrix)
    some = LinearWorkload(matrix=matrix[:, :300])
    for norm in Norm:
        assert (
            some.sensitivity(REPLACE, norm)
            <= wide.sensitivity(REPLACE, norm)
            <= 2 * wide.sensitivity(ADD, norm)
        )


@given(st.lists(st.integers(-(2**40), 2**40), max_size=50))
def test_integer_sums_are_exact(records: list[int]) -> None:
    query = BoundedSum(bounds=(-(2**35), 2**36))
    assert query(np.array(records, dtype=np.int64)) == sum(max(-(2**35), min(2**36, r)) for r in records)


@given(st.permutations([1e16, 1.0, -1e16, 3.0, 0.1, 1e-9]))
def test_float_sums_do_not_depend_on_order(records: list[float]) -> None:
    query = BoundedSum(bounds=(-1e16, 1e16), grid=Grid(exponent=-4))
    # 0.1 is two sixteenths, 1e-9 is none.
    assert query(np.array(records)) == 4.125


def test_sums_beyond_int64_are_clamped() -> None:
    query = BoundedSum(bounds=(0, 2**61))
    assert query.steps(np.full(100, 2**61)) == 2**62
    assert BoundedSum(bounds=(-(2**61), 0)).steps(np.full(100, -(2**61))) == -(2**62)


def test_one_rule_for_nan_and_infinities() -> None:
    data = np.array([np.nan, np.inf, -np.inf])
    assert BoundedSum(bounds=(1.0, 5.0))(data) == 1.0 + 5.0 + 1.0
    assert np.asarray(Mean(bounds=(0.0, 2.0)).steps(data)).tolist() == [1 << 24, 2 << 24]
    assert Histogram(edges=(0.0, 1.0))(data).tolist() == [0]
    assert Histogram(edges=(-math.inf, 0.0, math.inf))(data).tolist() == [1, 1]
    assert Histogram(categories=(math.inf, 0.0))(data).tolist() == [1, 0]


@cases(
    "query",
    [Count(), BoundedSum(bounds=(0, 1)), BoundedSum(bounds=(0.0, 1.0)), Mean(bounds=(0.0, 1.0)), PREFIXES],
    ids=lambda query: type(query).__name__,
)
def test_empty_data_is_no_error(query: Query) -> None:
    assert not np.any(query(np.array([])))


@pytest.mark.parametrize("query", [Histogram(categories=(0, 1)), Histogram(categories=("a", 1)), PREFIXES])
def test_a_record_of_several_numbers_is_refused(query: Query) -> None:
    # Counted number by number, one record would be in several cells.
    with pytest.raises(ParameterError, match="data must have one axis, but it has 2"):
        query(np.array([[0, 1], [1, 1]]))


@given(st.lists(st.sampled_from(["a", "b", "c", 1, 2.5, None]), max_size=30))
def test_histogram_of_objects(records: list[object]) -> None:
    counts = Histogram(categories=("a", 1, None))(np.array(records, dtype=object))
    assert np.asarray(counts).tolist() == [records.count("a"), records.count(1), records.count(None)]


def test_histogram_of_unhashable_objects() -> None:
    data: np.ndarray[Any, Any] = np.empty(3, dtype=object)
    data[:] = [[1], (1, [2]), "a"]
    assert np.asarray(Histogram(categories=("a",))(data)).tolist() == [1]


@given(st.lists(st.integers(-5, 300), max_size=30), st.sampled_from([np.int8, np.uint8, np.int64, np.uint64]))
def test_histogram_of_integers(records: list[int], dtype: type) -> None:
    data: np.ndarray[Any, Any] = np.array(records).astype(dtype)
    counts = Histogram(categories=(7, -1, 200, 2**70))(data)
    assert np.asarray(counts).tolist() == [int((data == c).sum()) for c in (7, -1, 200)] + [0]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2), max_size=40), st.integers(0, 2**40))
def test_workload_is_matrix_times_histogram(cells: list[int], scale: int) -> None:
    matrix = [[0.5, -1.25, float(scale)], [2.0, 0.0, -0.75]]
    query = LinearWorkload(matrix=matrix)
    exact = [sum(Fraction(w) * cells.count(c) for c, w in enumerate(row)) for row in matrix]
    slack = len(cells) * query.grid.step / 2
    answers = [Fraction(step) * query.step for step in query.steps(np.array(cells, dtype=int)).tolist()]
    assert all(abs(a - e) <= slack for a, e in zip(answers, exact, strict=True))
    if scale < 2**20:
        assert answers == exact


def test_large_counts_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.full(3, 2**45, dtype=np.int64)
    monkeypatch.setattr(Histogram, "steps", lambda self, data: counts)
    exact = [2**45 * sum(map(Fraction, row)) for row in ([0.5, -1.25, 3.0], [2.0, 0.0, -0.75])]
    assert [step * RAGGED.step for step in RAGGED.steps(None).tolist()] == exact


def test_stability_rules() -> None:
    rows = BoundedSum(bounds=(-1, 4)).after(stability=Stability.rows(3))
    assert norms(rows, ADD) == [12, 12, 12]
    assert norms(rows, REPLACE) == [15, 15, 15]
    assert norms(rows, ZERO) == [12, 12, 12]
    bounded = BoundedSum(bounds=(-1, 4)).after(stability=3)
    assert norms(bounded, ADD) == [12, 12, 12]
    assert norms(bounded, REPLACE) == [24, 24, 24]  # one removal and one addition
    with pytest.raises(UnboundedSensitivity, match="stability must be stated under ZERO_OUT"):
        bounded.shift(ZERO)
    twice = bounded.after(stability=2)
    assert norms(twice, ADD) == [24, 24, 24]
    cells = Histogram(categories=range(3)).after(stability=Stability.rows(5))
    assert cells.sensitivity(REPLACE, Norm.L0) == 3
    assert (Stability.rows(2) * Stability(add_remove=3)).replace_one is None


def test_transformations_run() -> None:
    positive = Count().after(lambda data: data[data > 0], stability=Stability.rows(1))
    assert positive(np.array([1.0, -1.0, 2.0])) == 2
    assert isinstance(positive.after(stability=2).query.query, Count)  # type: ignore[attr-defined]


def test_lipschitz_counts_error_and_rounding() -> None:
    grid = Grid(exponent=0)
    rounded = LipschitzMap(query=Count(), function=float, constant=0.3, norm=Norm.L1, grid=grid)
    assert norms(rounded, ADD) == [1, 1, 1]
    noisy = LipschitzMap(query=Count(), function=float, constant=1, norm=Norm.L1, grid=grid, error=0.6)
    assert norms(noisy, ADD) == [3, 3, 3]  # 1 + 2 * 0.6, rounded to the grid


@pytest.mark.parametrize("number", [np.int64(3), np.int64(2**40), np.float32(0.1), np.float64(0.1)])
def test_numpy_numbers_count_as_the_numbers_they_are(number: Any) -> None:
    wide, grid = BoundedSum(bounds=(0, 2**40)), Grid(exponent=-20)
    build = functools.partial(LipschitzMap, query=wide, function=float, norm=Norm.L1, grid=grid)
    shift = build(constant=number, error=number).shift(ADD)
    assert shift == build(constant=number.item(), error=number.item()).shift(ADD)
    assert shift.linf >= Fraction(number.item()) * 2**60


@cases(
    "make",
    [
        lambda: BoundedSum(bounds=(0, math.inf)),
        lambda: BoundedSum(bounds=(-math.inf, 0.0)),
        lambda: Mean(bounds=(0.0, math.inf)),
        lambda: Count().after(stability=math.inf),  # type: ignore[arg-type]
        lambda: LinearWorkload(matrix=[[1.0, math.inf]]),
        lambda: LinearWorkload(matrix=[[1.0, math.nan]]),
        lambda: LipschitzMap(query=Count(), function=float, constant=math.inf, norm=Norm.L1),
    ],
)
def test_unbounded_sensitivity_is_refused(make: Any) -> None:
    with pytest.raises(UnboundedSensitivity):
        make()


@cases(
    ("make", "message"),
    [
        (lambda: BoundedSum(bounds=(3, 1)), "bounds must be .lower, upper."),
        (lambda: BoundedSum(bounds=(0, 0)), "bounds must leave room"),
        (lambda: BoundedSum(bounds=None), "bounds must be"),  # type: ignore[arg-type]
        (lambda: BoundedSum(bounds=(0.0, 1.0), grid=-3), "grid must be a Grid"),  # type: ignore[arg-type]
        (lambda: BoundedSum(bounds=(0.0, "1")), "bounds must be a finite number"),  # type: ignore[arg-type]
        (lambda: BoundedSum(bounds=(math.nan, 1.0)), "bounds must be a finite number"),
        (lambda: Mean(bounds=(1.0, 1.0)), "bounds must be .lower, upper."),
        (lambda: Mean(bounds=(0.0, 1e300), n=5), r"bounds must be at most 2\*\*984"),
        (lambda: BoundedSum(bounds=(0.0, 1e300)), r"bounds must be at most 2\*\*984"),
        (lambda: Mean(bounds=(-1.5e308, 1.5e308)), "bounds must be less than"),
        (lambda: Mean(bounds=(0.0, 1.0), n=0), "n must be an integer"),
        (Histogram, "categories must be given"),
        (lambda: Histogram(categories=("a", "a")), "categories must be distinct"),
        (lambda: Histogram(categories=()), "categories must be distinct"),
        (lambda: Histogram(edges=(1.0,)), "edges must be at least two"),
        (lambda: Histogram(edges=(1.0, 1.0)), "edges must be at least two"),
        (lambda: Histogram(edges=(0.0, math.nan)), "edges must be at least two"),
        (lambda: LinearWorkload(matrix=np.ones(3)), "matrix must have two axes"),
        (lambda: LinearWorkload(matrix=[[0.0]]), "matrix must have two axes"),
        (
            lambda: LinearWorkload(matrix=[[1.0]], histogram=Histogram(categories="ab")),
            "matrix must have 2 columns",
        ),
        (
            lambda: LipschitzMap(query=Count(), function=float, constant=-1, norm=Norm.L1),
            "constant must be positive",
        ),
        (lambda: LipschitzMap(query=Count(), function=float, constant=1, norm=Norm.L0), "norm must be"),
        (
            lambda: LipschitzMap(query=Count(), function=float, constant=1, norm=Norm.L1, grid=-3),  # type: ignore[arg-type]
            "grid must be a Grid",
        ),
        (lambda: Stability(add_remove=0), "add_remove must be an integer"),
        (lambda: Stability(replace_one=1.5), "replace_one must be an integer"),  # type: ignore[arg-type]
        (lambda: Count()(3), "data must be an array, a list or a column"),
        (
            lambda: BoundedSum(bounds=(0, 1))(np.array([0.5])),
            "data must be a one-dimensional array of integers",
        ),
        (lambda: BoundedSum(bounds=(0.0, 1.0))(np.array([["a"]])), "data must be a one-dimensional"),
        (lambda: BoundedSum(bounds=(0.0, 1.0))(np.array(["0.5"])), "data must be a one-dimensional"),
    ],
)
def test_bad_parameters_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


@cases("constant", [Fraction(1), Fraction(3, 2), Fraction(1, 1000), Fraction(700)])
def test_a_map_is_rounded_to_a_millionth_of_what_it_stretches_a_step_by(constant: Fraction) -> None:
    made = LipschitzMap(query=Count(), function=float, constant=constant, norm=Norm.L1)
    assert constant / 2_100_000 < made.grid.step <= constant / 1_000_000
