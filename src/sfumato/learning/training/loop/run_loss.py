"""The loss of a run: that of its batches, or of its noise where that is correlated over the steps."""

from __future__ import annotations

from sfumato import _check
from sfumato.learning.noise.correlated import CorrelatedNoise
from sfumato.learning.noise.noise import Noise
from sfumato.learning.noise.schedule import Schedule
from sfumato.learning.sampling.poisson import EVERY_STEP
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.users import UserRecordsSampler, UserSampler
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring

__all__ = ["check_fresh", "check_noise", "draws_independently", "priced"]


def check_noise(noise: Noise, sampler: Sampler) -> None:
    """Refuse noise that is bound to another schema of participation than the batches keep to."""
    if not isinstance(noise, CorrelatedNoise):
        return
    if sampler.neighboring is Neighboring.REPLACE_ONE:
        rule = "be under add/remove or zero-out with correlated noise"
        _check.refuse("sampler", rule, sampler.neighboring, "use a sampler under zero-out")
    if noise.participation != sampler.participation:
        remedy = "pass participation=sampler.participation"
        _check.refuse("noise", f"be for {sampler.participation}", noise.participation, remedy)
    if noise.strategy.steps < sampler.steps:
        remedy = "make a strategy for all steps, and pass epochs= or steps="
        _check.refuse("noise", f"be for {sampler.steps} steps", noise.strategy.steps, remedy)


def check_fresh(noise: Noise, sampler: Sampler, cursor: int) -> None:
    """Refuse to go on after ``cursor`` steps with other secrets where the steps hang together.

    A fresh order would let an example of an epoch's first half come again in its second; a fresh key would
    begin correlated noise anew. Neither is in the loss of one run.
    """
    apart = draws_independently(sampler) and not isinstance(noise, CorrelatedNoise)
    if cursor and not apart and not (noise.simulated and sampler.simulated):
        remedy = "reserve the run on a ledger, which keeps its secrets, or begin another run"
        rule = "be of steps that are drawn independently where no ledger keeps the secrets"
        _check.refuse_type("sampler", rule, sampler, remedy)


def draws_independently(sampler: Sampler) -> bool:
    """Whether each step's batch is drawn by itself, so that the loss of a run is composed of its steps'."""
    return isinstance(sampler, UserSampler | UserRecordsSampler) or sampler.participation == EVERY_STEP


def priced(
    noise: Noise,
    sampler: Sampler,
    noise_multiplier: float,
    steps: int,
    *,
    entries: int,
    schedule: Schedule | None = None,
) -> PrivacyLoss:
    """Return the loss of the first steps of a run.

    Parameters
    ----------
    noise : Noise
    sampler : Sampler
    noise_multiplier : float
    steps : int
    entries : int
        How many numbers a step's gradient has, which rounding to a grid costs by.
    schedule : Schedule, optional
        Of the noise multiplier, for batches that are drawn independently.

    Notes
    -----
    Correlated noise has one loss for all of its steps, which is that of fewer too, and nothing is amplified.
    With a schedule, which is fixed before the first step, the steps compose, each with its own noise.
    """
    if isinstance(noise, CorrelatedNoise):
        return noise.loss(noise_multiplier, neighboring=sampler.neighboring) * min(1, steps)
    if schedule is None or not steps:
        return sampler.loss_of(noise.charged(noise_multiplier, entries), steps)
    return compose(
        sampler.loss_of(noise.charged(noise_multiplier * factor, entries), count)
        for factor, count in schedule.counts(steps).items()
    )
