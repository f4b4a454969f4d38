"""The released table: what is possible is shown where that is asked for, and the record stays as it is."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from tests.cases import cases
from tests.queries.release.noised_group import NoisedGroup, as_floats, drawn, priced_query

UP = "SUM(i, contribution_bounds_per_group => (0, 9))"
DOWN = "SUM(x, contribution_bounds_per_group => (-2, 0))"
EITHER = "SUM(i, contribution_bounds_per_group => (-9, 9))"
COLUMNS = {
    "n": "COUNT(*)",
    "d": "COUNT(DISTINCT j)",
    "u": UP,
    "w": DOWN,
    "e": EITHER,
    "a": "AVG(x, contribution_bounds_per_group => (5, 7))",
    "more": "2 * COUNT(*) + 1",
    "both": f"COUNT(*) + {UP}",
    "minus": f"{DOWN} - COUNT(DISTINCT j)",
    "each": f"{UP} / COUNT(*)",
    "gap": "COUNT(*) - COUNT(DISTINCT j)",
}


@pytest.fixture(scope="module")
def empty() -> NoisedGroup:
    """A group without a row, as a public one may be: half of the noisy counts are negative."""
    select = ", ".join(f"{call} AS {name}" for name, call in COLUMNS.items())
    priced = priced_query(select, "epsilon=3, delta=0, max_groups_contributed=1, max_rows_per_group=2")
    return drawn(priced, [0] * len(priced.measures), 300, 8)


@pytest.fixture(scope="module")
def tables(empty: NoisedGroup) -> tuple[pa.Table, pa.Table]:
    """Its answers with intervals, as they are and clamped."""
    raw, shown = (empty.release.to_arrow(intervals=True, clamp=clamp) for clamp in (False, True))
    return raw, shown


def test_what_is_impossible_is_clamped_and_nothing_else(tables: tuple[pa.Table, pa.Table]) -> None:
    raw, shown = tables
    assert raw.schema == shown.schema
    assert raw.num_rows == shown.num_rows
    for name in ("n", "d", "u"):
        assert as_floats(raw[name]).min() < 0
        for end in ("", "_lower", "_upper"):
            expected = np.maximum(as_floats(raw[name + end]), 0)
            assert np.array_equal(as_floats(shown[name + end]), expected)
    for end in ("", "_lower", "_upper"):
        assert np.array_equal(as_floats(shown[f"w{end}"]), np.minimum(as_floats(raw[f"w{end}"]), 0))
        assert shown[f"e{end}"].equals(raw[f"e{end}"])
        assert shown[f"a{end}"].equals(raw[f"a{end}"])


def test_computed_columns_are_those_of_the_clamped_ones(tables: tuple[pa.Table, pa.Table]) -> None:
    _, shown = tables
    n, d, u, w = (as_floats(shown[name]) for name in "nduw")
    assert np.array_equal(as_floats(shown["more"]), 2 * n + 1)
    assert np.array_equal(as_floats(shown["both"]), n + u)
    assert np.array_equal(as_floats(shown["minus"]), w - d)
    assert np.array_equal(as_floats(shown["gap"]), n - d)
    for name, lowest, highest in (("more", 1, np.inf), ("both", 0, np.inf), ("minus", -np.inf, 0)):
        low, high = (as_floats(shown[f"{name}{end}"]) for end in ("_lower", "_upper"))
        assert (low >= lowest).all()
        assert (high <= highest).all()
        assert (low <= high).all()
    assert (as_floats(shown["gap_lower"]) < 0).any()
    assert (as_floats(shown["each_lower"]) >= 0).all()


@cases("name", ["n", "d", "u", "w", "both", "minus"])
def test_clamped_intervals_hold_the_answer_as_often(tables: tuple[pa.Table, pa.Table], name: str) -> None:
    held = [
        ((as_floats(each[f"{name}_lower"]) <= 0) & (as_floats(each[f"{name}_upper"]) >= 0)).sum()
        for each in tables
    ]
    assert held[1] >= held[0]


def test_rows_and_order_and_record_stay_those_of_the_noisy_numbers() -> None:
    options = "epsilon=1, delta=0, max_groups_contributed=1, max_rows_per_group=1"
    priced = priced_query("COUNT(*) AS n, COUNT(*, report_format => 'JSON') AS r", options)
    group = drawn(priced, [0], 40, 2)
    before = group.release.record.to_bytes()
    raw, shown = (group.release.to_arrow(clamp=clamp) for clamp in (False, True))
    assert shown["n"].to_pylist() == [max(0, value) for value in raw["n"].to_pylist()]
    for value, report in zip(shown["n"].to_pylist(), shown["r"].to_pylist(), strict=True):
        body = json.loads(report)["result"]
        assert body["value"] == value
        assert body["noise_confidence_interval"]["lower_bound"] >= 0
    assert group.release.record.to_bytes() == before
    assert group.release.to_arrow().equals(raw)


def test_frames_take_the_same_options(empty: NoisedGroup) -> None:
    for frame in (empty.release.to_pandas(clamp=True), empty.release.to_polars(clamp=True)):
        assert min(frame["n"]) == 0


@cases("name", ["intervals", "clamp"])
def test_options_are_yes_or_no(empty: NoisedGroup, name: str) -> None:
    ask: Any = empty.release.to_arrow
    with pytest.raises(ParameterError, match=f"{name} must be True or False"):
        ask(**{name: 0.9})
