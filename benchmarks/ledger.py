"""Charges per second, and the time of a refusal, with 10, 1000 and 10,000 entries in the ledger.

The floor is what the disk allows: one bare row in a table of the same SQLite with the same settings. Only the
ratios compare between machines; that they do not grow with the number of entries is the point.
"""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
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
        print(f"{'entries':>8} {'store':>7} {'charge':>10} {'per second':>11} {'x floor':>8}", end=" ")
        print(f"{'refusal':>10} {'open':>10}")
        for entries in options.entries:
            for path in (folder / f"{entries}.ledger", None):
                row(path, entries, options.repeats)


def row(path: Path | None, entries: int, repeats: int) -> None:
    ledger = opened(path)
    with unsynced(ledger):
        for _ in range(entries):
            ledger.charge(SMALL, delta=DELTA)
    with bare_database(path) as insert:
        charge, floor, refusal = median_seconds(
            [lambda: ledger.charge(SMALL, delta=DELTA, request="q"), insert, lambda: refused(ledger)], repeats
        )
    ledger.close()
    (reopen,) = median_seconds([lambda: opened(path).close()], 3)
    store = "file" if path else "memory"
    print(
        f"{entries:>8} {store:>7} {charge * 1e3:>7.3f} ms {1 / charge:>11.0f} "
        f"{charge / floor:>8.2f} {refusal * 1e3:>7.3f} ms {reopen * 1e3:>7.1f} ms"
    )


@contextlib.contextmanager
def unsynced(ledger: Ledger) -> Iterator[None]:
    """Fill a ledger without waiting for the disk."""
    connection = ledger._store._connection  # noqa: SLF001
    assert connection is not None
    connection.execute("PRAGMA synchronous = OFF")
    yield
    connection.execute("PRAGMA synchronous = EXTRA")


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


@contextlib.contextmanager
def bare_database(path: Path | None) -> Iterator[Callable[[], object]]:
    """Yield what writes one durable row of a charge's size to a table of its own, beside the ledger."""
    connection = sqlite3.connect(f"{path}.floor" if path else ":memory:", isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT)")
    yield lambda: connection.execute("INSERT INTO row (body) VALUES (?)", ("x" * 600,))
    connection.close()


def median_seconds(actions: list[Callable[[], object]], repeats: int) -> list[float]:
    """Time several actions in turn, so that whatever else the disk does falls on all of them."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(repeats):
        for action, taken in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]
