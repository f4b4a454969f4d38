"""10,000 charges by 8 processes against one budget on PostgreSQL: none is lost, none too many, and how fast.

The server is a private one on loopback that syncs each commit to the disk. The budget holds exactly so many
charges; every process charges until it is refused. The floor is the same number of commits of one bare row
each, by one process on the same server.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from multiprocessing.pool import Pool

import psycopg

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring, PureDP
from tests.postgres import Cluster

COST = 2.0**-20


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks team", description=__doc__)
    parser.add_argument("--charges", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=8)
    options = parser.parse_args(argv)
    charges, processes = options.charges, options.processes
    with Cluster(durable=True) as cluster, multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(warm, range(processes))
        for analysts in (False, True):
            seconds, bare = (
                race(cluster, pool, charges, processes, analysts=analysts),
                floor(cluster, charges),
            )
            who = f"{processes} analysts" if analysts else f"{processes} processes"
            print(
                f"{charges} charges by {who}: {seconds:.1f} s, {charges / seconds:.0f} per second, "
                f"{seconds / bare:.1f} x bare commits ({bare:.1f} s); no overspend"
            )


def race(cluster: Cluster, pool: Pool, charges: int, processes: int, *, analysts: bool) -> float:
    """Return the seconds until all processes are refused; each charge is won once and none is left over."""
    url, epsilon = cluster.database(), charges * COST
    with opened(url, epsilon) as ledger:
        names = [f"analyst {n}" if analysts else "" for n in range(processes)]
        for name in filter(None, names):
            ledger.grant(name, Budget.pure(epsilon=epsilon))
        start = time.perf_counter()
        won = pool.starmap(charge_until_refused, [(url, epsilon, name) for name in names])
        seconds = time.perf_counter() - start
        if sorted(number for mine in won for number in mine) != list(range(1, charges + 1)):
            raise AssertionError("charges were lost, or the budget was overspent")
        found = ledger.verify()
        if not found.sound or found.charges != charges or ledger.remaining().epsilon:
            raise AssertionError("the ledger does not add up")
    return seconds


def charge_until_refused(url: str, epsilon: float, analyst: str) -> list[int]:
    receipts = []
    with opened(url, epsilon) as ledger:
        while True:
            try:
                receipts.append(ledger.charge(PureDP(COST), delta=0.0, request="q", analyst=analyst).sequence)
            except BudgetExceeded:
                return receipts


def opened(url: str, epsilon: float) -> Ledger:
    return Ledger.open(
        url,
        budget=Budget.pure(epsilon=epsilon),
        privacy_unit="id",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(id BIGINT)", fingerprint=lambda key: key.hex()),
        lock_timeout=60.0,
    )


def floor(cluster: Cluster, rows: int) -> float:
    """Return the seconds of as many commits of one bare row of a charge's size, by one process."""
    with psycopg.connect(cluster.database(), autocommit=True) as connection:
        connection.execute("CREATE TABLE row (id bigint PRIMARY KEY, body text)")
        start = time.perf_counter()
        for number in range(rows):
            connection.execute("INSERT INTO row VALUES (%s, %s)", (number, "x" * 600))
        return time.perf_counter() - start


def warm(number: int) -> int:
    return number
