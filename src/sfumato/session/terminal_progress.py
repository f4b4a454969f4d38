"""A line on standard error or in a notebook that says how far a query is, and goes away with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from sfumato._progress import error_bar, notebook_display, shown_steps

__all__ = ["shown"]

_WORDS: Final = "reading rows (Ctrl-C cancels; the charge stays)"
_PATIENCE: Final = 1.0
"""Seconds before anything is shown: most queries have ended by then."""


@contextmanager
def shown() -> Iterator[Callable[[float | None], None]]:
    """Show a run while the context lasts; yields what is called with the per cent of the step done."""
    if notebook_display() is not None:
        with shown_steps(True, lambda _: _WORDS) as step:
            yield lambda percent: None if step is None else step("", int(percent or 0), 100)
        return
    began = time.monotonic()
    bar = error_bar(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    tasks: list[TaskID] = []

    def show(percent: float | None) -> None:
        if not tasks and time.monotonic() - began >= _PATIENCE:
            bar.start()
            tasks.append(bar.add_task(_WORDS, total=None))
        for task in tasks:
            bar.update(task, total=None if percent is None else 100.0, completed=percent or 0.0)

    try:
        yield show
    finally:
        bar.stop()
