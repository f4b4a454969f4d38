"""UNNEST of an array of a row: against plain Python, and under a unit that leaves."""

from __future__ import annotations

import functools
import random
from typing import Any

import pyarrow as pa
import pytest

from sfumato.errors import QueryError, SchemaError, UnsupportedSql
from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation import elements, select
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Scan
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.cases import cases
from tests.queries.canonical_sql import canonical_text
from tests.queries.noised import noised
from tests.queries.sql.clauses.array_relations import ARRAY_CASES, Tagged, some_arrays, table_of
from tests.queries.sql.clauses.test_table_expressions import SECRET, asked


def catalog(engine: DuckDBEngine, unit: str | None = "id") -> Catalog:
    return Catalog({"data": Scan("data", engine.schemas["data"], unit)})


def answer(
    rows: list[Tagged], text: str, known: PricedQuery | None = None
) -> tuple[PricedQuery, dict[Any, list[int]]]:
    with DuckDBEngine(open_source(table_of(rows)), threads=1) as engine:
        priced = known or price(read(asked(text), catalog(engine)))
        engine.check(priced.job)
        exact = engine.aggregate(priced.job, SECRET)
    names = [name for name in exact.column_names if name.startswith("m")]
    return priced, {(row["k0"],): [row[name] for name in names] for row in exact.to_pylist()}


@pytest.mark.parametrize("case", ARRAY_CASES)
def test_elements_are_what_python_finds(case: str) -> None:
    text, expected = ARRAY_CASES[case]
    for seed in range(3):
        rows = some_arrays(seed)
        assert {key: n[-1] for key, n in answer(rows, text)[1].items()} == expected(rows), seed


@pytest.mark.parametrize("case", ARRAY_CASES)
def test_a_plan_is_found_again(case: str) -> None:
    with DuckDBEngine(open_source(table_of([])), threads=1) as engine:
        known = catalog(engine)
        query = read(asked(ARRAY_CASES[case][0]), known)
        again = read(canonical_text(query), known)
    assert canonical_text(again) == canonical_text(query)
    assert query_key(again) == query_key(query)


def test_a_fixed_size_and_an_enumeration_are_arrays_too() -> None:
    words = pa.array(["x", "y", "x"]).dictionary_encode()
    table = pa.table(
        {
            "id": [1, 2],
            "pair": pa.array([[1, 2], [2, 3]], pa.list_(pa.int16(), 2)),
            "words": pa.ListArray.from_arrays(pa.array([0, 2, 3]), words),
        }
    )
    with DuckDBEngine(open_source(table), threads=1) as engine:
        for column, expected in (("pair", {1: 1, 2: 2, 3: 1}), ("words", {"x": 2, "y": 1})):
            text = f"e AS k, COUNT(*) AS n FROM data, UNNEST({column}) AS e GROUP BY k"
            priced = price(read(asked(text), catalog(engine)))
            rows = engine.aggregate(priced.job, SECRET).to_pylist()
            assert {row["k0"]: row["m0"] for row in rows} == expected


@functools.cache
def of_odd_columns() -> Catalog:
    table = table_of([]).append_column("nested", pa.array([], pa.list_(pa.list_(pa.int64()))))
    table = table.append_column("parts", pa.array([], pa.list_(pa.struct([("a", pa.int64())]))))
    with DuckDBEngine(open_source(table), threads=1) as engine:
        return catalog(engine)


@cases(
    ("source", "kind", "phrase"),
    [
        ("data, UNNEST(g) AS e", SchemaError, "an array of single values, got 'g'"),
        ("data, UNNEST(nested) AS e", SchemaError, "an array of single values, got 'nested'"),
        ("data, UNNEST(parts) AS e", SchemaError, "an array of single values, got 'parts'"),
        ("data, UNNEST(nothing) AS e", SchemaError, "'nothing' does not exist"),
        ("data, UNNEST(tags)", UnsupportedSql, "one array under one name"),
        ("data, UNNEST(tags) AS e WITH OFFSET AS o", UnsupportedSql, "WITH OFFSET"),
        ("data JOIN UNNEST(tags) AS e ON e = 'x'", UnsupportedSql, "no condition"),
        ("data JOIN UNNEST(tags) AS e USING (g)", UnsupportedSql, "must not carry USING"),
        ("data RIGHT JOIN UNNEST(tags) AS e", UnsupportedSql, "by a comma, CROSS JOIN or LEFT JOIN"),
        ("data JOIN (VALUES (1)) AS m(k) ON TRUE, UNNEST(tags) AS e", UnsupportedSql, "table itself"),
        ("(SELECT id, g FROM data) AS s, UNNEST(tags) AS e", UnsupportedSql, "table itself"),
        ("data WHERE tags IS NULL", SchemaError, "write FROM table, UNNEST(tags) AS x"),
        ("data WHERE 'x' IN UNNEST(tags)", UnsupportedSql, "an array of literals"),
    ],
)
def test_what_is_refused(source: str, kind: type[QueryError], phrase: str) -> None:
    with pytest.raises(kind) as caught:
        read(asked(f"COUNT(*) AS n FROM {source}"), of_odd_columns())
    assert phrase in str(caught.value)


def test_a_row_that_is_a_unit_is_not_taken_apart() -> None:
    with DuckDBEngine(open_source(table_of([])), threads=1) as engine:
        rows = catalog(engine, None)
        with pytest.raises(UnsupportedSql, match="several rows of one"):
            read(asked("COUNT(*) AS n FROM data, UNNEST(tags) AS e"), rows)


def query(draw: random.Random) -> str:
    group = "contribution_bounds_per_group => "
    aggregates = ["COUNT(*)", f"COUNT(tag, {group}(0, 4))", f"SUM(m, {group}(-3, 40))", "COUNT(DISTINCT m)"]
    aggregates += ["AVG(m, contribution_bounds_per_group => (0, 2))"]
    joins = draw.choice([", ", " LEFT JOIN "]) + "UNNEST(tags) AS tag"
    joins += draw.choice([", ", " LEFT JOIN "]) + "UNNEST(n) AS m"
    options = draw.choice(["max_groups_contributed=1", "max_groups_contributed=2, max_rows_per_group=2"])
    columns = ", ".join(f"{each} AS c{n}" for n, each in enumerate(draw.sample(aggregates, 3)))
    clause = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, {options}) "
    return f"{clause} tag AS k, {columns} FROM data{joins} GROUP BY k"


def violations(seed: int) -> list[str]:
    """One unit leaves: what moves by more than its noise is made for, or in too many groups."""
    text, rows = query(random.Random(seed)), some_arrays(3 * seed + seed % 2)
    priced, whole = answer(rows, text)
    _, without = answer([row for row in rows if row.id != 0], text, priced)
    zero, found, moved = [0] * len(priced.measures), [], 0
    for key in whole.keys() | without.keys():
        one, two = whole.get(key, zero), without.get(key, zero)
        moved += one != two
        for mechanism, a, b in zip(map(noised, priced.mechanisms), one, two, strict=True):
            if mechanism.sensitivity is not None and abs(a - b) > mechanism.sensitivity:
                found.append(f"{seed} {text}: a measure moved by more than its noise is made for")
        if key not in without and abs(one[0]) > 1:
            found.append(f"{seed} {text}: a group of one unit counts more than one")
    if moved > (priced.query.options.max_groups_contributed or 1):
        found.append(f"{seed} {text}: too many groups moved")
    return found


def test_one_unit_moves_no_more_than_it_is_bounded_to() -> None:
    assert [line for seed in range(8) for line in violations(seed)] == []


def test_elements_without_their_unit_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = select.selected

    def by_element(items: list[str], *given: Any) -> str:
        return real(["u + CAST(hash(e0) % 7 AS BIGINT) AS u", *items[1:]], *given)

    monkeypatch.setattr(elements, "selected", by_element)
    assert any(violations(seed) for seed in range(8))
