"""Which mutants die: tests are run in rounds, each round with more and farther tests for those that live."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tools.measures.source import Module
from tools.mutation.graph import Graph
from tools.mutation.host import Host, Outcome, OutOfTime
from tools.mutation.kernels import DoesNotCompile, KernelMutant
from tools.mutation.mutants import Mutant
from tools.mutation.planting import Importer
from tools.mutation.reach import Reach, names_near

__all__ = ["Change", "Judge", "Trial"]

SLOWER = 5.0
"""How many times longer than unmutated a test may take."""

LONGEST = 60.0
"""Seconds of processor time above which an unmutated test is not used."""

FIRST_ROUND = 3
CHUNK = 40


Change: TypeAlias = Mutant | KernelMutant


@dataclass(slots=True)
class Trial:
    """A mutant and what has become of it.

    Parameters
    ----------
    mutant : Mutant or Plan
        The mutant.
    verdict : str
        ``"killed"``, ``"timeout"``, ``"survived"``, ``"unreached"``, ``"invalid"``
        (a kernel that does not compile), or empty as long as it is open.
    by : str
        The test that killed it.
    why : str
        The first line of how it failed.
    ran : dict of str to float
        The tests that passed with it, with their seconds.
    reached : bool
        Whether one of them evaluated it.
    left : int
        Tests, of those collected, that its own time was too short for.
    """

    mutant: Change
    verdict: str = ""
    by: str = ""
    why: str = ""
    ran: dict[str, float] = field(default_factory=dict)
    reached: bool = False
    left: int = 0
    spent: float = 0.0
    fresh: bool = False
    files: list[str] = field(default_factory=list)
    at: int = 0


class Judge:
    """Tries mutants against the tests that reach them.

    Parameters
    ----------
    graph : Graph
        The imports.
    reach : Reach
        What a traced run found.
    markers : str
        Which tests: pytest's ``-m``.
    deadline : float
        When to stop, by `time.monotonic`.
    patience : float
        Seconds of processor time for each mutant.
    memory : int
        How many mebibytes more than it begins with a mutant may take.
    limit : float
        Seconds of processor time for a test of which nothing is known yet.
    """

    def __init__(
        self,
        graph: Graph,
        reach: Reach,
        markers: str,
        *,
        deadline: float,
        patience: float,
        memory: int,
        limit: float,
    ) -> None:
        self.graph, self.reach, self.markers = graph, reach, markers
        self.deadline, self.patience, self.memory, self.limit = deadline, patience, memory, limit
        self.sound: dict[str, float | None] = {}
        self.notes: list[str] = []
        self.folder = tempfile.TemporaryDirectory(prefix="mutation-")

    def judged(self, mutants: Sequence[Change]) -> Iterator[Trial]:
        """Yield what becomes of each mutant, as soon as it is known; those left open when time is over never.

        Parameters
        ----------
        mutants : sequence of Mutant or Plan
            What to try.
        """
        for start in range(0, len(mutants), CHUNK):
            trials = [self._trial(m) for m in mutants[start : start + CHUNK]]
            number = FIRST_ROUND
            try:
                while trials:
                    yield from self._round(trials, number)
                    trials = [trial for trial in trials if not trial.verdict]
                    number *= 2
            except OutOfTime:
                return

    def _trial(self, mutant: Change) -> Trial:
        near = self.graph.nearest(mutant.module)
        texts = self._names(mutant)

        def mentions(tests: str) -> bool:
            text = Path(tests).read_text(encoding="utf-8") if tests.endswith(".py") else ""
            return any(name in text for name, steps in texts.items() if steps < 2)

        # Of tests equally far, those that name what changed come first; distant files are not worth the
        # reading.
        nearest = sorted(
            near[:200], key=lambda n: (n.distance, not mentions(n.tests), n.elsewhere, n.breadth)
        )
        files = [n.tests for n in (*nearest, *near[200:])]
        return Trial(mutant, fresh=not isinstance(mutant, Mutant) or mutant.unit is None, files=files)

    def _names(self, mutant: Change) -> dict[str, int]:
        if isinstance(mutant, Mutant):
            return names_near(Module(mutant.module, mutant.path), mutant.name, mutant.line)
        return {mutant.name: 0, mutant.name.partition("_")[0]: 1}

    def _round(self, trials: Sequence[Trial], number: int) -> Iterator[Trial]:
        files = {trial.mutant.identity: trial.files[trial.at : trial.at + number] for trial in trials}
        every = dict.fromkeys(file for chosen in files.values() for file in chosen)
        with self._host(list(every)) as base:
            if base.failure:
                raise SystemExit(f"the tests cannot be collected: {base.failure.why}")
            for trial in trials:
                self._try(trial, files[trial.mutant.identity], base)
                trial.at += number
                if not trial.verdict and (trial.spent >= self.patience or trial.at >= len(trial.files)):
                    self._close(trial, base)
                if trial.verdict:
                    yield trial

    def _host(self, files: Sequence[str], changed: Importer | None = None) -> Host:
        return Host(
            self.graph.package, files, self.markers, self.deadline, memory=self.memory, changed=changed
        )

    def _try(self, trial: Trial, files: Sequence[str], base: Host) -> None:
        if not files:
            return
        if not trial.fresh:
            end = self._run(trial, files, base, base)
            if end == "absent":
                trial.verdict = "unreached"
            trial.fresh = end == "no function"
        if trial.fresh:
            self._try_fresh(trial, files, base)

    def _close(self, trial: Trial, base: Host) -> None:
        """Give a verdict on what no test has killed."""
        if not trial.reached and not trial.fresh:
            # What runs on import alone is seen by a new import alone.
            trial.fresh, trial.ran, trial.spent = True, {}, 0.0
            self._try(trial, trial.files[:FIRST_ROUND], base)
        trial.verdict = trial.verdict or ("survived" if trial.reached else "unreached")

    def _try_fresh(self, trial: Trial, files: Sequence[str], base: Host) -> None:
        mutant = trial.mutant
        if isinstance(mutant, Mutant):
            importer = Importer(mutant.module, (Module(mutant.module, mutant.path), mutant.at))
        else:
            try:
                importer = mutant.importer(Path(self.folder.name))
            except DoesNotCompile:
                trial.verdict = "invalid"
                return
        start = time.monotonic()
        with self._host(files, importer) as host:
            trial.spent += min(time.monotonic() - start, 1.0)
            broken = [file for file, _ in host.broken if file not in dict(base.broken)]
            if host.failure or broken:
                failure = host.failure or Outcome("failed", f"collection of {broken[0]}", host.broken[0][1])
                trial.reached = True
                trial.verdict = "timeout" if failure.end == "timeout" else "killed"
                trial.by, trial.why = failure.test, failure.why.strip().splitlines()[-1][:200]
                return
            self._run(trial, files, host, base)

    def _run(self, trial: Trial, files: Sequence[str], host: Host, base: Host) -> str:
        """Run the tests of files with a mutant until one fails that passes without it; return the end."""
        skip = {test for test, seconds in self.sound.items() if seconds is None} | trial.ran.keys()
        limits = {test: self._limit(seconds) for test, seconds in self.sound.items() if seconds}
        while True:
            request = self._request(trial, files, base, host is base)
            request |= {"skip": sorted(skip), "limits": limits, "budget": self.patience - trial.spent}
            outcome = host.trial(request)
            trial.reached |= outcome.reached
            trial.ran |= outcome.ran
            trial.left = outcome.left
            trial.spent += sum(outcome.ran.values())
            skip |= outcome.ran.keys()
            if outcome.end not in {"failed", "timeout", "crashed"} or not outcome.test:
                return outcome.end
            trial.spent += outcome.limit if outcome.end == "timeout" else 0
            seconds = self._unmutated(outcome.test, base)
            if seconds is None:
                skip.add(outcome.test)
            elif outcome.end == "timeout" and self._limit(seconds) > outcome.limit:
                limits[outcome.test] = self._limit(seconds)
            else:
                trial.verdict = "timeout" if outcome.end == "timeout" else "killed"
                trial.by, trial.why, trial.reached = outcome.test, outcome.why, True
                return outcome.end

    def _request(self, trial: Trial, files: Sequence[str], base: Host, plant: bool) -> dict[str, object]:
        mutant = trial.mutant
        request: dict[str, object] = {"files": list(files), "names": self._names(mutant), "known": {}}
        request |= {"only": "", "limit": self.limit}
        if isinstance(mutant, Mutant):
            function = mutant.name if mutant.unit is None else mutant.unit[0]
            module = Module(mutant.module, mutant.path)
            if mutant.unit is not None:
                request["known"] = self.reach.known(files, module, function)
            if plant:
                request |= {"module": mutant.module, "path": str(mutant.path), "at": mutant.at}
                request["unit"] = mutant.unit
        return request

    def _limit(self, seconds: float) -> float:
        return max(self.limit, SLOWER * seconds + 1)

    def _unmutated(self, test: str, base: Host) -> float | None:
        """Return the seconds that a test takes without a mutant, or None if it fails or takes too long."""
        if test not in self.sound:
            request: dict[str, object] = {
                "files": [base.tests.get(test, "")],
                "names": {},
                "known": {},
                "only": test,
            }
            request |= {"limit": LONGEST, "skip": [], "limits": {}, "budget": LONGEST}
            outcome = base.trial(request)
            self.sound[test] = outcome.ran.get(test)
            if self.sound[test] is None:
                self.notes.append(
                    f"{test} is not used: without a mutant it ends here with {outcome.end} {outcome.why}"
                )
        return self.sound[test]
