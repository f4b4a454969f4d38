"""The loss of a planned run as a function of its noise, to find the smallest noise by."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.training.loop.run_loss import priced
from sfumato.learning.training.loop.schedules import Schedules
from sfumato.learning.training.setup import arguments
from sfumato.learning.training.setup.options import NoiseOptions
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["trial_loss"]


def trial_loss(planned: Sampler, options: NoiseOptions, entries: int) -> Callable[[float], PrivacyLoss]:
    """Return what makes the whole run's loss of a noise multiplier.

    Parameters
    ----------
    planned : Sampler
        Like that of the run.
    options : NoiseOptions
    entries : int
        How many entries the trainable parameters have.

    Returns
    -------
    callable
    """
    noise = arguments.noise_for_run(options, planned, seed=0, key=bytes(32))
    Schedules(noise=options.schedule).check_noise(noise, planned)

    def loss(multiplier: float) -> PrivacyLoss:
        schedule = options.schedule
        return priced(noise, planned, multiplier, planned.steps, entries=entries, schedule=schedule)

    return loss
