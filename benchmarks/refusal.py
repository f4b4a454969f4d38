"""How long a query over budget takes to be refused, end to end: SQL text in, ``BudgetExceeded`` out.

The session holds the 27,253 people of the demo. One query spends the budget; then distinct queries, none of
them seen before, are refused. Nothing but text, schema and parameters is read for that.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

import sfumato as sf
from sfumato.errors import BudgetExceeded

__all__ = ["main", "measure"]

LIMIT = 0.020  # seconds that a refusal may take, by the median
EPSILON, DELTA = 1.0, 1e-7
QUERY = """
    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=1)
      state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, {highest})) AS income
    FROM data WHERE age >= 18 GROUP BY state"""


def measure(data: Path, ledger: Path | None, queries: int) -> list[float]:
    """Return the seconds of each refusal, in order.

    Parameters
    ----------
    data : Path
        The table of the demo.
    ledger : Path or None
        The ledger's file, or None for one in memory.
    queries : int
        How many distinct queries are refused.
    """
    taken = []
    with sf.connect(data, privacy_unit="person_id", epsilon=EPSILON, delta=DELTA, ledger=ledger) as people:
        people.sql(QUERY.format(highest=100_000))  # spends all that the budget has
        before = people.ledger.remaining()
        for number in range(1, queries + 1):
            query = QUERY.format(highest=100_000 + number)
            start = time.perf_counter()
            try:
                people.sql(query)
            except BudgetExceeded:
                taken.append(time.perf_counter() - start)
            else:
                raise AssertionError("the budget is too large for this benchmark")
        assert people.ledger.remaining() == before
    return taken


def main(argv: Sequence[str] | None = None) -> int:
    """Print the milliseconds; return 1 where the median is over the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks refusal", description=__doc__)
    parser.add_argument("--queries", type=int, default=50, help="distinct queries that are refused")
    parser.add_argument("--folder", type=Path, help="where the ledger is made (default: a temporary folder)")
    options = parser.parse_args(argv)
    print(f"{'ledger':<10}{'first, ms':>11}{'median, ms':>12}{'worst, ms':>11}{'limit, ms':>11}")
    medians = []
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
        as_file(files("sfumato") / "cli" / "data" / "acs.parquet") as data,
    ):
        for store, ledger in (("memory", None), ("file", Path(folder) / "acs.ledger")):
            taken = measure(data, ledger, options.queries)
            medians.append(statistics.median(taken))
            figures = (taken[0], medians[-1], max(taken))
            line = "".join(f"{1e3 * s:>{w}.2f}" for s, w in zip(figures, (11, 12, 11), strict=True))
            print(f"{store:<10}{line}{1e3 * LIMIT:>11.0f}")
    return 0 if max(medians) < LIMIT else 1
