"""CPU time of bounded aggregations on Spark, beside Spark's own GROUP BY of unit and key.

Both are asked of one cluster of two workers with one core each, of one Parquet file, in turns; the CPU time
is that of all processes together: the cluster's, the driver's and this one's.
``python -m benchmarks.spark [--rows N] [--runs K] [--memory SIZE]``
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import visits
from benchmarks.peers.measure import SQL, tree
from benchmarks.query import GROUPS_LIMITED, floor, job
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from tests.spark import Cluster

__all__ = ["main", "measure"]

_PLAIN = "plain GROUP BY unit, key"
_LIMITS = {"groups limited": 1.3, "groups and rows limited": 1.5}


def _cost(run: Callable[[], object]) -> tuple[float, float]:
    """Return CPU and clock seconds; no process of the cluster may end meanwhile."""
    before, start = tree(os.getpid()), time.perf_counter()
    run()
    clock, after = time.perf_counter() - start, tree(os.getpid())
    return sum(after.values()) - sum(before.values()), clock


def measure(rows: int, runs: int, memory: str) -> dict[str, list[tuple[float, float]]]:
    """Return the costs of each job, run by run, after two runs of each to warm up."""
    path = visits(rows, integer_keys=True)
    with Cluster(memory=memory) as cluster:
        session: Any = cluster.session()
        session.read.parquet(str(path)).createOrReplaceTempView("visits")
        with SparkEngine(SparkSource(session, {"data": Path(path)})) as engine:
            jobs: dict[str, Callable[[], object]] = {
                _PLAIN: lambda: session.sql(floor("visits")).toArrow(),
                "groups limited": partial(engine.aggregate, job(engine, GROUPS_LIMITED), bytes(32)),
                "groups and rows limited": partial(engine.aggregate, job(engine, SQL), bytes(32)),
                "fingerprint of the content": partial(engine.fingerprint, bytes(32)),
            }
            for run in (run for run in jobs.values() for _ in range(2)):
                run()
            costs: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
            for _ in range(runs):
                for name, run in jobs.items():
                    costs[name].append(_cost(run))
    return costs


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 0 if both limits hold."""
    parser = argparse.ArgumentParser(prog="spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--memory", default="1g", help="of each executor and of the driver")
    options = parser.parse_args(argv)
    costs = measure(options.rows, options.runs, options.memory)
    medians = {
        name: [statistics.median(side) for side in zip(*each, strict=True)] for name, each in costs.items()
    }
    base = medians[_PLAIN]
    print(f"{options.rows:,} rows; count, sum and mean; 10 groups a unit, unknown keys")
    print(f"{'what':<32}{'CPU s':>10}{'ratio':>8}{'clock s':>10}{'ratio':>8}{'limit':>8}")
    for name, (cpu, clock) in medians.items():
        limit = f"{_LIMITS[name]:.2f}" if name in _LIMITS else ""
        print(f"{name:<32}{cpu:>10.2f}{cpu / base[0]:>8.2f}{clock:>10.2f}{clock / base[1]:>8.2f}{limit:>8}")
    return 0 if all(medians[name][0] <= limit * base[0] for name, limit in _LIMITS.items()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
