"""Intervals: how wide they are beside the error, and how often they hold the bounded answer.

Exact integers of one group are fixed, and noised as many times as ``--draws`` says, as a query's own. A width
is the median one, over the root mean squared error of the estimate, and over the central 95 % interval of the
estimate's law at these integers. The release's own numbers are used, not clamped further.
``python -m benchmarks intervals [--draws N] [--units N] [--epsilon E]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.frames.sources import open_source
from sfumato.numerics.randomness.source import random_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.computed_columns import with_computed
from sfumato.queries.release.noise import add_noise
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog

__all__ = ["main"]

_ROW = "contribution_bounds_per_row => (0, 100)"
_GROUP = "contribution_bounds_per_group => (0, 100)"
_TWO = "contribution_bounds_per_row => ((0, 100), (0, 100))"
_JOBS = {
    "COUNT": "COUNT(*)",
    "SUM": f"SUM(x, {_GROUP})",
    "AVG": f"AVG(x, {_GROUP})",
    "SUM / COUNT": f"SUM(x, {_GROUP}) / COUNT(*)",
    "COUNT / COUNT": "COUNT(y) / COUNT(*)",
    "ROUND(100 * SUM / COUNT)": f"ROUND(100 * SUM(x, {_GROUP}) / COUNT(*), 1)",
    "SUM + SUM": f"SUM(x, {_GROUP}) + SUM(y, {_GROUP})",
    "SUM / (COUNT + COUNT)": f"SUM(x, {_GROUP}) / (COUNT(x) + COUNT(y))",
    "VAR_POP": f"VAR_POP(x, {_ROW})",
    "STDDEV_SAMP": f"STDDEV_SAMP(x, {_ROW})",
    "COVAR_POP": f"COVAR_POP(x, y, {_TWO})",
    "CORR": f"CORR(x, y, {_TWO})",
}


def people(units: int, spread: float = 20.0, correlation: float = 0.6) -> pa.Table:
    """Return one row for each unit: x and y within (0, 100), correlated; y is missing in every third row."""
    rng = np.random.default_rng(1)
    first, other = rng.standard_normal((2, units))
    second = correlation * first + np.sqrt(1 - correlation**2) * other
    y = pa.array(50 + spread * second, mask=np.arange(units) % 3 == 0)
    return pa.table({"id": np.arange(units), "g": ["a"] * units, "x": 50 + spread * first, "y": y})


def noised(
    table: pa.Table, call: str, options: str, draws: int, *, threshold: bool = False
) -> tuple[TableRelease, TableRelease]:
    """Return releases of one group: as many draws of its noise, and its bounded answer without any."""
    group = "GROUP BY g" if threshold else ""
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {call} AS v FROM data {group}"
    with DuckDBEngine(open_source(table)) as engine:
        priced: PricedQuery = price(read(text, Catalog({"data": Scan("data", engine.schemas["data"], "id")})))
        exact = engine.aggregate(priced.job, bytes(32))
    many = exact.take(pa.array(np.zeros(draws, np.int64)))
    record = add_noise(priced, many, random_source(7), privacy_unit="id")
    bare = replace(record, table=exact, computed=())
    return (
        TableRelease(record, None, priced),
        TableRelease(with_computed(bare, priced.query.computed), None, priced),
    )


def measured(noisy: TableRelease, exact: TableRelease) -> tuple[float, float, float, float]:
    """Return width over error, width over the law's own interval, coverage, and seconds for 1,000 groups."""
    before = time.process_time()
    answer = noisy.to_arrow(intervals=True)
    seconds = time.process_time() - before
    value, lower, upper = (_column(answer, name) for name in ("v", "v_lower", "v_upper"))
    truth = float(exact.to_arrow()["v"][0].as_py())
    slack = 1e-9 * abs(truth)
    width = float(np.median(upper - lower))
    error = float(np.sqrt(np.nanmean((value - truth) ** 2)))
    low, high = np.nanquantile(value, (0.025, 0.975))
    held = (lower - slack <= truth) & (truth <= upper + slack)
    law = width / (high - low) if high > low else np.nan
    return width / error, law, float(held.mean()), 1000 * seconds / len(value)


def _column(answer: pa.Table, name: str) -> NDArray[np.float64]:
    if name not in answer.column_names:
        return np.full(answer.num_rows, np.nan)
    return np.asarray(answer[name].to_numpy(), np.float64)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for each aggregate, and for each distribution of noise."""
    parser = argparse.ArgumentParser(prog="intervals", description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--units", type=int, default=3000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    chosen = parser.parse_args(argv)
    table = people(chosen.units)
    print(f"{chosen.units:,} units, epsilon {chosen.epsilon:g}, {chosen.draws:,} draws of the noise")
    heads = "/ RMSE", "/ its law", "coverage", "CPU s"
    print(f"{'width of the 95 % interval':<28}{'noise':<22}" + "".join(f"{head:>11}" for head in heads))
    once = f"epsilon={chosen.epsilon}, max_rows_per_group=1"
    for name, call in _JOBS.items():
        for noise, options, threshold in (
            ("Laplace", f"{once}, delta=0, max_groups_contributed=1", False),
            ("Gaussian", f"{once}, delta=1e-6, max_groups_contributed=50", True),
            ("Laplace, threshold", f"{once}, delta=1e-6, max_groups_contributed=1", True),
        ):
            found = measured(*noised(table, call, options, chosen.draws, threshold=threshold))
            shown = "".join(f"{figure:>11.3f}" for figure in found)
            print(f"{name:<28}{noise:<22}{shown}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
