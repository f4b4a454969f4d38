"""A line on standard error that says how far a training is, on a terminal only."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["EpochBar"]


class EpochBar:
    """Shows how many epochs are done; a context manager.

    Examples
    --------
    >>> with EpochBar() as bar:
    ...     bar.epochs(1, 2)
    """

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("training", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._bar.disable:  # rich before 13.9 prints an empty line for one that is
            self._bar.stop()

    def epochs(self, done: int, total: int) -> None:
        """Show that an epoch is done.

        Parameters
        ----------
        done, total : int
        """
        self._bar.update(
            self._task, description=f"training, epoch {done} of {total}", completed=done, total=total
        )
