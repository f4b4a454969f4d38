"""SQL at full width: groups kept, a dashboard's second query, and a table larger than the memory it is given.

``python -m benchmarks.sql [--rows N] [--memory SIZE]`` asks the query of the peers of 5 million rows, then
again over what was kept; with ``--rows 100000000 --memory 8GB`` it asks it of so many rows beside their plain
GROUP BY. Each is measured in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import sfumato as sf
from benchmarks.data import visits
from benchmarks.peers.measure import DELTA, SQL, UPPER
from benchmarks.query import cpu, floor, job
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine

__all__ = ["main"]

_LIMIT_SECOND, _LIMIT_GROUPS, _LIMIT_LARGE = 0.1, 950, 2.5
_OTHER = SQL.replace(f"(0, {UPPER})", "(0, 90)")  # the same rows and groups under other bounds
_AGAIN = _OTHER.replace(f"delta={DELTA}", f"delta={2 * DELTA}")


def _dashboard(pipe: Connection, rows: int) -> None:
    """Send the CPU seconds of a first query, of a second over the same layout, and the groups kept."""
    path = visits(rows)
    with sf.connect(path, privacy_unit="person", epsilon=100, delta=1e-3) as session:
        answers: list[Any] = []
        first = cpu(lambda: answers.append(session.sql(SQL)))
        other = cpu(lambda: answers.append(session.sql(_OTHER)))
        again = cpu(lambda: answers.append(session.sql(_AGAIN)))
    if any(answer.replayed for answer in answers):
        raise RuntimeError("every query must be another one, or nothing is measured")
    groups = [answer.to_arrow().num_rows for answer in answers]
    pipe.send(json.dumps({"first": first, "other": other, "again": again, "groups": groups[0]}))
    pipe.close()


def _large(pipe: Connection, rows: int, memory: str) -> None:
    """Send CPU and clock of the bounded sums and of the plain GROUP BY, each in a database so limited."""
    path = visits(rows)
    with DuckDBEngine(open_source(path), memory_limit=memory) as engine:
        asked, plain_sql = job(engine, SQL), floor(f"read_parquet('{path}')")
        connection = engine._connection  # noqa: SLF001  the same DuckDB, or the ratio means nothing
        clock = time.perf_counter()
        plain = cpu(lambda: connection.execute(plain_sql).fetchall())
        middle = time.perf_counter()
        bounded = cpu(lambda: engine.aggregate(asked, bytes(32)))
        end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    figures = {"plain": plain, "bounded": bounded, "plain_s": middle - clock, "bounded_s": end - middle}
    pipe.send(json.dumps({**figures, "peak": peak}))
    pipe.close()


def _apart(target: Callable[..., None], *args: object) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=target, args=(sender, *args))
    child.start()
    sender.close()
    figures: dict[str, float] = json.loads(receiver.recv())
    child.join()
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 0 if all limits hold."""
    parser = argparse.ArgumentParser(prog="sql", description=__doc__)
    parser.add_argument("--rows", type=int, default=None, help="rows of the large table; without it, none")
    parser.add_argument("--memory", default="8GB", help="memory limit of the engine for it")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(argv)
    visits()
    runs = [_apart(_dashboard, 5_000_000) for _ in range(options.runs)]
    first, other, again, groups = (
        statistics.median(run[name] for run in runs) for name in ("first", "other", "again", "groups")
    )
    print(f"{'what':<52}{'figure':>10}{'limit':>10}")
    print(f"{'groups kept of 1000, epsilon 1, delta 1e-8':<52}{groups:>10.0f}{_LIMIT_GROUPS:>10}")
    print(f"{'first query, CPU s':<52}{first:>10.2f}")
    print(f"{'second query, other bounds, over the first':<52}{other / first:>10.3f}{_LIMIT_SECOND:>10}")
    print(f"{'third query, the same sums, over the first':<52}{again / first:>10.3f}{_LIMIT_SECOND:>10}")
    holds = groups >= _LIMIT_GROUPS and max(other, again) <= _LIMIT_SECOND * first
    if options.rows is not None:
        visits(options.rows)
        large = _apart(_large, options.rows, options.memory)
        ratio = large["bounded"] / large["plain"]
        what = f"{options.rows:,} rows in {options.memory}, CPU over GROUP BY"
        print(f"{what:<52}{ratio:>10.2f}{_LIMIT_LARGE:>10}")
        print(f"{'  clock, s: GROUP BY, bounded':<52}{large['plain_s']:>10.1f}{large['bounded_s']:>10.1f}")
        print(f"{'  peak memory of the process, GB':<52}{large['peak'] / 1e9:>10.2f}")
        holds = holds and ratio <= _LIMIT_LARGE
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
