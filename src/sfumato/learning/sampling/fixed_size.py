"""Batches of a fixed size, drawn anew in each step, without and with replacement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from sfumato import _check
from sfumato.learning.sampling.permutations import subset
from sfumato.learning.sampling.poisson import EVERY_STEP
from sfumato.learning.sampling.sampler import Indices, Sampler
from sfumato.learning.sampling.seed import SeedLike
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.fixed_size import FixedSizeSampled
from sfumato.privacy.nodes.with_replacement import SampledWithReplacement

__all__ = ["FixedSizeSampler", "WithReplacementSampler"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FixedSize(Sampler):
    population: int
    batch_size: int
    steps: int
    seed: SeedLike = field(default=None, repr=False)

    @property
    def expected_batch_size(self) -> float:
        """The batch size."""
        return float(self.batch_size)

    @property
    def neighboring(self) -> Neighboring:
        """Replace-one."""
        return Neighboring.REPLACE_ONE

    @property
    def participation(self) -> Participation:
        """Every step."""
        return EVERY_STEP

    def _check_sizes(self, minimum: int) -> None:
        self._check_common()
        self._set("population", _check.integer("population", self.population, minimum=minimum))
        self._set("batch_size", _check.integer("batch_size", self.batch_size, minimum=1))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedSizeSampler(_FixedSize):
    """A fresh batch of distinct examples in each step; all sets of that size are equally likely.

    Parameters
    ----------
    population, batch_size : int
        Public; the batch size is at most the population.
    steps : int
        The planned number of batches.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Notes
    -----
    Guarantee: replace-one, `FixedSizeSampled` in every step (Balle, Barthe, Gaboardi 2018). A replaced
    example moves the sum by twice the clip norm, so that this is dearer than Poisson batches at the same
    noise.

    Examples
    --------
    >>> sampler = FixedSizeSampler(population=100, batch_size=5, steps=10, seed=1)
    >>> sampler.batch(0).size, sampler.loss(2.0).neighboring.value
    (5, 'replace-one')
    """

    def __post_init__(self) -> None:
        self._check_sizes(1)
        if self.batch_size > self.population:
            _check.refuse("batch_size", "be at most population", self.batch_size, "take smaller batches")

    def batch(self, step: int) -> Indices:
        """Return a uniform subset, sorted.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        return subset(self.population, self.batch_size, self._stream("fixed size", self._step(step)))

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return the loss of a sample of fixed size, ``steps`` times.

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
        return FixedSizeSampled(self._own(step), self.batch_size, self.population) * self._counted(steps)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithReplacementSampler(_FixedSize):
    """A fresh batch of independent uniform draws in each step: an example may be in it several times.

    Parameters
    ----------
    population : int
        Public, at least 2.
    batch_size : int
        Number of draws.
    steps : int
        The planned number of batches.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Notes
    -----
    Guarantee: replace-one, `SampledWithReplacement` in every step (Balle, Barthe, Gaboardi 2018). Each time
    that an example was drawn is one row of the batch, clipped by itself. What insists on batches of distinct
    examples refuses these: see ``distinct``.

    Examples
    --------
    >>> sampler = WithReplacementSampler(population=4, batch_size=6, steps=10, seed=1)
    >>> sampler.batch(0).size, sampler.distinct
    (6, False)
    """

    def __post_init__(self) -> None:
        self._check_sizes(2)

    @property
    def distinct(self) -> bool:
        """False."""
        return False

    def batch(self, step: int) -> Indices:
        """Return the draws, sorted.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        stream = self._stream("with replacement", self._step(step))
        return np.sort(uniform_integers(self.population, self.batch_size, stream))

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return the loss of a sample with replacement, ``steps`` times.

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
        node = SampledWithReplacement(self._own(step), self.batch_size, self.population)
        return node * self._counted(steps)
