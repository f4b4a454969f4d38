"""ROLLUP, CUBE and GROUPING SETS: what they are written out as, their answers, and what one unit moves."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.errors import OptionError, UnsupportedSql
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.expected_error import cost_alone
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.sql.analysis import read_statement
from sfumato.queries.sql.catalog import Catalog
from sfumato.queries.sql.parser import LargerStatement, parse_statement
from sfumato.queries.sql.rewriting import written_out
from tests.cases import cases
from tests.queries.engines.test_neighbors import _on
from tests.queries.noised import noised
from tests.queries.people import CATALOG

OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta=1e-8, max_groups_contributed={}) "
DP = OPTIONS.format(1, 1)


def _larger(text: str) -> LargerStatement:
    statement = written_out(parse_statement(text))
    assert isinstance(statement, LargerStatement)
    return statement


@cases(
    ("grouping", "sets"),
    [
        ("ROLLUP(state, sex)", ["state, sex", "state", ""]),
        ("ROLLUP((state, sex))", ["state, sex", ""]),
        ("CUBE(state, sex)", ["state, sex", "state", "sex", ""]),
        ("GROUPING SETS ((state, sex), sex, ())", ["state, sex", "sex", ""]),
        ("GROUPING SETS (state, ROLLUP(sex))", ["state", "sex", ""]),
        ("state, ROLLUP(sex)", ["state, sex", "state"]),
        ("ROLLUP(1, y)", ["state, EXTRACT(YEAR FROM born)", "state", ""]),
    ],
)
def test_the_sets_that_each_form_makes(grouping: str, sets: list[str]) -> None:
    other = "EXTRACT(YEAR FROM born) AS y" if "y" in grouping else "sex"
    statement = _larger(f"{DP} state, {other}, COUNT(*) AS n FROM data GROUP BY {grouping}")
    made = [each.select.args.get("group") for each in statement.private]
    written = ["" if group is None else group.sql("bigquery") for group in made]
    assert [text.strip().removeprefix("GROUP BY ") for text in written] == sets
    assert {each.parts for each in statement.private} == {len(sets)}


def test_all_sets_together_cost_what_the_options_say() -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.7, delta=1e-8, max_groups_contributed=20, "
        "group_selection_epsilon=0.1) state, sex, COUNT(*) AS n, "
        "SUM(age, contribution_bounds_per_group => (0, 9), epsilon => 0.3) AS s FROM data "
        "GROUP BY CUBE(state, sex)"
    )
    priced = [price(read_statement(each, CATALOG)) for each in _larger(text).private]
    assert len(priced) == 4
    assert sum(each.query.options.epsilon for each in priced) <= 0.7
    assert sum(each.query.options.delta for each in priced) <= 1e-8
    assert sum(cost_alone(each, each.loss) for each in priced) <= 0.7 * (1 + 1e-9)
    total = next(each for each in priced if not each.query.keys)
    assert total.threshold is None
    assert all(each.threshold is not None for each in priced if each.query.keys)


def _people() -> pa.Table:
    count = 3000
    return pa.table({
        "id": range(count),
        "g": [None if row % 7 == 0 else "abc"[row % 3] for row in range(count)],
        "s": ["rare" if row == 5 else "mf"[row % 2] for row in range(count)],
    })  # fmt: skip


def test_answers_are_near_the_truth_and_a_missing_group_is_no_zero() -> None:
    with sf.connect(_people(), privacy_unit="id", epsilon=500.0, delta=1e-6, rng=3) as session:
        release = session.sql(
            OPTIONS.format(60, 1)
            + "g, s, GROUPING(g) AS no_g, GROUPING(s) AS no_s, COUNT(*) AS n FROM data GROUP BY CUBE(g, s) "
            "ORDER BY no_g, no_s, n DESC"
        )
        answer = release.to_arrow(intervals=True).to_pylist()
    exact: Counter[Any] = Counter()
    for row in _people().to_pylist():
        for no_g in (0, 1):
            for no_s in (0, 1):
                exact[(None if no_g else row["g"], None if no_s else row["s"], no_g, no_s)] += 1
    shown = {(row["g"], row["s"], row["no_g"], row["no_s"]): row for row in answer}
    assert set(shown) == {key for key, count in exact.items() if count > 1}
    for key, row in shown.items():
        assert abs(row["n"] - exact[key]) <= 5
        assert row["n_lower"] <= row["n"] <= row["n_upper"]
    assert [row["no_g"] for row in answer] == sorted(row["no_g"] for row in answer)


def test_sql_around_it_and_a_session_with_defaults() -> None:
    with sf.connect(_people(), privacy_unit="id", epsilon=500.0, delta=1e-3, rng=3) as session:
        inner = OPTIONS.format(60, 1) + "g, COUNT(*) AS n FROM rows_ GROUP BY ROLLUP(g)"
        text = f"WITH rows_ AS (SELECT id, g FROM data WHERE s = 'm') SELECT MAX(n) AS total FROM ({inner})"
        (row,) = session.sql(text).to_arrow().to_pylist()
        assert abs(row["total"] - 1500) <= 5
        before = session.explain(inner.replace("rows_", "data"))
        assert "Private SELECT 2 of 2" in before
        with pytest.raises(OptionError, match="public_groups must be left out"):
            session.sql(inner.replace("rows_", "data"), public_groups={"g": ["a"]})


def _table(draw: random.Random) -> pa.Table:
    rows = range(draw.choice([1, 8, 40]))
    return pa.table({
        "id": pa.array([draw.choice([0, 0, 0, 1, 2, None]) for _ in rows], pa.int64()),
        "g": pa.array([draw.choice(["a", "b", "c", None]) for _ in rows], pa.string()),
        "i": pa.array([draw.choice([0, 1, 2, None]) for _ in rows], pa.int64()),
        "x": pa.array([draw.choice([0.5, -3.0, 9.0, None]) for _ in rows], pa.float64()),
    })  # fmt: skip


def _exact(
    table: pa.Table, less: pa.Table, text: str
) -> list[tuple[PricedQuery, list[dict[Any, list[int]]]]]:
    """The price of each set, and its exact answers over two tables."""
    answers = []
    with DuckDBEngine(open_source({"data": table, "less": less}), threads=1) as engine:
        catalog = Catalog({"data": Scan("data", engine.schemas["data"], "id")})
        for each in _larger(text).private:
            priced = price(read_statement(each, catalog))
            without = replace(priced.job, relation=_on(priced.job.relation, "less"))
            keys = [f"k{index}" for index in range(len(priced.job.keys))]
            measures = [f"m{index}" for index in range(len(priced.measures))]
            found = [engine.aggregate(job, bytes(range(32))).to_pylist() for job in (priced.job, without)]
            answers.append((priced, [
                {tuple(row[k] for k in keys): [row[m] for m in measures] for row in rows} for rows in found
            ]))  # fmt: skip
    return answers


def _violations(seed: int) -> list[str]:
    draw = random.Random(seed)
    table, most = _table(draw), draw.choice([1, 2])
    aggregates = draw.sample(
        [
            "COUNT(*) AS n",
            "COUNTIF(x > 0, contribution_bounds_per_group => (0, 2)) AS c",
            "SUM(x, contribution_bounds_per_group => (-1, 4)) FILTER (WHERE i > 0) AS s",
            "AVG(x, contribution_bounds_per_group => (0, 3)) AS a",
        ],
        2,
    )
    grouping = draw.choice(["ROLLUP(g, i)", "CUBE(g, i)", "g, ROLLUP(i)"])
    text = OPTIONS.format(1, most) + f"g, i, {', '.join(aggregates)} FROM data GROUP BY {grouping}"
    other = table.filter(pc.fill_null(pc.not_equal(table["id"], 0), fill_value=True))
    found = []
    for priced, (whole, without) in _exact(table, other, text):
        zero, moved = [0] * len(priced.measures), 0
        for key in whole.keys() | without.keys():
            one, two = whole.get(key, zero), without.get(key, zero)
            moved += one != two
            for mechanism, a, b in zip(map(noised, priced.mechanisms), one, two, strict=True):
                assert mechanism.sensitivity is not None
                if abs(a - b) > mechanism.sensitivity:
                    found.append(f"{seed} {text}: a measure moved by more than its noise is made for")
        if moved > (most if priced.query.keys else 1):
            found.append(f"{seed} {text}: too many groups of a set moved")
    return found


def test_a_unit_moves_each_set_by_no_more_than_it_is_bounded_to() -> None:
    assert [line for seed in range(8) for line in _violations(seed)] == []


@cases(
    ("select", "phrase"),
    [
        ("state, COUNT(*) FROM data GROUP BY GROUPING SETS (state, state)", "each set of keys once"),
        ("state, GROUPING(state), COUNT(*) FROM data GROUP BY state", "GROUPING needs ROLLUP"),
        ("state, GROUPING(sex), COUNT(*) FROM data GROUP BY ROLLUP(state)", "must name one GROUP BY item"),
        (
            "UPPER(state) AS u, COUNT(*) FROM data GROUP BY ROLLUP(state)",
            "must be a GROUP BY item, an aggregate",
        ),
        ("state FROM data GROUP BY ROLLUP(state)", "must have an aggregate to show"),
        ("state, COUNT(*) FROM data GROUP BY ROLLUP(state) HAVING state = 'CA'", "HAVING beside several"),
        ("state, COUNT(*) FROM data GROUP BY ROLLUP(state) ORDER BY COUNT(*) + 1", "ORDER BY beside several"),
        ("COUNT(*) FROM data GROUP BY CUBE(state, sex, age, born, seen)", "at most 16 sets"),
        ("state, COUNT(*) AS n, SUM(age) AS n FROM data GROUP BY ROLLUP(state)", "have one name"),
    ],
)
def test_what_has_no_meaning_for_all_sets_is_refused(select: str, phrase: str) -> None:
    with pytest.raises(UnsupportedSql, match=phrase):
        written_out(parse_statement(DP + select))
