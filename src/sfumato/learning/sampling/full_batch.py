"""Full batches: every example in every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato import _check
from sfumato.learning.sampling.independent import ExampleSampler
from sfumato.learning.sampling.poisson import EVERY_STEP
from sfumato.learning.sampling.sampler import Indices
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["FullBatchSampler"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FullBatchSampler(ExampleSampler):
    """All examples in each step: the smallest noise for a guarantee, where it can be afforded.

    Parameters
    ----------
    population : int
        How many examples there are; at least 1.
    steps : int
        The planned number of steps.
    neighboring : Neighboring
        Any.
    public_batch_size : float, optional
        What sums are divided by where the number of examples is private; see `IndependentSampler`.
    seed : None, bytes, Seed or int
        Draws nothing; an int marks a simulation, as everywhere.

    Notes
    -----
    Guarantee: composition of the steps, exact for Gaussian noise.

    Examples
    --------
    >>> FullBatchSampler(population=3, steps=2).batch(1).tolist()
    [0, 1, 2]
    """

    def __post_init__(self) -> None:
        self._check_common()
        self._check_public_size()
        self._check_population()
        _check.instance("neighboring", self.neighboring, Neighboring, "use Neighboring.ADD_REMOVE, say")

    @property
    def sampling_rate(self) -> float:
        """One."""
        return 1.0

    @property
    def participation(self) -> Participation:
        """Every step."""
        return EVERY_STEP

    def batch(self, step: int) -> Indices:
        """Return all examples.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        self._step(step)
        return np.arange(self.population, dtype=np.int64)

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return the step's loss, ``steps`` times.

        Parameters
        ----------
        step : PrivacyLoss
            Of one step on a batch that is known.
        steps : int
            How many of the first steps.

        Returns
        -------
        PrivacyLoss
        """
        return self._own(step) * self._counted(steps)
