"""Watches a run as it goes: epsilon so far, which is public, and what only the curator may see.

>>> class Printed:
...     def log(self, step, values):
...         print(step, sorted(values))
...
...     def close(self):
...         pass

A tracker is any object with these two methods, such as a few lines around another library's logger. It is
given to `TrainingMonitor` as one for the curator or as a public one, which gets epsilon and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Self, final

from torch import Tensor

from sfumato import _check
from sfumato.errors import MissingExtra
from sfumato.learning.training.learning_curve import LearningCurve, Point
from sfumato.learning.training.loop.run import TrainingRun
from sfumato.privacy.interpretation.plotting import axes, drawable

__all__ = ["TensorBoardTracker", "Tracker", "TrainingMonitor"]

_LOSS, _SHARE = "curator/loss", "curator/clipping_share"


class Tracker(Protocol):
    """Takes numbers along a run, as loggers of experiments do.

    Examples
    --------
    >>> class Kept:
    ...     def __init__(self):
    ...         self.found = []
    ...
    ...     def log(self, step, values):
    ...         self.found.append((step, dict(values)))
    ...
    ...     def close(self):
    ...         pass
    >>> tracker: Tracker = Kept()
    """

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Take the values after so many steps.

        Parameters
        ----------
        step : int
        values : mapping of str to float
        """

    def close(self) -> None:
        """Write what is left: no more comes."""


@final
class TrainingMonitor:
    """Notes, every few steps, epsilon so far, the mean loss and the share of clipped examples.

    **The loss and the share of clipped examples follow from private rows, and the run's epsilon does not
    cover them.** Their names begin with ``curator/``; they go to the curator's trackers alone, are in no card
    and no checkpoint, and are not to be published. Who stops or changes the run by them makes the number of
    steps depend on the data: the run has then spent the epsilon of all steps that it might have taken.

    Parameters
    ----------
    run : TrainingRun
        `PrivacyEngine.run`.
    delta : float
        Where epsilon is read.
    every : int
        After how many steps values are noted.
    curator : sequence of Tracker
        Get all values.
    public : sequence of Tracker
        Get ``epsilon``, which follows from the run's parameters and the number of steps.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from sfumato.learning import PrivacyEngine
    >>> engine, module = PrivacyEngine(), torch.nn.Linear(3, 1)
    >>> module, optimizer, loader = engine.make_private(
    ...     module=module,
    ...     optimizer=torch.optim.SGD(module.parameters()),
    ...     data_loader=DataLoader(TensorDataset(torch.ones(40, 3), torch.ones(40, 1)), batch_size=20),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=1.0,
    ... )
    >>> with TrainingMonitor(engine.run, delta=1e-5, every=1) as monitor:
    ...     for x, y in loader:
    ...         optimizer.zero_grad()
    ...         loss = torch.nn.functional.mse_loss(module(x), y)
    ...         loss.backward()
    ...         monitor.note_loss(loss)
    ...         optimizer.step()
    >>> steps, shares = monitor.over_steps("curator/clipping_share")
    >>> steps, all(0 <= share <= 1 for share in shares)
    ([1, 2], True)
    """

    def __init__(
        self,
        run: TrainingRun,
        *,
        delta: float,
        every: int = 10,
        curator: Sequence[Tracker] = (),
        public: Sequence[Tracker] = (),
    ) -> None:
        self._every = _check.integer("every", every, minimum=1)
        self._run, self._curve = run, LearningCurve(run, delta=delta)
        self._curator, self._public = tuple(curator), tuple(public)
        self._noted, self._closed = run.cursor, False
        self._losses: list[float] = []
        self._clipped = self._seen = 0
        run.watch(self._watch)

    def note_loss(self, loss: Tensor | float) -> None:
        """Note the loss of the batch at hand, before the optimizer's step; a value of private rows.

        Parameters
        ----------
        loss : Tensor or float
        """
        self._write_if_due()
        self._losses.append(float(loss.detach() if isinstance(loss, Tensor) else loss))

    @property
    def points(self) -> tuple[Point, ...]:
        """All that was noted, in order: the curator's."""
        return self._curve.points

    def over_steps(self, name: str) -> tuple[list[int], list[float]]:
        """Return the numbers of steps at which a value was noted, and the value.

        Parameters
        ----------
        name : str
            ``"epsilon"``, ``"curator/loss"`` or ``"curator/clipping_share"``.

        Returns
        -------
        tuple of two lists
            Of one length: steps and values.
        """
        if name == "epsilon":
            return [point.step for point in self.points], [point.epsilon for point in self.points]
        points = [point for point in self.points if name in point.values]
        return [point.step for point in points], [point.values[name] for point in points]

    def plot(self, ax: Any = None) -> Any:
        """Draw loss and clipping share over steps, epsilon on a second axis; for the curator.

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
        for name in (_LOSS, _SHARE):
            if (values := self.over_steps(name))[0]:
                ax.plot(*map(drawable, values), marker="o", label=name)
        ax.set_xlabel("steps")
        ax.set_ylabel("not private: for the curator")
        second = ax.twinx()
        spent = map(drawable, self.over_steps("epsilon"))
        second.plot(*spent, color="black", linestyle="--", label="epsilon")
        second.set_ylabel("epsilon")
        handles, labels = ax.get_legend_handles_labels()
        more, names = second.get_legend_handles_labels()
        ax.legend([*handles, *more], [*labels, *names])
        return ax

    def close(self) -> None:
        """Note what is left, and close the trackers; what comes later is not noted."""
        if self._closed:
            return
        if self._run.cursor > self._noted:
            self._write()
        self._closed = True
        for tracker in (*self._curator, *self._public):
            tracker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<TrainingMonitor at step {self._run.cursor}>"

    def _watch(self, numbers: Iterable[int], norms: Tensor) -> None:
        """Take in the norms of the step that is about to be made."""
        if self._closed:
            return
        self._write_if_due()
        factors = self._run.clipping.factors(norms.square())
        self._clipped += int((factors < 1).any(0).sum())
        self._seen += norms.shape[1]

    def _write_if_due(self) -> None:
        if not self._closed and self._run.cursor - self._noted >= self._every:
            self._write()

    def _write(self) -> None:
        values = {_LOSS: sum(self._losses) / len(self._losses)} if self._losses else {}
        if self._seen:
            values[_SHARE] = self._clipped / self._seen
        self._losses, self._clipped, self._seen = [], 0, 0
        point = self._curve.add(**values)
        self._noted = point.step
        shown = {"epsilon": point.epsilon}
        for tracker in self._curator:
            tracker.log(point.step, shown | values)
        for tracker in self._public:
            tracker.log(point.step, shown)


@final
class TensorBoardTracker:
    """Writes values as TensorBoard's scalars.

    Parameters
    ----------
    log_dir : path or None
        A folder for its event files, readable by the curator alone where it gets the curator's values; None
        is TensorBoard's own choice.

    Raises
    ------
    MissingExtra
        If the package tensorboard is not installed.

    Examples
    --------
    >>> import importlib.util
    >>> if importlib.util.find_spec("tensorboard"):
    ...     TensorBoardTracker("runs/private").close()
    """

    def __init__(self, log_dir: str | os.PathLike[str] | None = None) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an optional library
        except ImportError as missing:
            raise MissingExtra("TensorBoardTracker needs tensorboard; pip install tensorboard") from missing
        writer: Any = SummaryWriter
        self._writer = writer(log_dir=None if log_dir is None else os.fspath(log_dir))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write one scalar for each value.

        Parameters
        ----------
        step : int
        values : mapping of str to float
        """
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
