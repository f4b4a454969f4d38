"""Tables and plots of releases: each row says what it is, and holds the release's own interval."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from sfumato.errors import MissingExtra, ParameterError
from sfumato.mechanisms import (
    BinaryTree,
    CoinPress,
    Count,
    DistinctCountSketch,
    Gaussian,
    Histogram,
    JointQuantiles,
    Laplace,
    Mean,
    ParallelComposition,
    PureContinualSum,
    Quantile,
    Quantiles,
    QuantileTree,
    RandomizedResponse,
    Release,
    StabilityHistogram,
    TheilSen,
    TopK,
    Variance,
)
from sfumato.mechanisms.base import release_table
from sfumato.mechanisms.base.release_table import Rows, drawn, drawn_few
from sfumato.numerics.interval import Interval
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.drawings import line, new_axes, written
from tests.run_time import run_time

if run_time(__name__):
    import pyarrow as pa

DATA = np.repeat([0.5, 1.5, 3.5], [40, 30, 20])
CELLS = Histogram(edges=(0.0, 1.0, 2.0, 4.0))


def released(query: Any) -> Any:
    return Laplace.for_query(query, epsilon=1.0).release(DATA, rng=1)


def columns(release: Release, **options: Any) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in release.table(**options).items()}


def test_a_number_is_one_row_with_its_interval() -> None:
    release = released(Count())
    lower, upper = release.interval(0.9)[:2]
    assert columns(release) == {"value": [release.value]}
    assert columns(release, intervals=True, level=0.9) == {
        "value": [release.value],
        "lower": [lower],
        "upper": [upper],
    }
    distinct = DistinctCountSketch(epsilon=2.0).release(range(500), rng=1)
    assert columns(distinct, intervals=True)["upper"] == [distinct.interval(0.95).upper]


@cases("query", [Mean(bounds=(0.0, 4.0)), Variance(bounds=(0.0, 4.0)), Mean(bounds=(0.0, 4.0), n=None)])
def test_a_query_that_estimates_a_number_shows_that(query: Any) -> None:
    for asked in (query, query.after(stability=1)):
        release = released(asked)
        lower, upper = query.estimate_interval(release, 0.8)[:2]
        found = columns(release, intervals=True, level=0.8)
        assert found == {"value": [query.estimate(release)], "lower": [lower], "upper": [upper]}


def test_histograms_name_their_cells() -> None:
    release = released(CELLS)
    found = columns(release, intervals=True)
    assert found["lower_edge"] == [0.0, 1.0, 2.0]
    assert found["upper_edge"] == [1.0, 2.0, 4.0]
    assert found["value"] == release.value.tolist()
    assert found["lower"] == release.interval(0.95).lower.tolist()
    mixed = Histogram(categories=("a", 1, None))
    assert columns(released(mixed))["category"] == ["a", 1, None]
    assert columns(released(mixed.after(stability=2)))["category"] == ["a", 1, None]


def test_quantiles_say_which_they_are() -> None:
    asked = (0.25, 0.5)
    bounds: Any = (0, 4)
    tree = QuantileTree.calibrated(quantiles=asked, bounds=bounds, epsilon=9.0).release(DATA, rng=1)
    for release in (
        Quantiles(quantiles=asked, bounds=bounds, epsilon=9.0).release(DATA, rng=1),
        JointQuantiles(quantiles=asked, bounds=bounds, epsilon=9.0).release(DATA, rng=1),
        tree,
    ):
        assert columns(release)["quantile"] == [0.25, 0.5]
        assert columns(release)["value"] == release.value.tolist()
    found = columns(tree, intervals=True, level=0.8)
    assert found["lower"] == tree.interval(0.8).lower.tolist()
    single = Quantile(quantile=0.5, bounds=bounds, epsilon=9.0).release(DATA, rng=1)
    assert columns(single, intervals=True) == {"quantile": [0.5], "value": [single.value]}


def test_vectors_streams_keys_and_parts_have_rows() -> None:
    vector = Gaussian.calibrated(l2=1.0, l0=2, epsilon=1.0, delta=1e-6).release(np.array([1.0, 2.0]), rng=1)
    assert columns(vector)["entry"] == [0, 1]
    stream = PureContinualSum.calibrated(strategy=BinaryTree(steps=3), sensitivity=1, epsilon=9.0)
    sums = stream.release(np.array([1, 2, 3]), rng=1)
    assert columns(sums, intervals=True)["upper"] == sums.interval(0.95).upper.tolist()
    keys = StabilityHistogram.calibrated(epsilon=9.0, delta=1e-6).release({"a": 90, "b": 80}, rng=1)
    assert columns(keys) == {"key": list(keys.value), "value": list(keys.value.values())}
    best = TopK(sensitivity=1, scale=0.1, count=2, candidates=["x", "y", "z"]).release([1, 90, 80], rng=1)
    assert columns(best) == {"entry": [0, 1], "value": ["y", "z"]}
    part = Laplace.for_query(CELLS, epsilon=9.0)
    both = ParallelComposition(parts={"CA": part, "MA": part}).release([DATA, DATA[:9]], rng=1)
    found = columns(both, intervals=True)
    assert found["part"] == ["CA"] * 3 + ["MA"] * 3
    assert found["lower_edge"] == [0.0, 1.0, 2.0] * 2
    assert found["value"] == [*both.value["CA"], *both.value["MA"]]
    assert found["upper"][3:] == columns(both.parts["MA"], intervals=True)["upper"]
    answers = RandomizedResponse.two_coins(categories=("no", "yes")).release(["no"] * 50, rng=1)
    assert columns(answers)["category"] == ["no", "yes"]
    assert columns(answers)["value"] == answers.frequencies.tolist()


def test_an_interval_that_was_fixed_beforehand_has_its_own_level() -> None:
    mechanism = CoinPress.calibrated(epsilon=9.0, delta=1e-6, bounds=(0.0, 4.0), stddev=1.0)
    release = mechanism.release(DATA, rng=1)
    assert columns(release, intervals=True)["lower"] == [release.interval.lower]
    assert columns(release, intervals=True, level=release.level)["upper"] == [release.interval.upper]
    with pytest.raises(ParameterError, match=r"level must be 0\.95, which the interval was made for"):
        release.table(intervals=True, level=0.5)


def test_what_is_no_table_is_refused() -> None:
    line = TheilSen(
        slope_bounds=(-9.0, 9.0),
        intercept_bounds=(-9.0, 9.0),
        epsilon=9.0,
        neighboring=Neighboring.REPLACE_ONE,
    )
    fit = line.release(np.zeros((4, 2)), rng=1)
    assert columns(fit) == {
        "field": ["intercept", "slopes[0]"],
        "value": [fit.value.intercept, fit.value.slopes[0]],
    }
    release = fit.map(lambda fit: np.zeros((2, 2)))
    with pytest.raises(ParameterError, match=r"value must be a number, or have one axis.*by map"):
        release.table()
    with pytest.raises(ParameterError, match="intervals must be True or False"):
        released(Count()).table(intervals=0.9)
    with pytest.raises(ParameterError, match="level must be"):
        released(Count()).table(level=1.5)
    other = ParallelComposition(
        parts={"n": Laplace.for_query(Count(), epsilon=1.0), "h": Laplace.for_query(CELLS, epsilon=1.0)}
    ).release([DATA, DATA], rng=1)
    with pytest.raises(ParameterError, match="parts must have the same columns"):
        other.table()


def test_frames_hold_the_table() -> None:
    release = released(Histogram(categories=("a", 1, None)))
    pandas, polars = release.to_pandas(intervals=True), released(CELLS).to_polars(level=0.5, intervals=True)
    assert list(pandas) == ["category", "value", "lower", "upper"]
    assert pandas.value.tolist() == release.value.tolist()
    assert polars.columns == ["lower_edge", "upper_edge", "value", "lower", "upper"]
    assert polars["lower"].to_list() == released(CELLS).interval(0.5).lower.tolist()
    assert pa.table(released(CELLS).table())["value"].to_pylist() == released(CELLS).value.tolist()


def test_plots_draw_values_and_intervals() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    release = released(CELLS)
    assert release.plot(axes) is axes
    bars = axes.patches
    assert [bar.get_x() for bar in bars] == [0.0, 1.0, 2.0]
    assert [bar.get_width() for bar in bars] == [1.0, 1.0, 2.0]
    assert [bar.get_height() for bar in bars] == release.value.tolist()
    ends = release.interval(0.95)
    segments = np.array(axes.containers[0].lines[2][0].get_segments())
    assert segments[:, 0, 1].tolist() == ends.lower.tolist()
    assert segments[:, 1, 1].tolist() == ends.upper.tolist()
    named = figure.add_subplot()
    released(Histogram(categories=("a", "b"))).plot(named)
    assert [text.get_text() for text in named.get_xticklabels()] == ["a", "b"]
    open_ended = figure.add_subplot()
    released(Histogram(edges=(-math.inf, 0.0, math.inf))).plot(open_ended)
    assert [text.get_text() for text in open_ended.get_xticklabels()] == ["-inf to 0.0", "0.0 to inf"]
    line = figure.add_subplot()
    tree = QuantileTree.calibrated(quantiles=(0.25, 0.5), bounds=(0, 4), epsilon=9.0).release(DATA, rng=1)
    tree.plot(line, level=0.5)
    assert line.lines[0].get_xydata().tolist() == [[0.25, tree.value[0]], [0.5, tree.value[1]]]
    assert line.get_xlabel() == "quantile"
    points = figure.add_subplot()
    released(Count()).plot(points)
    assert points.lines[0].get_ydata().tolist() == [released(Count()).value]
    with pytest.raises(ParameterError, match="value must be numbers to plot"):
        TopK(sensitivity=1, scale=0.1, count=1, candidates=["x", "y"]).release([1, 9], rng=1).plot(points)


def test_whiskers_of_a_clamped_value_stand_beside_it() -> None:
    ends = Interval(np.array([5.0, -np.inf, 0.0, 0.0]), np.array([9.0, 2.0, np.inf, 1.0]))
    value = np.array([3.0, 7.0, 1.0, np.nan])
    for labels in ({"key": "abcd"}, {"entry": range(4)}, {"lower_edge": range(4), "upper_edge": range(1, 5)}):
        (whiskers,) = drawn(Rows(labels, value, ends), new_axes()).collections
        found = [segment[:, 1].tolist() for segment in whiskers.get_segments() if len(segment)]
        assert found == [[5.0, 9.0], [2.0, 2.0], [0.0, 1.0]]


def test_many_rows_are_cut_or_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_table, "_MOST", 150)
    value = np.arange(1000)
    rows = Rows({"key": [str(at) for at in value]}, value, Interval(value, value))
    for ax in (drawn(rows, new_axes()), drawn_few(rows, 10**30, new_axes())):
        assert (len(ax.patches), ax.get_title()) == (150, "the first 150 of 1,000 rows")
        assert len(written(ax)) <= 100
    for labels in ({"entry": range(1000)}, {"lower_edge": range(1000), "upper_edge": range(1, 1001)}):
        ax = drawn(rows._replace(labels=labels), new_axes())
        assert (line(ax)[1], ax.patches[:]) == (value.tolist(), [])


def test_columns_of_data_may_have_any_name() -> None:
    value = np.array([1.0, 2.0])
    for names in (["quantile"], ["entry"], ["lower_edge", "upper_edge"], ["value"], ["lower"]):
        ax = drawn(Rows({name: ["a", "b"] for name in names}, value, None), new_axes())
        assert bars_of(ax) == [1.0, 2.0]
    assert written(drawn(Rows({"k": [None, 2019]}, value, None), new_axes())) == ["NULL", "2019"]


def bars_of(ax: Any) -> list[float]:
    return [bar.get_height() for bar in ax.patches]


def test_a_notebook_rounds_a_value_and_its_ends_alike() -> None:
    shown = Laplace(sensitivity=1, scale=2).release(1234572, rng=7)._repr_html_()
    value = Laplace(sensitivity=1, scale=2).release(1234572, rng=7).value
    assert f"<td>{value:,} <small>[{value - 6:,}, {value + 6:,}]</small></td>" in shown


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    release = released(Count())
    for library, call in (
        ("pandas", release.to_pandas),
        ("polars", release.to_polars),
        ("matplotlib", release.plot),
    ):
        monkeypatch.setitem(sys.modules, library, None)
        monkeypatch.setitem(sys.modules, f"{library}.pyplot", None)
        with pytest.raises(MissingExtra, match=r"sfumato\[(pandas|polars|plot)\]"):
            call()
