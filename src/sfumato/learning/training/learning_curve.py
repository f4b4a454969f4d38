"""Learning curves with epsilon on the axis, and progress with epsilon so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any, NamedTuple, final

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

from sfumato import _check
from sfumato._progress import error_bar
from sfumato.learning.training.loop.run import TrainingRun
from sfumato.privacy._outward import text_above
from sfumato.privacy.interpretation.plotting import axes, drawable, label_text

__all__ = ["LearningCurve", "Point", "progress"]


class Point(NamedTuple):
    """A measurement at a number of steps, and what had been spent by then."""

    step: int
    epsilon: float
    values: dict[str, float]


@final
class LearningCurve:
    """Collects numbers along a run, each with the epsilon spent so far.

    Values measured on the private examples are the curator's: they are released by nothing here. Who stops,
    or picks a step, by such values has spent the epsilon of all steps that might have been run, not that of
    the step: the number of steps then follows from the data.

    Parameters
    ----------
    run : TrainingRun
        `PrivacyEngine.run`.
    delta : float
        Where epsilon is read.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from sfumato.learning import PrivacyEngine
    >>> engine, module = PrivacyEngine(), torch.nn.Linear(3, 1)
    >>> _ = engine.make_private(
    ...     module=module,
    ...     optimizer=torch.optim.SGD(module.parameters()),
    ...     data_loader=DataLoader(TensorDataset(torch.zeros(40, 3), torch.zeros(40, 1)), batch_size=20),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=1.0,
    ... )
    >>> curve = LearningCurve(engine.run, delta=1e-5)
    >>> curve.add(loss=0.7)
    Point(step=0, epsilon=0.0, values={'loss': 0.7})
    """

    def __init__(self, run: TrainingRun, *, delta: float) -> None:
        self._run, self._delta = run, _check.unit_interval("delta", delta)
        self._points: list[Point] = []

    def add(self, **values: float) -> Point:
        """Note values at this moment of the run.

        A value may be NaN or infinite, as a loss that has left its bounds: no error reveals it.

        Parameters
        ----------
        **values : float
            By name, such as ``loss=0.3``.

        Returns
        -------
        Point
            The step, the epsilon and the values.
        """
        numbers = {name: _real(name, value) for name, value in values.items()}
        point = Point(self._run.cursor, self._run.epsilon(self._delta), numbers)
        self._points.append(point)
        return point

    def curve(self, name: str) -> tuple[list[float], list[float]]:
        """Return the epsilons at which a value was noted, and the value.

        Parameters
        ----------
        name : str
            As it was given to `add`.

        Returns
        -------
        tuple of two lists of float
            Of one length: epsilons and values.
        """
        points = [point for point in self._points if name in point.values]
        return [point.epsilon for point in points], [point.values[name] for point in points]

    @property
    def points(self) -> tuple[Point, ...]:
        """All that was noted, in order."""
        return tuple(self._points)

    def plot(self, ax: Any = None) -> Any:
        """Draw every value over epsilon; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        ax = axes(ax)
        names = list(dict.fromkeys(name for point in self._points for name in point.values))
        for name in names:
            ax.plot(*map(drawable, self.curve(name)), marker="o", label=label_text(name))
        ax.set_xlabel(f"epsilon at delta {self._delta:g}")
        if names:
            ax.legend()
        return ax


def _real(name: str, value: object) -> float:
    """Return a number as a float; what is none is refused by its type, without being shown."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return _check.refuse_type(name, "be a number", value, "pass float(...) of it")


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
        Epsilon is computed anew after so many steps.

    Returns
    -------
    iterator

    Yields
    ------
    object
        Each batch, as the loader gives it.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from sfumato.learning import PrivacyEngine
    >>> engine, module = PrivacyEngine(), torch.nn.Linear(3, 1)
    >>> module, optimizer, loader = engine.make_private(
    ...     module=module,
    ...     optimizer=torch.optim.SGD(module.parameters()),
    ...     data_loader=DataLoader(TensorDataset(torch.zeros(40, 3), torch.zeros(40, 1)), batch_size=20),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=1.0,
    ... )
    >>> len(list(progress(loader, engine.run, delta=1e-5)))
    2
    """
    delta = _check.unit_interval("delta", delta)
    every = _check.integer("every", every, minimum=1)
    total = len(batches) if isinstance(batches, Sized) else None
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("epsilon {task.fields[epsilon]}"))
    shown_bar = error_bar(*columns)
    if not shown_bar.console.is_terminal:  # nobody looks: epsilon takes its time
        yield from batches
        return
    with shown_bar as bar:
        began = shown = run.released
        task = bar.add_task("", total=total, epsilon=text_above(run.epsilon(delta), 3))
        for batch in batches:
            yield batch
            bar.update(task, completed=run.released - began)  # steps: parts of one batch are one
            if run.released - shown >= every:
                shown = run.released
                bar.update(task, epsilon=text_above(run.epsilon(delta), 3))
