"""Poisson sampling: each example is in each batch with one probability, independently of all others."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.learning.sampling.bernoulli import heads
from sfumato.learning.sampling.independent import ExampleSampler
from sfumato.learning.sampling.sampler import Indices
from sfumato.learning.sampling.seed import SeedLike
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.poisson import PoissonSubsampled

__all__ = ["PoissonSampler"]

EVERY_STEP = Participation(max_participations=None)
"""A unit may take part in every step."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoissonSampler(ExampleSampler):
    """Each step is a fresh Poisson sample: the default of private training.

    Parameters
    ----------
    population : int
        How many examples there are; at least 1.
    sampling_probability : float
        With which each example is in a batch; above 0, at most 1. Exactly the declared float is drawn by.
    steps : int
        The planned number of batches.
    neighboring : Neighboring
        Add/remove, or zero-out where the number of examples is public.
    public_batch_size : float, optional
        The expected batch size where the number of examples is private; see `IndependentSampler`.
    seed : None, bytes, Seed or int
        None draws a fresh secret from the operating system. 32 bytes resume a run. An int simulates: no
        ledger takes such a run for real.

    Notes
    -----
    Guarantee: add/remove or zero-out, `PoissonSubsampled` in every step (Zhu, Dong, Wang 2022, Theorem 11).
    Conditions: the seed stays secret; batches are of varying size, and sums over them are divided by
    `expected_batch_size`, never by the batch's own size.

    Examples
    --------
    >>> sampler = PoissonSampler(population=1000, sampling_probability=0.02, steps=100, seed=1)
    >>> sampler.expected_batch_size, sampler.batch(0).size, sampler.batch(1).size
    (20.0, 19, 16)
    >>> sampler.loss(1.0)
    PoissonSubsampled(loss=Gaussian(noise_multiplier=1.0), sampling_probability=0.02) * 100
    """

    sampling_probability: float

    def __post_init__(self) -> None:
        self._check_examples()
        self._set("sampling_probability", checked_probability(self.sampling_probability))

    @classmethod
    def of_batch_size(
        cls, *, population: int, batch_size: int, steps: int, seed: SeedLike = None
    ) -> PoissonSampler:
        """Return the sampler whose batches hold ``batch_size`` examples in expectation.

        Parameters
        ----------
        population : int
            The public number of examples.
        batch_size : float
            The expected batch size.
        steps : int
            How many steps.
        seed : None, bytes, Seed or int
            As for `PoissonSampler`.

        Returns
        -------
        Sampler
        """
        if _check.integer("batch_size", batch_size, minimum=1) > _check.integer("population", population):
            _check.refuse("batch_size", "be at most population", batch_size, "take smaller batches")
        return cls(
            population=population, sampling_probability=batch_size / population, steps=steps, seed=seed
        )

    @property
    def sampling_rate(self) -> float:
        """The sampling probability."""
        return self.sampling_probability

    @property
    def participation(self) -> Participation:
        """An example may be drawn in every step: correlated noise gains nothing here."""
        return EVERY_STEP

    def batch(self, step: int) -> Indices:
        """Return the examples that are drawn, in their order.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        stream = self._stream("poisson", self._step(step))
        return heads(self.population, Fraction(self.sampling_probability), stream)

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return a Poisson sample's loss, ``steps`` times.

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
        return PoissonSubsampled(self._own(step), self.sampling_probability) * self._counted(steps)


def checked_probability(value: float) -> float:
    """Return a probability above 0 and at most 1, or refuse it."""
    remedy = "pass the chance that one example is drawn"
    probability = _check.positive("sampling_probability", value, remedy)
    if probability > 1:
        _check.refuse("sampling_probability", "be at most 1", probability, remedy)
    return probability
