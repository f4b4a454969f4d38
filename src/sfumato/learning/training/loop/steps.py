"""Who numbers the steps of a run: each number is given once, and durably where there is a ledger."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import final

from sfumato import _check
from sfumato.errors import LedgerMismatch, RunExhausted
from sfumato.learning.training.distributed.ranks import Ranks
from sfumato.ledger.runs import Run

__all__ = ["CountedSteps", "ReplayedSteps", "ReservedSteps", "Steps"]

LARGEST_BLOCK = 64


class Steps(ABC):
    """The numbers of the steps, which determine their batches and their noise."""

    durable: bool = False
    """Whether the numbers are claimed on a ledger."""

    @abstractmethod
    def take(self) -> int:
        """Return the next step's number, to be given to nobody else.

        Raises
        ------
        RunExhausted
            If no step is left.
        """

    def confirm(self, step: int, digest: str) -> int:
        """Return the number under which a step may draw its noise, just before it does."""
        del digest
        return step

    def skip(self, count: int) -> None:
        """Go on after so many steps, where they are counted here."""
        del count

    @abstractmethod
    def rewind(self, unused: Sequence[int]) -> None:
        """Take numbers back whose batches nobody got, such as those that workers load ahead of a ``break``.

        Parameters
        ----------
        unused : sequence of int
            In their order; they are given again before others, with the same batches.
        """

    @property
    def needs_digest(self) -> bool:
        """Whether `confirm` reads the digest."""
        return False


@final
class CountedSteps(Steps):
    """Steps of a run without a ledger: counted in this process, and forgotten with it.

    Parameters
    ----------
    start, planned : int
        The first number, and how many the sampler has planned.
    """

    def __init__(self, start: int = 0, *, planned: int) -> None:
        self._next, self._planned = start, planned
        self._unused = deque[int]()
        self._process = os.getpid()

    def take(self) -> int:
        """Return the next number."""
        if os.getpid() != self._process:
            remedy = "noise would be drawn twice: make the run in the child"
            rule = "continue in the process that made it"
            _check.refuse_state("run", rule, "this process is a fork of it", remedy)
        if self._unused:
            return self._unused.popleft()
        if self._next >= self._planned:
            raise RunExhausted(f"run must have steps left, got all {self._planned} run; plan more steps")
        self._next += 1
        return self._next - 1

    def skip(self, count: int) -> None:
        """Count steps that another process has run."""
        self._next = max(self._next, count)
        self._unused = deque(number for number in self._unused if number >= count)

    def rewind(self, unused: Sequence[int]) -> None:
        """Give these numbers again."""
        self._unused.extendleft(reversed(unused))


@final
class ReservedSteps(Steps):
    """Steps that a ledger has charged, claimed in blocks of a hundredth of them, at most 64.

    Parameters
    ----------
    run : Run or None
        None in all processes of a run but the first.
    ranks : Ranks
    """

    durable = True

    def __init__(self, run: Run | None, ranks: Ranks) -> None:
        self._run, self._ranks = run, ranks
        self._size = 1 if run is None else min(LARGEST_BLOCK, max(1, run.reserved // 100))
        self._block = range(0)
        self._unused = deque[int]()
        self._process = os.getpid()

    def take(self) -> int:
        """Return the next number that is claimed for this run."""
        if os.getpid() != self._process:
            # The parent goes on with its block: a child must not draw the same noise.
            self._block, self._unused, self._process = range(0), deque(), os.getpid()
        if self._unused:
            return self._unused.popleft()
        if not self._block:
            self._block = self._claimed()
        step, self._block = self._block[0], self._block[1:]
        return step

    def rewind(self, unused: Sequence[int]) -> None:
        """Give these numbers again, which this process has claimed."""
        if os.getpid() == self._process:
            self._unused.extendleft(reversed(unused))

    def _claimed(self) -> range:
        claimed: range | RunExhausted = range(0)
        if self._run is not None:
            try:
                claimed = self._run.claim(self._size)
            except RunExhausted as ended:
                claimed = ended
        claimed = self._ranks.share(claimed)
        if isinstance(claimed, RunExhausted):
            try:
                raise claimed
            finally:
                del claimed  # its traceback holds this frame, and those of a loader that begins
        return claimed


@final
class ReplayedSteps(Steps):
    """Reserved steps, each claimed by itself with a digest: a killed run is computed once more, bit for bit.

    Parameters
    ----------
    run : Run
    start : int
        The step that a checkpoint was made before.
    """

    durable = True

    def __init__(self, run: Run, start: int) -> None:
        self._run, self._next, self._confirmed = run, start, start

    def take(self) -> int:
        """Return the next number, claimed before or not."""
        if self._next >= self._run.reserved:
            raise RunExhausted(
                f"run must have steps left, got all {self._run.reserved} run; charge more with extend()"
            )
        self._next += 1
        return self._next - 1

    @property
    def needs_digest(self) -> bool:
        """Always."""
        return True

    def rewind(self, unused: Sequence[int] = ()) -> None:
        """Go on after the last step that was confirmed."""
        del unused
        self._next = self._confirmed

    def confirm(self, step: int, digest: str) -> int:
        """Claim a step with its digest; return -1 if it was claimed with another, and go on with fresh ones.

        Notes
        -----
        A fresh step has a batch of its own: that of the old one, taken again, would be no sample of its own.
        """
        try:
            self._run.claim_replayable(step, digest)
        except LedgerMismatch:
            self._confirmed = self._run.claimed
            self.rewind()
            return -1
        self._confirmed = step + 1
        return step
