"""Poisson sampling in which an example rests after it has taken part (b-min-sep)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np

from sfumato import _check
from sfumato.learning.sampling.bernoulli import heads
from sfumato.learning.sampling.independent import ExampleSampler
from sfumato.learning.sampling.poisson import checked_probability
from sfumato.learning.sampling.sampler import Indices
from sfumato.learning.sampling.seed import SeedLike
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.separated_poisson import SeparatedPoisson

__all__ = ["SeparatedSampler"]


class _Rests:
    """When each example was last drawn, up to some step; goes on from there, or begins again."""

    __slots__ = ("_batch", "_last", "_lock", "_step")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._step = -1

    def batch(self, step: int, population: int, separation: int, coins: Callable[[int], Indices]) -> Indices:
        with self._lock:
            if step < self._step or self._step < 0:
                self._step, self._last = -1, np.full(population, -separation, np.int64)
            while self._step < step:
                self._step += 1
                drawn = coins(self._step)
                self._batch = drawn[self._step - self._last[drawn] >= separation]
                self._last[self._batch] = self._step
            return self._batch.copy()


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeparatedSampler(ExampleSampler):
    """Poisson batches of those examples that have rested, as banded correlated noise wants them.

    Parameters
    ----------
    population : int
        How many examples there are; at least 1.
    sampling_probability : float
        With which an example that has rested is in a batch; above 0, at most 1.
    separation : int
        Two steps of one example are at least this many apart.
    steps : int
        The planned number of batches.
    neighboring : Neighboring
        Add/remove, or zero-out where the number of examples is public.
    public_batch_size : float, optional
        The expected batch size where the number of examples is private; see `IndependentSampler`.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Notes
    -----
    Guarantee: add/remove or zero-out, `SeparatedPoisson`. Conditions: the seed stays secret, and the noise of
    the steps is independent. With correlated noise there is no amplification: ``participation`` says what may
    be.

    In the first steps all examples have rested, so that batches are larger there; sums are divided by one
    number all the same. A batch depends on those before it: asked for out of order, they are drawn again from
    the first on.

    Examples
    --------
    >>> sampler = SeparatedSampler(population=100, sampling_probability=0.5, separation=4, steps=20, seed=1)
    >>> sampler.expected_batch_size, [batch.size for batch in sampler.batches()][:5]
    (20.0, [45, 31, 11, 5, 23])
    """

    sampling_probability: float
    separation: int
    _rests: _Rests = field(default_factory=_Rests, init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_examples()
        self._set("separation", _check.integer("separation", self.separation, minimum=1))
        self._set("sampling_probability", checked_probability(self.sampling_probability))

    @classmethod
    def of_batch_size(
        cls, *, population: int, batch_size: int, separation: int, steps: int, seed: SeedLike = None
    ) -> SeparatedSampler:
        """Return the sampler whose batches hold ``batch_size`` examples in the long run.

        Parameters
        ----------
        population : int
            A public number of examples.
        batch_size : int
            Expected number of examples in a batch.
        separation : int
            An example that was drawn is not drawn again in so many steps.
        steps : int
            The planned number of logical batches.
        seed : Seed, int or None
            None is a fresh secret; an int simulates.

        Returns
        -------
        SeparatedSampler
        """
        size = _check.integer("batch_size", batch_size, minimum=1)
        rested = population - size * (_check.integer("separation", separation, minimum=1) - 1)
        if rested < size:
            remedy = "take smaller batches or a smaller separation"
            _check.refuse("batch_size", "be at most population / separation", size, remedy)
        return cls(
            population=population,
            sampling_probability=size / rested,
            separation=separation,
            steps=steps,
            seed=seed,
        )

    @property
    def sampling_rate(self) -> float:
        """An example takes part once in ``separation - 1 + 1/p`` steps on average, in the long run."""
        p = self.sampling_probability
        return p / (1 + p * (self.separation - 1))

    @property
    def participation(self) -> Participation:
        """Steps that are at least the separation apart."""
        return Participation(max_participations=None, separation=self.separation)

    def batch(self, step: int) -> Indices:
        """Return those of the drawn examples that have rested, sorted.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        return self._rests.batch(self._step(step), self.population, self.separation, self._coins)

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return the loss of so many steps of separated samples.

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
        count = self._counted(steps)
        node = SeparatedPoisson(self._own(step), self.sampling_probability, self.separation, max(1, count))
        return node * min(1, count)

    def _coins(self, step: int) -> Indices:
        # Coins of resting examples are thrown too and not looked at: each step's stream stays its own.
        return heads(self.population, Fraction(self.sampling_probability), self._stream("separated", step))
