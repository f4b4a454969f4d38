"""Bounds that are found: bins, jobs, what one unit moves, what is told, and what it costs."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import BudgetExceeded, OptionError, ParameterError, UnsupportedSql
from sfumato.frames.sources import open_source
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.statistics.private_bounds import PrivateBounds
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.measure import BinCounts, Measure, RowSum
from sfumato.queries.plan.query import Column, ColumnType, Expression, FoundBounds, Scan, Schema
from sfumato.queries.plan.typed_expressions import column
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.found_bounds import BETA, read_off, threshold, with_found_bounds
from sfumato.queries.pricing.magnitude_bins import REAL, WHOLE, MagnitudeBins
from sfumato.queries.pricing.measures.products import SumOfProducts
from sfumato.queries.pricing.measures.sums import MeanOfUnits, SumOfRows
from sfumato.queries.pricing.price import PricedQuery, PricedSearch, price
from sfumato.queries.pricing.quantile_bins import bin_counts
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from sfumato.session import render_sql
from tests.cases import cases

_SECRET = bytes(range(32))
_X = Expression(column("x", ColumnType.FLOAT).tree, ColumnType.FLOAT)
_SCHEMA = Schema(
    (
        Column("id", ColumnType.INTEGER),
        Column("g", ColumnType.TEXT),
        Column("i", ColumnType.INTEGER),
        Column("x", ColumnType.FLOAT),
    )
)
_CATALOG = Catalog({"data": Scan("data", _SCHEMA, "id"), "lines": Scan("lines", _SCHEMA, None)})


@cache
def _priced(columns: str, options: str = "", table: str = "data") -> PricedQuery:
    given_ = f"epsilon=1, delta=1e-8{options}"
    if table == "data":
        given_ += ", max_groups_contributed=3"
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({given_}) g, {columns} FROM {table} GROUP BY g"
    return price(read(text, _CATALOG))


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(0.0)
@example(5e-324)
@example(2.0**-64)
@example(math.nextafter(2.0**-64, 0))
@example(-(2.0**95))
@example(1e308)
def test_a_number_lies_within_the_borders_of_its_bin(value: float) -> None:
    place = REAL.index(value)
    if place in (0, REAL.many - 1):  # open to infinity
        assert abs(value) >= 2.0**95
        assert (value > 0) == (place > 0)
        return
    lower, upper = REAL.bounds(place, place)
    assert lower <= value <= upper
    assert place == REAL.zero or upper == 2 * lower or lower == 2 * upper


def test_bins_are_those_of_the_mechanism_for_arrays() -> None:
    values = np.concatenate([np.geomspace(2.0**-6, 2.0**6, 400), -np.geomspace(2.0**-6, 2.0**6, 400), [0.0]])
    ours, theirs = MagnitudeBins(-4, 4, ColumnType.FLOAT), PrivateBounds(scale=1, exponents=(-4, 4))
    counts = np.bincount([ours.index(float(v)) for v in values], minlength=ours.many)
    assert counts.tolist() == theirs._counts(values).tolist()


_ODD = [0, 1, -1, 2, 3, -4, 5, 2**31, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63), None]
_REALS = [
    *(0.0, -0.0, 5e-324, 2.0**-65, 2.0**-64, -(2.0**-64), 0.75, 1.0, -1.5, 3.0, 2.0**95, -(2.0**95)),
    *(1e308, -1e308, math.inf, -math.inf, math.nan, None),
]


def _searched(engine: DuckDBEngine, priced: PricedQuery, search: BoundSearch) -> dict[int, int]:
    exact = engine.aggregate(search.job(priced.query), _SECRET)
    counts = bin_counts(exact["m0"])
    return dict(zip(counts.leaves.tolist(), counts.counts.tolist(), strict=True))


@pytest.mark.parametrize(("name", "values", "bins"), [("i", _ODD, WHOLE), ("x", _REALS, REAL)])
def test_the_engine_bins_every_number_as_it_should(name: str, values: list[Any], bins: MagnitudeBins) -> None:
    """One unit for each number; NaN and infinities count nowhere."""
    many = len(values)
    columns: dict[str, Any] = {"id": range(many), "g": ["a"] * many, "i": [1] * many, "x": [1.0] * many}
    columns[name] = values
    priced = _priced(f"AVG({name}) AS a")
    (search,) = (each.search for each in priced.searches)
    with DuckDBEngine(open_source(pa.table(columns))) as engine:
        engine.check(search.job(priced.query))
        found = _searched(engine, priced, search)
    finite = [value for value in values if value is not None and math.isfinite(value)]
    # frexp of 2**63 - 1 as a float would be a power too high
    places = [min(bins.index(value), bins.many - 1) for value in finite]
    assert found == {place: places.count(place) for place in places}


def _total(rows: list[float], most: int | None) -> float:
    exact = float(sum(map(Fraction, rows)))
    return exact if most is None or len(rows) <= most else exact / len(rows) * most


@cases("power", [-50, 0, 30, 90])
@cases("most", [None, 2])
def test_totals_of_floats_of_any_size_are_searched_to_a_few_parts_in_a_hundred(
    power: int, most: int | None
) -> None:
    """Each unit has one group, so its number is known; mantissas lie far from the borders of bins."""
    draw = random.Random(power)
    rows = [
        (unit, "ab"[unit % 2], draw.choice([1.3, 0.6, 0.1]) * 2.0**power)
        for unit in range(40)
        for _ in range(3)
    ]
    columns = dict(zip(("id", "g", "x"), map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table({**columns, "i": [1] * len(rows)})
    priced = _priced("SUM(x) AS s", "" if most is None else f", max_rows_per_group={most}")
    (search,) = (each.search for each in priced.searches)
    assert search.totals
    with DuckDBEngine(open_source(table)) as engine:
        found = _searched(engine, priced, search)
    totals = [_total([x for u, _, x in rows if u == unit], most) for unit in range(40)]
    near = [{REAL.index(total * part) for part in (0.9, 1.0, 1.1)} for total in totals]
    sure = [places.pop() for places in near if len(places) == 1]
    assert sum(found.values()) == 40
    assert all(found.get(place, 0) >= sure.count(place) for place in sure)


def test_a_unit_tells_one_number_and_rows_as_units_one_each() -> None:
    table = pa.table({"id": [1] * 9 + [2], "g": list("abcabcabca"), "i": [1] * 10, "x": [4.0] * 9 + [64.0]})
    with DuckDBEngine(open_source(table)) as engine:
        for columns in ("AVG(x) AS a", "SUM(x) AS s", "MEDIAN(x) AS m", "VAR_POP(x) AS v"):
            priced = _priced(columns)
            (search,) = (each.search for each in priced.searches)
            found = _searched(engine, priced, search)
            low = REAL.index(12.0 if search.totals else 4.0)
            assert found == {low: 1, REAL.index(64.0): 1}
    with DuckDBEngine(open_source({"lines": table})) as engine:
        priced = _priced("SUM(x) AS s", table="lines")
        (search,) = (each.search for each in priced.searches)
        assert not search.totals
        assert _searched(engine, priced, search) == {REAL.index(4.0): 9, REAL.index(64.0): 1}


def test_keys_and_columns_may_be_called_like_those_of_the_search() -> None:
    table = pa.table({"a_value": [1, 1, 2], "a_key_0": ["p", "p", "q"], "a_place": [1.0, 2.0, 8.0]})
    with sf.connect(table, privacy_unit="a_value", epsilon=9, delta=1e-6, rng=1) as session:
        release = session.sql(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, delta=1e-8, max_groups_contributed=1) "
            "a_key_0, SUM(a_place) AS s FROM data GROUP BY a_key_0"
        )
        assert len(release.found_bounds) == 1


# What one unit moves


_CALLS = [
    *("SUM(x)", "SUM(i)", "AVG(x)", "AVG(i)", "SUM(x * i)", "VAR_POP(x)", "STDDEV(i)", "COVAR_POP(x, i)"),
    *("CORR(i, x)", "MEDIAN(x)", "MAX(i)", "AVG(1 / i)"),
]


def _table(draw: random.Random) -> pa.Table:
    rows = range(draw.choice([1, 6, 40]))
    return pa.table(
        {
            "id": pa.array([draw.choice([0, 0, 0, 1, 2, 3, None]) for _ in rows], pa.int64()),
            "g": pa.array([draw.choice(["a", "b", "c", None]) for _ in rows], pa.string()),
            "i": pa.array([draw.choice([0, 1, 2, -7, 2**62, None]) for _ in rows], pa.int64()),
            "x": pa.array(
                [draw.choice([0.1, -3.3, 5e7, math.inf, math.nan, None]) for _ in rows], pa.float64()
            ),
        }
    )


def _bounds(draw: random.Random, search: BoundSearch) -> FoundBounds:
    bins = search.bins
    first, last = sorted(draw.choices(range(bins.many), k=2))
    if draw.random() < 0.7:  # where the numbers of the table are
        first, last = sorted(bins.zero + draw.randint(-8, 28) for _ in range(2))
    return FoundBounds("", *bins.bounds(first, last), found=True)


def _moves(
    whole: pa.Table, without: pa.Table, measures: Sequence[Measure]
) -> tuple[int, list[int], list[int]]:
    """Return how many groups moved, and by how much each measure at most in one group, and in all of them."""
    sides = [{row["k0"]: row for row in side.to_pylist()} for side in (whole, without)]
    most, everywhere, moved = [0] * len(measures), [0] * len(measures), 0
    for key in sides[0].keys() | sides[1].keys():
        any_move = False
        for index, measure in enumerate(measures):
            one, two = (side.get(key, {}).get(f"m{index}") for side in sides)
            if isinstance(measure.value, BinCounts):
                bins = [{cell["leaf"]: cell["n"] for cell in cells or ()} for cells in (one, two)]
                all_bins = bins[0].keys() | bins[1].keys()
                move = sum(abs(bins[0].get(b, 0) - bins[1].get(b, 0)) for b in all_bins)
            else:
                move = abs((one or 0) - (two or 0))
            most[index], any_move = max(most[index], move), any_move or move > 0
            everywhere[index] += move
        moved += any_move
    return moved, most, everywhere


def _limits(mechanism: Any) -> tuple[int | None, int | None]:
    """By how much one unit may move a group, and all groups together."""
    if isinstance(mechanism, BinMechanism):
        return mechanism.rows, mechanism.rows * mechanism.groups
    return mechanism.sensitivity, getattr(mechanism, "l1", None)


def _violations(seed: int) -> list[str]:
    draw = random.Random(seed)
    table = _table(draw)
    columns = ", ".join(f"{call} AS c{n}" for n, call in enumerate(draw.sample(_CALLS, draw.randint(1, 3))))
    limits = draw.choice(
        [
            "max_groups_contributed=2",
            "max_groups_contributed=1, max_rows_per_group=2",
            "max_rows_contributed=3",
        ]
    )
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, {limits}) g, {columns} FROM data "
        "GROUP BY g"
    )
    other = table.filter(pc.fill_null(pc.not_equal(table["id"], 0), fill_value=True))
    found: list[str] = []
    with DuckDBEngine(open_source(table)) as engine, DuckDBEngine(open_source(other)) as fewer:
        priced = price(read(text, _CATALOG))
        for each in priced.searches:
            one, two = (_searched(side, priced, each.search) for side in (engine, fewer))
            if sum(abs(one.get(b, 0) - two.get(b, 0)) for b in one.keys() | two.keys()) > 1:
                found.append(f"{text}: a search moved by more than one")
        ready = with_found_bounds(
            priced, {each.search: _bounds(draw, each.search) for each in priced.searches}
        )
        answers = [side.aggregate(ready.job, _SECRET) for side in (engine, fewer)]
    moved, most, everywhere = _moves(answers[0], answers[1], ready.measures)
    if moved > (ready.query.options.max_groups_contributed or 3):
        found.append(f"{text}: too many groups moved")
    for mechanism, move, total in zip(ready.mechanisms, most, everywhere, strict=True):
        most_of_one, most_of_all = _limits(mechanism)
        if (most_of_one is not None and move > most_of_one) or (
            most_of_all is not None and total > most_of_all
        ):
            found.append(f"{text}: a measure moved by more than its noise is made for")
    return found


@pytest.mark.parametrize("block", range(5))
def test_nothing_moves_by_more_than_its_noise_is_made_for_whatever_is_found(block: int) -> None:
    assert [line for seed in range(block * 4, block * 4 + 4) for line in _violations(seed)] == []


@given(
    st.sampled_from(
        ["SUM(x)", "SUM(i)", "AVG(x)", "AVG(i)", "VAR_POP(i)", "CORR(x, i)", "MEDIAN(i)", "MIN(x)"]
    ),
    st.data(),
)
def test_bounds_that_are_found_change_the_grid_alone(call: str, data: st.DataObject) -> None:
    priced = _priced(f"{call} AS a")
    found = {}
    for each in priced.searches:
        bins = each.search.bins
        ends = sorted(data.draw(st.integers(0, bins.many - 1)) for _ in range(2))
        found[each.search] = FoundBounds("", *bins.bounds(*ends), found=True)
    ready = with_found_bounds(priced, found)
    assert (ready.mechanisms, ready.loss) == (priced.mechanisms, priced.loss)
    for request, before, now in zip(priced.requests, priced.measures, ready.measures, strict=True):
        assert now.sensitivity == before.sensitivity
        if isinstance(request, SumOfProducts):
            assert isinstance(now.value, RowSum)
            assert isinstance(before.value, RowSum)
            assert now.value.terms == before.value.terms
        if request.searches and isinstance(request, (SumOfRows, MeanOfUnits)):
            bounds = found[request.searches[0]]
            step = Fraction(2) ** now.exponent
            assert now.lower * step <= Fraction(bounds.lower)
            assert now.upper * step >= Fraction(bounds.upper)
            reach = max(-bounds.lower, bounds.upper)
            assert now.upper * step <= reach
            assert now.lower * step >= -reach
        for factor in now.value.columns if isinstance(request, SumOfProducts) else ():
            bounds = found[BoundSearch(factor.expression)]
            step = Fraction(2) ** factor.exponent
            assert factor.lower * step <= Fraction(bounds.lower)
            assert factor.upper * step >= Fraction(bounds.upper)


def test_bounds_that_would_move_more_steps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = _priced("AVG(x) AS a")
    (search,) = (each.search for each in priced.searches)
    monkeypatch.setattr(
        "sfumato.queries.pricing.measures.sums.even_steps", lambda _, half: (-3 * half, 3 * half, 0)
    )
    with pytest.raises(ParameterError, match="move no more steps"):
        with_found_bounds(priced, {search: FoundBounds("", 0.0, 2.0, found=True)})


# What is told


@cases("scale", [Fraction(1, 2), 2])
@cases("counts", [(3, 0, 1, 2, 0), (0, 0, 0, 0, 0), (1, 1, 1, 1, 1)])
def test_by_enumeration_the_bounds_tell_no_more_than_epsilon(counts: tuple[int, ...], scale: Any) -> None:
    """The exact chance of every answer, with and without one unit, for five bins."""
    noise = Laplace(sensitivity=1, scale=scale)
    epsilon, least = noise.privacy_loss.epsilon(), 3

    def chances(bins: tuple[int, ...]) -> dict[tuple[float, float] | None, float]:
        passes = [noise.distribution.upper_tail(least - count).upper for count in bins]
        told: dict[tuple[float, float] | None, float] = {}
        for out in itertools.product([0, 1], repeat=len(bins)):
            chance = math.prod(p if shown else 1 - p for p, shown in zip(passes, out, strict=True))
            found = read_off(MagnitudeBins(0, 2, ColumnType.FLOAT), np.array(out) * least, least)
            told[found] = told.get(found, 0.0) + chance
        return told

    before = chances(counts)
    assert sum(before.values()) == pytest.approx(1)
    greatest = 0.0
    for place in range(5):
        after = chances(tuple(count + (at == place) for at, count in enumerate(counts)))
        for key, chance in before.items():
            ratio = abs(math.log(chance / after[key]))
            greatest = max(greatest, ratio)
            assert ratio <= epsilon * (1 + 1e-9)
    assert greatest >= epsilon / 3  # so that noise of half the scale would be caught


def test_the_noise_of_a_search_is_made_for_one_and_half_the_share_pays_for_it() -> None:
    options = ", group_selection_strategy=LAPLACE_THRESHOLD"
    priced = _priced("SUM(x) AS s", options)
    (search,) = priced.searches
    assert isinstance(search.mechanism, Laplace)
    assert (search.mechanism.l0, search.mechanism.sensitivity) == (1, 1)
    units, total = priced.mechanisms
    assert units.privacy_loss.epsilon() == pytest.approx(0.5, rel=1e-6)
    assert total.privacy_loss.epsilon() == pytest.approx(0.25, rel=1e-6)
    assert search.mechanism.privacy_loss.epsilon() == pytest.approx(0.25, rel=1e-6)
    assert 0.99 < priced.loss.quick_epsilon(1e-8) <= 1
    # a search that serves several measures has half of the share of each
    several = _priced("AVG(x) AS a, MEDIAN(x) AS m, SUM(x) AS s", options)
    rows, totals = several.searches
    assert not rows.search.totals
    assert totals.search.totals
    assert rows.mechanism.privacy_loss.epsilon() == pytest.approx(0.25, rel=1e-6)
    assert totals.mechanism.privacy_loss.epsilon() == pytest.approx(0.125, rel=1e-6)


@cases("strategy", ["LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD", "TRUNCATED_GEOMETRIC"])
@cases("epsilon", [0.01, 0.5, 8])
def test_the_whole_loss_meets_options(strategy: str, epsilon: float) -> None:
    columns = "SUM(x) AS s, AVG(i, epsilon => 0.001) AS a, CORR(x, i) AS c, COUNT(*) AS n, MAX(x) AS m"
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={epsilon}, delta=1e-8, max_groups_contributed=4, "
        f"group_selection_strategy={strategy}) g, {columns} FROM data GROUP BY g"
    )
    priced = price(read(text, _CATALOG))
    assert priced.loss.quick_epsilon(1e-8) <= epsilon


@pytest.mark.parametrize("noise", [Laplace(sensitivity=1, scale=5), Gaussian(sensitivity=1, stddev=4)])
def test_empty_bins_stand_out_with_the_chance_that_is_said(noise: Any) -> None:
    priced = PricedSearch(BoundSearch(_X), noise)
    least = threshold(priced)
    assert REAL.many * noise.distribution.upper_tail(least).upper <= BETA
    assert REAL.many * noise.distribution.upper_tail(least - 1).lower > BETA


def _people(many: int, scale: float = 1.0) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "id": np.arange(many),
            "g": rng.choice(["a", "b"], many),
            "i": rng.integers(0, 95, many),
            "x": rng.uniform(20.0, 30.0, many) * scale,
        }
    )


_ASK = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=4, delta=1e-8, max_groups_contributed=1) "
    "g, SUM(x) AS s, AVG(x) AS a, MEDIAN(x) AS m, AVG(i) AS i, SUM(i) AS t FROM data GROUP BY g"
)


@pytest.mark.parametrize("scale", [1.0, -1.0, 1e-12, 1e20])
def test_answers_without_bounds_are_near_the_truth_in_every_scale(scale: float) -> None:
    table = _people(20_000, scale)
    frame = table.to_pandas().groupby("g")
    with sf.connect(table, privacy_unit="id", epsilon=10, delta=1e-6, rng=3) as session:
        release = session.sql(_ASK)
        answer = release.to_arrow(intervals=True).to_pandas().set_index("g")
    lower, upper = (abs(bound) for bound in sorted((20.0 * scale, 30.0 * scale), key=abs))
    rows = next(bounds for bounds in release.found_bounds if bounds.words == "`x`")
    assert rows.found
    reach = max(abs(rows.lower), abs(rows.upper))
    assert upper <= reach <= 2 * upper
    assert lower >= min(abs(rows.lower), abs(rows.upper)) >= lower / 2
    for name, truth in (("s", frame.x.sum()), ("a", frame.x.mean()), ("i", frame.i.mean())):
        assert (abs(answer[name] / truth - 1) < 0.05).all()
    assert (abs(answer["m"] / frame.x.median() - 1) < 0.2).all()
    assert (answer["a_lower"] <= frame.x.mean()).all()
    assert (frame.x.mean() <= answer["a_upper"]).all()
    assert release.to_arrow().schema.field("t").type == pa.float64()


def test_sums_are_real_numbers_also_where_a_step_is_one() -> None:
    table = pa.table({"id": range(4000), "i": [2**23 - 5] * 4000})
    with sf.connect(table, privacy_unit="id", epsilon=10, delta=1e-6, rng=3) as session:
        text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=4, delta=0) SUM(i) AS s FROM data"
        release = session.sql(text)
        assert release.record.measures[0].exponent == 0
        assert release.to_arrow(intervals=True).schema.types == [pa.float64()] * 3


def test_the_bounds_are_released_with_the_answer_and_replayed(tmp_path: Any) -> None:
    table = _people(5000)
    with sf.connect(table, privacy_unit="id", epsilon=10, delta=1e-6, ledger=tmp_path / "l") as session:
        before = session.explain(_ASK)
        assert session.ledger.entries() == ()
        release = session.sql(_ASK)
        again = session.sql(_ASK)
        assert len(session.ledger.entries()) == 1
    assert again.replayed
    assert again.found_bounds == release.found_bounds
    assert len(release.found_bounds) == 4
    assert again.to_arrow(intervals=True).equals(release.to_arrow(intervals=True))
    assert again.explain() == release.explain()
    assert ReleaseRecord.from_bytes(release.record.to_bytes()).found == release.found_bounds
    assert "within the bounds found" in before
    assert "one unit moves one count by 1" in before
    assert "Found for `x`: [16, 32]" in release.explain()
    assert "within the bounds found" not in release.explain()


@pytest.mark.parametrize("rows", [0, 3])
def test_little_or_no_data_is_answered_within_the_fixed_bounds(rows: int) -> None:
    table = _people(10).slice(0, rows)
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) AVG(x) AS a, SUM(i) AS s, MAX(x) AS m"
    )
    with sf.connect(table, privacy_unit="id", epsilon=10, delta=1e-6, rng=3) as session:
        release = session.sql(f"{text}, STDDEV(x) AS d FROM data")
    assert [(b.lower, b.upper, b.found) for b in release.found_bounds] == [(-1.0, 1.0, False)] * 2
    answer = release.to_arrow().to_pylist()[0]
    assert -1 <= answer["a"] <= 1
    assert -1 <= answer["m"] <= 1
    assert "nothing stood out: [-1, 1]" in release.explain()


def test_public_groups_rows_and_the_builder_find_bounds_too() -> None:
    table = _people(4000)
    with sf.connect(table, privacy_unit=sf.ROW, epsilon=20, delta=1e-6, rng=3) as session:
        query = session.table().group_by("g", public_groups={"g": ["a", "b", "zz"]})
        release = query.agg(sf.sum("x"), sf.mean("x"), sf.median("x"), sf.variance("x")).release(
            epsilon=8, delta=0
        )
        assert release.to_arrow()["g"].to_pylist() == ["a", "b", "zz"]
        assert [(b.lower, b.upper) for b in release.found_bounds] == [(16.0, 32.0)]
        means = release.to_arrow()["mean_x"].to_pylist()
        assert all(16 <= mean <= 32 for mean in means)
        written = (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=8, delta=0, "
            "group_selection_strategy=PUBLIC_GROUPS) g, SUM(x) AS sum_x, AVG(x) AS mean_x, "
            "MEDIAN(x) AS median_x, VAR_POP(x) AS variance_x "
            "FROM data RIGHT JOIN UNNEST(['a', 'b', 'zz']) AS k ON g = k GROUP BY g"
        )
        assert session.sql(written).replayed


def test_computed_columns_having_and_order_read_what_was_found() -> None:
    text = (
        _ASK.replace("SUM(x) AS s", "SUM(x) / COUNT(*) AS s") + " HAVING AVG(x) > 1 ORDER BY s DESC LIMIT 1"
    )
    with sf.connect(_people(9000), privacy_unit="id", epsilon=20, delta=1e-6, rng=3) as session:
        release = session.sql(text)
    (row,) = release.to_arrow(intervals=True).to_pylist()
    assert 20 < row["s"] < 30
    assert row["s_lower"] <= row["s"] <= row["s_upper"]


def test_a_query_that_does_not_fit_is_refused_before_the_search() -> None:
    with sf.connect(_people(100), privacy_unit="id", epsilon=1, delta=1e-6, rng=3) as session:
        with pytest.raises(BudgetExceeded):
            session.sql(_ASK)
        assert session.ledger.entries() == ()


def test_where_no_search_can_be_bounds_must_be_stated() -> None:
    columns = {"people": {"id": "INT64", "x": "FLOAT64"}}
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) SUM(x) AS s FROM people"
    with pytest.raises(OptionError, match="must state its bounds, got none for 's'"):
        render_sql(text, "bigquery", tables=columns, privacy_unit="id")
    day = pa.array([0] * 100, pa.int32()).cast(pa.date32())
    table = _people(100).append_column("day", day)
    with sf.connect(table, privacy_unit="id", epsilon=1, delta=1e-6, rng=3) as session:
        query = session.table().agg(sf.sum("x"))
        terms: Any = {"moment": "day", "every": "day", "steps": 3, "epsilon": 0.5, "delta": 1e-8}
        with pytest.raises(OptionError, match="a sum of a counter must state its bounds"):
            session.counter(query, start=__import__("datetime").date(2020, 1, 1), max_periods=1, **terms)
        options = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta=0)"
        asks = {"a": f"{options} SUM(x) AS s FROM data", "b": f"{options} COUNT(*) AS n FROM data"}
        with pytest.raises(ParameterError, match="the bounds of 's' must be stated for a target"):
            session.plan(asks, target={"s": 3.0, "n": 3.0})
        plan = session.plan(asks, epsilon=0.5)
        assert math.isnan(plan.queries[0].errors["s"])
        assert set(plan.release()) == {"a", "b"}


@cases(
    ("call", "error", "message"),
    [
        ("SUM(g)", Exception, "must be INT64 or FLOAT64"),
        ("SUM(x, contribution_bounds_per_row => (0, 1))", OptionError, "how many rows a unit may have"),
        ("AVG(x, contribution_bounds_per_row => (0, 1))", OptionError, "AVG must be bounded per group"),
        ("VAR_POP(x, contribution_bounds_per_group => (0, 1))", OptionError, "must be bounded per row"),
        ("CORR(x, i, contribution_bounds_per_row => (0, 1))", OptionError, "bounds for each column"),
        ("SUM(DISTINCT x)", UnsupportedSql, "leave DISTINCT out"),
        ("AVG(x, contribution_bounds_per_group => NULL)", OptionError, "pair of literals"),
    ],
)
def test_bad_calls_are_still_refused(call: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _priced(f"{call} AS a")


@pytest.mark.parametrize("place", ["first", "last", "all", "zero"])
def test_the_engine_answers_within_whatever_bounds_are_found(place: str) -> None:
    """After the charge nothing may fail, however far out noise puts the bounds."""
    many = len(_REALS)
    table = pa.table(
        {"id": range(many), "g": ["a"] * many, "i": _ODD + [7] * (many - len(_ODD)), "x": _REALS}
    )
    calls = ["SUM(x)", "SUM(i)", "AVG(x)", "AVG(i)", "VAR_POP(i)", "CORR(x, i)", "MEDIAN(x)", "MIN(i)"]
    columns = ", ".join(f"{call} AS c{n}" for n, call in enumerate(calls))
    with DuckDBEngine(open_source(table)) as engine:
        for options in ("", ", max_rows_per_group=2"):
            priced = _priced(columns, options)
            found = {}
            for each in priced.searches:
                last = each.search.bins.many - 1
                ends = {"first": (0, 0), "last": (last, last), "all": (0, last)}
                middle = each.search.bins.zero
                ends["zero"] = (middle, middle)
                found[each.search] = FoundBounds("", *each.search.bins.bounds(*ends[place]), found=True)
            ready = with_found_bounds(priced, found)
            engine.check(ready.job)
            assert engine.aggregate(ready.job, _SECRET).num_rows == 1
