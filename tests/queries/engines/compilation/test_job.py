"""Counts by bin: beside their groups whatever the keys, and the bins of bounds."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.errors import OptionError, ParameterError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation.job import with_bin_counts
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    Named,
    PublicValues,
    Scan,
)
from sfumato.queries.pricing.quantile_bins import bin_counts, quantile_bins
from sfumato.queries.release.estimates import quantile_ends
from tests.queries.engines.measures import UNITS, bin_measure
from tests.run_time import run_time

_SECRET = b"leaves" * 8
_X = Expression(exp.column("x", quoted=True), ColumnType.FLOAT)


def _column(name: str, type_: ColumnType) -> Expression:
    return Expression(exp.column(name, quoted=True), type_)


def test_counts_stand_beside_their_groups_whatever_the_order() -> None:
    keys = [("a", 1), ("a", None), ("b", 0), (None, 0), (None, None)]
    answer = pa.table(
        {
            "k0": pa.array([k[0] for k in keys]),
            "k1": pa.array([k[1] for k in keys], pa.float64()),
            "m0": [1] * 5,
            "m1": [0] * 5,
        }
    )
    bins = [(place, leaf, 10 * place + leaf) for place in (0, 1, 3, 4) for leaf in range(place + 1)]
    random.Random(3).shuffle(bins)
    long = pa.table(
        {
            "k0": pa.array([keys[place][0] for place, _, _ in bins]),
            "k1": pa.array([keys[place][1] for place, _, _ in bins], pa.float64()),
            "leaf": pa.array([leaf for _, leaf, _ in bins], pa.int32()),
            "n": [n for _, _, n in bins],
        }
    )
    found = with_bin_counts(answer, {1: long})
    assert found.column_names == answer.column_names
    expected = [[{"leaf": leaf, "n": 10 * at + leaf} for leaf in range(at + 1)] for at in range(5)]
    expected[2] = []  # a group without any value
    assert found["m1"].to_pylist() == expected
    some = bin_counts(found["m1"].take(pa.array([3, 2, 0])))
    assert list(zip(some.groups, some.leaves, some.counts, strict=True)) == [
        (0, 0, 30), (0, 1, 31), (0, 2, 32), (0, 3, 33), (2, 0, 0),
    ]  # fmt: skip


def test_no_keys_no_rows_and_public_groups() -> None:
    one = with_bin_counts(pa.table({"m0": [0]}), {0: pa.table({"leaf": [5, 2], "n": [1, 4]})})
    assert one["m0"].to_pylist() == [[{"leaf": 2, "n": 4}, {"leaf": 5, "n": 1}]]
    none = pa.table({"leaf": pa.array([], pa.int64()), "n": pa.array([], pa.int64())})
    assert with_bin_counts(pa.table({"m0": [0]}), {0: none})["m0"].to_pylist() == [[]]
    empty = pa.table({"k0": pa.array([], pa.string()), "m0": pa.array([], pa.int64())})
    keyed = none.append_column("k0", pa.array([], pa.string()))
    assert with_bin_counts(empty, {0: keyed})["m0"].to_pylist() == []
    public = pa.table({"k0": ["x", "y", "z"], "m0": [0, 0, 0]})
    numbered = pa.table({"g": [3, 1], "leaf": [0, 7], "n": [2, 9]})
    assert with_bin_counts(public, {0: numbered})["m0"].to_pylist() == [
        [{"leaf": 7, "n": 9}], [], [{"leaf": 0, "n": 2}],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("far", "most"), [(9, 1), (9, 2**62), (2**60, 1), (2**29, 2**31 - 1), (2**28, 2**32)]
)
def test_bins_are_in_order_however_far_apart(far: int, most: int) -> None:
    bins = pa.table({"g": [2, 1, 2, 1, 2], "leaf": [far, far, -far, 0, 1], "n": [most, 2, 3, 4, 5]})
    found = with_bin_counts(pa.table({"k0": ["x", "y"], "m0": [0, 0]}), {0: bins})["m0"].to_pylist()
    assert [[(each["leaf"], each["n"]) for each in row] for row in found] == [
        [(0, 4), (far, 2)], [(-far, 3), (1, 5), (far, most)],
    ]  # fmt: skip


def _job(engine: DuckDBEngine, *, unit: bool, max_rows: int | None, **given: Any) -> AggregationJob:
    scan = Scan("data", engine.schemas["data"], "u" if unit else None)
    measure = bin_measure(_X, -1, 2, -4, 4)
    keys = (Named("k", _column("k", ColumnType.TEXT)),)
    public = given.get("public")
    return AggregationJob(scan, keys, (UNITS, measure), 9, max_rows, public)


if run_time(__name__):
    _ROWS = pa.table(
        {
            "u": [1, 1, 2, 2, 3, None],
            "k": ["a", "b", "a", None, "c", "a"],
            "x": pa.array([0.2, math.inf, math.nan, -0.8, None, 1.0]),
        }
    )


def _bins(table: pa.Table) -> dict[Any, Counter[int]]:
    return {row["k0"]: Counter({b["leaf"]: b["n"] for b in row["m1"]}) for row in table.to_pylist()}


def test_nan_is_nothing_and_infinity_is_at_the_bound() -> None:
    with DuckDBEngine(open_source(_ROWS)) as engine:
        found = _bins(engine.aggregate(_job(engine, unit=True, max_rows=2), _SECRET))
        # halves are steps: 0.2 is bin 4, infinity the last, -0.8 two below
        assert found == {"a": Counter({4: 1}), "b": Counter({8: 1}), "c": Counter(), None: Counter({2: 1})}
        by_row = _bins(engine.aggregate(_job(engine, unit=False, max_rows=None), _SECRET))
        assert by_row["a"] == Counter({4: 1, 6: 1})
        public = PublicValues((("b",), ("zz",), (None,)))
        listed = _bins(engine.aggregate(_job(engine, unit=True, max_rows=2, public=public), _SECRET))
        assert listed == {"b": Counter({8: 1}), "zz": Counter(), None: Counter({2: 1})}


def test_bins_need_a_limit_that_the_noise_is_made_for() -> None:
    with DuckDBEngine(open_source(_ROWS)) as engine:
        for max_rows in (None, 3):
            with pytest.raises(ParameterError, match="upper must be at least the rows"):
                engine.check(_job(engine, unit=True, max_rows=max_rows))
        job = _job(engine, unit=True, max_rows=2)
        reversed_bins = bin_measure(_X, 0, 2, row_lower=4, row_upper=-4)
        with pytest.raises(ParameterError, match="bounds must have lower at most upper"):
            engine.check(AggregationJob(job.relation, job.keys, (reversed_bins,), 9, 2, None))


@given(
    st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-100),
    st.floats(1e-9, 1e9),
    st.booleans(),
)
def test_bins_lie_within_the_bounds(lower: float, factor: float, whole: bool) -> None:
    upper = lower + factor * max(1.0, abs(lower))
    try:
        grid = quantile_bins((lower, upper), whole=whole)
    except OptionError:
        assert whole
        assert math.ceil(lower) > upper
        return
    step = Fraction(2) ** grid.exponent
    assert lower <= grid.lower * step <= grid.upper * step <= upper
    assert 1 <= grid.shape.leaves <= 1 << 16
    if not whole:
        assert grid.shape.leaves >= 1 << 14
        assert step * ((1 << 15) - 1) <= Fraction(upper) - Fraction(lower)
    elif grid.exponent:
        assert grid.exponent > 0


def test_a_level_that_was_not_kept_takes_the_next() -> None:
    lower, upper = pa.array([5, 4, 3, 2, 1]).to_numpy(), pa.array([6, 7, 8, 9, 10]).to_numpy()
    ends = {level: quantile_ends(lower, upper, (0, 20), level) for level in (0.1, 0.6, 0.95, 0.99, 0.999)}
    assert [(int(low), int(high)) for low, high in ends.values()] == [
        (5, 6),
        (4, 7),
        (2, 9),
        (1, 10),
        (0, 20),
    ]
