"""CPU time of a PostgreSQL server over bounded aggregations, beside its own GROUP BY of unit and key.

The table, the job and its cases are those of ``query``, with integers as keys. All are asked of one private
server with its default settings, in turns; the CPU time is that of the server's processes together, those of
parallel workers that have ended included. The client's own stands beside it.
``python -m benchmarks postgres [--rows N] [--runs K]``
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks.data import visits
from benchmarks.peers.measure import SQL
from benchmarks.query import GROUPS_LIMITED, floor, job
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from tests.postgres import Cluster

__all__ = ["main", "measure"]

_PLAIN = "plain GROUP BY unit, key"
_LIMITS = {"groups limited": 1.6, "groups and rows limited": 2.5}


def _load(connection: psycopg.Connection[Any], path: Path) -> None:
    connection.execute("CREATE TABLE data (person bigint, place bigint, spent double precision)")
    with connection.cursor() as cursor, cursor.copy("COPY data FROM STDIN (FORMAT csv)") as copy:
        for batch in pq.ParquetFile(path).iter_batches(500_000):
            buffer = io.BytesIO()
            csv.write_csv(batch, buffer, csv.WriteOptions(include_header=False))
            copy.write(buffer.getvalue())
    connection.execute("VACUUM ANALYZE data")


def _seconds(process: int) -> float:
    """Return the CPU seconds of a server: its living processes, and those below it that have ended."""
    seconds = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it has ended since
            continue
        if process in (int(stat.parent.name), int(fields[1])):
            seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return seconds


def _cost(run: Callable[[], object], process: int) -> tuple[float, float, float]:
    """Return the server's CPU, the client's, and clock seconds."""
    before, own = _seconds(process), resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    run()
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    client = after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime
    return _seconds(process) - before, client, clock


def measure(rows: int, runs: int) -> dict[str, list[tuple[float, float, float]]]:
    """Return the costs of each job, run by run, after one run of each to warm up."""
    path = visits(rows, integer_keys=True)
    with Cluster() as cluster:
        url = cluster.database()
        with psycopg.connect(url, autocommit=True) as connection:
            _load(connection, path)
            with PostgresEngine(PostgresSource(url)) as engine:
                jobs: dict[str, Callable[[], object]] = {
                    _PLAIN: lambda: connection.execute(floor("data")).fetchall(),
                    "groups limited": partial(engine.aggregate, job(engine, GROUPS_LIMITED), bytes(32)),
                    "groups and rows limited": partial(engine.aggregate, job(engine, SQL), bytes(32)),
                }
                for run in jobs.values():
                    run()
                costs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in jobs}
                for _ in range(runs):
                    for name, run in jobs.items():
                        costs[name].append(_cost(run, cluster.process))
    return costs


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 0 if both limits hold."""
    parser = argparse.ArgumentParser(prog="postgres", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(argv)
    costs = measure(options.rows, options.runs)
    medians = {
        name: [statistics.median(side) for side in zip(*each, strict=True)] for name, each in costs.items()
    }
    base = medians[_PLAIN][0]
    print(f"{options.rows:,} rows; count, sum and mean; 10 groups a unit, unknown keys")
    print(f"{'what':<32}{'server s':>10}{'ratio':>8}{'limit':>8}{'client s':>10}{'clock s':>10}")
    for name, (server, client, clock) in medians.items():
        limit = f"{_LIMITS[name]:.2f}" if name in _LIMITS else ""
        print(f"{name:<32}{server:>10.2f}{server / base:>8.2f}{limit:>8}{client:>10.2f}{clock:>10.2f}")
    return 0 if all(medians[name][0] <= limit * base for name, limit in _LIMITS.items()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
