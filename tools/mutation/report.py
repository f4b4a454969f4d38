"""What ``tools/mutate.py`` prints and writes of its mutants."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from tools.mutation.equivalents import Equivalent
from tools.mutation.judging import Trial

__all__ = ["Report"]

LONGEST = 110
DEAD = ("killed", "timeout")


class Report:
    """Verdicts, as they come.

    Parameters
    ----------
    equivalent : collection
        The keys of the mutants that are listed as equivalent.
    stale : sequence of Equivalent
        Entries of the list that are no mutants any more.
    planned : int
        How many mutants are tried.
    """

    def __init__(
        self, equivalent: Collection[tuple[str, str, str]], stale: Sequence[Equivalent], planned: int
    ) -> None:
        self.equivalent, self.stale, self.planned = equivalent, stale, planned
        self.trials: list[Trial] = []

    def begin(self, seed: str) -> None:
        """Print what is tried, and the entries that are stale."""
        for entry in self.stale:
            print(f"stale: {entry.name}: {entry.original} -> {entry.mutated} is no mutant; remove the entry")
        print(f"{self.planned} mutants (seed {seed})")
        sys.stdout.flush()

    def tell(self, trial: Trial) -> None:
        """Print a mutant and its verdict."""
        self.trials.append(trial)
        mutant = trial.mutant
        print(f"{mutant.path.as_posix()}:{mutant.line}  {mutant.qualified}  [{mutant.identity}]")
        print(f"    {_short(mutant.original)}  ->  {_short(mutant.mutated)}")
        print(f"    {self.verdict(trial)}")
        sys.stdout.flush()

    def verdict(self, trial: Trial) -> str:
        """Return what became of a mutant, in words."""
        many = f"{len(trial.ran)} tests passed" + (f", {trial.left} not run" if trial.left else "")
        is_listed = trial.mutant.key in self.equivalent
        words = {
            "timeout": f"timeout, killed by {trial.by}",
            "killed": f"killed by {trial.by}: {_short(trial.why)}",
            "survived": f"SURVIVED ({many})",
            "unreached": f"unreached ({many})",
            "invalid": "invalid: it does not compile",
        }
        if is_listed and trial.verdict in DEAD:
            return f"{words[trial.verdict]}; it is listed as equivalent: remove the entry"
        if is_listed and trial.verdict == "survived":
            return f"survived, as listed ({many})"
        return words[trial.verdict]

    @property
    def failures(self) -> list[Trial]:
        """What fails the run: survivors that are not listed, and listed mutants that tests kill."""
        return [
            trial
            for trial in self.trials
            if (trial.mutant.key in self.equivalent) == (trial.verdict in DEAD)
            and trial.verdict in {"survived", *DEAD}
        ]

    @property
    def status(self) -> int:
        """The exit status of the run."""
        return 1 if self.failures or self.stale else 0

    def end(self, notes: Sequence[str], seconds: float) -> None:
        """Print the score, and how to try each failure again."""
        for note in notes:
            print(f"note: {note}")
        counts = Counter(trial.verdict for trial in self.trials)
        dead = sum(counts[verdict] for verdict in DEAD)
        listed = sum(t.verdict == "survived" and t.mutant.key in self.equivalent for t in self.trials)
        judged = dead + counts["survived"] - listed
        score = f"{dead / judged:.0%}" if judged else "none"
        print(
            f"score {score}: {dead} killed ({counts['timeout']} by time), "
            f"{counts['survived'] - listed} survived, {listed} listed, "
            f"{counts['unreached']} unreached, {counts['invalid']} invalid"
        )
        late = "" if len(self.trials) == self.planned else "; time ran out"
        print(f"{len(self.trials)} of {self.planned} mutants run in {seconds:.0f} s{late}")
        for trial in self.failures:
            print(f"try again: python tools/mutate.py --only {trial.mutant.identity}")

    def write(self, path: Path) -> None:
        """Write the verdicts as JSON."""
        entries = [
            {
                "id": trial.mutant.identity,
                "file": trial.mutant.path.as_posix(),
                "line": trial.mutant.line,
                "name": trial.mutant.qualified,
                "kind": trial.mutant.kind,
                "original": trial.mutant.original,
                "mutated": trial.mutant.mutated,
                "verdict": trial.verdict,
                "listed": trial.mutant.key in self.equivalent,
                "by": trial.by,
                "why": trial.why,
                "passed": sorted(trial.ran),
                "seconds": round(trial.spent, 2),
            }
            for trial in self.trials
        ]
        stale = [entry.key for entry in self.stale]
        table = {"planned": self.planned, "run": len(entries), "stale": stale, "mutants": entries}
        path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
