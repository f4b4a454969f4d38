"""When an answer may be seen: moments that follow from public parameters, whatever the rows are.

How long a query runs depends on the rows. So nothing that a job does is shown when it happens. Time is cut
into steps that are counted from 1970 on. A job begins at the end of a step, and its answer is shown at one of
a few deadlines: ``first`` steps for each pass over the rows that its plan needs, then twice as many, then
four times, and so on. The first deadline after the run's end is the one. A run that has not ended at the last
deadline is stopped then, and the job has failed; its charge stays. One whose engine fails is shown in the
same way, at the last deadline and with the same words. A job that is cancelled goes on to the next
end of a step, not before its first deadline: if the run has ended by then, its answer is shown, else it is
stopped.

Notes
-----
Guarantee: let everything be fixed but the rows of the private tables: what is asked, when, by whom, and the
noise. Then what anybody but the curator sees of one job beside its answer is one of
``doublings + 2 + searches`` outcomes, given those of the jobs before it: when it ends and how, and what
asking again costs. ``searches`` counts its private SELECTs with bounds that are searched for. That is at most
``log2(doublings + 2 + searches)`` bits.

Proof. Without a cancellation the job is answered at one of ``doublings + 1`` deadlines, or has no answer at
the last one. If it is cancelled between two deadlines, after the i-th of them, counted from 0, it was
answered at one of the first i + 1, or it is answered or stopped at the one moment that follows from the
cancellation; i is at most ``doublings - 1``, which makes ``doublings + 1`` ways to be answered at most.

A job without an answer was stopped at one of its private SELECTs, which are answered one after the other.
Those before that one are committed, and cost nothing again. Those after it are charged and nothing was drawn
for them: they cost nothing again. That one costs nothing either, whether it was not drawn or is committed,
unless its bounds are searched for: then noise may have been drawn, and it is charged anew. So what asking
again costs says which of the ``searches`` it was, or none: ``1 + searches`` ways. The answers to what costs
nothing are later jobs, with outcomes of their own.

What else is shown is a function of these outcomes, of the ledger's charges, which are made when a question is
asked, and of what was asked when: the place in the queue counts jobs as they are shown, and a worker begins
its next job when its last one has ended as it is shown. Since the outcomes of earlier jobs are given, so are
the moments at which this one begins. An end is stored before it is shown, by the run or by the first look
after the last deadline, and is never another one later.

Outside of the guarantee: how the machine's load changes the time of a page, a disk that takes its time over
an answer that is stored just before its deadline, an engine that goes on for longer than a step after it was
stopped, clocks that are set, and a process that is killed; its jobs begin anew. So is a second console with a
folder of its own on the same ledger: there an analyst who asks the same again sees from its price when the
first one has drawn and committed. Let all processes that one analyst may ask share a folder. The curator's
log and the ledger's events have the true times: they are not for analysts.

Examples
--------
>>> grid = TimeGrid(step=0.5, first=1, doublings=3)
>>> grid.deadlines(begun=100, passes=2)
(102, 104, 108, 116)
>>> grid.shown(begun=100, passes=2, moment=51.2), grid.shown(begun=100, passes=2, moment=58.01)
(104, None)
>>> grid.outcomes(), grid.outcomes(searches=2)
(5, 7)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from sfumato import _check

__all__ = ["TimeGrid"]

_MOST_DOUBLINGS = 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TimeGrid:
    """The steps of time, and the deadlines of a job.

    Parameters
    ----------
    step : float
        Seconds of a step.
    first : int
        Steps until the first deadline of a job that reads the rows once.
    doublings : int
        How many deadlines there are after the first, each twice as far as the one before.
    """

    step: float = 0.5
    first: int = 1
    doublings: int = 7

    def __post_init__(self) -> None:
        step = _check.positive("step", self.step, "write 0.5 for half a second")
        if not 1e-3 <= step <= 86_400:
            _check.refuse("step", "be from a millisecond to a day, in seconds", step, "write 0.5, say")
        object.__setattr__(self, "step", step)
        if _check.integer("first", self.first, minimum=1) > 2**20:
            _check.refuse("first", "be at most 2**20", self.first, "take longer steps")
        if _check.integer("doublings", self.doublings) > _MOST_DOUBLINGS:
            _check.refuse("doublings", f"be at most {_MOST_DOUBLINGS}", self.doublings, "take longer steps")

    def outcomes(self, searches: int = 0) -> int:
        """Return how many outcomes of one job there are at most that depend on rows, beside its answer.

        Parameters
        ----------
        searches : int
            How many of its private SELECTs have bounds that are searched for.
        """
        return self.doublings + 2 + _check.integer("searches", searches)

    def passed(self, moment: float) -> int:
        """Return the last step that has ended at a moment, in seconds since 1970."""
        index = math.floor(moment / self.step)
        return index if self.time_of(index) <= moment else index - 1  # a quotient may be rounded up

    def next(self, moment: float) -> int:
        """Return the first step that ends at a moment or after it."""
        index = self.passed(moment)
        return index if self.time_of(index) == moment else index + 1

    def time_of(self, index: int) -> float:
        """Return when a step ends, in seconds since 1970."""
        return index * self.step

    def deadlines(self, begun: int, passes: int) -> tuple[int, ...]:
        """Return the steps at whose ends a job may be answered.

        Parameters
        ----------
        begun : int
            The step at whose end it began.
        passes : int
            How often its plan reads the rows.
        """
        return tuple(begun + self.first * passes * 2**each for each in range(self.doublings + 1))

    def last(self, begun: int, passes: int) -> int:
        """Return the step at whose end a job is stopped."""
        return self.deadlines(begun, passes)[-1]

    def shown(self, begun: int, passes: int, moment: float) -> int | None:
        """Return the step at whose end a run that ended at a moment is shown; None if it was too late."""
        ended = self.next(moment)
        return next((each for each in self.deadlines(begun, passes) if each >= ended), None)

    def cancelled(self, begun: int, passes: int, moment: float) -> int:
        """Return the step at whose end a job that is cancelled at a moment ends."""
        first, last = self.deadlines(begun, passes)[0], self.last(begun, passes)
        return min(max(self.next(moment), first), last)
