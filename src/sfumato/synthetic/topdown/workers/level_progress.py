"""What is shown of a long run: a bar on a terminal, a line in a notebook, or what a function makes of it."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Final, TypeAlias

from sfumato import _check

__all__ = ["Progress", "shown_levels"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a level's name, and how many of its places are done, of how many."""

_PATIENCE: Final = 1.0
"""Seconds before anything is shown: most runs have ended by then."""

_PAUSE: Final = 0.2
"""Seconds between two lines of a notebook."""


@contextmanager
def shown_levels(progress: Progress | bool | None, levels: Sequence[str]) -> Iterator[Progress | None]:
    """Show a run while the context lasts; yields what is called as places are done, or None.

    Parameters
    ----------
    progress : callable, bool or None
        A function is called itself; True shows a bar, False nothing, and None a bar on a terminal and in a
        notebook: there the curator alone sees it, who runs the mechanism on the rows.
    levels : sequence of str
        From the root.

    Raises
    ------
    ParameterError
        If it is something else.

    Notes
    -----
    How long a run takes depends on the data, and is outside of the guarantee.
    """
    given: Any = progress
    if given is not None and not isinstance(given, bool) and not callable(given):
        rule = "be a function, True, False or None"
        _check.refuse_type("progress", rule, given, "leave it out to show it on a terminal")
    notebook = _notebook()
    if callable(given):
        yield given
    elif given or (given is None and (notebook is not None or _is_terminal())):
        with _lines(notebook, levels) if notebook is not None else _bar(levels) as show:
            yield show
    else:
        yield None


def _step(level: str, levels: Sequence[str]) -> str:
    return f"level {levels.index(level) + 1} of {len(levels)}: {level}"


@contextmanager
def _bar(levels: Sequence[str]) -> Iterator[Progress]:
    """Show a bar on standard error, which goes away with the run."""
    rich, console = importlib.import_module("rich.progress"), importlib.import_module("rich.console")
    bar = rich.Progress(
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        console=console.Console(stderr=True),
        transient=True,
    )
    began, tasks = time.monotonic(), list[Any]()

    def show(level: str, done: int, size: int) -> None:
        if not tasks and time.monotonic() - began >= _PATIENCE:
            bar.start()
            tasks.append(bar.add_task("", total=None))
        for task in tasks:
            bar.update(task, description=_step(level, levels), total=size, completed=done)

    try:
        yield show
    finally:
        bar.stop()


@contextmanager
def _lines(display: Callable[..., Any], levels: Sequence[str]) -> Iterator[Progress]:
    """Show a line in a notebook's cell, which is replaced as the run goes on."""
    last, handles = time.monotonic() - _PAUSE + _PATIENCE, list[Any]()

    def show(level: str, done: int, size: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _PAUSE:
            return
        last = now
        text = f"{_step(level, levels)}, {done} of {size}"
        bar = f'<progress max="{size}" value="{done}"></progress>'
        line = {"text/plain": text, "text/html": f"{bar} {escape(text)}"}
        if handles:
            handles[0].update(line, raw=True)
        else:
            handles.append(display(line, raw=True, display_id=True))

    try:
        yield show
    finally:
        for handle in handles:
            handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _notebook() -> Callable[..., Any] | None:
    """Return what shows something in a notebook's cell, None outside of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    display: Callable[..., Any] = importlib.import_module("IPython.display").display
    return display


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # it was closed
        return False
