"""Kills real processes that charge and commit, at chosen points, and looks at what they leave.

Run as ``python crash_lab.py EXPERIMENT FOLDER``; prints one line of JSON. Every trial is a fresh process,
forked here so that nothing has to be imported again, that reports each receipt and each commit through a
pipe once the ledger has returned it, as a session would hand them out.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.errors import LedgerError, LedgerUnavailable
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring, PureDP

COST = 2.0**-10
ROUNDS = 2
KILLED, FULL, BROKEN = 1, 2, 3


def open_ledger(path: Path) -> Ledger:
    return Ledger.open(
        path,
        budget=Budget.pure(epsilon=1.0),
        privacy_unit="id",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="s", fingerprint=lambda key: key.hex()),
    )


def payload(sequence: int) -> bytes:
    # Larger than a page of the database.
    return b"release %d " % sequence * 500


def answer(ledger: Ledger, report: Callable[[object], None], rounds: int = ROUNDS) -> None:
    """Do as a session does: charge, then commit, then deliver."""
    for _ in range(rounds):
        receipt = ledger.charge(PureDP(COST), delta=0.0, request=f"q{len(ledger.entries())}")
        report(["receipt", receipt.sequence, receipt.digest])
        ledger.commit(receipt, payload(receipt.sequence))
        report(["commit", receipt.sequence])


def trial(work: Callable[[Callable[[object], None]], None]) -> tuple[list[list[Any]], int]:
    """Run work in a child process; return what it reported and the signal that ended it, 0 if none did."""
    reading, writing = os.pipe()

    def report(message: object) -> None:
        os.write(writing, json.dumps(message).encode() + b"\n")

    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            work(report)
        except BaseException as error:
            report(["error", repr(error)])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        reports = [json.loads(line) for line in pipe if line.endswith(b"\n")]
    _, status = os.waitpid(child, 0)
    return reports, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def check(path: Path, reports: list[list[Any]], *, spare: int) -> None:
    """Whatever was handed out is in the ledger, the ledger is whole, and it goes on working."""
    assert not [report for report in reports if report[0] == "error"], reports
    with open_ledger(path) as ledger:
        assert ledger.verify().sound
        entries = ledger.entries()
        receipts = {entry.sequence: entry.digest for entry in entries}
        promised = [report for report in reports if report[0] == "receipt"]
        for _, sequence, digest in promised:
            assert receipts[sequence] == digest, "a receipt was handed out and its charge is lost"
        assert len(entries) <= len(promised) + spare, "more was charged than was asked for"
        for report in reports:
            if report[0] == "commit":
                assert ledger.find(f"q{report[1] - 1}") == payload(report[1]), "a release is lost"
        for entry in entries:
            stored = ledger.find(f"q{entry.sequence - 1}")
            assert (stored is not None) == entry.committed
            assert stored in (None, payload(entry.sequence))
        assert ledger.remaining().epsilon == 1.0 - COST * len(entries)
        answer(ledger, lambda message: None, rounds=1)
        assert len(ledger.entries()) == len(entries) + 1


def kill_at_statements(folder: Path) -> int:
    """Kill at the start of every SQL statement, from opening (and making) the ledger on."""
    point = ended = 0
    while not ended:
        point += 1
        path = folder / f"s{point}"

        def work(report: Callable[[object], None], path: Path = path, point: int = point) -> None:
            left = point

            def count(statement: str) -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            connect = sqlite3.connect

            def connect_counting(*arguments: Any, **more: Any) -> sqlite3.Connection:
                connection: sqlite3.Connection = connect(*arguments, **more)
                connection.set_trace_callback(count)
                return connection

            sqlite3.connect = connect_counting  # type: ignore[assignment]
            with open_ledger(path) as ledger:
                answer(ledger, report)
            report(["ended"])

        reports, _ = trial(work)
        ended = ["ended"] in reports
        check(path, reports, spare=1)
    return point - 1


def kill_at_lines(folder: Path) -> int:
    """Kill at lines of the ledger's own code, spread over one charge and one commit."""
    point = ended = trials = 0
    while not ended:
        point += 8
        trials += 1
        path = folder / f"l{point}"
        open_ledger(path).close()

        def work(report: Callable[[object], None], path: Path = path, point: int = point) -> None:
            left = point

            def trace(frame: object, event: str, argument: object) -> object:
                nonlocal left
                if "sfumato" not in frame.f_code.co_filename:  # type: ignore[attr-defined]
                    return None
                left -= event == "line"
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return trace

            with open_ledger(path) as ledger:
                PureDP(COST).epsilon(0.0)
                sys.settrace(trace)  # type: ignore[arg-type]
                answer(ledger, report, rounds=1)
                sys.settrace(None)
            report(["ended"])

        reports, _ = trial(work)
        ended = ["ended"] in reports
        check(path, reports, spare=1)
    return trials - 1


def kill_at_random(folder: Path) -> int:
    """Kill by a timer after a random number of microseconds, wherever the process is then."""
    rng = random.Random(20240609)
    killed = 0
    path = folder / "r"
    for number in range(30):
        path = folder / f"r{number}"

        def work(report: Callable[[object], None], path: Path = path) -> None:
            # The timer's default action ends the process at once, like kill -9.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, rng.randrange(1, 40_000) / 1e6)
            with open_ledger(path) as ledger:
                answer(ledger, report, rounds=100)

        # The parent must draw as well: every child inherits the generator's state.
        rng.random()
        reports, ended_by = trial(work)
        killed += ended_by == signal.SIGALRM
        check(path, reports, spare=1)
    return killed


def kill_at_calls(folder: Path) -> int:
    """Kill before every system call that changes a file, in a charge and a commit."""
    return at_calls(folder, KILLED, creating=False)


def kill_at_calls_creating(folder: Path) -> int:
    """Kill before every system call that changes a file, while the ledger is made."""
    return at_calls(folder, KILLED, creating=True)


def full_disk(folder: Path) -> int:
    """Let every write fail from some call on, as on a full disk."""
    return at_calls(folder, FULL, creating=False) + at_calls(folder, FULL, creating=True)


def broken_disk(folder: Path) -> int:
    """Let one call fail with an input or output error."""
    return at_calls(folder, BROKEN, creating=False) + at_calls(folder, BROKEN, creating=True)


def at_calls(folder: Path, mode: int, *, creating: bool) -> int:
    library = ctypes.CDLL(None)
    point = ended = 0
    while not ended:
        point += 1
        path = folder / f"c{mode}{creating}{point}"
        if not creating:
            open_ledger(path).close()

        def work(report: Callable[[object], None], path: Path = path, point: int = point) -> None:
            ledger = None if creating else open_ledger(path)
            library.fault_arm(ctypes.c_long(point), mode)
            try:
                if ledger is None:
                    open_ledger(path).close()
                else:
                    answer(ledger, report, rounds=1)
            except LedgerUnavailable as error:
                report(["refused", str(error)])
            finally:
                calls = library.fault_disarm()
            if calls < point:
                report(["ended"])
            if ledger is not None:
                # The disk works again: so must the same ledger, without being opened anew.
                answer(ledger, report, rounds=1)
                ledger.close()

        reports, _ = trial(work)
        ended = ["ended"] in reports
        # A process that is killed, or whose disk fails after the journal is gone, may have charged without
        # learning it. A disk that is merely full charges nothing, and who is told so is told the truth.
        told = any(report[0] == "refused" and "nothing was charged" in report[1] for report in reports)
        check(path, reports, spare=0 if mode == FULL or told else 1)
    return point - 1


EXPERIMENTS = {
    work.__name__: work
    for work in (
        kill_at_statements,
        kill_at_lines,
        kill_at_random,
        kill_at_calls,
        kill_at_calls_creating,
        full_disk,
        broken_disk,
    )
}


def main(experiment: str, folder: str) -> None:
    try:
        points = EXPERIMENTS[experiment](Path(folder))
    except LedgerError as error:
        print(json.dumps({"failed": repr(error)}))  # noqa: T201
        raise
    print(json.dumps({"points": points}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
