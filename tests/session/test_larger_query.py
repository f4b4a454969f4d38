"""Private SELECTs inside of larger SQL, through the front door."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import (
    BudgetExceeded,
    EngineError,
    OptionError,
    QueryError,
    SchemaError,
    SqlSyntaxError,
    UnsupportedSql,
)
from sfumato.queries.outer.release import PostprocessedRelease
from sfumato.queries.release.table import TableRelease
from tests.cases import cases

OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-8, max_groups_contributed=1) "
GROUPS = (
    f"({OPTIONS} g, COUNT(*) AS n, AVG(y, contribution_bounds_per_group => (0, 3)) AS a FROM data GROUP BY g)"
)
TOTAL = f"({OPTIONS} COUNT(*) AS total FROM data)"


@functools.cache
def people() -> pa.Table:
    return pa.table({"id": range(3000), "g": ["a", "b", "c"] * 1000, "y": [1.5, 2.5, 0.5] * 1000})


@functools.cache
def names() -> pa.Table:
    days = [dt.date(2020, 2, 3)] * 3
    return pa.table({"g": ["a", "b", "d"], "name": ["A", "B", "D"], "w": [1.5, 2.5, 3.5], "day": days})


def connect(ledger: Path | None = None, **changes: Any) -> sf.Session:
    usual: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "public": {"names": names()}, "ledger": ledger}
    return sf.connect(people(), privacy_unit="id", **(usual | changes))


@pytest.fixture(scope="module")
def session() -> Iterator[sf.Session]:
    with connect(epsilon=1e6, delta=1e-2, rng=5) as opened:
        yield opened


def rows(session: sf.Session, text: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = session.sql(text).to_arrow(**options).to_pylist()
    return found


def larger(session: sf.Session, text: str) -> PostprocessedRelease:
    release = session.sql(text)
    assert isinstance(release, PostprocessedRelease)
    return release


def test_windows_shares_and_order_over_the_answer(session: sf.Session) -> None:
    counts = {row["g"]: row["n"] for row in rows(session, GROUPS[1:-1])}
    made = rows(
        session,
        f"WITH c AS {GROUPS} SELECT g, n, SUM(n) OVER (ORDER BY g) AS so_far, n / SUM(n) OVER () AS share "
        "FROM c ORDER BY n DESC LIMIT 2",
    )
    assert [row["n"] for row in made] == sorted(counts.values(), reverse=True)[:2]
    for row in made:
        assert row["so_far"] == sum(n for g, n in counts.items() if g <= row["g"])
        assert row["share"] == pytest.approx(row["n"] / sum(counts.values()))


def test_joins_unions_subqueries_and_expressions(session: sf.Session) -> None:
    counts = {row["g"]: row["n"] for row in rows(session, GROUPS[1:-1])}
    (total,) = rows(session, TOTAL[1:-1])
    joined = rows(session, f"SELECT c.g, name, n * w AS nw FROM {GROUPS} AS c LEFT JOIN names USING (g)")
    assert {row["g"]: row["name"] for row in joined} == {"a": "A", "b": "B", "c": None}
    assert {row["nw"] for row in joined} == {counts["a"] * 1.5, counts["b"] * 2.5, None}
    both = rows(session, f"{GROUPS[1:-1]} UNION ALL SELECT 'all', total, NULL FROM {TOTAL} ORDER BY n DESC")
    assert both[0] == {"g": "all", "n": total["total"], "a": None}
    part = rows(session, f"SELECT g, n / (SELECT total FROM {TOTAL}) AS part FROM {GROUPS} WHERE g IN ('a')")
    assert part == [{"g": "a", "part": counts["a"] / total["total"]}]
    low = "low AS (SELECT id, g FROM data WHERE y < 1)"
    raw = f"WITH {low}, c AS ({OPTIONS} COUNT(*) AS n FROM low) SELECT * FROM c"
    assert abs(rows(session, raw)[0]["n"] - 1000) < 200
    grouped = rows(session, f"SELECT n > 0 AS some, COUNT(*) AS k, SUM(n) AS s FROM {GROUPS} GROUP BY some")
    assert grouped == [{"some": True, "k": 3, "s": sum(counts.values())}]
    listed = rows(session, f"SELECT k, n FROM UNNEST(['a', 'z']) AS k LEFT JOIN {GROUPS} ON k = g ORDER BY k")
    assert listed == [{"k": "a", "n": counts["a"]}, {"k": "z", "n": None}]


VALUES = [
    ("n / 0", None), ("MOD(7, 0)", None), ("SQRT(-1)", None), ("LN(0)", None), ("LOG10(1000)", 3.0),
    ("CAST('x' AS INT64)", None), ("7 / 2", 3.5), ("SAFE_DIVIDE(1, 4)", 0.25), ("POWER(2, 10)", 1024.0),
    ("POWER(-1, 0.5)", None), ("EXTRACT(DAYOFWEEK FROM DATE '2020-02-03')", 2), ("1.5", 1.5),
    ("DATE_ADD(DATE '2020-01-31', INTERVAL 1 MONTH)", dt.date(2020, 2, 29)), ("ROUND(2.5)", 3.0),
    ("DATE_TRUNC(DATE '2020-02-03', MONTH)", dt.date(2020, 2, 1)), ("'a' || 'b'", "ab"),
    ("DATE_DIFF(DATE '2020-03-01', DATE '2020-01-31', MONTH)", 2), ("IF(TRUE, 'x', 'y')", "x"),
    ("SUBSTR('abc', 2)", "bc"), ("CONCAT('a', NULL)", None), ("GREATEST(1, NULL)", None),
    ("CASE 2 WHEN 1 THEN 'a' ELSE 'b' END", "b"), ("1 IN UNNEST([1, 2])", True), ("NULLIF(1, 1)", None),
    ("STARTS_WITH('ab', 'a')", True),
    ("(SELECT COUNTIF(w > 2) FROM names)", 2), ("EXISTS(SELECT 1 FROM names WHERE g = 'd')", True),
    ("TIMESTAMP_TRUNC(TIMESTAMP '2020-02-03 04:05:06', HOUR)", dt.datetime(2020, 2, 3, 4)),
]  # fmt: skip


def test_functions_have_bigquerys_meaning_and_are_total(session: sf.Session) -> None:
    columns = ", ".join(f"{expression} AS x{place}" for place, (expression, _) in enumerate(VALUES))
    (found,) = rows(session, f"SELECT {columns} FROM {GROUPS} LIMIT 1")
    named = {expression: found[f"x{place}"] for place, (expression, _) in enumerate(VALUES)}
    assert named == dict(VALUES)
    assert [type(value) for value in named.values()] == [type(value) for _, value in VALUES]


def test_several_private_selects_are_charged_together_or_not_at_all(tmp_path: Path) -> None:
    both = f"SELECT g, n / total AS share FROM {GROUPS} CROSS JOIN {TOTAL}"
    with connect(tmp_path / "l", epsilon=0.9) as session:
        with pytest.raises(BudgetExceeded, match="nothing was charged") as refused:
            session.sql(both)
        assert refused.value.requested.epsilon == pytest.approx(1.0)
        assert session.ledger.entries() == ()
    with connect(tmp_path / "m", epsilon=1.6) as session:
        release = larger(session, both)
        assert (release.epsilon, release.cost, release.replayed) == (
            1.0,
            (1.0, 1e-8),
            False,
        )  # a total has no threshold
        assert [each.sequence for each in release.receipts] == [1, 2]
        entries = session.ledger.entries()
        assert [entry.description.split(":")[0] for entry in entries] == [
            "private SELECT 1 of 2 in", "private SELECT 2 of 2 in",
        ]  # fmt: skip
        assert release.loss == entries[0].loss + entries[1].loss
        again = larger(session, both)
        assert (again.replayed, again.cost, again.receipts) == (True, (0, 0), ())
        assert again.to_arrow().equals(release.to_arrow())
        alone = session.sql(GROUPS[1:-1])
        assert isinstance(alone, TableRelease)
        assert alone.replayed
        other = session.sql(f"SELECT MAX(n) - MIN(n) AS span FROM {GROUPS}")
        assert other.replayed
        more = larger(
            session,
            f"SELECT a.n, b.n AS m FROM {TOTAL.replace('total', 'n')} a, {TOTAL.replace('total', 'n')} b",
        )
        assert (len(more.releases), more.cost) == (1, (0.5, 0.0))
        assert more.to_arrow()["n"] == more.to_arrow()["m"]
        assert len(session.ledger.entries()) == 3
        assert session.ledger.verify().sound
    with connect(tmp_path / "m", epsilon=1.6) as session:
        assert session.sql(both).to_arrow(intervals=True).equals(release.to_arrow(intervals=True))


REFUSED = [
    (f"SELECT * FROM data, {GROUPS}", SchemaError, "the table 'data' is private"),
    (f"SELECT (SELECT MAX(y) FROM data) FROM {GROUPS}", SchemaError, "the table 'data' is private"),
    (f"WITH d AS (SELECT * FROM Data) SELECT * FROM d, {GROUPS}", SchemaError, "the table 'Data' is private"),
    (f"SELECT * FROM nmaes, {GROUPS}", SchemaError, "did you mean 'names'"),
    (f"SELECT * FROM information_schema.tables, {GROUPS}", SchemaError, "is no answer and no public table"),
    (f"SELECT * FROM read_csv('/etc/passwd'), {GROUPS}", UnsupportedSql, "a table function is not answered"),
    (f"SELECT * FROM `/etc/passwd`, {GROUPS}", SchemaError, "is no answer and no public table"),
    (f"SELECT RAND() FROM {GROUPS}", UnsupportedSql, "the function RAND is not answered"),
    (f"SELECT CURRENT_DATE() FROM {GROUPS}", UnsupportedSql, "the function CURRENT_DATE is not answered"),
    (f"SELECT getenv('HOME') FROM {GROUPS}", UnsupportedSql, "the function GETENV is not answered"),
    (f"SELECT nope FROM {GROUPS}", SchemaError, '"nope" not found in FROM clause'),
    (f"SELECT g + 1 FROM {GROUPS}", SchemaError, "must suit their answers"),
    (f"SELECT n, a AS N FROM {GROUPS}", SchemaError, "columns must have different names, got 'n' twice"),
    (f"SELECT SUM(n, contribution_bounds_per_row => (0, 1)) FROM {GROUPS}", UnsupportedSql, "a named argum"),
    (f"SELECT n_lower FROM {GROUPS}", SchemaError, "not found"),
    (f"WITH RECURSIVE c AS {GROUPS} SELECT * FROM c", UnsupportedSql, "WITH RECURSIVE"),
    (f"SELECT * FROM {GROUPS} UNION ALL SELECT 1", SchemaError, "as many columns, got 3 and 1"),
    (f"SELECT * FROM {GROUPS} NATURAL JOIN names", UnsupportedSql, "must not carry METHOD"),
    (f"SELECT * FROM {GROUPS} TABLESAMPLE SYSTEM (1 PERCENT)", QueryError, "SAMPLE"),
    (f"SELECT [n] FROM {GROUPS}", UnsupportedSql, "an array must stand in UNNEST"),
    (f"SELECT AS STRUCT n FROM {GROUPS}", UnsupportedSql, "must not carry KIND"),
    (f"CREATE TABLE x AS SELECT * FROM {GROUPS}", UnsupportedSql, "CREATE is not answered"),
    (f"INSERT INTO names SELECT * FROM {GROUPS}", UnsupportedSql, "INSERT is not answered"),
    (f"SELECT * FROM {GROUPS}; DROP TABLE names", UnsupportedSql, "one statement"),
    (f"SELECT n FROM {GROUPS} WHERE g = (SELECT WITH DIFFERENTIAL_PRIVACY)", QueryError, "epsilon|SELECT"),
    (f"SELECT n FROM {GROUPS} WHERE (", SqlSyntaxError, "the expression is incomplete"),
    (f"WITH a AS {GROUPS} {OPTIONS} COUNT(*) FROM a", UnsupportedSql, "cannot be nested"),
    (f"WITH a AS {GROUPS}, b AS ({OPTIONS} COUNT(*) FROM a) SELECT * FROM b", UnsupportedSql, "answer 'a'"),
    (f"SELECT n FROM {GROUPS} WHERE n > @least", OptionError, "@least must have a value"),
    (f"SELECT * FROM {GROUPS} AS x(p, q)", SchemaError, "got 2 names for 3"),
    (f"EXPLAIN SELECT * FROM {GROUPS}", UnsupportedSql, "EXPLAIN is not answered as a query"),
]  # fmt: skip


def test_what_the_sql_around_may_not_say_is_refused_before_any_charge() -> None:
    with connect(rng=1) as session:
        for text, kind, phrase in REFUSED:
            with pytest.raises(kind, match=phrase):
                session.sql(text)
            if not text.startswith("EXPLAIN"):
                with pytest.raises(kind, match=phrase):
                    session.explain(text)
        with pytest.raises(OptionError, match="public_groups must be left out where a statement has several"):
            session.sql(f"SELECT * FROM {GROUPS}, {TOTAL}", public_groups={"g": ["a"]})
        assert session.ledger.entries() == ()


def test_a_failure_on_the_released_values_costs_nothing_more() -> None:
    with connect(rng=2) as session:
        with pytest.raises(EngineError, match=r"asking again with other SQL around .* costs nothing"):
            session.sql(f"SELECT n * 9223372036854775807 AS big FROM {GROUPS}")
        assert len(session.ledger.entries()) == 1
        assert session.sql(f"SELECT n FROM {GROUPS}").replayed


def test_intervals_are_carried_where_one_number_is(session: sf.Session) -> None:
    plain = {row["g"]: row for row in rows(session, GROUPS[1:-1], intervals=True)}
    text = (
        f"WITH c AS {GROUPS} SELECT g, n AS count, 2 * n - 1 AS twice, -a AS minus, n / 4 AS quarter, "
        "n * a AS both, n - LAG(n) OVER (ORDER BY g) AS step, w * n AS weighted "
        "FROM c LEFT JOIN names USING (g)"
    )
    release = session.sql(text)
    names = release.to_arrow(intervals=True).column_names
    carried = {name.removesuffix("_lower") for name in names if name.endswith("_lower")}
    assert carried == {"count", "twice", "minus", "quarter", "step", "weighted"}
    assert "Intervals are carried to count, twice, minus, quarter, step, weighted." in release.explain()
    assert "No intervals: g, both." in release.explain()
    for row in rows(session, text, intervals=True):
        known = plain[row["g"]]
        assert (row["count_lower"], row["count_upper"]) == (known["n_lower"], known["n_upper"])
        assert (row["twice_lower"], row["twice_upper"]) == (
            2 * known["n_lower"] - 1,
            2 * known["n_upper"] - 1,
        )
        assert (row["minus_lower"], row["minus_upper"]) == (-known["a_upper"], -known["a_lower"])
        assert (row["quarter_lower"], row["quarter_upper"]) == (known["n_lower"] / 4, known["n_upper"] / 4)
        assert (row["weighted_lower"] is None) == (row["g"] == "c")
    wider = rows(session, text, intervals=True, level=0.999)[0]
    wide = {row["g"]: row for row in rows(session, GROUPS[1:-1], intervals=True, level=0.999)}[wider["g"]]
    assert (wider["count_lower"], wider["count_upper"]) == (wide["n_lower"], wide["n_upper"])
    assert wide["n_lower"] < plain[wider["g"]]["n_lower"]


CARRIED = [
    (f"SELECT * FROM {GROUPS}", ["n", "a"]),
    (f"SELECT * EXCEPT (a) FROM {GROUPS}", ["n"]),
    (f"SELECT * REPLACE (a + 1 AS a) FROM {GROUPS}", ["n", "a"]),
    (f"SELECT c.* FROM {GROUPS} c JOIN names ON c.g = names.g", ["n", "a"]),
    (f"SELECT n FROM (SELECT n FROM {GROUPS} ORDER BY n LIMIT 1)", ["n"]),
    (f"SELECT n FROM {GROUPS} UNION ALL SELECT total FROM {TOTAL}", ["n"]),
    (f"SELECT n FROM {GROUPS} UNION ALL SELECT -3 UNION ALL SELECT NULL", ["n"]),
    (f"SELECT 3 AS n UNION ALL (SELECT 4 UNION ALL SELECT n FROM {GROUPS})", ["n"]),
    (f"SELECT a FROM {GROUPS} UNION ALL SELECT w FROM names", []),
    (f"SELECT n FROM {GROUPS} UNION DISTINCT SELECT total FROM {TOTAL}", []),
    (f"SELECT DISTINCT n FROM {GROUPS}", []),
    (f"SELECT n, COUNT(*) AS k FROM {GROUPS} GROUP BY n", []),
    (f"SELECT SUM(n) AS n, AVG(n) AS v, SUM(a) AS s FROM {GROUPS}", ["n"]),
    (f"SELECT DISTINCT n + n AS n, SUM(n) OVER () AS s FROM {GROUPS}", []),
    (f"SELECT x.n, y.n AS m, x.n + x.n AS d, x.n + y.n AS s FROM {GROUPS} x, {GROUPS} y", list("nmds")),
    (f"SELECT n / SUM(n) OVER () AS s, MAX(n) OVER () AS m FROM {GROUPS}", ["s"]),
    (f"SELECT SUM(n) OVER (ORDER BY g) AS t, n - LAG(n) OVER (ORDER BY g) AS d FROM {GROUPS}", ["t", "d"]),
    (f"SELECT n + RANK() OVER (ORDER BY n) AS r, n * n AS q, n - a AS d FROM {GROUPS}", ["q"]),
    (f"WITH c AS (SELECT n, ABS(n) AS p FROM {GROUPS}) SELECT n + p AS s, n - 1 AS t FROM c", ["t"]),
    (f"WITH c AS (SELECT n + total AS s FROM {GROUPS}, {TOTAL}) SELECT s / SUM(s) OVER () r FROM c", ["r"]),
    (f"SELECT g = 'a' AS k, SUM(n) / SUM(SUM(n)) OVER () AS s FROM {GROUPS} GROUP BY k", ["s"]),
    (f"WITH c AS {GROUPS}, d AS (SELECT * FROM c) SELECT e.n FROM d AS e", ["n"]),
    (f"SELECT n FROM {GROUPS} QUALIFY ROW_NUMBER() OVER (ORDER BY n) = 1", ["n"]),
    (f"SELECT ABS(n) AS n, ROUND(a, 1) AS r, CAST(a AS INT64) AS i FROM {GROUPS}", ["r", "i"]),
    (f"SELECT CAST(n AS STRING) AS t, n || '' AS u FROM {GROUPS}", []),
    (f"SELECT IF(n > 3, n, 0) AS n FROM {GROUPS}", []),
    (f"SELECT (SELECT total FROM {TOTAL}) AS n", []),
    (f"SELECT n, n AS n_lower FROM {GROUPS}", ["n_lower"]),
]  # fmt: skip


@cases(("text", "names"), CARRIED)
def test_which_columns_carry_intervals(session: sf.Session, text: str, names: list[str]) -> None:
    release = session.sql(text)
    every = release.to_arrow(intervals=True)
    plain = release.to_arrow()
    assert every.column_names == [
        each
        for name in plain.column_names
        for each in (name, *([f"{name}_lower", f"{name}_upper"] if name in names else []))
    ]
    assert every.select(plain.column_names).equals(plain)
    for name in names:
        low, value, high = (every[f"{name}{end}"].to_pylist() for end in ("_lower", "", "_upper"))
        assert any(each is not None for each in value)
        for a, b, c in zip(low, value, high, strict=True):
            assert (a is b is c is None) if b is None else a <= b <= c


def test_a_number_that_is_written_out_is_its_own_interval(session: sf.Session) -> None:
    found = rows(session, f"SELECT n FROM {GROUPS} UNION ALL SELECT -3", intervals=True)
    assert {"n": -3, "n_lower": -3, "n_upper": -3} in found
    assert sum(row["n_lower"] < row["n"] < row["n_upper"] for row in found) == 3


def test_explain_says_what_is_private_and_what_is_around() -> None:
    with connect(epsilon=0.6, rng=1) as session:
        words = session.explain(
            f"EXPLAIN SELECT g, n / total AS share FROM {GROUPS}, {TOTAL} JOIN names USING (g)"
        )
        assert "Private SELECT 1 of 2, called answer_1 below:" in words
        assert "Around them: SQL over the answers and the public names, which costs nothing:" in words
        assert "Intervals are carried to share." in words
        assert "No intervals: g." in words
        assert "All together: epsilon 1, delta 1e-08, charged in one transaction" in words
        assert "Budget: this does not fit into" in words
        assert session.ledger.entries() == ()


def test_the_answer_is_shown_like_any_other() -> None:
    with connect(rng=3) as session:
        release = session.sql(f"SELECT g, n FROM {GROUPS} ORDER BY g", params={})
    assert str(release).splitlines()[0].split() == ["g", "n"]
    assert repr(release).startswith("PostprocessedRelease(3 of (g, n); simulated")
    assert release._repr_html_().count("<small>[") == 3
    assert list(release.to_pandas(intervals=True).columns) == ["g", "n", "n_lower", "n_upper"]
    assert release.to_polars().columns == ["g", "n"]
    assert (release.privacy_unit, release.simulated, release.columns) == ("id", True, ("g", "n"))


def test_parameters_stand_inside_and_around() -> None:
    text = (
        "SELECT g, n + @more AS n FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=@eps, delta=1e-8, "
        "max_groups_contributed=1) g, COUNT(*) AS n FROM data WHERE y > @least GROUP BY g) "
        "WHERE g IN UNNEST(@keep)"
    )
    params = {"more": 10.5, "eps": 0.5, "least": 1, "keep": ["a", "c"]}
    with connect(rng=4) as session:
        release = session.sql(text, params=params)
        assert release.to_arrow()["g"].to_pylist() == ["a"]
        assert release.epsilon == 0.5
        assert session.sql(text, params=params | {"more": 1, "keep": ["b"]}).replayed
        assert not session.sql(text, params=params | {"least": 0}).replayed
        (first, second) = session.ledger.entries()
        assert first.description.startswith(
            "private SELECT 1 of 1 in: @more = 10.5, @eps = 0.5, @least = 1, @keep"
        )
        assert first.description != second.description
        assert "epsilon 0.5" in session.explain(text, params=params)


def test_a_plan_takes_parameters_for_all_its_texts() -> None:
    texts = {
        "n": "SELECT COUNT(*) AS n FROM data WHERE y > @least",
        "m": "SELECT COUNT(*) AS m FROM data WHERE g = @g",
    }
    with connect(rng=4, defaults={"delta": 0}) as session:
        plan = session.plan(texts, epsilon=1.0, params={"least": 1, "g": "a"})
        found = plan.release()
        assert abs(found["n"].to_arrow()["n"][0].as_py() - 2000) < 200
        assert abs(found["m"].to_arrow()["m"][0].as_py() - 1000) < 200
        with pytest.raises(OptionError, match="params must be named in the query, got 'h'; leave it out"):
            session.plan(texts, epsilon=1.0, params={"least": 1, "g": "a", "h": 2})
        with pytest.raises(OptionError, match="@g must have a value"):
            session.plan(texts, epsilon=1.0, params={"least": 1})
        with pytest.raises(UnsupportedSql, match="one private SELECT must stand alone here"):
            session.plan([f"SELECT n FROM {GROUPS}"], epsilon=1.0)
