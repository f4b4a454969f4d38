"""What is shown of long work: a bar on a terminal, a line in a notebook, or what a function makes of it.

All that takes ``progress=`` takes the same. A function is called with how many steps are done and how many
there are. None, the default, shows a bar where somebody looks: on a terminal, or in a notebook's cell, from
which it goes away; nothing in pipes, files and logs. True shows it anywhere, False nowhere.

>>> with shown_progress(print, "counting") as show:
...     show(1, 3)
1 3

Steps that are counted are public: epochs, blocks, runs of an audit. How long a step takes depends on the
data, and is outside of every guarantee, so a bar is for who runs the work on the rows, and for nobody else.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, Final, TypeAlias

from sfumato import _check
from sfumato._display import html_block, printable

__all__ = [
    "Progress",
    "StepProgress",
    "error_bar",
    "is_terminal",
    "notebook_display",
    "on_terminal",
    "shown_progress",
    "shown_steps",
]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many steps are done, of how many."""

StepProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a part, and how many of its steps are done, of how many."""

_PATIENCE: Final = 1.0
"""Seconds before anything is shown: most runs have ended by then."""

_PAUSE: Final = 0.2
"""Seconds between two lines of a notebook."""


@contextmanager
def shown_progress(progress: Progress | bool | None, words: str) -> Iterator[Progress]:
    """Show work while the context lasts; yields what is called as steps are done.

    Parameters
    ----------
    progress : callable, bool or None
        A function is called itself; True shows a bar, False nothing, and None a bar on a terminal and in a
        notebook.
    words : str
        What is done.

    Raises
    ------
    ParameterError
        If ``progress`` is something else.
    """
    if callable(progress):
        yield progress
        return
    with shown_steps(progress, lambda _: words) as show:
        yield (lambda _done, _total: None) if show is None else (lambda *steps: show("", *steps))


@contextmanager
def shown_steps(
    progress: StepProgress | bool | None, words: Callable[[str], str]
) -> Iterator[StepProgress | None]:
    """Show work in several parts while the context lasts; yields what is called, or None.

    Parameters
    ----------
    progress : callable, bool or None
        As for `shown_progress`, called with the part's name too.
    words : callable
        What is said of a part, by its name.

    Raises
    ------
    ParameterError
        If ``progress`` is something else.
    """
    given: Any = progress
    if given is not None and not isinstance(given, bool) and not callable(given):
        rule = "be a function, True, False or None"
        _check.refuse_type("progress", rule, given, "leave it out to show it on a terminal")
    display = notebook_display()
    if callable(given):
        yield given
    elif given or (given is None and (display is not None or on_terminal())):
        with _line(display, words) if display is not None else _bar(words) as show:
            yield show
    else:
        yield None


@contextmanager
def _bar(words: Callable[[str], str]) -> Iterator[StepProgress]:
    """Show a bar on standard error, which goes away with the work."""
    rich = importlib.import_module("rich.progress")
    bar = error_bar(
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}", markup=False),  # a part may be called "[/]"
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
    )
    began, tasks = time.monotonic(), list[Any]()

    def show(part: str, done: int, total: int) -> None:
        if not tasks and time.monotonic() - began >= _PATIENCE:
            bar.start()
            tasks.append(bar.add_task("", total=None))
        for task in tasks:
            bar.update(task, description=printable(words(part)), total=total, completed=done)

    try:
        yield show
    finally:
        bar.stop()


@contextmanager
def _line(display: Callable[..., Any], words: Callable[[str], str]) -> Iterator[StepProgress]:
    """Show a line in a notebook's cell, which is replaced as the work goes on, and empty at its end."""
    last, handles = time.monotonic() - _PAUSE + _PATIENCE, list[Any]()

    def show(part: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _PAUSE:
            return
        last = now
        text = f"{printable(words(part))}, {done} of {total}"
        bar = f'<progress max="{total}" value="{done}"></progress>'
        line = {"text/plain": text, "text/html": html_block(f"{bar} {escape(text)}")}
        if handles:
            handles[0].update(line, raw=True)
        else:
            handles.append(display(line, raw=True, display_id=True))

    try:
        yield show
    finally:
        for handle in handles:
            handle.update({"text/plain": "", "text/html": ""}, raw=True)


class _ErrorStream:
    """Standard error; what cannot be written to it is dropped, and all that comes after."""

    def __init__(self) -> None:
        self._file = sys.stderr
        self.encoding = getattr(self._file, "encoding", None)

    def write(self, text: str) -> int:
        self._try("write", text)
        return len(text)

    def flush(self) -> None:
        self._try("flush")

    def isatty(self) -> bool:
        return is_terminal(self._file)

    def _try(self, name: str, *given: str) -> None:
        if self._file is not None:
            try:
                getattr(self._file, name)(*given)
            except (OSError, ValueError):  # it was closed, its reader is gone, or it lacks a character
                self._file = None


def error_bar(*columns: Any) -> Any:
    """Return rich's bar on standard error: it never fails, for the work may have been paid for already.

    Elsewhere than on a terminal only what it was at the end is written. What the work prints goes where it
    would go without a bar.
    """
    out = importlib.import_module("rich.console").Console(file=_ErrorStream())
    return importlib.import_module("rich.progress").Progress(
        *columns, console=out, transient=out.is_terminal, redirect_stdout=is_terminal(sys.stdout)
    )


def notebook_display() -> Callable[..., Any] | None:
    """Return what shows something in a notebook's cell, None outside of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    display: Callable[..., Any] = importlib.import_module("IPython.display").display
    return display


def on_terminal() -> bool:
    """Return whether standard error is a terminal: only there nobody else sees what is written."""
    return is_terminal(sys.stderr)


def is_terminal(stream: Any) -> bool:
    """Return whether a standard stream is a terminal; None, where there is none, is not."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:  # it was closed
        return False
