"""A line on standard error that says how much of a known number is done, on a terminal only."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["CountBar"]


class CountBar:
    """Shows how many of a known number are done; a context manager.

    Parameters
    ----------
    description : str
        What is done.

    Examples
    --------
    >>> with CountBar("nodes") as bar:
    ...     bar.update(1, 24)
    """

    def __init__(self, description: str) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(description, total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._bar.disable:  # rich before 13.9 prints an empty line for one that is
            self._bar.stop()

    def update(self, done: int, total: int) -> None:
        """Show how many are done.

        Parameters
        ----------
        done, total : int
        """
        self._bar.update(self._task, completed=done, total=total)
