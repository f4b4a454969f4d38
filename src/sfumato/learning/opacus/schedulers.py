"""Opacus's schedulers of noise and of clip norms: all of their factors are fixed when they are made.

>>> import torch
>>> from torch.utils.data import DataLoader, TensorDataset
>>> from sfumato.learning.opacus import PrivacyEngine
>>> module, engine = torch.nn.Linear(3, 1), PrivacyEngine()
>>> data = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
>>> module, optimizer, loader = engine.make_private(
...     module=module,
...     optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
...     data_loader=DataLoader(data, batch_size=10),
...     noise_multiplier=1.0,
...     max_grad_norm=1.0,
... )
>>> scheduler = ExponentialNoise(optimizer, gamma=0.9)
>>> for epoch in range(2):
...     for x, y in loader:
...         optimizer.zero_grad()
...         torch.nn.functional.mse_loss(module(x), y).backward()
...         optimizer.step()
...     scheduler.step()
>>> scheduler.get_noise_multiplier(), optimizer.noise_multiplier
(0.81, 0.81)
>>> engine.run.schedules.noise.counts(8)  # the steps of two epochs, each priced by its own noise
{1.0: 4, 0.9: 4}
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, Literal, final

from torch.optim import Optimizer

from sfumato import _check
from sfumato.learning.training.setup.late_schedules import add_schedule

__all__ = [
    "ExponentialGradClip",
    "ExponentialNoise",
    "LambdaGradClip",
    "LambdaNoise",
    "StepGradClip",
    "StepNoise",
]


class _Scheduler(ABC):
    """Follows a schedule that is the run's from its making on.

    Parameters
    ----------
    optimizer : Optimizer
        As ``make_private`` returned it, before the first step. On a ledger, or for a target epsilon, the
        schedule goes into ``make_private``: the run is charged, and its noise is chosen, there.
    factor : callable
        From the number of an epoch to a factor.
    last_epoch : int
        Opacus's: -1 only, as a schedule begins with its run.
    every : int, optional
        How many steps each factor holds for: 1 where `step` is called after each step of the optimizer. The
        steps of an epoch by default.

    Notes
    -----
    Guarantee: each step is priced by its own noise, which is fixed before the first one. `step` changes
    no noise: it is refused where it comes at another time than the schedule's, and lets the optimizer state
    what holds next. The optimizer's ``noise_multiplier`` and ``max_grad_norm`` are those of the current step.
    """

    _kind: ClassVar[Literal["noise", "clip_norm"]]

    def __init__(
        self, optimizer: Optimizer, factor: Callable[[int], float], last_epoch: int, every: int | None
    ) -> None:
        if last_epoch != -1:
            remedy = "leave it out: a run goes on with a schedule of make_private"
            _check.refuse("last_epoch", "be -1, as a schedule begins with its run", last_epoch, remedy)
        self.optimizer, self.last_epoch = optimizer, 0
        self._run, self._schedule = add_schedule(optimizer, self._kind, factor, every=every)

    def step(self) -> None:
        """Note that an epoch has ended, after which the next factor holds.

        Raises
        ------
        ParameterError
            So many steps were not taken: the factors would change at another time than they are priced.
        """
        every, taken = self._schedule.every, self._run.cursor
        due = (self.last_epoch + 1) * every
        if taken != due and taken < self._run.sampler.steps:
            found = f"{taken} steps were taken, and the next factor holds from step {due}"
            remedy = f"pass every= to {type(self).__name__}, 1 to call it after each step"
            _check.refuse_state("scheduler", f"be stepped after each {every} steps", found, remedy)
        if self.last_epoch + 1 >= len(self._schedule.factors) and taken < self._run.sampler.steps:
            remedy = "state the length by SamplingOptions(epochs=)"
            rule = "have a positive factor for each epoch of a run without a planned length"
            _check.refuse_state("scheduler", rule, "there is none for the next", remedy)
        self.last_epoch += 1
        self._run.scheduled.show(taken)

    @property
    def _factor(self) -> float:
        return self._schedule.at(self.last_epoch * self._schedule.every)

    def state_dict(self) -> dict[str, Any]:
        """Return how many epochs were noted."""
        return {"last_epoch": self.last_epoch}


class _NoiseScheduler(_Scheduler):
    _kind = "noise"

    def get_noise_multiplier(self) -> float:
        """Return the noise multiplier of the next step.

        Returns
        -------
        float
        """
        return self._run.noise_multiplier * self._factor


class _GradClipScheduler(_Scheduler):
    _kind = "clip_norm"

    def get_max_grad_norm(self) -> float:
        """Return the clip norm of the next step.

        Returns
        -------
        float
        """
        return float(self._norm * self._factor)

    def __init__(
        self, optimizer: Optimizer, factor: Callable[[int], float], last_epoch: int, every: int | None
    ) -> None:
        super().__init__(optimizer, factor, last_epoch, every)
        self._norm: Any = self._run.clipping.clip_norm  # type: ignore[attr-defined]


@final
class ExponentialNoise(_NoiseScheduler):
    """Multiplies the noise multiplier by ``gamma`` after each epoch.

    Parameters
    ----------
    optimizer : Optimizer
        As ``make_private`` returned it, before the first step.
    gamma : float
    last_epoch : int
    every : int, optional
        How many steps each factor holds for; those of an epoch by default.
    """

    def __init__(
        self, optimizer: Optimizer, *, gamma: float, last_epoch: int = -1, every: int | None = None
    ) -> None:
        super().__init__(optimizer, _powers(gamma), last_epoch, every)


@final
class LambdaNoise(_NoiseScheduler):
    """Multiplies the first noise multiplier by what a function gives for the number of the epoch.

    Parameters
    ----------
    optimizer : Optimizer
        As ``make_private`` returned it, before the first step.
    noise_lambda : callable
        Called when the scheduler is made, for all epochs, and not again.
    last_epoch : int
    every : int, optional
        How many steps each factor holds for; those of an epoch by default.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        noise_lambda: Callable[[int], float],
        last_epoch: int = -1,
        every: int | None = None,
    ) -> None:
        super().__init__(optimizer, noise_lambda, last_epoch, every)


@final
class StepNoise(_NoiseScheduler):
    """Multiplies the noise multiplier by ``gamma`` after each ``step_size`` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        As ``make_private`` returned it, before the first step.
    step_size : int
    gamma : float
    last_epoch : int
    every : int, optional
        How many steps an epoch of the schedule has; those of the loader's by default.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        step_size: int,
        gamma: float,
        last_epoch: int = -1,
        every: int | None = None,
    ) -> None:
        size = _check.integer("step_size", step_size, minimum=1)
        super().__init__(optimizer, _powers(gamma, size), last_epoch, every)


@final
class ExponentialGradClip(_GradClipScheduler):
    """Multiplies the clip norm by ``gamma`` after each epoch.

    Parameters
    ----------
    optimizer : Optimizer
        As ``make_private`` returned it, before the first step.
    gamma : float
    last_epoch : int
    every : int, optional
        How many steps each factor holds for; those of an epoch by default.
    """

    def __init__(
        self, optimizer: Optimizer, *, gamma: float, last_epoch: int = -1, every: int | None = None
    ) -> None:
        super().__init__(optimizer, _powers(gamma), last_epoch, every)


@final
class LambdaGradClip(_GradClipScheduler):
    """Multiplies the first clip norm by what a function gives for the number of the epoch.

    Parameters
    ----------
    optimizer : Optimizer
        As ``make_private`` returned it, before the first step.
    scheduler_function : callable
        Called when the scheduler is made, for all epochs, and not again.
    last_epoch : int
    every : int, optional
        How many steps each factor holds for; those of an epoch by default.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        scheduler_function: Callable[[int], float],
        last_epoch: int = -1,
        every: int | None = None,
    ) -> None:
        super().__init__(optimizer, scheduler_function, last_epoch, every)


@final
class StepGradClip(_GradClipScheduler):
    """Multiplies the clip norm by ``gamma`` after each ``step_size`` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        As ``make_private`` returned it, before the first step.
    step_size : int
    gamma : float
    last_epoch : int
    every : int, optional
        How many steps an epoch of the schedule has; those of the loader's by default.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        step_size: int,
        gamma: float,
        last_epoch: int = -1,
        every: int | None = None,
    ) -> None:
        size = _check.integer("step_size", step_size, minimum=1)
        super().__init__(optimizer, _powers(gamma, size), last_epoch, every)


def _powers(gamma: float, size: int = 1) -> Callable[[int], float]:
    """Return what multiplies by ``gamma`` once more after each so many epochs."""
    base = _check.positive("gamma", gamma)
    return lambda epoch: base ** (epoch // size)
