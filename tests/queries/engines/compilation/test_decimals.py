"""NUMERIC and UINT64 that a query computes: against Python's decimals, by kernel and by SQL."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb import engine as engine_module
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.duckdb.kernel import bound_rows
from sfumato.queries.plan.query import Scan
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.queries.canonical_sql import canonical_text
from tests.queries.engines.compilation.decimal_relations import (
    DECIMAL_CASES,
    Digits,
    some_digits,
    table_of_digits,
)
from tests.queries.sql.clauses.test_table_expressions import SECRET, asked


def _catalog(engine: DuckDBEngine) -> Catalog:
    return Catalog({"data": Scan("data", engine.schemas["data"], "id")})


def _answer(rows: list[Digits], text: str, *, kernel: bool = True) -> tuple[dict[Any, int], Any]:
    with DuckDBEngine(open_source(table_of_digits(rows)), threads=1, kernel=kernel) as engine:
        priced = price(read(asked(text), _catalog(engine)))
        engine.check(priced.job)
        exact = engine.aggregate(priced.job, SECRET)
    last = f"m{len(priced.job.measures) - 1}"
    return {(row["k0"],): row[last] for row in exact.to_pylist()}, exact


@pytest.mark.parametrize("case", DECIMAL_CASES)
def test_digits_are_what_python_makes_of_them(case: str) -> None:
    text, expected = DECIMAL_CASES[case]
    for seed in range(3):
        rows = some_digits(seed)
        assert _answer(rows, text)[0] == expected(rows), seed


@pytest.mark.parametrize("case", [case for case in DECIMAL_CASES if "distinct values" not in case])
def test_a_plan_is_found_again(case: str) -> None:
    with DuckDBEngine(open_source(table_of_digits([])), threads=1) as engine:
        known = _catalog(engine)
        query = read(asked(DECIMAL_CASES[case][0]), known)
        again = read(canonical_text(query), known)
    assert canonical_text(again) == canonical_text(query)
    assert query_key(again) == query_key(query)


_LIMITED = [
    "max_groups_contributed=1",
    "max_groups_contributed=2, max_rows_per_group=1",
    "max_rows_contributed=2",
]


@pytest.mark.parametrize("limits", _LIMITED)
def test_the_kernel_chooses_as_sql_does(limits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, conditions and measures of computed digits, limited by chance."""
    used: list[bool] = []

    def spy(*arguments: Any, **options: Any) -> Any:
        made = bound_rows(*arguments, **options)
        used.append(made is not None)
        return made

    monkeypatch.setattr(engine_module, "bound_rows", spy)
    clause = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, {limits})"
    text = f"""{clause} CAST(COALESCE(CAST(s AS NUMERIC), CAST(i AS UINT64)) AS STRING) AS k,
        COUNT(CAST(s AS UINT64), contribution_bounds_per_group => (0, 2)) AS c,
        COUNT(DISTINCT CAST(n AS UINT64)) AS d, SUM(n, contribution_bounds_per_group => (-9, 9)) AS t
        FROM data WHERE n IS DISTINCT FROM CAST(i AS NUMERIC) GROUP BY k"""
    for seed in range(6):
        rows = some_digits(seed)
        assert _answer(rows, text)[1].equals(_answer(rows, text, kernel=False)[1])
    assert used == [True] * 6
