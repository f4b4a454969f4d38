"""How long a query over budget takes to be refused, end to end: SQL text in, ``BudgetExceeded`` out.

The session holds the 27,253 people of the demo. One query spends half of the budget; then distinct queries,
none of them seen before, are refused, some with Laplace and some with Gaussian noise. The refusal prices each
of them again at smaller epsilons, to offer one that fits. Nothing but text, schema and parameters is read for
that.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.errors import BudgetExceeded

__all__ = ["main", "measure"]

LIMIT = 0.020  # seconds that a refusal may take, by the median
BUDGETS: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 2.0, "delta": 1e-7},
    "rho": {"rho": 0.15, "delta": 1e-7},
}
GROUPS = {"Laplace": 1, "Gaussian": 10}  # that a unit may be in: the planner chooses the noise by them
QUERY = """
    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon={epsilon}, delta=1e-8, max_groups_contributed={groups})
      state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, {highest})) AS income
    FROM data WHERE age >= 18 GROUP BY state"""


def measure(
    data: Path, ledger: Path | None, queries: int, *, budget: dict[str, Any], groups: int
) -> list[float]:
    """Return the seconds of each refusal, in order.

    Parameters
    ----------
    data : Path
        The table of the demo.
    ledger : Path or None
        The ledger's file, or None for one in memory.
    queries : int
        How many distinct queries are refused.
    budget : dict
        The budget, as `sfumato.connect` takes it.
    groups : int
        How many groups a unit may be in.
    """
    taken = []
    with sf.connect(data, privacy_unit="person_id", ledger=ledger, **budget) as people:
        people.sql(QUERY.format(epsilon=0.5, groups=1, highest=100_000))
        before = people.ledger.remaining()
        for number in range(1, queries + 1):
            query = QUERY.format(epsilon=4, groups=groups, highest=100_000 + number)
            start = time.perf_counter()
            try:
                people.sql(query)
            except BudgetExceeded as refused:
                taken.append(time.perf_counter() - start)
                offered = refused.remaining.answerable_epsilon
            else:
                raise AssertionError("the budget is too large for this benchmark")
            if not offered:
                raise AssertionError("the budget is too small for this benchmark")
        assert people.ledger.remaining() == before
    return taken


def main(argv: Sequence[str] | None = None) -> int:
    """Print the milliseconds; return 1 where a median is over the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks refusal", description=__doc__)
    parser.add_argument("--queries", type=int, default=50, help="distinct queries that are refused")
    parser.add_argument("--folder", type=Path, help="where the ledger is made (default: a temporary folder)")
    options = parser.parse_args(argv)
    print(f"{'noise':<10}{'budget':<10}{'ledger':<8}{'median, ms':>12}{'worst, ms':>11}{'limit, ms':>11}")
    medians = []
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
        as_file(files("sfumato") / "cli" / "data" / "acs.parquet") as data,
    ):
        cases = itertools.product(GROUPS, BUDGETS, ("memory", "file"))
        for number, (noise, unit, store) in enumerate(cases):
            ledger = Path(folder) / f"{number}.ledger" if store == "file" else None
            taken = measure(data, ledger, options.queries, budget=BUDGETS[unit], groups=GROUPS[noise])
            medians.append(statistics.median(taken))
            figures = f"{1e3 * medians[-1]:>12.2f}{1e3 * max(taken):>11.2f}{1e3 * LIMIT:>11.0f}"
            print(f"{noise:<10}{unit:<10}{store:<8}{figures}")
    return 0 if max(medians) < LIMIT else 1
