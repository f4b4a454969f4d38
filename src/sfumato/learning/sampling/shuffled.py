"""Shuffled epochs: a fresh order in each, cut into batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato.learning.sampling.epoch_sampler import EpochSampler
from sfumato.learning.sampling.permutations import Indices, permutation
from sfumato.mechanisms.factorization.strategies.participation import Participation

__all__ = ["ShuffledSampler"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShuffledSampler(EpochSampler):
    """What most loaders do: a fresh random order of all examples in each epoch. It amplifies nothing.

    Parameters
    ----------
    population, batch_size : int
        Public; the batch size is at most the population.
    steps : int
        The planned number of batches, over all epochs.
    drop_last : bool
        Whether an epoch ends before a batch that would be smaller.
    neighboring : Neighboring
        Zero-out or replace-one.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Notes
    -----
    Guarantee: see `EpochSampler`: one unamplified step for each epoch. `sfumato.privacy.Shuffled` is about
    reports that each client randomizes by itself and never applies to batches.

    Examples
    --------
    >>> sampler = ShuffledSampler(population=10, batch_size=4, steps=6, seed=1)
    >>> [batch.size for batch in sampler.batches()]
    [4, 4, 2, 4, 4, 2]
    >>> sampler.loss(2.0)
    Gaussian(noise_multiplier=2.0, neighboring=<Neighboring.ZERO_OUT: 'zero-out'>) * 2
    """

    @property
    def participation(self) -> Participation:
        """One step in each epoch; the last of one and the first of the next may be one step apart."""
        return Participation(max_participations=self.epochs(self.steps))

    def _order(self, epoch: int) -> Indices:
        return self._last.of(epoch, lambda: permutation(self.population, self._stream("shuffled", epoch)))
