"""Charges per second, and the time of a refusal, with 10, 1000 and 10,000 entries in the ledger.

The floor is what the disk allows: one bare row in a table of the same SQLite with the same settings. Only the
ratios compare between machines; that they do not grow with the number of entries is the point.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Gaussian, Neighboring

DELTA = 1e-9
SMALL, LARGE = Gaussian(300.0), Gaussian(0.1)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks ledger", description=__doc__)
    parser.add_argument("--entries", type=int, nargs="+", default=[10, 1000, 10_000])
    parser.add_argument("--repeats", type=int, default=100, help="charges and refusals that are timed")
    parser.add_argument(
        "--folder", type=Path, help="where the ledgers are made (default: a temporary folder)"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        floor = bare_insert(folder / "floor", options.repeats)
        print(f"bare durable insert into SQLite: {floor * 1e3:.3f} ms")
        print(f"{'entries':>8} {'store':>7} {'charge':>10} {'per second':>11} {'x floor':>8}", end=" ")
        print(f"{'refusal':>10} {'open':>10}")
        for entries in options.entries:
            for path in (folder / f"{entries}.ledger", None):
                row(path, entries, options.repeats, floor)


def row(path: Path | None, entries: int, repeats: int, floor: float) -> None:
    ledger = opened(path)
    for _ in range(entries):
        ledger.charge(SMALL, delta=DELTA)
    charge = median_seconds(lambda: ledger.charge(SMALL, delta=DELTA, request="q"), repeats)
    refusal = median_seconds(lambda: refused(ledger), repeats)
    ledger.close()
    reopen = median_seconds(lambda: opened(path).close(), 3) if path else float("nan")
    store = "file" if path else "memory"
    print(
        f"{entries:>8} {store:>7} {charge * 1e3:>7.3f} ms {1 / charge:>11.0f} "
        f"{charge / floor:>8.2f} {refusal * 1e3:>7.3f} ms {reopen * 1e3:>7.1f} ms"
    )


def opened(path: Path | None) -> Ledger:
    return Ledger.open(
        path,
        budget=Budget.approximate(epsilon=4.0, delta=1e-6),
        privacy_unit="id",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(id BIGINT)", fingerprint=lambda key: key.hex()),
    )


def refused(ledger: Ledger) -> None:
    try:
        ledger.charge(LARGE, delta=DELTA)
    except BudgetExceeded:
        return
    raise AssertionError("the budget is too large for this benchmark")


def bare_insert(path: Path, repeats: int) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT)")
    seconds = median_seconds(
        lambda: connection.execute("INSERT INTO row (body) VALUES (?)", ("x" * 600,)), repeats
    )
    connection.close()
    return seconds


def median_seconds(action: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
