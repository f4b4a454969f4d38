"""CPU time and memory of a bounded aggregation, beside the plain GROUP BY that it cannot do without.

Both run in one DuckDB, on one Parquet file, in one child process; the floor is the median of its runs
before and after.
``python -m benchmarks.query [--rows N] [--runs K] [--threads T]``
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection

from benchmarks.data import visits
from sfumato.queries.catalog import Catalog
from sfumato.queries.engines.duckdb import DuckDBEngine
from sfumato.queries.front import read
from sfumato.queries.plan import AggregationJob, Scan
from sfumato.queries.price import price
from sfumato.queries.sources import open_source

__all__ = ["main"]

_QUERY = """
    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=10, max_rows_per_group=5)
      place,
      COUNT(*, contribution_bounds_per_group => (0, 5)) AS visits,
      SUM(spent, contribution_bounds_per_group => (0, 500)) AS spent,
      AVG(spent, contribution_bounds_per_group => (0, 100)) AS average
    FROM data GROUP BY place
"""
_LIMIT_RATIO, _LIMIT_BYTES = 2.5, 1.2e9
_FLOOR = (
    "SELECT count(*), sum(n), sum(s) FROM "
    "(SELECT person, place, count(*) AS n, sum(spent) AS s FROM read_parquet('{path}') "
    "GROUP BY person, place)"
)


def _job(engine: DuckDBEngine) -> AggregationJob:
    """Read and price the query, as a session does, and return the engine's part."""
    scan = Scan("data", engine.schemas["data"], "person")
    return price(read(_QUERY, Catalog({"data": scan}))).job


def _cpu(run: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _measure(pipe: Connection, rows: int, runs: int, threads: int | None) -> None:
    path = visits(rows)
    with DuckDBEngine(open_source(path), threads=threads) as engine:
        job, floor = _job(engine), _FLOOR.format(path=path)
        connection = engine._connection  # noqa: SLF001  the same DuckDB, or the ratio means nothing
        plain, bounded = [], []
        plain.append(_cpu(lambda: connection.execute(floor).fetchall()))
        for run in range(runs):
            bounded.append(_cpu(partial(engine.aggregate, job, bytes([run]) * 32)))
            plain.append(_cpu(lambda: connection.execute(floor).fetchall()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    pipe.send(json.dumps({"plain": plain, "bounded": bounded, "peak": peak}))
    pipe.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 0 if both limits hold."""
    parser = argparse.ArgumentParser(prog="query", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args(argv)
    visits(options.rows)  # written before the child starts, so that its memory is not counted
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(sender, options.rows, options.runs, options.threads))
    child.start()
    figures = json.loads(receiver.recv())
    child.join()
    plain, bounded = statistics.median(figures["plain"]), statistics.median(figures["bounded"])
    ratio, peak = bounded / plain, figures["peak"]
    print(f"{options.rows:,} rows; count, sum and mean; 10 groups a unit, 5 rows a group, unknown keys")
    print(f"{'what':<34}{'CPU s':>10}{'ratio':>10}{'limit':>10}")
    print(f"{'plain GROUP BY unit, key':<34}{plain:>10.2f}{1.0:>10.2f}{'':>10}")
    print(f"{'bounded sums':<34}{bounded:>10.2f}{ratio:>10.2f}{_LIMIT_RATIO:>10.2f}")
    print(f"{'peak memory of the process, GB':<34}{peak / 1e9:>10.2f}{'':>10}{_LIMIT_BYTES / 1e9:>10.2f}")
    return 0 if ratio <= _LIMIT_RATIO and peak <= _LIMIT_BYTES else 1


if __name__ == "__main__":
    raise SystemExit(main())
