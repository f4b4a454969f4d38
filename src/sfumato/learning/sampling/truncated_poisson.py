"""Poisson batches of a bounded size, which hardware with fixed shapes wants."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.sampling.bernoulli import heads
from sfumato.learning.sampling.independent import ExampleSampler
from sfumato.learning.sampling.permutations import subset
from sfumato.learning.sampling.poisson import EVERY_STEP, checked_probability
from sfumato.learning.sampling.sampler import Indices
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.truncated import TruncatedPoisson

__all__ = ["TruncatedPoissonSampler"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TruncatedPoissonSampler(ExampleSampler):
    """Fresh Poisson samples; of one that is too large, a random part is retained.

    Parameters
    ----------
    population : int
        How many examples there are; at least 1.
    sampling_probability : float
        With which each example is drawn; above 0, at most 1.
    max_batch_size : int
        The maximum size of a batch.
    steps : int
        The planned number of batches.
    population_bound : int, optional
        A public bound on the number of examples of either neighbor; one more than the population unless
        given.
    neighboring : Neighboring
        Add/remove, or zero-out where the number of examples is public.
    public_batch_size : None
        Refused: what is cut off follows from the number of examples, which must be public.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Notes
    -----
    Guarantee: add/remove or zero-out, `TruncatedPoisson` in every step: a Poisson sample, and a mass for full
    batches. With room for some six standard deviations above the mean the mass is next to nothing.

    Examples
    --------
    >>> sampler = TruncatedPoissonSampler(
    ...     population=1000, sampling_probability=0.02, max_batch_size=24, steps=10, seed=1
    ... )
    >>> indices, mask = sampler.padded(0)
    >>> indices.shape, int(mask.sum()) == sampler.batch(0).size
    ((24,), True)
    """

    sampling_probability: float
    max_batch_size: int
    population_bound: int | None = None

    def __post_init__(self) -> None:
        self._check_examples()
        self._set("max_batch_size", _check.integer("max_batch_size", self.max_batch_size, minimum=1))
        self._set("sampling_probability", checked_probability(self.sampling_probability))
        if self.public_batch_size is not None:
            remedy = "use PoissonSampler where the number of examples is private"
            rule = "be left out of truncated batches"
            _check.refuse("public_batch_size", rule, self.public_batch_size, remedy)
        if self.population_bound is not None:
            bound = _check.integer("population_bound", self.population_bound)
            if bound < self.population:
                _check.refuse("population_bound", "be at least population", bound, "bound both neighbors")

    @property
    def sampling_rate(self) -> float:
        """The sampling probability, of batches that are not cut off."""
        return self.sampling_probability

    @property
    def mean_batch_size(self) -> float:
        """The sampling probability times the population, or the largest size if that is less."""
        return min(float(self.max_batch_size), self.sampling_probability * self.population)

    @property
    def participation(self) -> Participation:
        """Every step."""
        return EVERY_STEP

    def batch(self, step: int) -> Indices:
        """Return the examples that are drawn and retained, sorted.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        stream = self._stream("truncated poisson", self._step(step))
        drawn = heads(self.population, Fraction(self.sampling_probability), stream)
        if drawn.size <= self.max_batch_size:
            return drawn
        return drawn[subset(drawn.size, self.max_batch_size, stream)]

    def padded(self, step: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Return the batch filled up with example 0 to its largest size, and which entries are of the batch.

        What is in the other entries must not enter any sum.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        indices : ndarray of int64
            Of length ``max_batch_size``.
        mask : ndarray of bool
            True where an index is of the batch.
        """
        batch = self.batch(step)
        indices = np.zeros(self.max_batch_size, np.int64)
        indices[: batch.size] = batch
        return indices, np.arange(self.max_batch_size) < batch.size

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return a truncated Poisson sample's loss, ``steps`` times.

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
        bound = self.population + 1 if self.population_bound is None else self.population_bound
        node = TruncatedPoisson(self._own(step), self.sampling_probability, self.max_batch_size, bound)
        return node * self._counted(steps)
