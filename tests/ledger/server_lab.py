"""Processes that share a ledger on a PostgreSQL server, and die.

Run as ``python server_lab.py EXPERIMENT URL...``, each the address of an empty database: a process of its
own, because it forks. Prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from sfumato.errors import BudgetExceeded
from sfumato.privacy import PureDP
from tests.ledger.crash_lab import COST, answer, check, trial
from tests.ledger.process_lab import open_ledger, together


def charge_until_refused(url: Any, epsilon: float) -> list[int]:
    receipts = []
    with open_ledger(url) as ledger, contextlib.suppress(BudgetExceeded):
        while True:
            receipts.append(ledger.charge(PureDP(epsilon), delta=0.0).sequence)
    return receipts


def race(urls: list[Any]) -> object:
    """Eight processes spend one budget of 256 charges: each charge is won once, and none is left over."""
    open_ledger(urls[0]).close()
    won = together([lambda: charge_until_refused(urls[0], 1 / 256)] * 8)
    assert sorted(number for mine in won for number in mine) == list(range(1, 257))
    with open_ledger(urls[0]) as ledger:
        assert ledger.verify().sound
        assert len(ledger.entries()) == 256
    return [len(mine) for mine in won]


def last_of_the_budget(urls: list[Any]) -> object:
    """Eight processes race for the last answer, many times: exactly one wins each time."""
    for url in urls[:5]:
        with open_ledger(url) as ledger:
            ledger.charge(PureDP(0.5), delta=0.0)
        won = together([lambda url=url: charge_until_refused(url, 0.5)] * 8)  # type: ignore[misc]
        assert sorted(won) == [[]] * 7 + [[2]]
    return "one"


def making(urls: list[Any]) -> object:
    """Eight processes make one ledger at once: one key, everybody in it."""

    def make() -> str:
        with open_ledger(urls[0]) as ledger:
            ledger.charge(PureDP(0.01), delta=0.0)
            return ledger.ledger_id

    assert len(set(together([make] * 8))) == 1
    with open_ledger(urls[0]) as ledger:
        assert len(ledger.entries()) == 8
        assert ledger.verify().sound
    return 8


def inherited(urls: list[Any]) -> object:
    """A ledger opened before a fork works in the child, and in the parent, on one budget."""
    ledger = open_ledger(urls[0])
    ledger.charge(PureDP(0.5), delta=0.0)

    def child() -> int:
        ledger.charge(PureDP(0.25), delta=0.0)
        with contextlib.suppress(BudgetExceeded):
            ledger.charge(PureDP(0.5), delta=0.0)
        ledger.close()
        return len(open_ledger(urls[0]).entries())

    assert together([child]) == [2]
    assert ledger.remaining().epsilon == 0.25
    ledger.charge(PureDP(0.25), delta=0.0)
    return ledger.verify().charges


def killed(urls: list[Any]) -> object:
    """Kill by a timer after a random number of microseconds, wherever the process is then."""
    rng = random.Random(20261121)
    deaths = 0
    for url in urls:
        for _ in range(6):
            before = _entries(url)

            def work(report: Callable[[object], None], url: Any = url) -> None:
                # The timer's default action ends the process at once, like kill -9.
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_REAL, rng.randrange(1, 60_000) / 1e6)
                with open_ledger(url) as ledger:
                    answer(ledger, report, rounds=100)

            # The parent must draw as well: every child inherits the generator's state.
            rng.random()
            reports, ended_by = trial(work)
            deaths += ended_by == signal.SIGALRM
            check(url, reports, spare=1 + before)
    assert deaths >= 20, deaths
    return deaths


def _entries(url: Any) -> int:
    with open_ledger(url) as ledger:
        assert ledger.remaining().epsilon == 1.0 - COST * len(ledger.entries())
        return len(ledger.entries())


EXPERIMENTS = {work.__name__: work for work in (race, last_of_the_budget, making, inherited, killed)}


def main(experiment: str, *urls: str) -> None:
    print(json.dumps({"done": EXPERIMENTS[experiment](list(urls))}))  # noqa: T201
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
