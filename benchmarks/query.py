"""CPU time and memory of bounded aggregations, beside the plain GROUP BY that they cannot do without.

The job: 5 million rows of 480,000 people, 1000 places that are not known beforehand, each person in at most
10 of them; count, sum and mean, bounded per person and place. It is asked with the places as integers and as
texts, with the rows of a person in a place limited too, by the bounding kernel, and once more by the SQL plan
alone; then medians and numbers of distinct values, whose rows count one by one. Each case has a process of
its own, in which GROUP BY and job take turns, in one DuckDB over one Parquet file.
``python -m benchmarks.query [--rows N] [--runs K] [--threads T] [--cases NAME ...]``
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
from typing import Final

from benchmarks.data import visits
from benchmarks.peers.measure import DELTA, EPSILON, MAX_GROUPS, MAX_ROWS, SQL, UPPER
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.query import AggregationJob, Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog

__all__ = ["CASES", "GROUPS_LIMITED", "Case", "Figures", "cpu", "floor", "job", "main", "measure"]

GROUPS_LIMITED: Final = SQL.replace(f", max_rows_per_group={MAX_ROWS}", "")
"""The query of the peers, without its limit on the rows of a person in a place."""

_BY_ROW: Final = (
    f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={EPSILON}, delta={DELTA}, "
    f"max_groups_contributed={MAX_GROUPS}{{}}) place, {{}} FROM data GROUP BY place"
)
_MEDIANS: Final = _BY_ROW.format(
    f", max_rows_per_group={MAX_ROWS}", f"MEDIAN(spent, contribution_bounds_per_row => (0, {UPPER}))"
)
_DISTINCT: Final = _BY_ROW.format(
    "", f"APPROX_COUNT_DISTINCT(CAST(spent AS INT64), max_contributions_per_group => {MAX_ROWS})"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One way to ask: integers or texts as keys, rows limited or not, or a query; the limit of its ratio."""

    integer_keys: bool
    rows_limited: bool
    limit: float
    plan_alone: bool = False
    query: str = ""

    @property
    def sql(self) -> str:
        """The query."""
        return self.query or (SQL if self.rows_limited else GROUPS_LIMITED)


CASES: Final = {
    "integers": Case(integer_keys=True, rows_limited=False, limit=1.0),
    "texts": Case(integer_keys=False, rows_limited=False, limit=1.3),
    "integers-rows": Case(integer_keys=True, rows_limited=True, limit=1.3),
    "texts-rows": Case(integer_keys=False, rows_limited=True, limit=1.3),
    "plan": Case(integer_keys=True, rows_limited=False, limit=1.9, plan_alone=True),
    "plan-rows": Case(integer_keys=True, rows_limited=True, limit=2.5, plan_alone=True),
    "medians": Case(integer_keys=True, rows_limited=True, limit=1.5, query=_MEDIANS),
    "distinct": Case(integer_keys=True, rows_limited=False, limit=1.5, query=_DISTINCT),
    "plan-medians": Case(integer_keys=True, rows_limited=True, limit=6, plan_alone=True, query=_MEDIANS),
    "plan-distinct": Case(integer_keys=True, rows_limited=False, limit=6, plan_alone=True, query=_DISTINCT),
}
_PEERS: Final = CASES["texts-rows"]  # what the peers are asked


@dataclass(frozen=True, slots=True)
class Figures:
    """CPU seconds of the plain GROUP BY and of the bounded sums; the peak memory in bytes."""

    plain: float
    bounded: float
    peak: float


def floor(source: str) -> str:
    """Return the plain GROUP BY of unit and key, over what stands in a FROM clause."""
    return (
        "SELECT count(*), sum(n), sum(s) FROM (SELECT person, place, count(*) AS n, sum(spent) AS s "
        f"FROM {source} GROUP BY person, place) AS g"
    )


def job(engine: Engine, sql: str) -> AggregationJob:
    """Read and price the query, as a session does, and return the engine's part."""
    scan = Scan("data", engine.schemas["data"], "person")
    return price(read(sql, Catalog({"data": scan}))).job


def cpu(run: Callable[[], object]) -> float:
    """Return the CPU seconds that this process takes over a run."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _measure(pipe: Connection, case: Case, rows: int, runs: int, threads: int | None) -> None:
    path = visits(rows, integer_keys=case.integer_keys)
    with DuckDBEngine(open_source(path), threads=threads, kernel=not case.plan_alone) as engine:
        asked, plain_sql = job(engine, case.sql), floor(f"read_parquet('{path}')")
        connection = engine._connection  # noqa: SLF001  the same DuckDB, or the ratio means nothing
        plain, bounded = [], []
        plain.append(cpu(lambda: connection.execute(plain_sql).fetchall()))
        for number in range(runs):
            bounded.append(cpu(partial(engine.aggregate, asked, bytes([number]) * 32)))
            plain.append(cpu(lambda: connection.execute(plain_sql).fetchall()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    pipe.send(json.dumps({"plain": plain, "bounded": bounded, "peak": peak}))
    pipe.close()


def measure(rows: int, runs: int = 3, threads: int | None = None, case: Case = _PEERS) -> Figures:
    """Return the medians of a fresh process, in which nothing else has run."""
    visits(rows, integer_keys=case.integer_keys)  # written before the child starts: its memory is not counted
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(sender, case, rows, runs, threads))
    child.start()
    sender.close()  # the child holds the only end, so that its failure ends the wait
    figures = json.loads(receiver.recv())
    child.join()
    return Figures(
        statistics.median(figures["plain"]), statistics.median(figures["bounded"]), figures["peak"]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 0 if all limits hold."""
    parser = argparse.ArgumentParser(prog="query", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--cases", nargs="*", choices=[*CASES], default=[*CASES])
    options = parser.parse_args(argv)
    print(f"{options.rows:,} rows; count, sum and mean; 10 groups a unit, unknown keys; CPU s")
    heads = ("GROUP BY", "bounded", "ratio", "limit", "peak GB")
    print(f"{'case':<18}" + "".join(f"{head:>10}" for head in heads))
    holds = True
    for name in options.cases:
        case = CASES[name]
        figures = measure(options.rows, options.runs, options.threads, case)
        ratio = figures.bounded / figures.plain
        cells = (figures.plain, figures.bounded, ratio, case.limit, figures.peak / 1e9)
        print(f"{name:<18}" + "".join(f"{cell:>10.2f}" for cell in cells), flush=True)
        holds = holds and ratio <= case.limit
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
