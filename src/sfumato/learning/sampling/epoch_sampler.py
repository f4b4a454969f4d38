"""Batches that are cut from one order of all examples, once in every epoch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.learning.sampling.permutations import Indices, LastValue, permutation
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.seed import SeedLike
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["CyclicSampler", "EpochSampler", "ShuffledSampler"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpochSampler(Sampler):
    """Each example is in one batch of an epoch at most; nothing is hidden by which.

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
    Guarantee: under zero-out or replace-one, the loss of one step, without amplification, for each epoch that
    was begun. Proof: the orders are independent of the data, so assume that they are known (joint convexity).
    Then in both worlds the steps without the unit are the same functions of what was seen before; those with
    it, one in an epoch, have each the loss of a step. These compose.

    Under add/remove it is refused: where a unit is absent, all others move. `BallsInBinsSampler` throws each
    example by itself and holds there.
    """

    population: int
    batch_size: int
    steps: int
    drop_last: bool = False
    neighboring: Neighboring = Neighboring.ZERO_OUT
    seed: SeedLike = field(default=None, repr=False)
    _last: LastValue[Indices] = field(default_factory=LastValue, init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_epochs()

    @property
    def expected_batch_size(self) -> float:
        """The batch size, of the smaller last batch too."""
        return float(self.batch_size)

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has."""
        whole, rest = divmod(self.population, self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)

    @abstractmethod
    def _order(self, epoch: int) -> Indices:
        """Return the order of an epoch."""

    def batch(self, step: int) -> Indices:
        """Return the next examples in the order of the epoch.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        epoch, index = divmod(self._step(step), self.steps_per_epoch)
        order = self._order(epoch)
        return order[index * self.batch_size : (index + 1) * self.batch_size].copy()

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return the loss of one step for each epoch that was begun.

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
        return self._own(step) * self.epochs(self._counted(steps))

    def epochs(self, steps: int) -> int:
        """Return how many epochs the first ``steps`` steps begin: the most steps that an example is in."""
        return -(-steps // self.steps_per_epoch)

    def _check_epochs(self) -> None:
        self._check_common()
        self._set("population", _check.integer("population", self.population, minimum=1))
        self._set("batch_size", _check.integer("batch_size", self.batch_size, minimum=1))
        if self.batch_size > self.population:
            _check.refuse("batch_size", "be at most population", self.batch_size, "take smaller batches")
        if not isinstance(self.drop_last, bool):
            _check.refuse("drop_last", "be True or False", self.drop_last, "use True for batches of one size")
        check_public_number(self.neighboring)


def check_public_number(neighboring: Neighboring) -> None:
    """Refuse the relation under which the number of units is not public."""
    _check.instance("neighboring", neighboring, Neighboring, "pass Neighboring.ZERO_OUT")
    if neighboring is Neighboring.ADD_REMOVE:
        raise NeighboringMismatch(
            "neighboring must be zero-out or replace-one, got add/remove; where a unit is absent, all "
            "batches of a list change: use a Poisson or a balls-in-bins sampler"
        )


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
