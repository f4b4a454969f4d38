"""Schedules that are stated between ``make_private`` and the first step, as Opacus's schedulers are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, Literal

from torch.optim import Optimizer

from sfumato import _check
from sfumato.learning.noise.schedule import Schedule
from sfumato.learning.training.loop.private_optimizer import run_of
from sfumato.learning.training.loop.run import TrainingRun
from sfumato.learning.training.setup.batches import ENDLESS

__all__ = ["add_schedule"]

MOST: Final = 1 << 12
"""How many factors a run without a planned length has at most; the last one is not left."""

Kind = Literal["noise", "clip_norm"]
_WHERE: Final = {
    "noise": "noise=NoiseOptions(schedule=Schedule...)",
    "clip_norm": "gradients=GradientOptions(clip_schedule=Schedule...)",
}


def add_schedule(
    optimizer: Optimizer, kind: Kind, factor: Callable[[int], float], *, every: int | None
) -> tuple[TrainingRun, Schedule]:
    """Give a run that has not begun a schedule; all of its factors are worked out here.

    Parameters
    ----------
    optimizer : Optimizer
        As `PrivacyEngine.make_private` returned it.
    kind : {"noise", "clip_norm"}
    factor : callable
        From 0, 1, ... to a factor of what the run began with.
    every : int or None
        How many steps each factor holds for; those of an epoch if None.

    Returns
    -------
    tuple of TrainingRun and Schedule

    Raises
    ------
    ParameterError
        The run has begun, has such a schedule, or was priced without it.

    Notes
    -----
    Guarantee: that of a `Schedule`, which is fixed before the first step, so that every step is priced by its
    own noise. A run on a ledger was charged when it was made private, and one that was made for a target
    epsilon has the noise that keeps it: neither may change afterwards.
    """
    run = run_of(optimizer)
    where = f"pass {_WHERE[kind]} to make_private"
    rule = "have a scheduler before the first step"
    if run.cursor or run.released:
        _check.refuse_state("run", rule, f"it has taken {max(run.cursor, run.released)} steps", where)
    if run.steps.durable:
        _check.refuse_state("run", "have no ledger where a scheduler is made", "it was charged", where)
    scheduled = run.scheduled
    if kind == "noise" and scheduled.calibrated:
        found = "its noise was chosen for a target epsilon"
        _check.refuse_state("run", "have a stated noise_multiplier", found, f"{where}_with_epsilon")
    if getattr(scheduled.schedules, kind) is not None:
        _check.refuse_state("run", f"have one schedule of its {kind}", "it has one", "leave one out")
    every = scheduled.steps_per_epoch if every is None else _check.integer("every", every, minimum=1)
    schedule = Schedule(tuple(_factors(factor, run.sampler.steps, every)), every)
    changed = (
        replace(scheduled.schedules, noise=schedule)
        if kind == "noise"
        else replace(scheduled.schedules, clip_norm=schedule)
    )
    run.ranks.require_alike({"schedule": [kind, every, *schedule.factors]})
    changed.check(run.noise, run.sampler, run.clipping, run.noise_multiplier)
    scheduled.change(changed)
    return run, schedule


def _factors(factor: Callable[[int], float], steps: int, every: int) -> Iterator[float]:
    """Yield the factors of a planned run; of an endless one those that are positive numbers."""
    if steps < ENDLESS:
        yield from Schedule.of(factor, steps=steps, every=every).factors
        return
    yield factor(0)
    for place in itertools.islice(itertools.count(1), MOST - 1):
        value = factor(place)
        if not (math.isfinite(value) and value > 0):
            return
        yield value
