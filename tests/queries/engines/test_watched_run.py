"""Runs that are watched: their answers and errors, what cancels them, and what is shown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sfumato.errors import EngineError, QueryCancelled
from sfumato.queries.engines.watched_run import WatchedRun
from tests.keyboard import interrupt, interruptible


class Engine:
    """An engine that works until it is interrupted, and may be deaf at first."""

    def __init__(self, deaf: int = 0) -> None:
        self.working, self._stopped, self._deaf = threading.Event(), threading.Event(), deaf

    def work(self) -> int:
        self.working.set()
        assert self._stopped.wait(60)
        raise ValueError("interrupted")

    def interrupt(self) -> None:
        self._deaf -= 1
        if self._deaf < 0:
            self._stopped.set()


def when(engine: Engine, act: Callable[[], object]) -> threading.Thread:
    """Do something as soon as an engine works."""

    def run() -> None:
        engine.working.wait(60)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_an_answer_and_an_error_come_through() -> None:
    assert WatchedRun(lambda: "x", interrupt=lambda: None).result() == "x"
    with pytest.raises(ZeroDivisionError):
        WatchedRun(lambda: 1 // 0, interrupt=lambda: None).result()


@pytest.mark.parametrize("deaf", [0, 3])
def test_a_cancelled_run_ends_and_says_that_the_charge_stays(deaf: int) -> None:
    engine = Engine(deaf)
    run = WatchedRun(engine.work, interrupt=engine.interrupt)
    thread = when(engine, run.cancel)
    with pytest.raises(QueryCancelled, match="its charge stays") as raised:
        run.result()
    thread.join()
    assert isinstance(raised.value, EngineError)


def test_an_answer_that_was_there_before_a_cancel_is_the_answer() -> None:
    run = WatchedRun(lambda: 5, interrupt=lambda: None)
    run.cancel()
    assert run.result() == 5


def test_the_keyboard_interrupts_and_the_engine_has_stopped_then() -> None:
    engine = Engine(2)
    thread = when(engine, interrupt)
    with interruptible(), pytest.raises(KeyboardInterrupt, match="its charge stays"):
        WatchedRun(engine.work, interrupt=engine.interrupt).result()
    thread.join()
    assert engine._stopped.is_set()


def test_progress_is_shown_while_the_run_lasts_and_a_broken_display_stops_nothing() -> None:
    engine, seen = Engine(), []

    @contextmanager
    def display() -> Iterator[Callable[[float | None], None]]:
        def show(percent: float | None) -> None:
            seen.append(percent)
            if len(seen) == 3:
                run.cancel()
            raise OSError("no terminal")

        yield show
        seen.append(-1.0)

    run = WatchedRun(engine.work, interrupt=engine.interrupt, progress=lambda: 40.0)
    with pytest.raises(QueryCancelled):
        run.result(display)
    assert seen[:3] == [40.0] * 3
    assert seen[-1] == -1.0
