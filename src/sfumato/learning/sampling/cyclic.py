"""Cyclic batches: one order for all epochs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato import _check
from sfumato.learning.sampling.epoch_sampler import EpochSampler
from sfumato.learning.sampling.permutations import Indices, permutation
from sfumato.mechanisms.factorization.strategies.participation import Participation

__all__ = ["CyclicSampler"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CyclicSampler(EpochSampler):
    """The same batches in the same order in each epoch, as correlated noise likes them.

    Parameters
    ----------
    population, batch_size : int
        Public; the batch size is at most the population.
    steps : int
        The planned number of batches, over all epochs.
    shuffle : bool
        Whether the one order is random. In the given order, it must not follow from the data.
    drop_last : bool
        Whether an epoch ends before a batch that would be smaller; the rest is never used then.
    neighboring : Neighboring
        Zero-out or replace-one.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Notes
    -----
    Guarantee: see `EpochSampler`. An example's steps are an epoch apart, exactly: ``participation`` says so
    to strategies of correlated noise.

    Examples
    --------
    >>> sampler = CyclicSampler(population=6, batch_size=2, steps=4, shuffle=False)
    >>> [batch.tolist() for batch in sampler.batches()]
    [[0, 1], [2, 3], [4, 5], [0, 1]]
    >>> sampler.participation
    Participation(max_participations=None, separation=3, fixed_order=True)
    """

    shuffle: bool = True

    def __post_init__(self) -> None:
        self._check_epochs()
        if not isinstance(self.shuffle, bool):
            _check.refuse("shuffle", "be True or False", self.shuffle, "use True for a random order")

    @property
    def participation(self) -> Participation:
        """Steps that are an epoch apart."""
        return Participation(max_participations=None, separation=self.steps_per_epoch, fixed_order=True)

    def _order(self, epoch: int) -> Indices:
        del epoch
        if not self.shuffle:
            return np.arange(self.population, dtype=np.int64)
        return self._last.of(0, lambda: permutation(self.population, self._stream("cyclic", 0)))
