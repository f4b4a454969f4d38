"""Learning curves with epsilon on the axis, and progress with epsilon so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any, NamedTuple, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from sfumato import _check
from sfumato.errors import MissingExtra
from sfumato.learning.training.run import TrainingRun

__all__ = ["LearningCurve", "Point", "progress"]


class Point(NamedTuple):
    """A measurement at a number of steps, and what had been spent by then."""

    step: int
    epsilon: float
    values: dict[str, float]


@final
class LearningCurve:
    """Collects numbers along a run, each with the epsilon spent so far.

    Values measured on the private examples are the curator's: they are released by nothing here.

    Parameters
    ----------
    run : TrainingRun
        `PrivacyEngine.run`.
    delta : float
        Where epsilon is read.
    """

    def __init__(self, run: TrainingRun, *, delta: float) -> None:
        self._run, self._delta = run, _check.unit_interval("delta", delta)
        self._points: list[Point] = []

    def add(self, **values: float) -> Point:
        """Note values at this moment of the run."""
        numbers = {name: _check.finite(name, value) for name, value in values.items()}
        point = Point(self._run.cursor, self._run.epsilon(self._delta), numbers)
        self._points.append(point)
        return point

    def curve(self, name: str) -> tuple[list[float], list[float]]:
        """Return the epsilons at which a value was noted, and the value."""
        points = [point for point in self._points if name in point.values]
        return [point.epsilon for point in points], [point.values[name] for point in points]

    @property
    def points(self) -> tuple[Point, ...]:
        """All that was noted, in order."""
        return tuple(self._points)

    def plot(self, ax: Any = None) -> Any:
        """Draw every value over epsilon; return the axes, and show nothing."""
        if ax is None:
            try:
                from matplotlib.figure import Figure  # noqa: PLC0415 - an optional library
            except ImportError as missing:
                raise MissingExtra("plots need matplotlib; pip install 'sfumato[plot]'") from missing
            ax = Figure().subplots()
        for name in dict.fromkeys(name for point in self._points for name in point.values):
            ax.plot(*self.curve(name), marker="o", label=name)
        ax.set_xlabel(f"epsilon at delta {self._delta:g}")
        ax.legend()
        return ax


def progress(batches: Iterable[Any], run: TrainingRun, *, delta: float, every: int = 10) -> Iterator[Any]:
    """Yield batches, and on a terminal show how far the run is and what it has spent.

    Parameters
    ----------
    batches : iterable
        The private loader.
    run : TrainingRun
    delta : float
        Where epsilon is read.
    every : int
        Epsilon is computed anew after so many batches.
    """
    delta = _check.unit_interval("delta", delta)
    every = _check.integer("every", every, minimum=1)
    console = Console(stderr=True)
    total = len(batches) if isinstance(batches, Sized) else None
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("epsilon {task.fields[epsilon]:.3g}"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=total, epsilon=run.epsilon(delta))
        for number, batch in enumerate(batches, start=1):
            yield batch
            if bar.disable or number % every:
                bar.advance(task)
            else:
                bar.update(task, advance=1, epsilon=run.epsilon(delta))
