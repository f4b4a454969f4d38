"""Joins, unions, groups and windows of one unit: against plain Python, whatever the order of rows."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from sfumato.errors import QueryError, SchemaError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import AggregateKind, Column, ColumnType, Scan, Schema
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from sfumato.session import connect

SECRET = bytes(range(32))
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=100000) "
MANY = "contribution_bounds_per_group => (0, 1000000)"


PUBLIC_IDS = Schema((Column("id", ColumnType.INTEGER), Column("g", ColumnType.TEXT)))


class Row(NamedTuple):
    id: int | None
    g: str | None
    i: int | None
    x: float | None


class Visit(NamedTuple):
    id: int | None
    g: str | None
    j: int


class Public(NamedTuple):
    g: str | None
    w: str
    k: int


class Data(NamedTuple):
    rows: list[Row]
    visits: list[Visit]
    public: list[Public]


def some_data(seed: int) -> Data:
    draw = random.Random(seed)
    ids = [0, 0, 0, 1, 2, 3, None]
    letters = ["a", "b", "c", None]
    rows = [
        Row(
            draw.choice(ids),
            draw.choice(letters),
            draw.choice([0, 1, 2, -7, 2**62, 2**62, None]),
            draw.choice([0.1, 0.2, -3.3, 1e11, 1e-9, 2e13, float("inf"), None]),
        )
        for _ in range((40, 25, 3, 40, 0)[seed % 5])
    ]
    visits = [
        Visit(draw.choice(ids), draw.choice(letters), draw.randint(0, 3))
        for _ in range((20, 8, 5, 0, 5)[seed % 5])
    ]
    public = [
        Public(draw.choice(letters), draw.choice("vw"), draw.randint(-8, 3))
        for _ in range((8, 3, 8, 0, 1)[seed % 5])
    ]
    return Data(rows, visits, public)


def tables(data: Data) -> dict[str, pa.Table]:
    types = {
        "data": [pa.int64(), pa.string(), pa.int64(), pa.float64()],
        "visits": [pa.int64(), pa.string(), pa.int64()],
        "public": [pa.string(), pa.string(), pa.int64()],
    }
    every: dict[str, list[Any]] = {"data": [*data.rows], "visits": [*data.visits], "public": [*data.public]}
    kinds: dict[str, Any] = {"data": Row, "visits": Visit, "public": Public}
    return {
        name: pa.table(
            {
                field: pa.array([row[at] for row in rows], types[name][at])
                for at, field in enumerate(kinds[name]._fields)
            }
        )
        for name, rows in every.items()
    }


def asked(text: str) -> str:
    """Return a query of its own as it is, what follows a SELECT behind the usual clause."""
    return text if text.startswith("SELECT WITH") else CLAUSE + text


def exact(data: Data, text: str, *, unit: str | None = "id", threads: int = 1) -> dict[Any, tuple[int, ...]]:
    with DuckDBEngine(open_source(tables(data)), threads=threads) as engine:
        private = {name: Scan(name, engine.schemas[name], unit) for name in ("data", "visits")}
        priced = price(read(asked(text), Catalog(private, {"public": engine.schemas["public"]})))
        engine.check(priced.job)
        table = engine.aggregate(priced.job, SECRET)
    measures = [name for name in table.column_names if name.startswith("m")]
    keys = [name for name in table.column_names if name.startswith("k")]
    return {
        tuple(row[key] for key in keys): tuple(row[measure] for measure in measures)
        for row in table.to_pylist()
    }


def counted(keys: Iterable[Any]) -> dict[Any, int]:
    return dict(Counter((key,) for key in keys))


def rows_by(query: str) -> str:
    return f"k, COUNT(*, {MANY}) AS n FROM {query} GROUP BY k"


def matched(words: list[str]) -> list[str | None]:
    return [*words] or [None]


def known(rows: Iterable[Any]) -> list[Any]:
    return [row for row in rows if row.id is not None]


def by_unit(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row.id is not None:
            found[row.id].append(row)
    return found


def overflown(total: int) -> int | None:
    return total if -(2**63) <= total < 2**63 else None


def stepped(x: float) -> int:
    scaled = min(max(x, -(2.0**42)), 2.0**42) * 2**20
    return round(scaled)


def sums(rows: list[Row]) -> float | None:
    values = [stepped(row.x) for row in rows if row.x is not None]
    return sum(values) * 2.0**-20 if values else None


def means(rows: list[Row]) -> float | None:
    values = [row.i for row in rows if row.i is not None]
    return sum(values) / len(values) if values else None


def ranked(rows: list[Row]) -> list[tuple[Row, int]]:
    """Number rows by i, NULL first, then by all columns, NULL last."""

    def key(row: Row) -> list[Any]:
        first = (row.i is not None, row.i or 0)
        return [first, *((value is None, 0 if value is None else value) for value in (row.g, row.i, row.x))]

    return [(row, place) for place, row in enumerate(sorted(rows, key=key), 1)]


CASES: dict[str, tuple[str, Callable[[Data], dict[Any, int]]]] = {
    "inner join": (
        rows_by("(SELECT id, w AS k FROM data JOIN public USING (g))"),
        lambda d: counted(p.w for r in known(d.rows) for p in d.public if r.g == p.g and r.g is not None),
    ),
    "join with a condition": (
        rows_by("(SELECT d.id, w AS k FROM public p JOIN data d ON d.g = p.g AND d.i > p.k)"),
        lambda d: counted(
            p.w for r in known(d.rows) for p in d.public
            if r.g == p.g and r.g is not None and r.i is not None and r.i > p.k
        ),
    ),
    "left join": (
        rows_by("(SELECT id, w AS k FROM data LEFT JOIN public ON data.g = public.g AND k > 0)"),
        lambda d: counted(
            w for r in known(d.rows)
            for w in matched([p.w for p in d.public if r.g == p.g and r.g is not None and p.k > 0])
        ),
    ),
    "right join that keeps the private side": (
        rows_by("(SELECT id, w AS k FROM public RIGHT JOIN data USING (g))"),
        lambda d: counted(
            w for r in known(d.rows)
            for w in matched([p.w for p in d.public if r.g == p.g and r.g is not None])
        ),
    ),
    "cross join": (
        rows_by("(SELECT id, w AS k FROM data, public)"),
        lambda d: counted(p.w for r in known(d.rows) for p in d.public),
    ),
    "two joins": (
        rows_by("(SELECT id, q.w AS k FROM data JOIN public p USING (g) JOIN public AS q ON p.k = q.k)"),
        lambda d: counted(
            q.w for r in known(d.rows) for p in d.public for q in d.public
            if r.g == p.g and r.g is not None and p.k == q.k
        ),
    ),
    "in": (
        rows_by("(SELECT id, g AS k FROM data WHERE i IN (SELECT k FROM public WHERE w = 'v'))"),
        lambda d: counted(
            r.g for r in known(d.rows) if r.i is not None and r.i in {p.k for p in d.public if p.w == "v"}
        ),
    ),
    "not in": (
        rows_by("(SELECT id, i AS k FROM data WHERE g NOT IN (SELECT g FROM public))"),
        lambda d: counted(
            r.i for r in known(d.rows)
            if not d.public or (r.g is not None and None not in {p.g for p in d.public}
                                and r.g not in {p.g for p in d.public})
        ),
    ),
    "join on the unit": (
        rows_by("(SELECT v.id, d.g AS k FROM data d JOIN visits v ON d.id = v.id AND d.g = v.g)"),
        lambda d: counted(
            r.g for r in known(d.rows) for v in d.visits if r.id == v.id and r.g == v.g and r.g is not None
        ),
    ),
    "no match on the unit": (
        rows_by("(SELECT id, d.g AS k FROM data d LEFT JOIN visits v USING (id) WHERE v.id IS NULL)"),
        lambda d: counted(r.g for r in known(d.rows) if r.id not in {v.id for v in d.visits}),
    ),
    "union": (
        rows_by("(SELECT id, g AS k FROM data WHERE i > 0 UNION ALL SELECT id, g FROM visits)"),
        lambda d: counted(
            [r.g for r in known(d.rows) if r.i is not None and r.i > 0] + [v.g for v in known(d.visits)]
        ),
    ),
    "distinct union": (
        rows_by("(SELECT id, g AS k FROM data UNION DISTINCT SELECT id, g FROM visits)"),
        lambda d: counted(g for _, g in {(r.id, r.g) for r in known(d.rows)}
                          | {(v.id, v.g) for v in known(d.visits)}),
    ),
    "distinct": (
        rows_by("(SELECT DISTINCT id, i AS k FROM data)"),
        lambda d: counted(i for _, i in {(r.id, r.i) for r in known(d.rows)}),
    ),
    "count": (
        rows_by("(SELECT id, COUNT(*) + 100 * COUNT(x) AS k FROM data GROUP BY id)"),
        lambda d: counted(
            len(rows) + 100 * sum(r.x is not None for r in rows) for rows in by_unit(d.rows).values()
        ),
    ),
    "count distinct": (
        rows_by("(SELECT id, COUNT(DISTINCT g) AS k FROM data GROUP BY id)"),
        lambda d: counted(len({r.g for r in rows} - {None}) for rows in by_unit(d.rows).values()),
    ),
    "sum of integers": (
        rows_by("(SELECT id, SUM(i) AS k FROM data GROUP BY id)"),
        lambda d: counted(
            overflown(sum(v)) if (v := [r.i for r in rows if r.i is not None]) else None
            for rows in by_unit(d.rows).values()
        ),
    ),
    "sum of floats": (
        rows_by("(SELECT id, SUM(x) AS k FROM data GROUP BY id)"),
        lambda d: counted(sums(rows) for rows in by_unit(d.rows).values()),
    ),
    "mean": (
        rows_by("(SELECT id, AVG(i) AS k FROM data GROUP BY id)"),
        lambda d: counted(means(rows) for rows in by_unit(d.rows).values()),
    ),
    "extremes": (
        rows_by("(SELECT id, g, MAX(i) AS k, MIN(x) AS low FROM data GROUP BY 1, 2 HAVING COUNT(*) > 1)"),
        lambda d: counted(
            max((r.i for r in rows if r.i is not None), default=None)
            for unit in by_unit(d.rows).values() for g in {r.g for r in unit}
            if len(rows := [r for r in unit if r.g == g]) > 1
        ),
    ),
    "window": (
        rows_by("(SELECT id, MAX(i) OVER (PARTITION BY id) AS k FROM data)"),
        lambda d: counted(
            max((r.i for r in rows if r.i is not None), default=None)
            for rows in by_unit(d.rows).values() for _ in rows
        ),
    ),
    "window in parts": (
        rows_by("(SELECT id, COUNT(*) OVER (PARTITION BY g, id) AS k FROM data)"),
        lambda d: counted(
            sum(r.g == s.g for s in rows) for rows in by_unit(d.rows).values() for r in rows
        ),
    ),
    "window of sums": (
        rows_by("(SELECT id, SUM(x) OVER (PARTITION BY id) AS k FROM data)"),
        lambda d: counted(sums(rows) for rows in by_unit(d.rows).values() for _ in rows),
    ),
    "first rows": (
        rows_by(
            "(SELECT id, g AS k FROM data QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY i) <= 2)"
        ),
        lambda d: counted(
            r.g for rows in by_unit(_without_unit_order(d.rows)).values()
            for r, place in ranked(rows) if place <= 2
        ),
    ),
    "rank": (
        rows_by("(SELECT id, RANK() OVER (PARTITION BY id ORDER BY i DESC NULLS LAST) AS k FROM data)"),
        lambda d: counted(
            1 + sum(s.i is not None and (r.i is None or s.i > r.i) for s in rows)
            for rows in by_unit(d.rows).values() for r in rows
        ),
    ),
    "intersect": (
        rows_by("(SELECT id, g AS k FROM data INTERSECT DISTINCT SELECT id, g FROM visits)"),
        lambda d: counted(
            g for _, g in {(r.id, r.g) for r in known(d.rows)} & {(v.id, v.g) for v in known(d.visits)}
        ),
    ),
    "except": (
        rows_by("(SELECT g AS k, id FROM data EXCEPT DISTINCT SELECT g, id FROM visits)"),
        lambda d: counted(
            g for _, g in {(r.id, r.g) for r in known(d.rows)} - {(v.id, v.g) for v in known(d.visits)}
        ),
    ),
    "except, then intersect": (
        rows_by(
            "(SELECT id, i AS k FROM data EXCEPT DISTINCT SELECT id, j FROM visits "
            "INTERSECT DISTINCT SELECT id, j FROM visits WHERE j > 1)"
        ),
        lambda d: counted(
            i for _, i in {(r.id, r.i) for r in known(d.rows)}
            - {(v.id, v.j) for v in known(d.visits) if v.j > 1}
        ),
    ),
    "exists": (
        rows_by("(SELECT id, g AS k FROM data WHERE EXISTS (SELECT * FROM public WHERE k > 1) AND i > 0)"),
        lambda d: counted(
            r.g for r in known(d.rows) if any(p.k > 1 for p in d.public) and r.i is not None and r.i > 0
        ),
    ),
    "not exists": (
        rows_by("(SELECT id, g AS k FROM data WHERE NOT EXISTS (SELECT 1 FROM public))"),
        lambda d: counted(r.g for r in known(d.rows) if not d.public),
    ),
    "joins in parentheses": (
        rows_by("(SELECT id, w AS k FROM (data d JOIN (visits v CROSS JOIN public) USING (id)))"),
        lambda d: counted(
            p.w for r in known(d.rows) for v in d.visits for p in d.public if r.id == v.id
        ),
    ),
    "in an array, and columns without a name": (
        rows_by("(SELECT id, i, LENGTH(g), f0_ AS k FROM (SELECT id, i, i + 1, g, 7 FROM data "
                "WHERE i IN UNNEST([0, 1, 5])))"),
        lambda d: counted(r.i + 1 for r in known(d.rows) if r.i in (0, 1)),
    ),
    "filters": (
        rows_by("(SELECT id, COUNTIF(i > 0) + 100 * COUNT(DISTINCT g) FILTER (WHERE i = 0) AS k FROM data "
                "GROUP BY id)"),
        lambda d: counted(
            sum(r.i is not None and r.i > 0 for r in rows)
            + 100 * len({r.g for r in rows if r.i == 0} - {None})
            for rows in by_unit(d.rows).values()
        ),
    ),
    "aggregates of public rows": (
        rows_by(
            "(SELECT id, n * 1000 + top AS k FROM data JOIN (SELECT g, COUNT(*) AS n, MAX(k) AS top "
            "FROM public GROUP BY g HAVING MIN(k) < 3) USING (g))"
        ),
        lambda d: counted(
            len(ks) * 1000 + max(ks) for r in known(d.rows)
            if r.g is not None and (ks := [p.k for p in d.public if p.g == r.g]) and min(ks) < 3
        ),
    ),
    "one row of public aggregates": (
        rows_by(
            "(SELECT id, IFNULL(top, 50) + n AS k FROM data, "
            "(SELECT MAX(k) AS top, COUNT(*) AS n FROM public) WHERE i > 0)"
        ),
        lambda d: counted(
            max((p.k for p in d.public), default=50) + len(d.public)
            for r in known(d.rows) if r.i is not None and r.i > 0
        ),
    ),
    "in an aggregate of public rows": (
        rows_by("(SELECT id, g AS k FROM data WHERE i IN (SELECT COUNT(DISTINCT w) FROM public))"),
        lambda d: counted(r.g for r in known(d.rows) if r.i == len({p.w for p in d.public})),
    ),
    "common tables": (
        rows_by(
            "(WITH c AS (SELECT id, g FROM data), n AS (SELECT id, COUNT(*) AS n FROM c GROUP BY id) "
            "SELECT c.id, n AS k FROM c JOIN n USING (id))"
        ),
        lambda d: counted(len(rows) for rows in by_unit(d.rows).values() for _ in rows),
    ),
}  # fmt: skip


def _without_unit_order(rows: list[Row]) -> list[Row]:
    return rows  # all rows of a unit have the same id, so it breaks no tie


@pytest.mark.parametrize("case", CASES)
def test_every_node_does_what_python_does(case: str) -> None:
    text, expected = CASES[case]
    for seed in range(5):
        data = some_data(seed)
        assert {key: n[-1] for key, n in exact(data, text).items()} == expected(data), seed


@pytest.mark.parametrize("case", CASES)
def test_the_order_of_rows_does_not_show(case: str) -> None:
    text, _ = CASES[case]
    limited = text.replace(MANY, "contribution_bounds_per_group => (0, 2)")
    for seed in (0, 3):
        data = some_data(seed)
        answers = []
        for again in range(2):
            draw = random.Random(again)
            shuffled = Data(
                draw.sample(data.rows, len(data.rows)),
                draw.sample(data.visits, len(data.visits)),
                draw.sample(data.public, len(data.public)),
            )
            answers.append(exact(shuffled, limited, threads=1 + again))
        assert answers[0] == answers[1]


def test_a_row_that_is_a_unit_joins_one_public_row_at_most() -> None:
    rows = [Row(1, g, 1, 1.0) for g in ("a", "a", "b", "z", None)]
    public = [Public("a", "w", 3), Public("a", "v", 2), Public("a", "v", 1), Public("b", "v", 1)]
    data = Data(rows, [], public)
    text = "w, COUNT(*) AS n FROM data JOIN public USING (g) GROUP BY w"
    # of the rows of the same g the first in order of g, w, k
    assert exact(data, text, unit=None) == {("v",): (3,)}
    text = "w, COUNT(*) AS n FROM data LEFT JOIN public ON data.g = public.g GROUP BY w"
    assert exact(data, text, unit=None) == {("v",): (3,), (None,): (2,)}
    with DuckDBEngine(open_source(tables(data))) as engine:
        assert engine.schemas["public"].find("w") is not None


def test_public_integers_that_are_one_float_are_one_public_row() -> None:
    near = 2**53
    data = pa.table({"x": [float(near)]})
    public = pa.table({"k": [near, near + 1], "w": ["a", "b"]})
    with DuckDBEngine(open_source({"data": data, "public": public})) as engine:
        catalog = Catalog({"data": Scan("data", engine.schemas["data"], None)},
                          {"public": engine.schemas["public"]})  # fmt: skip
        priced = price(read(CLAUSE + "COUNT(*) FROM data JOIN public ON x = k", catalog))
        assert engine.aggregate(priced.job, SECRET)["m0"].to_pylist() == [1]


def test_a_public_row_of_equal_ones_is_chosen_whatever_their_order() -> None:
    """0.0 and -0.0 are equal in every order, and differ as text."""
    data = pa.table({"g": ["a", "a"]})
    found = []
    for zeros in ([0.0, -0.0], [-0.0, 0.0]):
        public = pa.table({"g": ["a", "a"], "w": zeros})
        with DuckDBEngine(open_source({"data": data, "public": public})) as engine:
            catalog = Catalog({"data": Scan("data", engine.schemas["data"], None)},
                              {"public": engine.schemas["public"]})  # fmt: skip
            text = CLAUSE + "CAST(w AS STRING) AS t, COUNT(*) AS n FROM data JOIN public USING (g) GROUP BY t"
            priced = price(read(text, catalog))
            found.append(engine.aggregate(priced.job, SECRET)["k0"].to_pylist())
    assert found[0] == found[1] == ["0.0"]


def test_units_that_are_stored_differently_do_not_meet() -> None:
    text = pa.table({"id": ["1"], "i": [1]})
    whole = pa.table({"id": [1], "i": [1]})
    small = pa.table({"id": pa.array([1], pa.int32()), "i": [1]})
    for others, error in ((text, "must have"), (small, "must be stored in one type")):
        with DuckDBEngine(open_source({"data": whole, "visits": others})) as engine:
            private = {name: Scan(name, schema, "id") for name, schema in engine.schemas.items()}
            for query in ("data JOIN visits USING (id)",
                          "(SELECT id FROM data UNION ALL SELECT id FROM visits)"):  # fmt: skip
                with pytest.raises(SchemaError, match=error):
                    engine.check(price(read(f"{CLAUSE} COUNT(*) FROM {query}", Catalog(private))).job)


def test_windows_take_floats_that_are_equal_as_one_value() -> None:
    rows = [Row(1, "a", 1, x) for x in (0.0, -0.0, float("nan"), None)]
    text = (
        "k, COUNT(*, contribution_bounds_per_group => (0, 9)) AS n FROM (SELECT id, "
        "CAST(x AS STRING) || CAST(ROW_NUMBER() OVER (PARTITION BY id ORDER BY x) AS STRING) AS k FROM data) "
        "GROUP BY k"
    )
    assert exact(Data(rows, [], []), text) == {("0.03",): (1, 1), ("0.04",): (1, 1), (None,): (1, 2)}


def test_only_the_unit_is_counted_as_the_unit() -> None:
    public = Catalog({"data": Scan("data", PUBLIC_IDS, "id")}, {"public": PUBLIC_IDS})
    text = CLAUSE + "COUNT(DISTINCT {}.id) FROM data d JOIN public p USING (g)"
    assert read(text.format("d"), public).aggregates[0].kind is AggregateKind.COUNT_UNITS
    try:
        kind = read(text.format("p"), public).aggregates[0].kind
    except QueryError:
        return
    assert kind is not AggregateKind.COUNT_UNITS


def test_a_session_answers_over_its_tables_joined() -> None:
    people = pa.table({"id": range(900), "g": ["a", "b", "c"] * 300})
    visits = pa.table({"id": [n % 900 for n in range(2700)], "cost": [float(n % 10) for n in range(2700)]})
    regions = pa.table({"g": ["a", "b", "c"], "w": ["north", "north", "south"]})
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=50, delta=1e-6, max_groups_contributed=1) w, "
        "COUNT(*) AS units, SUM(cost, contribution_bounds_per_group => (0, 30)) / COUNT(*) AS each "
        "FROM people JOIN (SELECT id, SUM(cost) AS cost FROM visits GROUP BY id) USING (id) "
        "JOIN regions USING (g) GROUP BY w HAVING units > 10 ORDER BY w"
    )
    with connect(
        {"people": people, "visits": visits},
        privacy_unit="id",
        public={"regions": regions},
        epsilon=1000,
        delta=1e-3,
        rng=3,
    ) as session:
        told = session.explain(text)
        table = session.sql(text).to_arrow(intervals=True)
    assert "joined with the public table regions" in told
    assert "one row for each id of table visits" in told
    assert table["w"].to_pylist() == ["north", "south"]
    assert table["units"].to_pylist() == pytest.approx([600, 300], abs=5)
    assert table["each"].to_pylist() == pytest.approx([13.5, 13.5], rel=0.05)
    assert all(low < 13.5 < high for low, high in zip(
        table["each_lower"].to_pylist(), table["each_upper"].to_pylist(), strict=True
    ))  # fmt: skip
