"""Runs that somebody waits for: they show how far they are, and can be cancelled at once.

The work is done in a thread of its own. The thread that asked waits for it, and so it can hear an interrupt
from the keyboard, tell the engine to stop, and show progress while the engine reads rows.

How long a run takes and how far it is depend on the data: they are for the curator's eyes alone, and outside
of every guarantee.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, Generic, TypeAlias, TypeVar, final

from sfumato.errors import QueryCancelled

__all__ = ["CANCELLED", "Display", "WatchedRun"]

T = TypeVar("T")

Display: TypeAlias = Callable[[], AbstractContextManager[Callable[[float | None], None]]]
"""Begins to show a run: what it returns is called with the per cent done, None where that is not known."""

CANCELLED: Final = (
    "the query must end to be answered, but it was cancelled; its charge stays, for rows were read: the same "
    "query is answered under it if no noise was drawn, and else charged anew"
)
"""What is said of a query that was cancelled after its charge."""

_TICK: Final = 0.05
"""Seconds between looks at a run."""


@final
class WatchedRun(Generic[T]):
    """One run of an engine, which another thread may cancel.

    Parameters
    ----------
    work : callable
        What is run; it may raise.
    interrupt : callable
        Makes the engine stop what it does at the moment; called again until the work ends, for it may be
        between two statements.
    progress : callable
        Returns the per cent that are done, or None.

    Examples
    --------
    >>> WatchedRun(lambda: 6 * 7, interrupt=lambda: None).result()
    42
    """

    def __init__(
        self,
        work: Callable[[], T],
        *,
        interrupt: Callable[[], object],
        progress: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._work, self._interrupt, self._progress = work, interrupt, progress
        self._begun, self._cancelled, self._done = threading.Event(), threading.Event(), threading.Event()
        self._abandoned = False
        self._answers: list[T] = []
        self._errors: list[BaseException] = []

    def cancel(self) -> None:
        """Ask the engine to stop; from any thread."""
        self._cancelled.set()

    def result(self, display: Display | None = None) -> T:
        """Run the work to its end, and return what it returned.

        Parameters
        ----------
        display : callable, optional
            Where progress is shown.

        Raises
        ------
        QueryCancelled
            If `cancel` was called before the end.
        KeyboardInterrupt
            If the keyboard interrupted; the engine has stopped by then, and the message says that the charge
            stays.
        """
        worker = threading.Thread(target=self._run, name="sfumato-query", daemon=True)
        try:  # an interrupt may come as soon as the thread runs
            worker.start()
            with nullcontext(lambda _: None) if display is None else display() as show:
                while not self._done.wait(_TICK):
                    self._look(show)
        except BaseException as stopped:
            self._abandoned = True
            self._stop()
            if isinstance(stopped, KeyboardInterrupt):
                raise KeyboardInterrupt(CANCELLED) from None
            raise
        worker.join()
        if self._answers:  # an answer that was there before a cancel is the answer
            return self._answers[0]
        if self._cancelled.is_set():
            raise QueryCancelled(CANCELLED)
        raise self._errors[0]

    def _run(self) -> None:
        self._begun.set()
        try:
            if not self._abandoned:
                self._answers.append(self._work())
        except BaseException as error:
            self._errors.append(error)
        finally:
            self._done.set()

    def _look(self, show: Callable[[float | None], None]) -> None:
        if self._cancelled.is_set():
            with suppress(Exception):
                self._interrupt()
        with suppress(Exception):  # a display that fails stops no query
            show(self._progress())

    def _stop(self) -> None:
        """Wait until the engine has stopped: its connection is not free before.

        A thread that has not begun by now finds the run abandoned, and does nothing.
        """
        while True:
            with suppress(KeyboardInterrupt):
                if not self._begun.wait(1):
                    return
                while not self._done.wait(_TICK):
                    with suppress(Exception):
                        self._interrupt()
                return
