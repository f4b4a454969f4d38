"""Neighboring pairs for joins, unions, groups and windows: one unit leaves every table."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation import relations, unit_windows
from sfumato.queries.engines.compilation.select import SelectLayer
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.queries.noised import noised
from tests.queries.sql.clauses.test_table_expressions import SECRET, Data, some_data, tables

_LONG = (
    "(WITH n AS (SELECT id, COUNT(*) AS n FROM visits GROUP BY id) SELECT id, n AS k, i, x "
    "FROM data JOIN n USING (id) UNION DISTINCT SELECT id, i, i, x FROM data)"
)
_COUNTED = "(SELECT g, COUNT(*) AS n FROM public GROUP BY g)"
_OTHER = "SELECT id, g, j, x FROM visits JOIN data USING (id, g)"
SOURCES = [
    "(SELECT id, w AS k, i, x FROM data JOIN public USING (g))",
    "(SELECT id, w AS k, i, x FROM public p RIGHT JOIN data d ON d.i > p.k)",
    "(SELECT id, w AS k, i, x FROM data, public)",
    "(SELECT id, g AS k, i, x FROM data WHERE i NOT IN (SELECT k FROM public) AND x IS NOT NULL)",
    "(SELECT d.id, v.g AS k, d.i, d.x FROM data d JOIN visits v ON d.id = v.id AND d.i <> v.j)",
    "(SELECT d.id, v.g AS k, v.j AS i, x FROM data d LEFT JOIN visits v USING (id))",
    "(SELECT id, g AS k, i, x FROM data UNION ALL SELECT id, g, j, j / 3 FROM visits)",
    "(SELECT DISTINCT id, g AS k, i, x FROM data)",
    "(SELECT id, MIN(g) AS k, SUM(i) AS i, SUM(x) AS x FROM data GROUP BY id)",
    "(SELECT id, COUNT(DISTINCT g) AS k, MAX(i) AS i, AVG(x) AS x FROM data GROUP BY id, i HAVING i > 0)",
    "(SELECT id, MAX(g) OVER (PARTITION BY id) AS k, i - MIN(i) OVER (PARTITION BY id) AS i, x FROM data)",
    "(SELECT id, COUNT(*) OVER (PARTITION BY id, g) AS k, i, SUM(x) OVER (PARTITION BY id) AS x FROM data)",
    "(SELECT id, g AS k, i, x FROM data QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY x) <= 2)",
    "(SELECT id, RANK() OVER (PARTITION BY id ORDER BY i DESC) AS k, i, x FROM data)",
    _LONG,
    f"(SELECT id, g AS k, i, x FROM data INTERSECT DISTINCT {_OTHER})",
    f"(SELECT id, g AS k, i + n AS i, x FROM data JOIN {_COUNTED} USING (g))",
    f"(SELECT id, g AS k, i, x FROM data EXCEPT DISTINCT {_OTHER})",
    "(SELECT id, g AS k, i, x FROM data WHERE EXISTS (SELECT 1 FROM public WHERE k > 0))",
    "(SELECT id, i > (SELECT MAX(k) FROM public) AS k, i, x * (SELECT COUNT(*) FROM public) AS x FROM data)",
    "(SELECT id, n AS k, i, x FROM data JOIN (VALUES ('a', 1), ('a', 2), ('b', 2)) AS m(g, n) USING (g))",
    "(SELECT id, n AS k, i, x FROM data CROSS JOIN UNNEST([STRUCT(1 AS n, 2 AS j), (2, 0)]) WHERE i > j)",
    "(SELECT id, w AS k, i, x FROM (data JOIN public USING (g)) WHERE x IN UNNEST([0.1, 1e-9]))",
]  # fmt: skip


def query(draw: random.Random, source: str) -> str:
    rows = draw.choice([None, 1, 3])
    group = "contribution_bounds_per_group => "
    aggregates = [
        "COUNT(*)",
        f"COUNT(*, {group}(0, {draw.choice([1, 4])}))",
        f"SUM(i, {group}(-3, 40))",
        f"SUM(x, {group}(-1.5, 1))",
        f"AVG(x, {group}(0, 0.25))",
    ]
    if rows is not None:
        aggregates.append("SUM(x, contribution_bounds_per_row => (-1, 3))")
    chosen = draw.sample(aggregates, draw.randint(1, 3))
    columns = ", ".join(f"{aggregate} AS c{n}" for n, aggregate in enumerate(chosen))
    options = "epsilon=1, delta=1e-8" + ("" if rows is None else f", max_rows_per_group={rows}")
    options += f", max_groups_contributed={draw.choice([1, 2])}"
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) k, {columns} FROM {source} GROUP BY k"


def answers(
    pair: tuple[Data, Data], text: str, unit: str | None
) -> tuple[PricedQuery, list[dict[object, list[int]]]]:
    """A query's price, and its exact answers over neighboring data."""
    exact, priced = [], None
    for data in pair:
        with DuckDBEngine(open_source(tables(data)), threads=1) as engine:
            if priced is None:
                private = {name: Scan(name, engine.schemas[name], unit) for name in ("data", "visits")}
                priced = price(read(text, Catalog(private, {"public": engine.schemas["public"]})))
            exact.append(engine.aggregate(priced.job, SECRET).to_pylist())
    assert priced is not None
    names = [f"m{n}" for n in range(len(priced.measures))]
    return priced, [{row["k0"]: [row[name] for name in names] for row in rows} for rows in exact]


def violations(seed: int, source: str, unit: str | None = "id") -> list[str]:
    draw = random.Random(seed)
    data, text = some_data(seed), query(draw, source)
    leaver = draw.choice([0, 1])
    less = Data(
        [row for row in data.rows if row.id != leaver],
        [row for row in data.visits if row.id != leaver],
        data.public,
    )
    if unit is None:
        less = Data(data.rows[1:], data.visits, data.public)
    priced, (whole, without) = answers((data, less), text, unit)
    zero = [0] * len(priced.measures)
    found, moved = [], 0
    for key in whole.keys() | without.keys():
        one, two = whole.get(key, zero), without.get(key, zero)
        moved += one != two
        for mechanism, a, b in zip(map(noised, priced.mechanisms), one, two, strict=True):
            assert mechanism.sensitivity is not None
            if abs(a - b) > mechanism.sensitivity:
                found.append(f"{seed} {text}: a measure moved by more than its noise is made for")
        if key not in without and abs(one[0]) > 1:
            found.append(f"{seed} {text}: a group of one unit counts more than one")
    if moved > ((priced.query.options.max_groups_contributed or 1) if unit is not None else 1):
        found.append(f"{seed} {text}: too many groups moved")
    return found


@pytest.mark.parametrize("source", SOURCES, ids=range(len(SOURCES)))
def test_one_unit_moves_no_more_than_it_is_bounded_to(source: str) -> None:
    assert [line for seed in range(5) for line in violations(seed, source)] == []


def caught(place: int, first: int = 0) -> bool:
    """Tell whether a planted fault shows; where it shows in few tables, those before are left out."""
    return any(violations(seed, SOURCES[place]) for seed in range(first, 40))


def test_a_window_that_leaves_its_unit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., str] = unit_windows._over

    def wider(*given: object) -> str:
        made = real(*given)
        assert "PARTITION BY u" in made
        return made.replace("PARTITION BY u", "PARTITION BY 1")

    monkeypatch.setattr(unit_windows, "_over", wider)
    assert caught(10, first=27)
    assert caught(12, first=7)


def test_a_join_that_forgets_the_unit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., SelectLayer] = relations._Writer._join

    def looser(
        writer: object, left: object, right: object, node: object, added: object, _: object
    ) -> SelectLayer:
        return real(writer, left, right, node, added, ["TRUE"])

    monkeypatch.setattr(relations._Writer, "_join", looser)
    assert caught(4)


ROWS = [
    "(SELECT w AS k, i, x FROM data JOIN public USING (g))",
    "(SELECT w AS k, i, x FROM public p RIGHT JOIN data d ON d.i = p.k)",
    "(SELECT q.w AS k, i, x FROM data LEFT JOIN public p USING (g) LEFT JOIN public q ON q.k = p.k)",
    "(SELECT n AS k, i, x FROM data JOIN (VALUES ('a', 1), ('a', 2), ('b', 2)) AS m(g, n) USING (g))",
    "(SELECT i > (SELECT MAX(k) FROM public) AS k, i, x FROM data)",
]


@pytest.mark.parametrize("source", ROWS, ids=range(len(ROWS)))
def test_a_row_that_is_a_unit_moves_one_group_whatever_it_joins(source: str) -> None:
    assert [line for seed in range(5) for line in violations(seed, source, None)] == []


def test_a_row_that_comes_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_them(writer: object, right: SelectLayer, *_: object) -> SelectLayer:
        return right

    monkeypatch.setattr(relations._Writer, "_single", all_of_them)
    assert any(violations(seed, ROWS[0], None) for seed in range(40))
