"""The schedules of a run: its noise and its clip norm by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import INTEGER, NUMBER, Record, sequence
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.engine import Engine
from sfumato.learning.noise.correlated import CorrelatedNoise
from sfumato.learning.noise.noise import Noise
from sfumato.learning.noise.schedule import Schedule
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.training.identity import clipping_to_json
from sfumato.learning.training.loop.run_loss import draws_independently

__all__ = ["ScheduledClipping", "Schedules"]

_SCHEDULE: Final = Record("a schedule", Schedule, {"factors": sequence(NUMBER), "every": INTEGER})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules:
    """How the noise multiplier and the clip norm change by step; None where they do not.

    Parameters
    ----------
    noise, clip_norm : Schedule, optional
    """

    noise: Schedule | None = None
    clip_norm: Schedule | None = None

    def __bool__(self) -> bool:
        """Whether there is one."""
        return self.noise is not None or self.clip_norm is not None

    def check(self, noise: Noise, sampler: Sampler, clipping: Clipping, multiplier: float) -> None:
        """Refuse schedules of a run whose steps are not priced one by one, or that cannot clip so."""
        self.check_noise(noise, sampler)
        if self.noise is not None and clipping.adapts:
            # the count of norms takes up a part of the noise, if that is not too large
            clipping.stddevs(multiplier * max(self.noise.factors), (), ())
        if self.clip_norm is not None:
            if clipping.adapts or not isinstance(getattr(clipping, "clip_norm", None), float):
                rule = "have one clip norm that does not adapt where that has a schedule"
                _check.refuse_type("clipping", rule, clipping, "pass Flat(clip_norm=1.0), say")
            for factor in self.clip_norm.factors:
                _scaled(clipping, factor)

    def check_noise(self, noise: Noise, sampler: Sampler) -> None:
        """Refuse what are no schedules, and one of the noise where steps are not priced one by one."""
        for name, schedule in (("noise", self.noise), ("clip_norm", self.clip_norm)):
            given: object = schedule
            if not isinstance(given, Schedule | None):
                _check.refuse_type(f"{name} schedule", "be a Schedule", given, "pass Schedule((1.0, 0.5))")
        if self.noise is not None:
            remedy = "leave the schedule out, or draw batches by PoissonSampler"
            rule = "draw each step's batch and noise independently where noise has a schedule"
            if isinstance(noise, CorrelatedNoise):
                _check.refuse_type("noise", rule, noise, "leave the schedule out, or the correlated noise")
            if not draws_independently(sampler):
                _check.refuse_type("sampler", rule, sampler, remedy)

    def multiplier(self, base: float, step: int) -> float:
        """Return the noise multiplier of a step."""
        return base if self.noise is None else base * self.noise.at(step)

    def clipping(self, base: Clipping, step: int) -> Clipping:
        """Return how a step clips."""
        return base if self.clip_norm is None else _scaled(base, self.clip_norm.at(step))

    def noise_document(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return what identifies the noise, with its schedule if there is one."""
        return document | ({} if self.noise is None else {"schedule": _SCHEDULE.encode(self.noise)})

    def clipping_document(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return what identifies the clipping, with the schedule of its norm if there is one."""
        return document | ({} if self.clip_norm is None else {"schedule": _SCHEDULE.encode(self.clip_norm)})


@final
class ScheduledClipping:
    """What an engine clips by between two steps, as the schedule says.

    Parameters
    ----------
    engine : Engine
    schedules : Schedules

    Notes
    -----
    The next batch may be taken before the step of the one before it, whose sums then lie there with another
    clip norm. So noise is that of every clipping since the last step: the largest of each parameter's
    deviations. Guarantee: each example's part in the sums is bounded by one of them, and they differ by a
    factor only.
    """

    def __init__(self, engine: Engine, schedules: Schedules) -> None:
        self.schedules = schedules
        self.steps_per_epoch = 1
        self.calibrated = False
        """Whether the noise was chosen so that the whole run keeps a target epsilon."""
        self._engine, self._first, self._others = engine, engine.clipping, list[Clipping]()
        self._step, self._watchers = 0, list[Callable[[int], None]]()

    def change(self, schedules: Schedules) -> None:
        """Follow other schedules; the run has not begun."""
        self.schedules = schedules
        self.show(self._step)

    def watch(self, watcher: Callable[[int], None]) -> None:
        """Have a function called with the number of the current step, whenever what holds in it changes."""
        self._watchers.append(watcher)

    def show(self, step: int) -> None:
        """Take a step as the current one, for those who watch; this changes nothing of any step."""
        self._step = step
        for watcher in self._watchers:
            watcher(step)

    def clipping_at(self, step: int) -> Clipping:
        """Return how a step clips; where clipping adapts, how the next one does."""
        scheduled = self.schedules.clip_norm is not None
        return self.schedules.clipping(self._first, step) if scheduled else self._engine.clipping

    def clip(self, step: int, *, pending: bool) -> None:
        """Clip from now on as a step does; gradients that are ``pending`` may be clipped as before."""
        if self.schedules.clip_norm is not None:
            if pending:
                self._others.append(self._engine.clipping)
            self._engine.clipping = self.clipping_at(step)
        self.show(step)

    def stddevs(self, multiplier: float, names: Sequence[str], sizes: Sequence[int]) -> tuple[float, ...]:
        """Return the deviations of all that was clipped since the last step; see `Clipping.stddevs`."""
        clippings = (self._engine.clipping, *self._others)
        each = [clipping.stddevs(multiplier, names, sizes) for clipping in clippings]
        return tuple(max(of_one) for of_one in zip(*each, strict=True))

    def document(self) -> dict[str, Any]:
        """Return what the deviations follow from, for a digest of the step."""
        others = [clipping_to_json(clipping) for clipping in self._others]
        return clipping_to_json(self._engine.clipping) | ({"others": others} if others else {})

    def stepped(self) -> None:
        """Begin anew: all that was summed has been released."""
        self._others.clear()
        self.show(self._step)


def _scaled(clipping: Any, factor: float) -> Clipping:
    scaled: Clipping = replace(clipping, clip_norm=clipping.clip_norm * factor)
    return scaled
