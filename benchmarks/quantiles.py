"""Quantiles: how many ranks the mechanisms are off, and what quantiles by group cost beside plain sums.

Errors are means over runs on 1001 even records, in records. CPU seconds are those of sums and of quantiles of
bounded rows by group, on the query benchmark's table, beside the plain GROUP BY in the same DuckDB. With
``--grid`` instead, what SQL picks over the best candidate, on a grid of data and queries (some ten minutes).
``python -m benchmarks quantiles [--rows N] [--runs K] [--releases R] [--grid [--grid-runs K]]``
"""

from __future__ import annotations

import argparse
import resource
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.data import visits
from benchmarks.quantile_grid import grid
from sfumato.frames.sources import open_source
from sfumato.mechanisms import JointQuantiles, Mechanism, Quantile, Quantiles, QuantileTree
from sfumato.numerics.randomness.source import random_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.noise import add_noise
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog

__all__ = ["main"]

_RECORDS = 1001
_BY_ROW = "contribution_bounds_per_row => (0, 100)"
_SQL = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=10, "
    "max_rows_per_group=5) place, {} FROM data GROUP BY place"
)
_QUERIES = {
    "sums of rows": f"SUM(spent, {_BY_ROW}) AS s",
    "median": f"MEDIAN(spent, {_BY_ROW}) AS m",
    "median and deciles": f"MEDIAN(spent, {_BY_ROW}) AS m, APPROX_QUANTILES(spent, 10, {_BY_ROW}) AS q",
    "forty quantiles, by a tree": f"APPROX_QUANTILES(spent, 40, {_BY_ROW}) AS q",
}


def _mechanisms(orders: Sequence[float], epsilon: float) -> dict[str, Mechanism]:
    given: dict[str, Any] = {"bounds": (0.0, 1.0), "epsilon": epsilon}
    made: dict[str, Mechanism] = {}
    if len(orders) == 1:
        made["Quantile"] = Quantile(quantile=orders[0], **given)
    if len(orders) <= 32:
        made["JointQuantiles"] = JointQuantiles(quantiles=orders, **given)
    made["Quantiles"] = Quantiles(quantiles=orders, **given)
    made["QuantileTree"] = QuantileTree.calibrated(quantiles=orders, **given)
    made["QuantileTree, delta 1e-6"] = QuantileTree.calibrated(quantiles=orders, delta=1e-6, **given)
    return made


def _errors(releases: int) -> None:
    data, rng = np.linspace(0, 1, _RECORDS), np.random.default_rng(1)
    print(f"{'mean error in ranks, 1001 even records':<46}{'epsilon 0.5':>14}{'epsilon 1':>14}")
    for many in (1, 9, 99):
        orders = [(k + 1) / (many + 1) for k in range(many)]
        columns = [_mechanisms(orders, epsilon) for epsilon in (0.5, 1.0)]
        for name in columns[0]:
            off = []
            for column in columns:
                runs = releases if name != "JointQuantiles" else max(1, releases // 10)
                released = (np.atleast_1d(column[name].release(data, rng).value) for _ in range(runs))
                off.append(np.mean([np.abs(values - orders).mean() for values in released]) * (_RECORDS - 1))
            print(f"{f'{many} by {name}':<46}{off[0]:>14.2f}{off[1]:>14.2f}")


def _cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    before = resource.getrusage(resource.RUSAGE_SELF)
    made = run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, made


def _noised(priced: PricedQuery, exact: pa.Table) -> int:
    record = add_noise(priced, exact, random_source(), privacy_unit="person")
    return int(record.table.num_rows)


def _costs(rows: int, runs: int) -> None:
    path = visits(rows)
    title = f"{rows:,} rows, 10 groups a unit, 5 rows a group"
    print(f"{title:<46}{'CPU s':>14}{'noise CPU s':>14}{'groups':>8}")
    with DuckDBEngine(open_source(path)) as engine:
        scan, run = Scan("data", engine.schemas["data"], "person"), engine._connection.execute  # noqa: SLF001
        source = f"(SELECT person, place, count(*) AS n FROM '{path}' GROUP BY person, place)"
        floor = f"SELECT count(*), sum(n) FROM {source}"
        plain = statistics.median(_cpu(lambda: run(floor).fetchall())[0] for _ in range(runs))
        print(f"{'plain GROUP BY unit, key':<46}{plain:>14.2f}")
        for name, calls in _QUERIES.items():
            priced = price(read(_SQL.format(calls), Catalog({"data": scan})))
            taken = []
            for turn in range(runs):
                engine_cpu, exact = _cpu(partial(engine.aggregate, priced.job, bytes([turn]) * 32))
                noise_cpu, groups = _cpu(partial(_noised, priced, exact))
                taken.append((engine_cpu, noise_cpu, groups))
            engine_cpu, noise_cpu, _ = (statistics.median(column) for column in zip(*taken, strict=True))
            print(f"{name:<46}{engine_cpu:>14.2f}{noise_cpu:>14.2f}{taken[0][2]:>8}")


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="quantiles", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--grid-runs", type=int, default=20)
    options = parser.parse_args(argv)
    if options.grid:
        grid(options.grid_runs)
        return 0
    _errors(options.releases)
    _costs(options.rows, options.runs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
