"""Data in every form that people have: one reading for all, and no record changes how another is read."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato.mechanisms
from sfumato import Neighboring
from sfumato.errors import ParameterError
from sfumato.mechanisms import (
    BinaryTree,
    BoundedSum,
    CoinPress,
    ContingencyTable,
    ContributionBound,
    Count,
    Covariance,
    DistinctCountSketch,
    Extreme,
    Gaussian,
    HeavyTailedMean,
    Histogram,
    InverseSensitivity,
    JointQuantiles,
    KaplanMeier,
    KendallTau,
    KernelDensity,
    KolmogorovSmirnov,
    KruskalWallis,
    LeastSquares,
    LinearWorkload,
    LipschitzMap,
    MannWhitney,
    MatrixMechanism,
    Mean,
    MultiplicativeWeights,
    NoisyMax,
    Norm,
    OneWayAnova,
    PrivateBounds,
    PureContinualSum,
    Quantile,
    Quantiles,
    QuantileTree,
    Query,
    RandomizedResponse,
    SampleAndAggregate,
    SecondMoments,
    SmallDatabase,
    SmoothQuantile,
    SmoothTrimmedMean,
    SpearmanRho,
    Stability,
    TheilSen,
    TrimmedMean,
    TukeyMedian,
    TwoSampleKolmogorovSmirnov,
    Variance,
    WilcoxonSignedRank,
)
from sfumato.mechanisms.query.records import as_numbers, as_table
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import narwhals
    import pandas as pd
    import polars as pl
    import pyarrow as pa

TABLE = LinearWorkload(matrix=np.tril(np.ones((4, 4))))
UNIT, TWO = (0.0, 4.0), ((0.0, 4.0), (0.0, 4.0))
COLUMN_QUERIES: dict[str, Query] = {
    "Count": Count(),
    "BoundedSum of ints": BoundedSum(bounds=(0, 3)),
    "BoundedSum": BoundedSum(bounds=(0.0, 3.0)),
    "Mean": Mean(bounds=(-1.0, 3.0)),
    "Variance": Variance(bounds=(-1.0, 3.0)),
    "Histogram": Histogram(categories=(0, 1, 2)),
    "Histogram of cells": Histogram(edges=(-1.0, 1.0, 2.0)),
    "LinearWorkload": TABLE,
    "LipschitzMap": LipschitzMap(query=Count(), function=float, constant=1, norm=Norm.L1),
    "TransformedQuery": Mean(bounds=(0.0, 3.0)).after(stability=Stability.rows(2)),
    "KolmogorovSmirnov": KolmogorovSmirnov(cdf=lambda x: np.clip(x / 4, 0, 1), n=6),
    "MannWhitney": MannWhitney(sizes=(3, 3)),
    "KruskalWallis": KruskalWallis(sizes=(2, 2, 2)),
    "OneWayAnova": OneWayAnova(sizes=(2, 4), bounds=UNIT),
    "KernelDensity": KernelDensity(bounds=UNIT, bandwidth=0.5),
    "WilcoxonSignedRank": WilcoxonSignedRank(),
}
TABLE_QUERIES: dict[str, Query] = {
    "Covariance": Covariance(bounds=TWO),
    "LeastSquares": LeastSquares(bounds=TWO),
    "SecondMoments": SecondMoments(columns=2, radius=5.0),
    "KaplanMeier": KaplanMeier(times=(1, 2, 4)),
    "ContingencyTable": ContingencyTable(rows=(0, 1, 3), columns=(1, 2.5, 4)),
    "KendallTau": KendallTau(),
    "SpearmanRho": SpearmanRho(),
    "TwoSampleKolmogorovSmirnov": TwoSampleKolmogorovSmirnov(),
}
REPLACE = Neighboring.REPLACE_ONE
MECHANISMS: dict[str, Callable[[], Any]] = {
    "Quantile": lambda: Quantile(bounds=UNIT, epsilon=9.0),
    "Quantile of ints": lambda: Quantile(bounds=(0, 4), epsilon=9.0),
    "Quantiles": lambda: Quantiles(bounds=UNIT, epsilon=9.0, quantiles=(0.25, 0.5)),
    "JointQuantiles": lambda: JointQuantiles(bounds=(0, 4), epsilon=9.0, quantiles=(0.5,)),
    "QuantileTree": lambda: QuantileTree.calibrated(bounds=(0, 4), epsilon=9.0, quantiles=(0.5,)),
    "Extreme": lambda: Extreme(bounds=UNIT, epsilon=9.0),
    "TrimmedMean": lambda: TrimmedMean(trim=0.1, bounds=UNIT, epsilon=9.0),
    "CoinPress": lambda: CoinPress.calibrated(epsilon=9.0, delta=1e-6, bounds=UNIT, stddev=1.0),
    "HeavyTailedMean": lambda: HeavyTailedMean(
        bounds=UNIT, moment_bound=1.0, expected_records=6, epsilon=9.0
    ),
    "PrivateBounds": lambda: PrivateBounds.calibrated(epsilon=99.0),
    "SmoothQuantile": lambda: SmoothQuantile.calibrated(bounds=UNIT, epsilon=9.0),
    "SmoothTrimmedMean": lambda: SmoothTrimmedMean.calibrated(
        bounds=UNIT, epsilon=9.0, trim=0.1, neighboring=Neighboring.REPLACE_ONE
    ),
    "InverseSensitivity": lambda: InverseSensitivity(
        bounds=UNIT, epsilon=9.0, neighboring=Neighboring.REPLACE_ONE
    ),
    "SampleAndAggregate": lambda: SampleAndAggregate(
        estimator=lambda block: np.nan_to_num(block).max(), blocks=2, bounds=UNIT, epsilon=9.0
    ),
    "MatrixMechanism": lambda: MatrixMechanism.calibrated(workload=TABLE, epsilon=9.0),
    "MultiplicativeWeights": lambda: MultiplicativeWeights.calibrated(workload=TABLE, epsilon=9.0, rounds=2),
    "SmallDatabase": lambda: SmallDatabase(
        workload=TABLE, epsilon=9.0, size=2, records=6, neighboring=Neighboring.REPLACE_ONE
    ),
}
TABLE_MECHANISMS: dict[str, Callable[[], Any]] = {
    "TheilSen": lambda: TheilSen(
        slope_bounds=(-5.0, 5.0),
        intercept_bounds=(-5.0, 5.0),
        epsilon=9.0,
        neighboring=Neighboring.REPLACE_ONE,
    ),
    "TukeyMedian": lambda: TukeyMedian(bounds=TWO, epsilon=9.0, points=8),
}

NUMBERS = [3, 1, 2, 4, 5, None]  # no ties, which tests of ranks break at random


def columns(numbers: list[Any], kind: str) -> Iterator[Any]:
    """Yield the same numbers, whole or real, in every form that has nulls."""
    whole = kind == "whole"
    yield numbers
    yield tuple(numbers)
    yield pd.Series(numbers, dtype="Int16" if whole else "Float64")
    yield pd.Series(
        numbers, dtype="int64[pyarrow]" if whole else "double[pyarrow]", index=range(len(numbers), 0, -1)
    )
    yield pl.Series(numbers, dtype=pl.UInt8 if whole else pl.Float32)
    yield narwhals.from_native(pl.Series(numbers, dtype=pl.Int32 if whole else pl.Float64), series_only=True)
    yield pa.array(numbers, pa.int8() if whole else pa.float32())
    yield pa.chunked_array([numbers[:2], [], numbers[2:]], pa.int64() if whole else pa.float64())
    yield pa.array(numbers, pa.int64()).dictionary_encode() if whole else pa.array(numbers, pa.float64())
    nulls = [number is None for number in numbers]
    yield np.ma.masked_array([number or 0 for number in numbers], nulls, np.int64 if whole else np.float64)


def frames(rows: list[Any]) -> Iterator[Any]:
    """Yield the same rows of two numbers in every form."""
    names = {"x": [row[0] for row in rows], "y": [row[1] for row in rows]}
    yield rows
    yield tuple(np.array(row, dtype=object) for row in rows)
    yield pd.DataFrame({"x": pd.array(names["x"], dtype="Int64"), "y": names["y"]})
    yield pl.DataFrame(names)
    yield narwhals.from_native(pl.DataFrame(names))
    yield pa.table(names)
    yield pa.RecordBatch.from_pydict(names)


def same(one: Any, other: Any) -> bool:
    if hasattr(one, "slopes"):
        one, other = [one.intercept, *one.slopes], [other.intercept, *other.slopes]
    return bool(np.array_equal(np.asarray(one), np.asarray(other)))


def test_the_catalogue_holds_every_public_query() -> None:
    public = {
        name
        for name in sfumato.mechanisms.__all__
        if inspect.isclass(kind := getattr(sfumato.mechanisms, name)) and issubclass(kind, Query)
    }
    listed = {type(query).__name__ for query in (*COLUMN_QUERIES.values(), *TABLE_QUERIES.values())}
    # The test of absolute variation is another name of the analysis of variance.
    assert public - {"Query"} <= listed | {"AbsoluteVariation"}


@cases("name", COLUMN_QUERIES)
def test_a_query_answers_the_same_in_every_form(name: str) -> None:
    query = COLUMN_QUERIES[name]
    numbers = (
        [3, 1, 2, 4, 5, 9] if name == "WilcoxonSignedRank" else NUMBERS
    )  # a null is a zero, and so a tie
    whole = np.array([number or 0 for number in numbers])
    real = np.array([math.nan if number is None else number for number in numbers])
    for kind in ("whole",) if name == "BoundedSum of ints" else ("whole", "real"):
        expected = query.steps(whole if name in ("BoundedSum of ints", "LinearWorkload") else real)
        if name == "LinearWorkload":  # a null is in no cell
            expected = query.steps(np.array([3, 1, 2, 4, 5, 9]))
        for data in columns(numbers, kind):
            assert np.array_equal(query.steps(data), expected), type(data)
    if name not in ("MannWhitney", "KruskalWallis"):  # of no records all ranks are ties, broken at random
        empty = [pd.Series([], dtype="object"), pl.Series([]), pa.array([]), pa.chunked_array([], pa.null())]
        for data in ([], (), *empty):
            assert np.array_equal(query.steps(data), query.steps(np.array([]))), type(data)


@cases("name", TABLE_QUERIES)
def test_a_query_of_rows_answers_the_same_in_every_form(name: str) -> None:
    query, rows = TABLE_QUERIES[name], [[1, 2.5], [None, 1.0], [3, None], [0, 4.0]]
    if name in ("KendallTau", "SpearmanRho"):  # without ties
        rows[3] = [2, 4.0]
    expected = query.steps(np.array(rows, dtype=np.float64))
    for data in frames(rows):
        assert np.array_equal(query.steps(data), expected), type(data)


@cases("name", MECHANISMS)
def test_a_mechanism_releases_the_same_in_every_form(name: str) -> None:
    mechanism = MECHANISMS[name]()
    cells = name in ("MatrixMechanism", "MultiplicativeWeights", "SmallDatabase")
    array = np.array([3, 1, 2, 4, 5, 9 if cells else 0])
    expected = mechanism.release(array, rng=5).value
    for data in [*columns(NUMBERS, "whole")][::3]:
        assert same(mechanism.release(data, rng=5).value, expected), type(data)


@cases("name", TABLE_MECHANISMS)
def test_a_mechanism_of_rows_releases_the_same_in_every_form(name: str) -> None:
    mechanism, rows = TABLE_MECHANISMS[name](), [[1, 2.5], [2, 1.0], [3, 0.0], [0, 4.0]]
    expected = mechanism.release(np.array(rows, dtype=np.float64), rng=5).value
    for data in frames(rows):
        assert same(mechanism.release(data, rng=5).value, expected), type(data)


def test_texts_are_counted_in_every_form() -> None:
    texts = ["a", None, "b", "a", "c"]
    forms = [
        texts,
        np.array(texts, dtype=object),
        pd.Series(texts),
        pd.Series(texts, dtype="category"),
        pd.Series(texts, dtype="string[pyarrow]"),
        pl.Series(texts),
        pl.Series(texts, dtype=pl.Categorical),
        pa.array(texts),
        pa.chunked_array([texts]).dictionary_encode(),
        pa.chunked_array([pa.array(part).dictionary_encode() for part in (texts[:2], texts[2:])]),
    ]
    survey = RandomizedResponse.calibrated(categories=("a", "b"), epsilon=1.0)
    distinct = DistinctCountSketch(epsilon=9.0)
    for data in forms:
        assert Histogram(categories=("a", "b"))(data).tolist() == [2, 1]
        assert Histogram(categories=("a", None))(data).tolist() == [2, 1], type(data)
        assert survey.release(data, rng=1).value == survey.release(texts, rng=1).value
        assert distinct.release(data, rng=1).value == distinct.release(["a", "b", "c"], rng=1).value


def test_a_null_is_none_of_whole_categories_even_where_it_stands_as_zero() -> None:
    for data in columns([0, None, 1], "whole"):
        assert Histogram(categories=(0, 1))(data).tolist() == [1, 1]
        assert Histogram(categories=(0, None))(data).tolist() == [1, 1]
        assert Histogram(edges=(0.0, 1.0))(data).tolist() == [2]


def test_scores_and_streams_take_columns() -> None:
    choice = NoisyMax.calibrated(sensitivity=1, epsilon=99.0)
    stream = PureContinualSum.calibrated(strategy=BinaryTree(steps=4), sensitivity=1, epsilon=99.0)
    noise = Gaussian.calibrated(sensitivity=1, l0=4, epsilon=9.0, delta=1e-6)
    for data in (
        pd.Series([-9, 8, None, -7], dtype="Int64"),
        pl.Series([-9, 8, None, -7]),
        pa.array([-9, 8, None, -7]),
    ):
        assert choice.release(data, rng=1).value == 1
        plain = np.array([-9, 8, 0, -7])
        assert stream.release(data, rng=1).value.tolist() == stream.release(plain, rng=1).value.tolist()
        assert noise.release(data, rng=1).value.tolist() == noise.release(plain, rng=1).value.tolist()
    # Among negative scores a null is the worst, not 0.
    assert choice.release(pl.Series([-9, -1, None]), rng=1).value == 1


ODD: list[Any] = [
    *(None, "7", math.nan, math.inf, -math.inf, 10**400, -(10**400), Fraction(5, 2), Decimal("0.1")),
    *(Decimal("sNaN"), np.float32(0.5), np.int8(3), np.bool_(True), True, [1], {}, 1j, object()),
    *(np.array([1, 2]), 2.5, 3),
]


@given(st.lists(st.sampled_from(range(len(ODD))), max_size=8), st.sampled_from(range(len(ODD))))
@settings(max_examples=60)
def test_no_record_of_a_list_changes_another(before: list[int], last: int) -> None:
    records = [ODD[index] for index in before]
    for integral in (False, True):
        alone = as_numbers(records, integral=integral)
        beside = as_numbers([*records, ODD[last]], integral=integral)
        assert alone.dtype == beside.dtype == (np.int64 if integral else np.float64)
        assert np.array_equal(alone, beside[: len(records)], equal_nan=not integral)
    rows = as_table([*([record, record] for record in records), ODD[last]], 2)
    assert rows.shape == (len(records) + 1, 2)
    assert np.array_equal(rows[:-1, 0], as_numbers(records, integral=False), equal_nan=True)
    cells = Histogram(categories=(3, True, "7")).cells
    assert cells([*records, ODD[last]])[: len(records)].tolist() == cells(records).tolist()


def test_records_of_a_list_are_read_as_documented() -> None:
    real = as_numbers(ODD, integral=False)
    assert np.isnan(real[[0, 1, 2, 9, 14, 15, 16, 17, 18]]).all()
    assert real[[3, 4, 5, 6]].tolist() == [math.inf, -math.inf, math.inf, -math.inf]
    assert real[[7, 8, 10, 11, 12, 13, 19, 20]].tolist() == [2.5, 0.1, 0.5, 3.0, 1.0, 1.0, 2.5, 3.0]
    whole = as_numbers(ODD, integral=True).tolist()
    far = 1 << 62
    assert whole == [0, 0, 0, far, -far, far, -far, 2, 0, 0, 0, 3, 1, 1, 0, 0, 0, 0, 0, 2, 3]


def test_a_null_changes_no_other_whole_number() -> None:
    large = (1 << 53) + 1  # no float
    query = BoundedSum(bounds=(0, 1 << 60))
    forms = [pd.Series([large, None], dtype="Int64"), pl.Series([large, None]), pa.array([large, None])]
    for data in (*forms, [large, None]):
        assert query(data) == large


def test_what_a_type_refuses_is_refused_whatever_the_values() -> None:
    query = Mean(bounds=(0.0, 1.0))
    untyped = [
        *(pd.Series(["a"], dtype=object), pd.Series([1.5], dtype=object)),
        *(pl.Series(["a"]), pl.Series([None], dtype=pl.String), pa.array(["1"])),
        *(np.array([1.0], dtype=object), pd.Series(pd.to_datetime(["2020-01-01"]))),
    ]
    for data in untyped:
        with pytest.raises(ParameterError, match="data must be a one-dimensional array of real numbers"):
            query(data)
    with pytest.raises(ParameterError, match="array of integers"):
        BoundedSum(bounds=(0, 1))(pl.Series([1.0]))
    for frame in (pd.DataFrame({"x": ["a"], "y": [1]}), pa.table({"x": ["a"], "y": [1]})):
        with pytest.raises(ParameterError, match="data must be a frame of columns of real numbers"):
            Covariance(bounds=TWO)(frame)
    with pytest.raises(ParameterError, match=r"shape \(n, 2\)"):
        Covariance(bounds=TWO)(pl.DataFrame({"x": [1.0]}))
    for data in ("text", {1, 2}, {"a": 1}, 3, None, iter([1]), b"bytes"):
        with pytest.raises(ParameterError, match="data must be an array, a list or a column of records"):
            query(data)
    assert (
        Count()(pd.DataFrame({"x": ["a", "b"]}))
        == Count()([None, "b"])
        == Count()(pa.table({"x": [1, None]}))
        == 2
    )


def test_a_contribution_bound_takes_and_returns_every_form() -> None:
    units, pages = [7, None, 7, 7, 8, None], [1, 2, 3, 4, 5, 6]
    forms = [
        (units, pages),
        (pd.Series(units, dtype="Int64"), pd.Series(pages, index=list("abcdef"))),
        (pl.Series(["x", None, "x", "x", "y", None]), pl.Series(pages)),
        (pa.array(units), pa.chunked_array([pages[:1], pages[1:]])),
        (pa.array(units), pd.DataFrame({"p": pages, "q": pages})),
        (units, pa.table({"p": pages})),
        ([7.0, math.nan, 7.0, 7.0, 8.0, [1]], np.array(pages)),
    ]
    for given_units, records in forms:
        bound = ContributionBound(limit=2, rng=3)
        found = bound((given_units, records))
        assert type(found) is type(records) or isinstance(found, list)
        assert len(found) == 3  # two of unit 7 and one of unit 8; those without a unit are left out
        assert Count().after(bound, stability=bound.stability)((given_units, records)) == 3
