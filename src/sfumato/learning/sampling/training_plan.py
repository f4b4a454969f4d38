"""Noise for a wanted guarantee, and which batches and how many steps make the most of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.privacy.calibration import calibrate

__all__ = ["TrainingPlan", "TrainingPlanRow", "noise_for", "plan_training"]

_STEPS: Final = (100, 300, 1000, 3000, 10_000)
_SMALLEST: Final = 64
_GROWTH: Final = 4
_TOLERANCE: Final = 1e-3


def noise_for(sampler: Sampler, *, epsilon: float, delta: float, tolerance: float = 1e-4) -> float:
    """Return the smallest noise multiplier at which a run on these batches keeps a guarantee.

    Parameters
    ----------
    sampler : Sampler
    epsilon : float
        Positive.
    delta : float
        In [0, 1).
    tolerance : float
        How far above the least the answer may lie, relatively.

    Returns
    -------
    float
        Rounded up: `Sampler.loss` of it has at most ``epsilon`` at ``delta``.

    Raises
    ------
    ParameterError
        If no noise is enough, as where batches are cut off so often that delta is used up by that alone.

    Examples
    --------
    >>> sampler = PoissonSampler(population=60_000, sampling_probability=0.01, steps=1000)
    >>> noise = noise_for(sampler, epsilon=2.0, delta=1e-5)
    >>> round(noise, 3), sampler.loss(noise).epsilon(1e-5) <= 2.0
    (0.959, True)
    """
    _check.instance("sampler", sampler, Sampler, "pass PoissonSampler(...)")
    return calibrate(sampler.loss, epsilon=epsilon, delta=delta, tolerance=tolerance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlanRow:
    """One way to spend a guarantee.

    Attributes
    ----------
    batch_size : float
        Expected number of examples in a batch.
    steps : int
    noise_multiplier : float
        That keeps the guarantee.
    step_noise : float
        Standard deviation of the noise on each coordinate of one step's mean gradient, in clip norms.
    total_noise : float
        The same of the mean of all steps' gradients: ``step_noise / sqrt(steps)``.
    efficiency : float
        The total noise of full batches over this one: near 1, larger batches gain nothing any more.
    epochs : float
        How often each example is used, on average.

    Examples
    --------
    >>> row = TrainingPlanRow(batch_size=100.0, steps=400, noise_multiplier=2.0, step_noise=0.02,
    ...                       total_noise=0.001, efficiency=0.5, epochs=4.0)
    >>> row.total_noise == row.step_noise / row.steps**0.5
    True
    """

    batch_size: float
    steps: int
    noise_multiplier: float
    step_noise: float
    total_noise: float
    efficiency: float
    epochs: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """Rows that all keep one guarantee, and the one to begin with.

    Attributes
    ----------
    rows : tuple of TrainingPlanRow
    recommended : TrainingPlanRow

    Examples
    --------
    >>> row = TrainingPlanRow(batch_size=100.0, steps=400, noise_multiplier=2.0, step_noise=0.02,
    ...                       total_noise=0.001, efficiency=0.5, epochs=4.0)
    >>> TrainingPlan(rows=(row,), recommended=row).recommended.steps
    400
    """

    rows: tuple[TrainingPlanRow, ...]
    recommended: TrainingPlanRow

    def __str__(self) -> str:
        """Return a table; the recommended row is marked."""
        lines = ["     batch    steps   noise  noise/step  total noise  efficiency   epochs"]
        for row in self.rows:
            mark = "*" if row is self.recommended else " "
            lines.append(
                f"{mark}{row.batch_size:9.0f}{row.steps:9d}{row.noise_multiplier:8.3f}{row.step_noise:12.3g}"
                f"{row.total_noise:13.3g}{row.efficiency:12.2f}{row.epochs:9.1f}"
            )
        return "\n".join(lines)


def plan_training(
    population: int,
    *,
    epsilon: float,
    delta: float,
    max_epochs: float,
    steps: Sequence[int] = _STEPS,
    batch_sizes: Sequence[int] | None = None,
    slack: float = 0.25,
    sampler: Callable[[int, int], Sampler] | None = None,
) -> TrainingPlan:
    """Return noise, batch and steps that keep a guarantee, with what each costs in noise and in work.

    Parameters
    ----------
    population : int
        How many examples there are.
    epsilon, delta : float
        The guarantee, delta above 0.
    max_epochs : float
        How much work there may be: examples used over the population, on average.
    steps : sequence of int
        Numbers of steps to look at.
    batch_sizes : sequence of int, optional
        Batch sizes to look at; powers of 4 from 64 on, what the work allows, and all examples, unless given.
    slack : float
        How much more total noise than that of full batches the recommended row may have, relatively.
    sampler : callable, optional
        From a batch size and a number of steps to the sampler; Poisson batches unless given.

    Returns
    -------
    TrainingPlan

    Notes
    -----
    Every row keeps the guarantee: that is proven. What is recommended is a rule of thumb: the most steps, and
    for these the smallest batches, at which the total noise is within the slack of the least; the least
    total noise if none is. With full batches the total noise is the same for any number of steps: that of one
    release of the mean (exact composition of Gaussians). Smaller batches come near to it as long as a step's
    own noise is large (Sander, Stock, Sablayrolles 2023, who compare runs of equal total noise; De et al.
    2022 on large batches), and then more steps only make finer ones. Accuracy is not looked at: the plan
    needs no data.

    References
    ----------
    Sander, Stock, Sablayrolles (2023), "TAN without a burn: scaling laws of DP-SGD"; De et al. (2022),
    "Unlocking high-accuracy differentially private image classification through scale".

    Examples
    --------
    >>> plan = plan_training(
    ...     60_000, epsilon=3.0, delta=1e-5, max_epochs=40, steps=[500], batch_sizes=[256, 1024, 4096]
    ... )
    >>> [round(row.efficiency, 2) for row in plan.rows], plan.recommended.batch_size
    ([0.22, 0.59, 0.92], 4096.0)
    """
    count = _check.integer("population", population, minimum=1)
    work = _check.positive("max_epochs", max_epochs, "pass how often each example may be used") * count
    slack = _check.positive("slack", slack)
    make = sampler or (
        lambda size, length: PoissonSampler.of_batch_size(
            population=count, batch_size=size, steps=length, seed=0
        )
    )
    full = make(count, 1)
    release = calibrate(full.step_loss, epsilon=epsilon, delta=delta, tolerance=_TOLERANCE)
    rows = tuple(
        _row(make(size, length), count, release / count, epsilon, delta)
        for length in sorted({_check.integer("steps", value, minimum=1) for value in steps})
        for size in _sizes(batch_sizes, count, work / length)
    )
    if not rows:
        remedy = "allow more epochs, or look at fewer steps or smaller batches"
        _check.refuse("max_epochs", "allow at least one of the batch sizes and steps", max_epochs, remedy)
    return TrainingPlan(rows=rows, recommended=_recommended(rows, slack))


def _sizes(given: Sequence[int] | None, population: int, max_size: float) -> Iterator[int]:
    """Yield the batch sizes that the work allows."""
    if given is None:
        powers = (_SMALLEST * _GROWTH**i for i in range(40))
        given = [*(size for size in powers if size < population), min(population, int(max_size)), population]
    for size in sorted({_check.integer("batch_sizes", value) for value in given}):
        if 1 <= size <= min(population, max_size):
            yield size


def _row(sampler: Sampler, population: int, lowest: float, epsilon: float, delta: float) -> TrainingPlanRow:
    noise = noise_for(sampler, epsilon=epsilon, delta=delta, tolerance=_TOLERANCE)
    size, steps = sampler.expected_batch_size, sampler.steps
    total = noise / size / math.sqrt(steps)
    return TrainingPlanRow(
        batch_size=size,
        steps=steps,
        noise_multiplier=noise,
        step_noise=noise / size,
        total_noise=total,
        efficiency=lowest / total,
        epochs=size * steps / population,
    )


def _recommended(rows: Sequence[TrainingPlanRow], slack: float) -> TrainingPlanRow:
    near = [row for row in rows if row.efficiency * (1 + slack) >= 1]
    if not near:
        return max(rows, key=lambda row: row.efficiency)
    return min(near, key=lambda row: (-row.steps, row.batch_size))
