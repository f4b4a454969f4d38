"""What the time of refusals and answers of the console says of rows, by two-sample tests of the whole law.

Two tables differ in all rows of one person: 100 people with a row each, and in one of the tables somebody
with as many rows as ``--rows`` says. Both are asked the same, in pairs of random order. Compared are

- the seconds of a proposal that is refused, with its offer;
- the seconds of a submission that is refused;
- the steps of the grid from the begin of a job to its end, as the analyst sees them;
- planted leaks that the tests must see: the seconds of a refusal that looks at the table first, and the
  seconds from the begin of a job to the true end of its run.

Two samples of times are compared by the tests of Kolmogorov and Smirnov and of Cramer and von Mises, samples
of steps by Fisher's exact test of each step against all others. The analyst's figures pass above a level of
1e-3, shared evenly by all of these tests; the planted leaks must be seen at 1e-9. How small a leak would
have been seen is found by adding a delay to one of the samples, the same for all of it. Nothing waits for the
grid: between two jobs the clock is turned to the next end of a step. An interrupted run reports what it has.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

import sfumato as sf
from sfumato.ledger import Budget
from sfumato.server.console.asking.question import Question
from sfumato.server.console.asking.service import AskingService, AskingSettings
from sfumato.server.console.asking.time_grid import TimeGrid

__all__ = ["main", "p_value"]

LEVEL, SEEN = 1e-3, 1e-9
QUERY = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={!r}, delta=0) COUNT(*) AS n FROM data WHERE pay > -{}"
)


@dataclass
class Side:
    """One of the two tables behind a service of its own, with its clock and what was measured."""

    folder: Path
    rows: int
    step: float
    offset: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    steps: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        people = [*range(100), *([100] * self.rows)]
        self.table = pa.table({"person": people, "pay": [float(n % 7) for n in range(len(people))]})
        self.session = sf.connect(
            self.table, privacy_unit="person", epsilon=1e6, ledger=self.folder / "ledger", threads=1
        )
        self.session.ledger.grant("ada", Budget.pure(epsilon=1e5))
        settings = AskingSettings(grid=TimeGrid(step=self.step, doublings=6), clock=self.clock)
        self.service = AskingService(self.session, self.folder, settings=settings)

    def clock(self) -> float:
        return self.offset + time.perf_counter()

    def to_next_step(self) -> None:
        grid = self.service.grid
        self.offset += max(0.0, grid.time_of(grid.passed(self.clock()) + 1) - self.clock())

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        made = work()
        self.seconds.setdefault(name, []).append(time.perf_counter() - start)
        return made

    def refuse(self, number: int, *, planted: bool) -> None:
        """Ask for too much, once to be told the price and once to submit it."""
        question = Question(sql=QUERY.format(2e5, number + 1))
        proposal = self.timed("proposal", lambda: self.service.propose("ada", question))
        assert not proposal.fits
        job = self.timed("submission", lambda: self.service.submit("ada", question, request=f"r{number}"))
        assert job.state == "refused"
        if planted:
            self.timed("planted refusal", lambda: self._looking(question))

    def _looking(self, question: Question) -> None:
        """Refuse as above, but look at the private table first."""
        pc.sort_indices(self.table["pay"])
        self.service.propose("ada", question)

    def answer(self, number: int) -> None:
        """Ask, run, and look when the answer is shown."""
        question = Question(sql=QUERY.format(1e-3, number + 1))
        job = self.service.submit("ada", question, request=f"a{number}")
        self.to_next_step()
        assert self.timed("planted answer", self.service.run_next)
        while (view := self.service.job("ada", job.id)).ended is None:
            self.to_next_step()
        assert view.state == "done"
        assert view.begun is not None
        self.steps.append(round((view.ended - view.begun) / self.step))

    def close(self) -> None:
        self.service.close()
        self.session.close()


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the smaller p-value of two tests of equal laws, twice: that of both tests together.

    >>> p_value([0.1, 0.2, 0.3, 0.4, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5])
    1.0
    """
    smirnov = float(stats.ks_2samp(first, second).pvalue)
    mises = float(stats.cramervonmises_2samp(first, second).pvalue)
    return min(1.0, 2 * min(smirnov, mises))


def least_delay_seen(first: Sequence[float], second: Sequence[float], level: float) -> float:
    """Return the least of 1, 2, 4, ... microseconds that lower the p-value below a level.

    They are added to all of the second sample.

    >>> times = [i / 100 for i in range(50)]
    >>> least_delay_seen(times, times, 1e-3)
    0.131072
    """
    delay = 1e-6
    while p_value(first, [each + delay for each in second]) >= level:
        delay *= 2
    return delay


def steps_p_value(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the p-value of equal laws of steps: the smallest of all steps' tests, times their number."""
    counts = Counter(first), Counter(second)
    values = sorted(set(first) | set(second))
    found = [
        stats.fisher_exact(np.array([[each[value], each.total() - each[value]] for each in counts])).pvalue
        for value in values
    ]
    return min(1.0, len(values) * float(min(found)))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the p-values; return 1 where a figure fails, or a planted leak is not seen."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks console-times", description=__doc__)
    parser.add_argument("--refusals", type=int, default=200, help="of each table (100,000 for evidence)")
    parser.add_argument("--answers", type=int, default=200, help="of each table")
    parser.add_argument("--planted", type=int, default=200, help="refusals with a planted leak beside them")
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the person in one of the tables")
    parser.add_argument("--step", type=float, default=5.0, help="seconds of a step of the grid")
    parser.add_argument(
        "--folder", type=Path, help="where the ledgers are made (default: a temporary folder)"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        sides = [Side(Path(folder) / str(rows), rows, options.step) for rows in (0, options.rows)]
        with contextlib.suppress(KeyboardInterrupt):  # what was measured until then is reported
            measure(sides, options)
        for side in sides:
            side.close()
    return report(*sides)


def measure(sides: Sequence[Side], options: argparse.Namespace) -> None:
    """Ask both sides the same, in pairs of random order."""
    order = random.Random(0)
    for number in range(-3, max(options.refusals, options.answers)):
        if number == 0:  # what came before was to warm up
            for side in sides:
                side.seconds.clear()
                side.steps.clear()
        for side in order.sample(sides, 2) if number < options.refusals else ():
            side.refuse(number + 3, planted=number < options.planted)
        for side in order.sample(sides, 2) if number < options.answers else ():
            side.answer(number + 3)


def report(without: Side, having: Side) -> int:
    """Print a line for each comparison, and return whether any is not as it should be."""
    head = f"{'figure':<28}{'of each':>9}{'without, median ms':>20}{'with, median ms':>18}{'p':>12}"
    print(head + f"{'a delay seen, ms':>19}")
    failed = False
    for name, times in without.seconds.items():
        others = having.seconds[name]
        medians = (1e3 * sorted(each)[len(each) // 2] for each in (times, others))
        p, planted = p_value(times, others), name.startswith("planted")
        failed |= p > SEEN if planted else p < LEVEL / 3
        first, second = medians
        seen = "" if planted else f"{1e3 * least_delay_seen(times, others, LEVEL / 3):.3f}"
        print(f"{name:<28}{len(times):>9}{first:>20.3f}{second:>18.3f}{p:>12.2g}{seen:>19}")
    if without.steps:
        p = steps_p_value(without.steps, having.steps)
        failed |= p < LEVEL / 3
        one, other = (
            ", ".join(f"{steps}: {count}" for steps, count in sorted(Counter(side.steps).items()))
            for side in (without, having)
        )
        print(f"{'steps until the answer':<28}{len(without.steps):>9}{one:>20}{other:>18}{p:>12.2g}")
    print("not as it should be" if failed else "as it should be")
    return int(failed)
