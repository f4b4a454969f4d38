"""Records as numbers, their nearest neighbors and predicates about them, against plain loops."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato.attacks.inference.predicates import matches, random_predicates, surprise, unique_predicates
from sfumato.attacks.inference.record_matrix import (
    RecordMatrix,
    columns_of,
    nearest_records,
    record_matrices,
    table_of,
)
from sfumato.errors import ParameterError
from tests.cases import cases


def mixed(records: int, seed: int) -> RecordMatrix:
    """Return records with two ordered columns and two codes, some of them missing."""
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.normal(size=records), rng.integers(0, 9, (records, 3))])
    values[rng.random(values.shape) < 0.1] = np.nan
    return RecordMatrix(values, np.array([True, True, False, False]))


def test_tables_of_many_types_have_common_codes() -> None:
    days = [dt.date(2020, 1, 1), None]
    first = pa.table({"d": pa.array(days), "t": pa.array(["b", "a"]).dictionary_encode(), "n": [2**60, 1]})
    second = pa.table({"d": pa.array(days[:1]), "t": pa.array(["a"], pa.large_string()), "n": [2**60]})
    one, other = record_matrices({"first": first, "second": second}, ["d", "t", "n"])
    assert one.numeric.tolist() == [True, False, False]  # integers that are no floats are compared as texts
    assert one.values[0, 0] == other.values[0, 0] == (days[0] - dt.date(1970, 1, 1)).days  # type: ignore[operator]
    assert math.isnan(one.values[1, 0])
    assert one.values[1, 1] == other.values[0, 1] != one.values[0, 1]
    assert one.values[0, 2] == other.values[0, 2] != one.values[1, 2]


def gower(one: np.ndarray, other: np.ndarray, among: RecordMatrix) -> float:
    total = 0.0
    for column, ordered in enumerate(among.numeric):
        a, b = one[column], other[column]
        known = among.values[:, column]
        if math.isnan(a) or math.isnan(b):
            total += not (math.isnan(a) and math.isnan(b))
        elif ordered:
            total += min(1.0, abs(a - b) / np.ptp(known[~np.isnan(known)]))
        else:
            total += a != b
    return total


@cases("neighbors", [1, 3])
def test_nearest_records_are_those_of_gower(neighbors: int) -> None:
    records, among = mixed(40, 1), mixed(70, 2)
    found = nearest_records(records, among, neighbors)
    for row, chosen in zip(records.values, found, strict=True):
        distances = np.array([gower(row, other, among) for other in among.values])
        assert distances[chosen] == pytest.approx(np.sort(distances)[:neighbors], abs=1e-5)


def count(columns: np.ndarray, kinds: np.ndarray, given: np.ndarray, records: RecordMatrix) -> int:
    found = 0
    for row in records.values:
        holds = True
        for column, kind, value in zip(columns, kinds, given, strict=True):
            have = row[column]
            same = have == value or (math.isnan(have) and math.isnan(value))
            holds &= (same, have <= value, have >= value)[kind]
        found += holds
    return found


@cases("conditions", [1, 2, 4])
def test_predicates_hold_for_as_many_records_as_a_loop_counts(conditions: int) -> None:
    records, others = mixed(60, 3), mixed(50, 4)
    rng = np.random.default_rng(5)
    unique = unique_predicates(records, 30, conditions, rng)
    assert len(unique.columns) == 30
    assert (matches(unique, records) == 1).all()
    assert len({tuple(map(str, np.hstack([*part]))) for part in zip(*unique, strict=True)}) == 30
    for predicates in (unique, random_predicates(records, 40, conditions, rng)):
        expected = [count(*parts, others) for parts in zip(*predicates, strict=True)]
        assert matches(predicates, others).tolist() == expected
        assert all(len(set(columns)) == conditions for columns in predicates.columns.tolist())


def test_surprise_is_the_log_share_under_independence() -> None:
    records = mixed(60, 6)
    found = unique_predicates(records, 10, 2, np.random.default_rng(7))
    for at, told in enumerate(surprise(found, records)):
        one = found.of(np.array([at]))
        alone = [count(one.columns[0, [j]], one.kinds[0, [j]], one.values[0, [j]], records) for j in (0, 1)]
        assert told == pytest.approx(-sum(math.log(max(n, 1) / 60) for n in alone))


def test_bad_tables_and_columns_are_refused() -> None:
    table = pa.table({"a": [1], "b": [2]})
    for names, rule in (
        ([], "names of columns"),
        ("a", "names of columns"),
        (["a", "a"], "once"),
        (["c"], "has once"),
    ):
        with pytest.raises(ParameterError, match=rule):
            columns_of("first", names, table)
    with pytest.raises(ParameterError, match="have rows"):
        table_of("targets", table.slice(0, 0))
