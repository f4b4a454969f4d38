"""The errors that a plan states, against noise that is drawn anew and intervals of releases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import ParameterError
from sfumato.mechanisms.statistics.quantile.count_tree import TreeShape
from sfumato.mechanisms.statistics.quantile.tree_estimates import rank_half_width
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.queries.planner.half_widths import expected_errors
from sfumato.queries.pricing.price import price
from sfumato.queries.release.noise import public_measures
from tests.cases import cases

UNITS = 3000
BOUNDS = "contribution_bounds_per_row => (0, 100)"
BOTH = "contribution_bounds_per_row => ((0, 100), (-10, 30))"
SPREADS = {
    "VAR_POP": f"VAR_POP(x, {BOUNDS})",
    "VAR_SAMP": f"VAR_SAMP(x, {BOUNDS})",
    "STDDEV_POP": f"STDDEV_POP(x, {BOUNDS})",
    "COVAR_POP": f"COVAR_POP(x, y, {BOTH})",
    "CORR": f"CORR(x, y, {BOTH})",
}


def people(shape: str) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - collecting tests imports no heavy library

    even = (np.arange(UNITS) + 0.5) / UNITS
    x, y = {
        "even": (100 * even, 40 * np.random.default_rng(1).permutation(even) - 10),
        "bound": (np.full(UNITS, 100.0), np.full(UNITS, 30.0)),
        "off the bound": (np.where(even < 0.04, 0.0, 100.0), np.where(np.arange(UNITS) % 25, 30.0, -10.0)),
        "ends": (np.where(even < 0.5, 0.0, 100.0), np.where(even < 0.5, 30.0, -10.0)),
        "near": (np.full(UNITS, 50.0), np.where(even < 0.9, 10.0, 11.0)),
    }[shape]
    return pa.table({"person": range(UNITS), "x": x, "y": y})


def session(shape: str) -> sf.Session:
    return sf.connect(people(shape), privacy_unit="person", epsilon=1e6, delta=1e-3, rng=5)


def text(call: str, epsilon: float = 1.0, delta: float = 0.0, rows: int = 1) -> str:
    options = f"epsilon={epsilon}, delta={delta}, max_rows_per_group={rows}"
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {call} AS v FROM data"


def planned(book: sf.Session, query: str, units: float | None = UNITS, level: float = 0.95) -> float:
    return expected_errors(price(book.read(query)), units=units, level=level)["v"]


def released(book: sf.Session, query: str, level: float = 0.95) -> float:
    table = book.sql(query).to_arrow(intervals=True, level=level)
    width: float = table["v_upper"][0].as_py() - table["v_lower"][0].as_py()
    return width / 2


@cases("shape", ["bound", "off the bound", "even", "ends", "near"])
def test_no_interval_of_a_variance_or_covariance_is_wider_than_planned(shape: str) -> None:
    with session(shape) as book:
        for name in ("VAR_POP", "VAR_SAMP", "COVAR_POP"):
            query = text(SPREADS[name])
            assert released(book, query) <= 1.02 * planned(book, query)


def test_near_the_least_favorable_data_a_covariance_is_nearly_as_wide_as_planned() -> None:
    with session("off the bound") as book:
        for rows in (1, 3):
            query = text(SPREADS["COVAR_POP"], epsilon=5, rows=rows)
            assert 0.9 * planned(book, query) <= released(book, query) <= planned(book, query)


def test_roots_and_ratios_are_planned_for_even_values() -> None:
    with session("even") as book:
        for name in ("STDDEV_POP", "CORR"):
            for level in (0.8, 0.95):
                query = text(SPREADS[name], epsilon=2.0)
                assert released(book, query, level) == pytest.approx(
                    planned(book, query, level=level), rel=0.05
                )


def test_a_planned_variance_is_the_percentile_of_noise_that_is_drawn() -> None:
    """Of n rows at a bound of [-h, h]: (Z_squares - 2 h Z_sum - 1.5 h^2 Z_n) / n to first order."""
    with session("bound") as book:
        priced = price(book.read(text(SPREADS["VAR_POP"])))
        stated = planned(book, text(SPREADS["VAR_POP"]))
    estimator = priced.estimators[0]
    rng = np.random.default_rng(7)
    squares, count, values = (
        rng.laplace(0, float(priced.mechanisms[i].stddev) / math.sqrt(2), 400_000)  # type: ignore[union-attr]
        * 2.0 ** priced.measures[i].exponent
        for i in (estimator.total, estimator.count or 0, *estimator.more)
    )
    off = (squares - 2 * 50 * values - 1.5 * 50**2 * count) / UNITS
    assert stated == pytest.approx(np.quantile(np.abs(off), 0.95), rel=0.03)


def test_errors_fall_with_the_units_and_are_unknown_without() -> None:
    with session("even") as book:
        for call in SPREADS.values():
            few, many = (planned(book, text(call), units) for units in (500, 5000))
            assert few > 5 * many > 0
            assert math.isnan(planned(book, text(call), None))


def test_no_error_is_larger_than_what_is_possible() -> None:
    largest = {
        "VAR_POP": 50.0**2,
        "VAR_SAMP": 2 * 50.0**2,
    }  # of a sample the half of its rows at either bound
    with session("even") as book:
        for name, limit in largest.items():
            stated = [planned(book, text(SPREADS[name], epsilon=1e-3), units) for units in (1, 2)]
            assert stated == pytest.approx([limit / 2] * 2, rel=1e-3)
        narrow = [planned(book, text(SPREADS["VAR_SAMP"], epsilon=100.0), units) for units in (1, 2)]
        assert narrow[0] == narrow[1] < 2000  # two rows are the smallest sample


@pytest.mark.parametrize("call", ["SUM(x)", "AVG(x)", "VAR_POP(x)", "MEDIAN(x)"])
def test_nothing_is_planned_for_bounds_that_are_searched_for(call: str) -> None:
    with session("even") as book:
        assert math.isnan(planned(book, text(call, delta=1e-5)))


QUANTILES = {
    "MEDIAN": (f"MEDIAN(x, {BOUNDS})", (0.5,)),
    "PERCENTILE_CONT": (f"PERCENTILE_CONT(x, 0.9, {BOUNDS})", (0.9,)),
    "MIN": (f"MIN(x, {BOUNDS})", (0.005,)),
    "MAX": (f"MAX(x, {BOUNDS})", (0.995,)),
    "APPROX_QUANTILES": (f"APPROX_QUANTILES(x, 4, {BOUNDS})", (0, 0.25, 0.5, 0.75, 1)),
    "tree": (f"APPROX_QUANTILES(x, 100, {BOUNDS})", tuple(k / 100 for k in range(101))),
}


@cases("name", list(QUANTILES))
def test_ranks_are_off_by_no_more_than_planned(name: str) -> None:
    call, orders = QUANTILES[name]
    beyond: list[np.ndarray[Any, Any]] = []
    for shape in ("even", "near"):
        values = np.sort(people(shape)["x"].to_numpy())
        with session(shape) as book:
            stated = planned(book, text(call, epsilon=0.5), None)
            for draw in range(10):
                answer = book.sql(text(call, epsilon=0.5 + 1e-9 * draw)).to_arrow()["v"][0].as_py()
                found = np.atleast_1d(np.array(answer, dtype=float))
                step = 100 / 2**15  # at least that of the bins: rows in the bin of the answer are no error
                low = np.searchsorted(values, found - step, "left")
                high = np.searchsorted(values, found + step, "right")
                target = np.array(orders) * UNITS
                beyond.append(np.maximum(low - target, target - high) > stated)
        assert 0 < stated < UNITS / 2
    # at most 0.05 each: that 6 of 20 are beyond has a probability of 3e-4
    assert np.sum(beyond, axis=0).max() <= 5


def test_planned_ranks_are_those_of_every_bin() -> None:
    """Of c bins all but one may be t ranks off: the odds that one of these is chosen: (c - 1) exp(-t / b)."""
    odds = 0.05 / 0.95
    # a median at epsilon 1 has b = 1, the order 0.9 has 1.8; whole numbers have a bin each, others 1 / 512
    for call, bins, scale in (
        ("MEDIAN(CAST(x AS INT64), contribution_bounds_per_row => (0, 120))", 121, 1.0),
        (QUANTILES["MEDIAN"][0], 100 * 512 + 1, 1.0),
        (QUANTILES["PERCENTILE_CONT"][0], 100 * 512 + 1, 1.8),
    ):
        with session("even") as book:
            stated = planned(book, text(call), None)
        assert (bins - 1) * math.exp(-stated / scale) == pytest.approx(odds, rel=1e-7)


def test_planned_ranks_off_a_tree_are_those_of_its_levels() -> None:
    call = "APPROX_QUANTILES(CAST(x AS INT64), 100, contribution_bounds_per_row => (0, {}))"
    with session("even") as book:
        one, two = (planned(book, text(call.format(last)), None) for last in (15, 16))
        noises = [public_measures(price(book.read(text(call.format(last)))))[0].noise for last in (15, 16)]
    orders = (0.005, 0.995)  # the smallest and the largest, which are off the most
    for stated, shape, noise in (
        (one, TreeShape(16, 16, 1), noises[0]),
        (two, TreeShape(17, 5, 2), noises[1]),
    ):
        assert isinstance(noise, DiscreteLaplaceDistribution)
        assert stated == pytest.approx(rank_half_width(shape, noise, orders, 0.95))
    assert two > 1.1 * one  # 17 whole numbers need two levels, and so twice the noise


def test_a_target_in_ranks_is_met_and_grows_with_the_rows_of_a_unit() -> None:
    call, _ = QUANTILES["MEDIAN"]
    with session("even") as book:
        one, five = (planned(book, text(call, rows=rows), None) for rows in (1, 5))
        assert five == pytest.approx(5 * one)
        unstated = f"SELECT {call} AS v FROM data"
        plan = book.plan([unstated], target={"v": 100})
        assert plan.met
        assert 95 < plan.queries[0].errors["v"] <= 101
        assert "v: " in str(plan)
        assert " ranks (target 100)" in str(plan)
        share = book.plan([unstated], target={"v": sf.relative(0.01, of=10_000)})
        assert share.queries[0].epsilon == plan.queries[0].epsilon
        assert book.ledger.entries() == ()


@cases("name", list(SPREADS))
def test_targets_of_spreads_are_met(name: str) -> None:
    goal = {"CORR": 0.05, "STDDEV_POP": 0.2}.get(name, 20.0)
    with session("even") as book:
        plan = book.plan([f"SELECT {SPREADS[name]} AS v FROM data"], target={"v": goal}, units=UNITS)
        assert plan.met
        assert plan.queries[0].errors["v"] > 0.95 * goal
        assert ("even over their bounds" in str(plan)) == (name in ("CORR", "STDDEV_POP"))


REFUSED: list[tuple[str, Any, dict[str, Any], str]] = [
    (SPREADS["VAR_POP"], {"v": 1.0}, {}, "units must be given for a target on VAR_POP"),
    (SPREADS["CORR"], {"v": 1.0}, {}, "units must be given for a target on CORR"),
    (QUANTILES["MEDIAN"][0], {"v": sf.relative(0.1)}, {"pilot": 0.5}, "relative to a number of rows for 'v'"),
    (QUANTILES["MEDIAN"][0], {"v": -1}, {}, "target must be positive"),
    ("MEDIAN(x)", {"v": 5}, {}, "the bounds of 'v' must be stated for a target"),
    ("STDDEV(x)", {"v": 5}, {"units": 100}, "the bounds of 'v' must be stated for a target"),
    (QUANTILES["MEDIAN"][0], 5, {}, "target must name a column of '1'"),
]


def test_what_cannot_be_planned_is_refused_before_anything_is_paid() -> None:
    with session("even") as book:
        for call, target, more, words in REFUSED:
            given: Any = {"target": target, **more}
            with pytest.raises(ParameterError, match=words):
                book.plan([f"SELECT {call} AS v FROM data"], **given)
        assert book.ledger.entries() == ()
