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
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

from benchmarks.data import visits
from benchmarks.peers.measure import SQL
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import AggregationJob, Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog

__all__ = ["Figures", "main", "measure"]

_LIMIT_RATIO, _LIMIT_BYTES = 2.5, 1.2e9
_FLOOR = (
    "SELECT count(*), sum(n), sum(s) FROM "
    "(SELECT person, place, count(*) AS n, sum(spent) AS s FROM read_parquet('{path}') "
    "GROUP BY person, place)"
)


@dataclass(frozen=True, slots=True)
class Figures:
    """CPU seconds of the plain GROUP BY and of the bounded sums; the peak memory in bytes."""

    plain: float
    bounded: float
    peak: float


def _job(engine: DuckDBEngine) -> AggregationJob:
    """Read and price the query, as a session does, and return the engine's part."""
    scan = Scan("data", engine.schemas["data"], "person")
    return price(read(SQL, Catalog({"data": scan}))).job


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


def measure(rows: int, runs: int = 3, threads: int | None = None) -> Figures:
    """Return the medians of a fresh process, in which nothing else has run."""
    visits(rows)  # written before the child starts, so that its memory is not counted
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(sender, rows, runs, threads))
    child.start()
    sender.close()  # the child holds the only end, so that its failure ends the wait
    figures = json.loads(receiver.recv())
    child.join()
    return Figures(
        statistics.median(figures["plain"]), statistics.median(figures["bounded"]), figures["peak"]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 0 if both limits hold."""
    parser = argparse.ArgumentParser(prog="query", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args(argv)
    figures = measure(options.rows, options.runs, options.threads)
    plain, bounded, peak = figures.plain, figures.bounded, figures.peak
    ratio = bounded / plain
    print(f"{options.rows:,} rows; count, sum and mean; 10 groups a unit, 5 rows a group, unknown keys")
    print(f"{'what':<34}{'CPU s':>10}{'ratio':>10}{'limit':>10}")
    print(f"{'plain GROUP BY unit, key':<34}{plain:>10.2f}{1.0:>10.2f}{'':>10}")
    print(f"{'bounded sums':<34}{bounded:>10.2f}{ratio:>10.2f}{_LIMIT_RATIO:>10.2f}")
    print(f"{'peak memory of the process, GB':<34}{peak / 1e9:>10.2f}{'':>10}{_LIMIT_BYTES / 1e9:>10.2f}")
    return 0 if ratio <= _LIMIT_RATIO and peak <= _LIMIT_BYTES else 1


if __name__ == "__main__":
    raise SystemExit(main())
