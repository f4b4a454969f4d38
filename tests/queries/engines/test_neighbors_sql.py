"""Neighboring pairs through the whole way: SQL text, plan, price, engine; one unit leaves."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.measure import Measure
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.measures.measure_request import Grids, MeasureRequest
from sfumato.queries.pricing.measures.products import SumOfProducts
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.queries.engines.test_neighbors import _on
from tests.queries.noised import noised

_SECRET = bytes(range(32))
_VALUES = ["x", "i", "x * i", "1 / i", "IF(i > 1, x, NULL)", "10 * SQRT(x)", "CAST(i AS UINT64)"]


def _table(draw: random.Random) -> pa.Table:
    rows = range(draw.choice([1, 6, 60]))
    return pa.table(
        {
            "id": pa.array([draw.choice([0, 0, 0, 1, 2, 3, None]) for _ in rows], pa.int64()),
            "g": pa.array([draw.choice(["a", "b", "c", None]) for _ in rows], pa.string()),
            "i": pa.array([draw.choice([0, 1, 2, -7, 2**62, None]) for _ in rows], pa.int64()),
            "x": pa.array(
                [draw.choice([0.1, -3.3, 55.5, math.inf, math.nan, None]) for _ in rows], pa.float64()
            ),
        }
    )


def _bounds(draw: random.Random) -> str:
    lower = draw.choice([-20, -1.5, 0, 3])
    return f"({lower}, {lower + draw.choice([0, 0.25, 1, 40])})"


def _sql(draw: random.Random) -> str:
    rows = draw.choice([None, 1, 3])
    group = "contribution_bounds_per_group => "
    aggregates = [
        "COUNT(*)",
        f"COUNT(*, {group}(0, {draw.choice([1, 4])}))",
        f"COUNT({draw.choice(_VALUES)}, {group}({draw.choice([0, 1])}, 5))",
        "COUNT(DISTINCT id)",
        f"SUM({draw.choice(_VALUES)}, {group}{_bounds(draw)})",
        f"AVG({draw.choice(_VALUES)}, {group}{_bounds(draw)})",
        f"COUNTIF(x > 0, {group}(0, {draw.choice([1, 4])}))",
        f"SUM({draw.choice(_VALUES)}, {group}{_bounds(draw)}) FILTER (WHERE i > 0)",
        "COUNT(DISTINCT id) FILTER (WHERE x > 0)",
        "AVG(x > 0)",
    ]
    one, two = draw.choice(_VALUES), draw.choice(_VALUES)
    per_row = "contribution_bounds_per_row => "
    aggregates += [
        f"{draw.choice(['VAR_POP', 'STDDEV'])}({one}, {per_row}{_bounds(draw)})",
        f"{draw.choice(['COVAR_POP', 'CORR'])}({one}, {two}, {per_row}({_bounds(draw)}, {_bounds(draw)}))",
    ]
    together = draw.random() < 0.3
    if rows is not None or together:
        aggregates.append(f"SUM({draw.choice(_VALUES)}, contribution_bounds_per_row => {_bounds(draw)})")
    chosen = draw.sample(aggregates, draw.randint(1, 4))
    columns = ", ".join(f"{aggregate} AS c{n}" for n, aggregate in enumerate(chosen))
    options = "epsilon=1, delta=1e-8"
    if together:
        options += f", max_rows_contributed={draw.choice([1, 2, 5])}"
    else:
        options += f", max_groups_contributed={draw.choice([1, 2])}"
        options += "" if rows is None else f", max_rows_per_group={rows}"
    source = draw.choice(["data", "(SELECT id, g, i, ABS(x) AS x FROM data WHERE i IS NULL OR i <> 2)"])
    key = draw.choice(["g", "COALESCE(g, 'a')", "i"])
    return (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {key} AS k, {columns} FROM {source} GROUP BY k"
    )


def _answers(table: pa.Table, less: pa.Table, text: str) -> tuple[PricedQuery, list[dict[object, list[int]]]]:
    """A query's price, and its exact answers over two tables."""
    with DuckDBEngine(open_source({"data": table, "less": less}), threads=1) as engine:
        priced = price(read(text, Catalog({"data": Scan("data", engine.schemas["data"], "id")})))
        engine.check(priced.job)
        without = replace(priced.job, relation=_on(priced.job.relation, "less"))
        exact = [engine.aggregate(job, _SECRET).to_pylist() for job in (priced.job, without)]
    names = [f"m{n}" for n in range(len(priced.measures))]
    return priced, [{row["k0"]: [row[name] for name in names] for row in rows} for rows in exact]


def _violations(seed: int) -> list[str]:
    draw = random.Random(seed)
    table, text = _table(draw), _sql(draw)
    other = table.filter(pc.fill_null(pc.not_equal(table["id"], 0), fill_value=True))
    priced, (whole, without) = _answers(table, other, text)
    zero = [0] * len(priced.measures)
    squares: list[list[int]] = []
    found, moved, all_moves = [], 0, [0] * len(zero)
    for key in whole.keys() | without.keys():
        one, two = whole.get(key, zero), without.get(key, zero)
        moved += one != two
        moves = [abs(a - b) for a, b in zip(one, two, strict=True)]
        all_moves = [a + b for a, b in zip(all_moves, moves, strict=True)]
        squares.append([move**2 for move in moves])
        for noise, move in zip(map(noised, priced.mechanisms), moves, strict=True):
            if noise.sensitivity is not None and move > noise.sensitivity:
                found.append(f"{text}: a measure moved by more than its noise is made for")
        if key not in without and abs(one[0]) > 1:
            found.append(f"{text}: a group of one unit counts more than one")
    for mechanism, total, square in zip(
        priced.mechanisms, all_moves, map(sum, zip(*squares, strict=True)), strict=False
    ):
        l1, l2 = getattr(mechanism, "l1", None), getattr(mechanism, "l2", None)
        if (l1 is not None and total > l1) or (l2 is not None and square > Fraction(l2) ** 2):
            found.append(f"{text}: a measure moved in all groups by more than its noise is made for")
    options = priced.query.options
    if moved > (options.max_groups_contributed or options.max_rows_contributed or 1):
        found.append(f"{text}: too many groups moved")
    return found


@pytest.mark.parametrize("block", range(5))
def test_no_measure_moves_by_more_than_its_noise_is_made_for(block: int) -> None:
    assert [line for seed in range(block * 10, block * 10 + 10) for line in _violations(seed)] == []


def test_noise_made_for_fewer_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = MeasureRequest.on_grid

    def smaller(request: MeasureRequest, noise_multiplier: Fraction, grids: Grids | None = None) -> Measure:
        return _understated(real(request, noise_multiplier, grids))

    monkeypatch.setattr(MeasureRequest, "on_grid", smaller)
    assert any(_violations(seed) for seed in range(20))


def test_noise_made_for_fewer_rows_in_all_groups_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = MeasureRequest._within

    def smaller(request: MeasureRequest, measure: Measure, all_rows: int) -> Measure:
        made = real(request, measure, all_rows)
        return made if made.l1 is None else replace(made, l1=made.l1 // 2)

    monkeypatch.setattr(MeasureRequest, "_within", smaller)
    assert any(_violations(seed) for seed in range(20))


def test_noise_made_for_smaller_products_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SumOfProducts._measure
    monkeypatch.setattr(
        SumOfProducts, "_measure", lambda request, *given: _understated(real(request, *given))
    )
    assert any(_violations(seed) for seed in range(24, 60))


def _understated(measure: Measure) -> Measure:
    """Return a measure whose stated sensitivity is half of what its clamps allow."""
    return _Half(**{name: getattr(measure, name) for name in measure.__dataclass_fields__})


class _Half(Measure):
    @property
    def sensitivity(self) -> int:
        return super().sensitivity // 2
