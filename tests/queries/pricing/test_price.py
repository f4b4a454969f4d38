"""The price step: the whole loss meets OPTIONS, and the law is the one with less error."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.errors import OptionError
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.decimals import at_most_decimal
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
from sfumato.queries.pricing.measures.counts import CountUnits, CountUnitsWithValue
from sfumato.queries.pricing.measures.sums import MeanOfUnits, SumOfRows
from sfumato.queries.pricing.price import NoiseDistribution, PricedQuery, price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.cases import cases
from tests.queries.noised import noised

_SCHEMA = Schema(
    (Column("id", ColumnType.INTEGER), Column("g", ColumnType.TEXT), Column("x", ColumnType.FLOAT))
)
_CATALOG = Catalog({"data": Scan("data", _SCHEMA, "id")})


def _priced(columns: str, options: str) -> PricedQuery:
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) g, {columns} FROM data GROUP BY g"
    return price(read(text, _CATALOG))


queries = given(
    epsilon=st.floats(0.01, 20),
    delta=st.floats(1e-12, 1e-4),
    groups=st.integers(1, 50),
    columns=st.sampled_from(
        [
            "COUNT(*) AS n",
            "COUNT(*) AS n, AVG(x, contribution_bounds_per_group => (0, 100)) AS a",
            "SUM(x, contribution_bounds_per_group => (-3, 0.5)) AS s, COUNT(x) AS c",
        ]
    ),
    strategy=st.sampled_from(
        [
            "",
            ", group_selection_strategy=LAPLACE_THRESHOLD",
            ", group_selection_strategy=GAUSSIAN_THRESHOLD",
            ", group_selection_strategy=TRUNCATED_GEOMETRIC",
        ]
    ),
)


@queries
def test_the_whole_loss_meets_options(
    epsilon: float, delta: float, groups: int, columns: str, strategy: str
) -> None:
    priced = _priced(columns, f"epsilon={epsilon}, delta={delta}, max_groups_contributed={groups}{strategy}")
    spent = priced.loss.quick_epsilon(delta)  # what the ledger is charged
    assert spent <= epsilon
    # Below a step, a hair less noise may cost much more: the lattice's epsilon rises in leaps.
    # What truncation leaves of delta makes the loss of many entries less.
    least = 0 if priced.distribution is NoiseDistribution.TRUNCATED else 0.9
    assert spent >= least * epsilon or noised(priced.mechanisms[0]).stddev < 1
    for measure, mechanism in zip(priced.measures, map(noised, priced.mechanisms), strict=True):
        assert mechanism.sensitivity is not None
        assert mechanism.sensitivity >= measure.sensitivity
        assert mechanism.l0 == groups


@settings(max_examples=20)
@queries
@example(
    1.0, 9.918212890694745e-05, 4, "COUNT(*) AS n, AVG(x, contribution_bounds_per_group => (0, 100)) AS a", ""
)
def test_no_more_is_proven_of_the_loss_than_what_is_charged(
    epsilon: float, delta: float, groups: int, columns: str, strategy: str
) -> None:
    priced = _priced(columns, f"epsilon={epsilon}, delta={delta}, max_groups_contributed={groups}{strategy}")
    charged = at_most_decimal(delta)  # deltas are charged as decimals, and epsilon is read at what is charged
    assert priced.loss.epsilon(delta) <= priced.loss.quick_epsilon(charged)


def test_the_threshold_hides_one_unit_with_the_probability_that_delta_allows() -> None:
    priced = _priced("COUNT(*) AS n", "epsilon=1, delta=1e-8, max_groups_contributed=4")
    assert priced.threshold is not None
    law = noised(priced.mechanisms[0]).distribution
    assert 1e-8 * (1 - 1e-9) <= 4 * priced.threshold.shown(law, 1).upper <= 1e-8


def test_laplace_for_one_group_gaussian_for_many() -> None:
    columns = (
        "COUNT(*) AS n, SUM(x, contribution_bounds_per_group => (0, 1)) AS s, "
        "AVG(x, contribution_bounds_per_group => (0, 1)) AS a"
    )
    assert (
        _priced(columns, "epsilon=1, delta=1e-8, max_groups_contributed=1").distribution
        is NoiseDistribution.TRUNCATED
    )
    many = _priced(columns, "epsilon=1, delta=1e-8, max_groups_contributed=10")
    laplace = _priced(
        columns,
        "epsilon=1, delta=1e-8, max_groups_contributed=10, group_selection_strategy=LAPLACE_THRESHOLD",
    )
    assert many.distribution is NoiseDistribution.GAUSSIAN
    assert many.threshold is not None
    assert laplace.threshold is not None
    assert many.threshold.units < laplace.threshold.units / 2


def test_counts_of_units_are_paid_once() -> None:
    priced = _priced(
        "COUNT(*) AS n, COUNT(DISTINCT id) AS u, COUNT(x) AS c, "
        "AVG(x, contribution_bounds_per_group => (0, 9)) AS a",
        "epsilon=1, delta=1e-8, max_groups_contributed=1",
    )
    assert [type(request) for request in priced.requests] == [CountUnits, CountUnitsWithValue, MeanOfUnits]


def test_a_mean_shares_the_grid_of_a_sum_of_the_same_rows() -> None:
    priced = _priced(
        "SUM(x, contribution_bounds_per_group => (0, 500)) AS s, "
        "AVG(x, contribution_bounds_per_group => (0, 100)) AS a",
        "epsilon=1, delta=1e-8, max_groups_contributed=1",
    )
    by_class = dict(zip(map(type, priced.requests), priced.measures, strict=True))
    total, mean = by_class[SumOfRows], by_class[MeanOfUnits]
    assert mean.exponent == total.exponent
    assert mean.upper * 2.0**mean.exponent == 100
    assert mean.upper - mean.lower >= 1 << 16


_PARTS = [
    "COUNT(*, epsilon => {0}) AS n, SUM(x, contribution_bounds_per_group => (0, 9), epsilon => {1}) AS s",
    "COUNT(*) AS n, SUM(x, contribution_bounds_per_group => (0, 9), epsilon => {1}) AS s, COUNT(x) AS c",
    "AVG(x, contribution_bounds_per_group => (0, 9), epsilon => {0}) AS a, COUNT(x, epsilon => {1}) AS c",
]


@given(
    epsilon=st.floats(0.01, 20),
    delta=st.floats(1e-12, 1e-4),
    groups=st.integers(1, 50),
    parts=st.tuples(st.floats(0.02, 0.4), st.floats(0.02, 0.4)),
    selection=st.one_of(st.none(), st.floats(0.02, 0.15)),
    columns=st.sampled_from(_PARTS),
    strategy=st.sampled_from(["LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD", "TRUNCATED_GEOMETRIC"]),
)
def test_the_whole_loss_meets_options_with_stated_parts(  # noqa: PLR0917
    epsilon: float,
    delta: float,
    groups: int,
    parts: tuple[float, float],
    selection: float | None,
    columns: str,
    strategy: str,
) -> None:
    stated = columns.format(*(part * epsilon for part in parts))
    options = f"epsilon={epsilon}, delta={delta}, max_groups_contributed={groups}"
    options += f", group_selection_strategy={strategy}"
    options += "" if selection is None else f", group_selection_epsilon={selection * epsilon}"
    priced = _priced(stated, options)
    spent = priced.loss.quick_epsilon(delta)
    assert spent <= epsilon
    everything_stated = selection is not None and columns is not _PARTS[1]
    most = (sum(parts) + selection) * epsilon if everything_stated and selection else epsilon
    assert spent <= most * (1 + 1e-9)
    # what truncation leaves of delta makes the loss of many entries less
    least = 0 if priced.distribution is NoiseDistribution.TRUNCATED else 0.85
    assert spent >= least * most or min(noised(mechanism).stddev for mechanism in priced.mechanisms) < 1


def test_a_stated_part_is_what_laplace_noise_is_scaled_by() -> None:
    priced = _priced(
        "COUNT(*, epsilon => 0.1) AS n, SUM(x, contribution_bounds_per_group => (0, 8), epsilon => 0.2) AS s,"
        " AVG(x, contribution_bounds_per_group => (0, 8)) AS a",
        "epsilon=1, delta=1e-8, max_groups_contributed=2, group_selection_strategy=LAPLACE_THRESHOLD, "
        "group_selection_epsilon=0.3",
    )
    # the count of units serves COUNT(*) and the threshold, so it has the parts of both
    parts = dict(zip(map(type, priced.requests), priced.mechanisms, strict=True))
    expected = {
        CountUnits: 0.4,
        SumOfRows: 0.2,
        MeanOfUnits: 0.2,
        CountUnitsWithValue: 0.2,
    }
    for measure, part in expected.items():
        assert parts[measure].privacy_loss.epsilon() == pytest.approx(part, rel=1e-6)
    assert priced.loss.quick_epsilon(1e-8) <= 1


def test_gaussian_noise_is_in_the_ratio_of_the_parts() -> None:
    priced = _priced(
        "COUNT(x, epsilon => 0.2) AS c, "
        "SUM(x + 1, contribution_bounds_per_group => (0, 8), epsilon => 0.6) AS s",
        "epsilon=1, delta=1e-8, max_groups_contributed=20, group_selection_strategy=GAUSSIAN_THRESHOLD, "
        "group_selection_epsilon=0.2",
    )
    relative = [
        float(mechanism.stddev) / measure.sensitivity
        for measure, mechanism in zip(priced.measures, map(noised, priced.mechanisms), strict=True)
    ]
    assert relative[0] == pytest.approx(relative[1], rel=1e-5)
    assert relative[1] == pytest.approx(3 * relative[2], rel=1e-5)


@cases(
    ("columns", "options", "phrase"),
    [
        ("COUNT(*, epsilon => 1.1) AS n", "", "must not exceed the query's, got 1.1 of 1"),
        ("COUNT(*, epsilon => 0.6) AS n, COUNT(x, epsilon => 0.5) AS c", "", "got 1.1 of 1"),
        ("COUNT(*, epsilon => 0.6) AS n", ", group_selection_epsilon=0.5", "got 1.1 of 1"),
        ("COUNT(*, epsilon => 0.7) AS n, COUNT(x) AS c", ", group_selection_epsilon=0.3", "some of 1 for c"),
        ("COUNT(*, epsilon => 1) AS n", "", "for the choice of groups"),
    ],
)
def test_parts_that_do_not_fit_are_refused(columns: str, options: str, phrase: str) -> None:
    with pytest.raises(OptionError, match=re.escape(phrase)):
        _priced(columns, "epsilon=1, delta=1e-8, max_groups_contributed=1" + options)


def test_parts_that_sum_to_epsilon_as_decimals_fit() -> None:
    columns = ", ".join(
        f"SUM(x + {i}, contribution_bounds_per_group => (0, 1), epsilon => 0.1)" for i in range(9)
    )
    options = "epsilon=1, delta=1e-8, max_groups_contributed=1, group_selection_epsilon=0.1"
    assert 0.99 < _priced(columns, options).loss.quick_epsilon(1e-8) <= 1


def test_a_query_whose_parts_are_all_stated_costs_their_sum() -> None:
    options = "epsilon=1, delta=1e-8, max_groups_contributed=1, group_selection_epsilon=0.1"
    assert _priced("COUNT(x, epsilon => 0.2) AS n", options).loss.quick_epsilon(1e-8) == pytest.approx(0.3)


def test_an_epsilon_out_of_reach_is_refused() -> None:
    for tiny in ("1e-14, delta=1e-30", "1e-300, delta=1e-30", "5e-324, delta=1e-30", "5e-324, delta=5e-324"):
        with pytest.raises(OptionError, match="epsilon must leave the noise"):
            _priced("COUNT(*) AS n", f"epsilon={tiny}, max_groups_contributed=1")
    for select in ("COUNT(*) AS n", "SUM(x) AS s", "VARIANCE(x) AS v"):
        with pytest.raises(OptionError, match="epsilon must leave the noise"):
            _priced(select, "epsilon=5e-324, delta=1e-300, max_groups_contributed=1, max_rows_per_group=1")


@cases("epsilon", ["5e-324", "1e-310", "1e-160", "1e-100"])
def test_an_epsilon_whose_noise_is_no_float_is_refused(epsilon: str) -> None:
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={epsilon}, delta=0) COUNT(*) AS n FROM data"
    with pytest.raises(OptionError, match="epsilon must leave the noise"):
        price(read(text, _CATALOG))


@cases("strategy", ["", ", group_selection_strategy=GAUSSIAN_THRESHOLD"])
@cases("delta", ["5e-324", "1e-323", "1e-310"])
def test_unknown_groups_never_go_without_a_threshold(delta: str, strategy: str) -> None:
    options = f"epsilon=1, delta={delta}, max_groups_contributed=30{strategy}"
    try:
        priced = _priced("COUNT(*) AS n", options)
    except OptionError:
        return
    assert priced.threshold is not None
    assert 30 * priced.threshold.shown(noised(priced.mechanisms[0]).distribution, 1).upper <= float(delta)


def test_laplace_answers_where_no_gaussian_can() -> None:
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e-9, delta=5e-324) COUNT(*) AS n FROM data"
    priced = price(read(text, _CATALOG))
    assert priced.distribution is NoiseDistribution.LAPLACE
    assert priced.loss.epsilon(0) <= 1e-9


_WHOLE = Schema((Column("id", ColumnType.INTEGER), Column("x", ColumnType.INTEGER)))
_TABLES = {"real": Scan("real", _SCHEMA, "id"), "whole": Scan("whole", _WHOLE, "id")}


def _sum(bounds: str, rows: int | None, *, table: str = "real") -> PricedQuery:
    most = "" if rows is None else f", max_rows_per_group={rows}"
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0{most}) SUM(x, {bounds}) AS s"
    return price(read(f"{text} FROM {table}", Catalog(_TABLES)))


_GROUP, _ROW = "contribution_bounds_per_group =>", "contribution_bounds_per_row =>"


@cases(
    ("group", "row", "rows", "cut"),
    [
        ("(-50, 1000)", "(0, 10)", 3, (0, 30)),
        ("(-50, 1000)", "(-10, 10)", 3, (-30, 30)),
        ("(-50, 20)", "(2, 10)", 3, (2, 20)),
        ("(100, 1000)", "(0, 10)", 3, (100, 100)),
        ("(-9, -5)", "(1, 10)", 3, (-5, -5)),
        ("(0, 1000)", "(-10, -1)", 3, (0, 0)),
        ("(-50, 1000)", "(0, 10)", None, (-50, 1000)),
    ],
)
@cases("table", ["real", "whole"])
def test_a_sum_is_noised_for_what_its_rows_can_come_to(
    group: str, row: str, rows: int | None, cut: tuple[int, int], table: str
) -> None:
    (measure,) = _sum(f"{_GROUP} {group}, {_ROW} {row}", rows, table=table).measures
    step = 2.0**measure.exponent
    assert (measure.lower * step, measure.upper * step) == cut


@cases("rows", [None, 5])
@cases("table", ["real", "whole"])
@cases("row", ["(0, 1e30)", "(-1e30, 1e30)", "(1e29, 1e30)"])
def test_row_bounds_far_above_a_groups_are_kept_in_the_engines_integers(
    rows: int | None, table: str, row: str
) -> None:
    (measure,) = _sum(f"{_GROUP} (0, 1), {_ROW} {row}", rows, table=table).measures
    (column,) = measure.value.columns
    assert 2**30 * measure.upper <= column.upper <= 2**62
    assert measure.upper * 2.0**measure.exponent == 1


@pytest.mark.parametrize("table", ["real", "whole"])
def test_rows_are_never_rounded_away_beside_how_many_there_may_be(table: str) -> None:
    fine = _sum(f"{_ROW} (0, 100)", 1 << 20, table=table).measures[0]
    (column,) = fine.value.columns
    assert column.upper * 2.0**fine.exponent == 100
    assert column.upper >= 100
    with pytest.raises(OptionError, match=r"no single row is rounded away.*use a smaller max_rows_per_group"):
        _sum(f"{_ROW} (0, 100)", 1 << 40, table=table)
    with pytest.raises(OptionError, match="nearer to those per row"):
        _sum(f"{_GROUP} (0, 1e20), {_ROW} (0, 1)", None, table=table)


def test_noise_may_make_the_grid_of_a_single_row_coarse() -> None:
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e-10, delta=0, max_rows_per_group=1) "
    (measure,) = price(read(f"{text} SUM(x, {_ROW} (0, 1)) AS s FROM real", Catalog(_TABLES))).measures
    assert 0 < measure.upper < 256


@cases("groups", [1, 3, 30])
@cases("epsilon", [0.05, 0.5, 2, 8])
def test_gaussian_noise_is_hardly_more_than_continuous_noise_needs(epsilon: float, groups: int) -> None:
    options = f"epsilon={epsilon}, delta=1e-8, max_groups_contributed={groups}"
    priced = _priced("COUNT(*) AS n", f"{options}, group_selection_strategy=GAUSSIAN_THRESHOLD")
    least = analytic_gaussian_stddev(sensitivity=math.sqrt(groups), epsilon=epsilon, delta=0.625e-8)
    stddev = float(noised(priced.mechanisms[0]).stddev)
    assert least <= stddev <= least * (1.002 if stddev > 5 else 1.15)


_TOGETHER = "max_rows_contributed"


@given(
    epsilon=st.floats(0.05, 10),
    delta=st.floats(1e-12, 1e-4),
    rows=st.integers(1, 60),
    strategy=st.sampled_from(["LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD", "TRUNCATED_GEOMETRIC"]),
)
def test_the_whole_loss_meets_options_where_all_rows_are_bounded(
    epsilon: float, delta: float, rows: int, strategy: str
) -> None:
    columns = (
        f"COUNT(*, {_GROUP} (0, 7)) AS n, SUM(x, {_ROW} (-3, 9)) AS s, SUM(x, {_GROUP} (0, 4)) AS t, "
        f"AVG(x, {_GROUP} (0, 9)) AS a, VAR_POP(x, {_ROW} (0, 9)) AS v, COUNT(DISTINCT x) AS d"
    )
    options = f"epsilon={epsilon}, delta={delta}, {_TOGETHER}={rows}, group_selection_strategy={strategy}"
    priced = _priced(columns, options)
    assert priced.loss.quick_epsilon(delta) <= epsilon
    assert priced.job.max_rows_contributed == rows
    assert priced.job.max_groups is None


@cases(
    ("column", "spread"),
    [
        (f"COUNT(*, {_GROUP} (0, 12))", 1.0),
        (f"COUNT(x, {_GROUP} (0, 3))", 4.0),
        (f"COUNT(x, {_GROUP} (2, 12))", 2.0),
        (f"SUM(x, {_ROW} (-3, 9))", 1.0),
        (f"SUM(x, {_ROW} (0, 5), {_GROUP} (0, 20))", 3.0),
        (f"SUM(x, {_ROW} (0, 5), {_GROUP} (30, 40))", 9.0),
        (f"SUM(x, {_GROUP} (0, 5))", 12.0),
        ("COUNT(DISTINCT x)", 1.0),
        ("APPROX_COUNT_DISTINCT(x, max_contributions_per_group => 4)", 3.0),
    ],
)
def test_laplace_noise_is_for_what_twelve_rows_add_to_all_groups(column: str, spread: float) -> None:
    """By hand: the most that 12 rows add to all groups together, over the most that they add to one."""
    options = f"epsilon=1, delta=1e-8, {_TOGETHER}=12, group_selection_strategy=LAPLACE_THRESHOLD"
    priced = _priced(f"{column} AS c", options)
    mechanism, measure = priced.mechanisms[1], priced.measures[1]
    assert isinstance(mechanism, Laplace)
    assert float(mechanism.scale) / measure.sensitivity == pytest.approx(2 * spread, rel=1e-4)


def test_gaussian_noise_is_for_the_norm_of_what_rows_add_to_all_groups() -> None:
    options = f"epsilon=1, delta=1e-8, {_TOGETHER}=12, group_selection_strategy=GAUSSIAN_THRESHOLD"
    units, rows = map(noised, _priced(f"COUNT(*, {_GROUP} (0, 3)) AS c", options).mechanisms)
    # 12 groups of one unit each: the root of 12; at most 3 rows in each of 4 groups: the root of 4 * 9
    assert float(rows.stddev) / float(units.stddev) == pytest.approx(math.sqrt(36 / 12), rel=1e-4)


@cases("spread", [0.35, 0.7, 1.6])
@cases("gaussian", [True, False])
def test_rows_in_several_bins_tell_no_more_than_rows_in_one(spread: float, *, gaussian: bool) -> None:
    """Hockey sticks of a move by 4 in one number, and of the same move split over several numbers."""
    places = np.arange(-24, 25).astype(np.float64)
    weights = np.exp(-(places**2) / (2 * spread**2)) if gaussian else np.exp(-np.abs(places) / spread)
    law = weights / weights.sum()
    odds = np.exp(np.linspace(0, 24 / spread, 120))

    def sticks(moves: tuple[int, ...]) -> np.ndarray[Any, Any]:
        still, moved = np.ones(1), np.ones(1)
        for move in moves:
            zeros = np.zeros(move)
            still = np.outer(still, np.concatenate([law, zeros])).ravel()
            moved = np.outer(moved, np.concatenate([zeros, law])).ravel()
            kept = still + moved > 1e-12
            still, moved = still[kept], moved[kept]
        return np.array([np.maximum(still - odd * moved, 0).sum() for odd in odds])

    together = sticks((4,))
    assert together[0] > 0.5
    for split in ((3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)):
        assert (sticks(split) <= together + 1e-7).all()
    # what the proof needs is that the moves add up: in the L2 norm alone more numbers tell more
    assert not gaussian or (sticks((2, 2, 2, 2)) > together + 1e-3).any()


def test_half_the_share_of_a_measure_without_bounds_pays_for_the_search() -> None:
    options = "epsilon=1, delta=1e-8, max_groups_contributed=1, group_selection_strategy=LAPLACE_THRESHOLD"
    priced = _priced("SUM(x) AS s", options)
    (search,) = priced.searches
    spent = [mechanism.privacy_loss.epsilon() for mechanism in (*priced.mechanisms, search.mechanism)]
    assert spent == pytest.approx([0.5, 0.25, 0.25], rel=1e-6)  # the count of units, the sum, the search


def test_counts_of_at_most_one_row_a_group_are_counts_of_units() -> None:
    columns = "COUNT(*, contribution_bounds_per_group => (0, 1)) AS n, COUNT(DISTINCT id) AS u"
    priced = _priced(columns, "epsilon=1, delta=1e-8, max_groups_contributed=1")
    assert [type(request) for request in priced.requests] == [CountUnits]
