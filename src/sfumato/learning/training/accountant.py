"""What a run has spent so far, by the names that Opacus's accountants have."""

from __future__ import annotations

from typing import final

from sfumato.learning.sampling.independent import IndependentSampler
from sfumato.learning.training.loop.run import TrainingRun
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["RunAccountant"]


@final
class RunAccountant:
    """Reads a run's loss; it keeps nothing by itself.

    Parameters
    ----------
    run : TrainingRun
    """

    def __init__(self, run: TrainingRun) -> None:
        self._run = run

    def get_epsilon(self, delta: float) -> float:
        """Return the epsilon of the steps so far at a delta, certified and rounded up.

        Parameters
        ----------
        delta : float
            Where epsilon is read.

        Returns
        -------
        float
        """
        return self._run.epsilon(delta)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the steps so far."""
        return self._run.loss_so_far()

    @property
    def history(self) -> list[tuple[float, float, int]]:
        """The noise multiplier, the share of examples in a batch, and the number of steps."""
        sampler = self._run.sampler
        if isinstance(sampler, IndependentSampler):
            rate = sampler.sampling_rate
        else:
            rate = sampler.expected_batch_size / sampler.population
        multiplier, steps, schedule = self._run.noise_multiplier, self._run.cursor, self._run.schedules.noise
        counts = {1.0: steps} if schedule is None else schedule.counts(steps)
        return [(multiplier * factor, rate, count) for factor, count in counts.items() if count]

    def __len__(self) -> int:
        """Return how many steps there were."""
        return self._run.cursor

    @staticmethod
    def mechanism() -> str:
        """Name how the loss is accounted."""
        return "certified privacy loss distributions"
