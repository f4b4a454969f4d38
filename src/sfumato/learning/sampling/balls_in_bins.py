"""Balls in bins: each example is thrown into one batch, which comes again in every epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from sfumato import _check
from sfumato.learning.sampling.independent import ExampleSampler
from sfumato.learning.sampling.permutations import Allocated, LastValue
from sfumato.learning.sampling.sampler import Indices
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.balls_in_bins import BallsInBins

__all__ = ["BallsInBinsSampler"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BallsInBinsSampler(ExampleSampler):
    """Epochs of the same batches, into which each example was thrown by itself: next to a shuffle.

    Parameters
    ----------
    population : int
        How many examples there are; at least 1.
    bins : int
        Number of batches, which is that of the steps in an epoch.
    steps : int
        The planned number of steps, over all epochs.
    neighboring : Neighboring
        Add/remove, or zero-out where the number of examples is public.
    public_batch_size : float, optional
        The expected batch size where the number of examples is private; see `IndependentSampler`.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Notes
    -----
    Guarantee: add/remove or zero-out, `BallsInBins` over the epochs that were begun (Chua et al. 2024): what
    is not run of the last one is left away after the fact. Conditions: the seed stays secret, and the noise
    of the steps is independent. With correlated noise there is no amplification, but ``participation`` is
    that of a fixed order.

    Examples
    --------
    >>> sampler = BallsInBinsSampler(population=1000, bins=20, steps=40, seed=1)
    >>> sampler.batch(3).tolist() == sampler.batch(23).tolist(), sampler.expected_batch_size
    (True, 50.0)
    """

    bins: int
    _last: LastValue[Allocated] = field(default_factory=LastValue, init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_examples()
        self._set("bins", _check.integer("bins", self.bins, minimum=1))

    @property
    def sampling_rate(self) -> float:
        """One over the number of bins."""
        return 1 / self.bins

    @property
    def participation(self) -> Participation:
        """Steps that are an epoch apart."""
        return Participation(max_participations=None, separation=self.bins, fixed_order=True)

    def batch(self, step: int) -> Indices:
        """Return the examples of the step's bin, sorted.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        index = self._step(step) % self.bins
        return self._last.of(0, self._allocated).batch(index)

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return the loss of all epochs that were begun.

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
        epochs = -(-self._counted(steps) // self.bins)
        return BallsInBins(self._own(step), self.bins, max(1, epochs)) * min(1, epochs)

    def _allocated(self) -> Allocated:
        stream = self._stream("balls in bins", 0)
        return Allocated.of(uniform_integers(self.bins, self.population, stream), self.bins)
