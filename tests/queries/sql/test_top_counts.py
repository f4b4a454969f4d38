"""APPROX_TOP_COUNT: what it is written out as, and its lists against the explicit private SELECT."""

from __future__ import annotations

import datetime as dt
import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryError
from sfumato.queries.outer.release import PostprocessedRelease
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.parser import LargerStatement, Statement, parse_statement
from sfumato.queries.sql.rewriting import written_out
from tests.cases import cases
from tests.postgres import Cluster
from tests.queries.tables_in_postgres import load

OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta=1e-6, max_groups_contributed={}) "
DP = OPTIONS.format(1, 2)
Rows = list[dict[str, Any]]

KINDS: dict[str, list[Any]] = {
    "word": ["a", "b", "ä", "", None, "B"],
    "day": [dt.date(2020, 1, 1), dt.date(1999, 5, 5), None],
    "flag": [True, False, None],
    "size": [3, -1, 0, None, 2**40],
    "part": [0.5, -2.0, None, 1e300],
    "moment": [dt.datetime(2020, 1, 1, 3), dt.datetime(2020, 1, 1), None],
}


@functools.cache
def people() -> pa.Table:
    draw = random.Random(11)
    count = 1500
    columns = {name: [draw.choice(values) for _ in range(count)] for name, values in KINDS.items()}
    groups = [draw.choice(["x", "y", None]) for _ in range(count)]
    return pa.table({"id": [row // 2 for row in range(count)], "g": groups, "n": range(count)} | columns)


def connect(**changes: Any) -> sf.Session:
    usual: dict[str, Any] = {"privacy_unit": "id", "epsilon": 1e4, "delta": 0.1, "rng": 5}
    return sf.connect(people(), **(usual | changes))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def session() -> Iterator[sf.Session]:
    with connect(public={"groups": pa.table({"g": ["x", "y"], "title": ["X", "Y"]})}) as opened:
        yield opened


@pytest.fixture(scope="module")
def uncharged() -> Iterator[sf.Session]:
    with connect(rng=None) as opened:
        yield opened


def answer(session: sf.Session, text: str, **options: Any) -> Rows:
    found: Rows = session.sql(text).to_arrow(**options).to_pylist()
    return found


def top(pairs: Rows, size: int, *keys: str) -> dict[tuple[Any, ...], Rows]:
    """The largest counts of each group by hand: ties by value, NULL first."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for pair in pairs:
        groups.setdefault(tuple(pair[key] for key in keys), []).append(pair)
    for rows in groups.values():
        rows.sort(key=lambda row: (False,) if row["value"] is None else (True, row["value"]))
        rows.sort(key=lambda row: -row["count"])
    return {key: rows[:size] for key, rows in groups.items()}


@cases("name", list(KINDS))
def test_lists_are_those_of_the_explicit_select(session: sf.Session, name: str) -> None:
    counted = session.sql(f"{DP} g, {name} AS value, COUNT(*) AS count FROM data GROUP BY g, {name}")
    pairs = counted.to_arrow(intervals=True, level=0.8).to_pylist()
    for size in (1, 3, 10_000) if name == "word" else (3,):
        asked = session.sql(f"{DP} g, APPROX_TOP_COUNT({name}, {size}) AS top FROM data GROUP BY g")
        assert asked.replayed
        made = {(row["g"],): row for row in asked.to_arrow(intervals=True, level=0.8).to_pylist()}
        expected = top(pairs, size, "g")
        assert set(made) == set(expected)
        for key, rows in expected.items():
            assert made[key]["top"] == [{"value": row["value"], "count": row["count"]} for row in rows]
            for end in ("lower", "upper"):
                assert made[key][f"top_{end}"] == [row[f"count_{end}"] for row in rows]
        assert list(made) == [("x",), ("y",), (None,)]


def test_the_loss_and_the_noise_are_those_of_the_explicit_select() -> None:
    text = f"{DP} g, APPROX_TOP_COUNT(word, 9) AS top FROM data WHERE n > 20 GROUP BY g"
    explicit = f"{DP} g, word AS value, COUNT(*) AS count FROM data WHERE n > 20 GROUP BY g, word"
    with connect() as first, connect() as second:
        asked, counted = first.sql(text), second.sql(explicit)
        assert first.sql(explicit).replayed
        spent = [each.account.remaining(1e-9) for each in (first, second)]
    assert asked.loss == counted.loss
    assert (asked.epsilon, asked.delta) == (counted.epsilon, counted.delta) == (1, 1e-6)
    assert spent[0] == spent[1]
    expected = top(counted.to_arrow().to_pylist(), 9, "g")
    assert {(row["g"],): [each["count"] for each in row["top"]] for row in asked.to_arrow().to_pylist()} == {
        key: [row["count"] for row in rows] for key, rows in expected.items()
    }


def test_units_are_counted_or_rows_up_to_bounds() -> None:
    rows = pa.table({"id": [row // 4 for row in range(800)], "v": ["a", "a", "a", "b"] * 200})
    with sf.connect(rows, privacy_unit="id", epsilon=1e4, delta=0.1, rng=1) as opened:
        for bounds, count in (("", 200), (", contribution_bounds_per_group => (0, 2)", 400)):
            text = f"{OPTIONS.format(90, 2)} APPROX_TOP_COUNT(v, 1{bounds}) AS top FROM data"
            assert answer(opened, text) == [{"top": [{"value": "a", "count": count}]}]


def test_ties_are_in_the_order_of_values_with_null_first(session: sf.Session) -> None:
    rows = pa.table({"id": range(400), "v": [None, "d", "c", "a"] * 100})
    with sf.connect(rows, privacy_unit="id", epsilon=1e4, delta=0.1, rng=1) as opened:
        text = OPTIONS.format(60, 1) + "APPROX_TOP_COUNT(v, 3) AS top FROM data"
        assert answer(opened, text) == [{"top": [{"value": v, "count": 100} for v in (None, "a", "c")]}]


def test_several_keys_expressions_positions_and_order(session: sf.Session) -> None:
    dp = OPTIONS.format(80, 2)
    text = (
        f"{dp} APPROX_TOP_COUNT(UPPER(word), 2) AS value, EXTRACT(YEAR FROM day) AS word, 2 * size FROM data "
        "GROUP BY 2, 2 * size, g ORDER BY word DESC NULLS LAST, 3 LIMIT 7 OFFSET 1"
    )
    found = answer(session, text)
    pairs = session.sql(
        f"{dp} EXTRACT(YEAR FROM day) AS word, 2 * size AS key_2, g, UPPER(word) AS value_2, "
        "COUNT(*) AS count FROM data GROUP BY 1, 2, 3, 4"
    )
    assert pairs.replayed
    tops = top(
        [row | {"value": row["value_2"]} for row in pairs.to_arrow().to_pylist()], 2, "word", "key_2", "g"
    )
    order = sorted(
        tops,
        key=lambda key: (
            *(key[0] is None, -(key[0] or 0)),
            *(key[1] is not None, key[1] or 0),
            *(key[2] is None, key[2] or ""),
        ),
    )
    assert found == [
        {
            "value": [{"value": row["value"], "count": row["count"]} for row in tops[key]],
            "word": key[0],
            "key_2": key[1],
        }
        for key in order[1:8]
    ]


def test_all_keys_are_grouped_by_though_one_is_not_shown(session: sf.Session) -> None:
    hidden = answer(session, f"{DP} APPROX_TOP_COUNT(flag, 2) AS top FROM data GROUP BY g")
    shown = answer(session, f"{DP} g, APPROX_TOP_COUNT(flag, 2) AS top FROM data GROUP BY ALL")
    assert [row["top"] for row in hidden] == [row["top"] for row in shown]
    twice = answer(session, f"{DP} g, g AS again, APPROX_TOP_COUNT(flag, 2) AS top FROM data GROUP BY g")
    assert twice == [{"g": row["g"], "again": row["g"], "top": row["top"]} for row in shown]


def test_a_list_of_nothing_and_groups_of_which_nothing_is_shown() -> None:
    rows = pa.table({"id": range(60), "v": [str(row) for row in range(60)], "g": ["a"] * 60})
    with sf.connect(rows, privacy_unit="id", epsilon=100, delta=0.1, rng=1) as opened:
        assert answer(opened, f"{DP} APPROX_TOP_COUNT(v, 3) AS top FROM data") == [{"top": None}]
        assert answer(opened, f"{DP} g, APPROX_TOP_COUNT(v, 3) AS top FROM data GROUP BY g") == []
        listed = {"g": ["a", "b"], "v": ["1", "2"]}
        text = OPTIONS.format(60, 1).replace("1e-6", "0") + (
            "g, APPROX_TOP_COUNT(v, 3) AS top FROM data GROUP BY g"
        )
        found = opened.sql(text, public_groups=listed).to_arrow().to_pylist()
        assert found == [
            {"g": "a", "top": [{"value": "1", "count": 1}, {"value": "2", "count": 1}]},
            {"g": "b", "top": [{"value": "1", "count": 0}, {"value": "2", "count": 0}]},
        ]


def test_beside_other_private_selects_and_public_tables(session: sf.Session) -> None:
    counts = OPTIONS.format(2, 1) + "g, COUNT(*) AS n FROM recent GROUP BY g"
    tops = f"{DP} g, APPROX_TOP_COUNT(word, @k) AS top FROM recent GROUP BY g"
    text = (
        f"WITH recent AS (SELECT * FROM data WHERE n > 9), counts AS ({counts}), tops AS ({tops}) "
        "SELECT title, n, n / SUM(n) OVER () AS share, top FROM counts JOIN tops USING (g) "
        "JOIN groups USING (g) ORDER BY n"
    )
    release = session.sql(text, params={"k": 2})
    assert isinstance(release, PostprocessedRelease)
    assert len(release.releases) == 2
    assert (release.epsilon, release.delta) == (3, 2e-6)
    found = release.to_arrow(intervals=True).to_pylist()
    alone = {
        row["g"]: row
        for row in session.sql(tops.replace("recent", "data WHERE n > 9"), params={"k": 2})
        .to_arrow(intervals=True)
        .to_pylist()
    }
    assert len(found) == 2
    for row in found:
        assert row["n_lower"] <= row["n"] <= row["n_upper"]
        assert row["share_lower"] < row["share"] < row["share_upper"]
        assert [row[name] for name in ("top", "top_lower", "top_upper")] == [
            alone[row["title"].lower()][name] for name in ("top", "top_lower", "top_upper")
        ]


def test_beside_other_aggregates_of_the_same_select() -> None:
    dp = OPTIONS.format(3, 2)
    text = (
        f"{dp} g, COUNT(*) AS n, APPROX_TOP_COUNT(word, 2) AS top, APPROX_TOP_COUNT(flag, 1) AS flags, "
        "SUM(size, contribution_bounds_per_group => (0, 3)) / COUNT(*) AS size, g AS again "
        "FROM data WHERE n > 9 GROUP BY g ORDER BY n DESC, again"
    )
    with connect() as opened:
        release = opened.sql(text)
        assert len(opened.ledger.entries()) == 3
    assert isinstance(release, PostprocessedRelease)
    assert [each.epsilon for each in release.releases] == pytest.approx([1, 1, 1], rel=1e-12)
    assert [release.epsilon, release.delta] == pytest.approx([3, 1e-6], rel=1e-12)
    found = release.to_arrow(intervals=True).to_pylist()
    words, flags, others = (each.to_arrow(intervals=True).to_pylist() for each in release.releases)
    tops, firsts = top(words, 2, "g"), top(flags, 1, "g")
    counts = {row["g"]: row for row in others}
    assert list(found[0])[:4] == ["g", "n", "n_lower", "n_upper"]
    assert {row["g"] for row in found} == {"x", "y", None}
    assert [row["n"] for row in found] == sorted((row["n"] for row in found), reverse=True)
    for row in found:
        assert row["again"] == row["g"]
        assert [each["value"] for each in row["top"]] == [each["value"] for each in tops[row["g"],]]
        assert row["top_upper"] == [each["count_upper"] for each in tops[row["g"],]]
        assert [each["count"] for each in row["flags"]] == [each["count"] for each in firsts[row["g"],]]
        assert {name: row[name] for name in counts[row["g"]]} == counts[row["g"]]


def test_a_group_that_one_of_the_answers_shows_has_a_row() -> None:
    values = ["v"] * 200 + [str(row) for row in range(200)]
    rows = pa.table({"id": range(400), "g": ["a"] * 200 + ["b"] * 200, "v": values})
    with sf.connect(rows, privacy_unit="id", epsilon=100, delta=0.1, rng=1) as opened:
        text = OPTIONS.format(40, 1) + "{}APPROX_TOP_COUNT(v, 3) AS top, COUNT(*) AS n FROM data{}"
        assert answer(opened, text.format("g, ", " GROUP BY g")) == [
            {"g": "a", "top": [{"value": "v", "count": 200}], "n": 200}, {"g": "b", "top": None, "n": 200},
        ]  # fmt: skip
        assert answer(opened, text.format("", "")) == [{"top": [{"value": "v", "count": 200}], "n": 400}]


def test_a_statement_with_the_pipe_and_a_session_with_defaults() -> None:
    defaults = {"epsilon": 1, "delta": 1e-6, "max_groups_contributed": 2}
    with connect(defaults=defaults) as opened:
        plain = answer(opened, "SELECT g, APPROX_TOP_COUNT(word, 2) AS top FROM data GROUP BY g")
        piped = answer(
            opened,
            "FROM data |> AGGREGATE WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) "
            "APPROX_TOP_COUNT(word, 2) AS top GROUP BY g |> SELECT g, top",
        )
        assert opened.sql("SELECT g, APPROX_TOP_COUNT(word, 2) AS top FROM data GROUP BY g").replayed
    assert plain == piped


def test_explain_says_what_is_computed(session: sf.Session) -> None:
    said = session.explain(f"EXPLAIN {DP} g, APPROX_TOP_COUNT(word, 2) AS top FROM data GROUP BY g")
    assert "Groups: g = `g`, value = `word`" in said
    assert (
        "ARRAY_AGG(STRUCT(`value` AS value, `count` AS count) ORDER BY `count` DESC, `value` LIMIT 2)" in said
    )
    assert "Intervals are carried to top." in said


def test_a_ledger_answers_again_and_reads_the_pairs_back(tmp_path: Path) -> None:
    text = f"{DP} g, APPROX_TOP_COUNT(word, 2) AS top FROM data GROUP BY g"
    with connect(rng=None, ledger=tmp_path / "ledger") as opened:
        made: Any = opened.sql(text)
    with connect(rng=None, ledger=tmp_path / "ledger") as opened:
        again: Any = opened.sql(text)
        assert again.replayed
        assert again.cost == (0, 0)
        stored = opened.ledger.release(made.receipts[0].sequence)
    assert again.to_arrow() == made.to_arrow()
    assert isinstance(stored, TableRelease)
    expected = top(stored.to_arrow().to_pylist(), 2, "g")
    for row in made.to_arrow().to_pylist():
        assert row["top"] == [
            {"value": each["value"], "count": each["count"]} for each in expected[row["g"],]
        ]


CALL = "g, APPROX_TOP_COUNT(word, 2) AS top FROM data GROUP BY g"
REFUSED = [
    ("g, APPROX_TOP_COUNT(word, 0) FROM data GROUP BY g", "from 1 to 10000, got 0"),
    ("g, APPROX_TOP_COUNT(word, 1.5) FROM data GROUP BY g", "from 1 to 10000, got 1.5"),
    ("g, APPROX_TOP_COUNT(word, -1) FROM data GROUP BY g", "from 1 to 10000, got -1"),
    ("g, APPROX_TOP_COUNT(word, 10001) FROM data GROUP BY g", "from 1 to 10000, got 10001"),
    ("g, APPROX_TOP_COUNT(word, TRUE) FROM data GROUP BY g", "from 1 to 10000, got True"),
    ("g, APPROX_TOP_COUNT(word, size) FROM data GROUP BY g", "from 1 to 10000, got no literal"),
    ("g, APPROX_TOP_COUNT(word) FROM data GROUP BY g", "must have two arguments"),
    ("g, APPROX_TOP_COUNT(word, 2, 3) FROM data GROUP BY g", "must have two arguments"),
    ("g, APPROX_TOP_COUNT(*, 2) FROM data GROUP BY g", "first argument of APPROX_TOP_COUNT"),
    ("g, APPROX_TOP_COUNT('a', 2) FROM data GROUP BY g", "first argument of APPROX_TOP_COUNT"),
    ("g, APPROX_TOP_COUNT(DISTINCT word, 2) FROM data GROUP BY g", "leave DISTINCT out"),
    ("g, APPROX_TOP_COUNT(word, 2, epsilon => 1) FROM data GROUP BY g", "has no argument 'epsilon'"),
    (
        "g, APPROX_TOP_COUNT(word, 2, contribution_bounds_per_row => (0, 1)) FROM data GROUP BY g",
        "it takes contribution_bounds_per_group",
    ),
    (
        "g, APPROX_TOP_COUNT(word, 2, contribution_bounds_per_group => (0, 1.5)) FROM data GROUP BY g",
        "must be whole numbers",
    ),
    ("APPROX_TOP_COUNT(contribution_bounds_per_group => (0, 1)) FROM data", "must have two arguments"),
    ("APPROX_TOP_COUNT(MAX(size), 2) FROM data", "must be of one row, got an aggregate"),
    ("g, APPROX_TOP_COUNT(word, 2), COUNT(*) OVER () AS n FROM data GROUP BY g", "window function"),
    ("g, APPROX_TOP_COUNT(word, 2), SUM(size) FROM data GROUP BY ROLLUP(g)", "one grouping"),
    (
        "g, APPROX_TOP_COUNT(word, 2), COUNT(*) AS n FROM data GROUP BY n",
        "must be a GROUP BY item or an aggregate",
    ),
    ("APPROX_TOP_COUNT(word, 2), COUNT(*) AS n FROM data GROUP BY 2", "must not name an aggregate"),
    ("g, APPROX_TOP_COUNT(word, 2) AS n, COUNT(*) AS n FROM data GROUP BY g", "have one name"),
    ("g, APPROX_TOP_COUNT(word, 2), COUNT(*) AS n FROM data GROUP BY g ORDER BY 2", "or other aggregates"),
    ("g, APPROX_TOP_COUNT(word, 2), COUNT(*) FROM data GROUP BY g HAVING COUNT(*) > 3", "HAVING beside"),
    (f"{CALL} HAVING g = 'x'", "HAVING beside APPROX_TOP_COUNT"),
    (f"{CALL} HAVING COUNT(*) > 3", "HAVING beside APPROX_TOP_COUNT"),
    (
        "g, COUNT(*) FROM data GROUP BY g HAVING APPROX_TOP_COUNT(size, 1) IS NULL",
        "an item of the SELECT list",
    ),
    (
        "g, COUNT(*) FROM data WHERE APPROX_TOP_COUNT(size, 1) IS NULL GROUP BY g",
        "an item of the SELECT list",
    ),
    ("g, APPROX_TOP_COUNT(word, 2)[OFFSET(0)] FROM data GROUP BY g", "an item of the SELECT list"),
    ("g, APPROX_TOP_COUNT(word, 2) OVER () FROM data GROUP BY g", "without FILTER, OVER"),
    ("APPROX_TOP_COUNT(word, 2) FILTER (WHERE flag) FROM data", "without FILTER, OVER"),
    (f"{CALL} QUALIFY g = 'x'", "QUALIFY beside APPROX_TOP_COUNT"),
    (f"{CALL} ORDER BY top", "must name GROUP BY items"),
    (f"{CALL} ORDER BY 2", "must name GROUP BY items"),
    (f"{CALL} ORDER BY COUNT(*)", "must name columns of the answer"),
    (f"{CALL} ORDER BY size", "must name columns of the answer"),
    ("APPROX_TOP_COUNT(word, 2) FROM data ORDER BY 1", "must name GROUP BY items"),
    (f"{CALL} LIMIT 0", "LIMIT must be a whole number from 1"),
    ("g, APPROX_TOP_COUNT(word, 2) FROM data GROUP BY ROLLUP(g)", "one grouping"),
    ("g, APPROX_TOP_COUNT(word, 2) FROM data GROUP BY 2", "must not name an aggregate"),
    ("UPPER(g), APPROX_TOP_COUNT(word, 2) FROM data GROUP BY g", "must be a GROUP BY item"),
    ("g, APPROX_TOP_COUNT(word, 2) FROM data", "must be a GROUP BY item"),
    ("g, APPROX_TOP_COUNT(g, 2) FROM data GROUP BY g", "of a value that is no GROUP BY item"),
    ("g, APPROX_TOP_COUNT(word, 2) AS g FROM data GROUP BY g", "have one name"),
    ("g, APPROX_TOP_COUNT(word, 2) AS top FROM data AS d GROUP BY g, d.g", "shows a GROUP BY item twice"),
    ("DISTINCT g, APPROX_TOP_COUNT(word, 2) AS top FROM data GROUP BY g", "DISTINCT is not supported"),
    ("g, APPROX_TOP_COUNT(id, 2) AS top FROM data GROUP BY g", "the privacy unit"),
    ("g, APPROX_TOP_COUNT(missing, 2) AS top FROM data GROUP BY g", "'missing' does not exist"),
    (
        "g, COUNT(*) FROM (SELECT id, g, APPROX_TOP_COUNT(word, 2) AS t FROM data GROUP BY id, g) GROUP BY g",
        "APPROX_TOP_COUNT over rows of a unit",
    ),
    ("g, APPROX_TOP_SUM(word, size, 2) FROM data GROUP BY g", "write SUM"),
    ("g, APPROX_TOP_K(word, 2) FROM data GROUP BY g", "write APPROX_TOP_COUNT"),
]


@cases(("text", "phrase"), REFUSED)
def test_what_is_refused_is_named_and_charges_nothing(uncharged: sf.Session, text: str, phrase: str) -> None:
    with pytest.raises(QueryError) as refused:
        uncharged.sql(DP + text)
    assert phrase in str(refused.value)
    assert not list(uncharged.ledger.entries())


def test_the_private_select_has_the_options_and_the_rows_of_the_whole() -> None:
    parsed = parse_statement(f"WITH r AS (SELECT * FROM data) {DP} {CALL.replace('data', 'r')}")
    assert isinstance(parsed, Statement)
    statement = written_out(parsed)
    assert isinstance(statement, LargerStatement)
    (private,) = statement.private
    assert (private.options, private.parts) == (parsed.options, 1)
    assert (
        private.select.sql() == 'SELECT g AS "g", word AS "value", COUNT(*) AS "count" FROM r GROUP BY 1, 2'
    )


@pytest.mark.postgres
def test_lists_on_postgresql(postgres: Cluster) -> None:
    url = postgres.database()
    with psycopg.connect(url) as connection:
        load(connection, "data", people())
    text = OPTIONS.format(60, 9) + "g, APPROX_TOP_COUNT(word, 3) AS top FROM data GROUP BY g ORDER BY g"
    usual: dict[str, Any] = {"privacy_unit": "id", "epsilon": 1e4, "delta": 0.1, "rng": 2}
    with sf.connect(url, **usual) as opened, sf.connect(people(), **usual) as here:
        assert answer(opened, text) == answer(here, text)
