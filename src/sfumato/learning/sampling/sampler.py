"""What a sampler is: the batch of every step, and the loss of having drawn them so."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.learning.sampling.seed import KeyedStream, Seed, SeedLike
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.numerics.rounding import fraction_down
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Indices", "Sampler", "gaussian_step"]


def gaussian_step(noise_multiplier: float, neighboring: Neighboring) -> Gaussian:
    """Return the loss of Gaussian noise on the sum over a batch.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the most by which one unit's presence moves the sum in the L2
        norm.
    neighboring : Neighboring
        A unit that is replaced takes one contribution out and puts another in, so that the sum moves by twice
        as much; one that is zeroed out takes its contribution out only.

    Examples
    --------
    >>> gaussian_step(1.0, Neighboring.REPLACE_ONE).noise_multiplier
    0.5
    """
    noise = _check.non_negative("noise_multiplier", noise_multiplier)
    if neighboring is Neighboring.REPLACE_ONE:
        noise = fraction_down(Fraction(noise) / 2)
    return Gaussian(noise, neighboring=neighboring)


Indices = NDArray[np.int64]


class Sampler(ABC):
    """Draws the batch of each step, and knows what a run on these batches loses.

    Subclasses are frozen dataclasses. Each has one loss, that of the distribution it draws from: there is no
    way to draw by one and to be accounted by another.

    Attributes
    ----------
    steps : int
        The planned number of logical batches.
    seed : Seed
        The secret that they are drawn from; `PoissonSampler` says what ``seed=`` takes.

    Notes
    -----
    A batch is a pure function of the seed and of the step: whoever resumes a run needs the number of the
    next step only. All distributions are exact, decided by integers, up to how well AES-256 passes for
    random.

    The indices number the examples from 0 to ``population - 1``. Under add/remove the numbers of examples of
    two neighbors differ by one, but what sums are divided by, and what a sampling probability was computed
    from, must be public numbers that do not; see `IndependentSampler`.

    Examples
    --------
    >>> from sfumato.learning import PoissonSampler
    >>> sampler: Sampler = PoissonSampler(population=1000, sampling_probability=0.02, steps=100, seed=1)
    >>> (sampler.batch(3) == sampler.batch(3)).all().item()
    True
    """

    __slots__ = ()

    steps: int
    seed: SeedLike

    @property
    @abstractmethod
    def population(self) -> int:
        """How many examples there are."""

    @property
    @abstractmethod
    def expected_batch_size(self) -> float:
        """The public number that sums over a batch are divided by."""

    @property
    def public_text(self) -> str:
        """The public parameters, as a text."""
        return repr(self)

    @property
    @abstractmethod
    def neighboring(self) -> Neighboring:
        """The relation under which the run is priced."""

    @property
    @abstractmethod
    def participation(self) -> Participation:
        """In which steps one unit may take part at most, as correlated noise needs it."""

    @property
    def distinct(self) -> bool:
        """Whether no example is twice in a batch."""
        return True

    @property
    def clips(self) -> Literal["example", "user"]:
        """What the loss supposes is clipped: each example, or each user's examples together."""
        return "example"

    @abstractmethod
    def batch(self, step: int) -> Indices:
        """Return which examples are in the logical batch of a step.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Possibly empty: such a step still adds its noise.
        """

    @abstractmethod
    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return the loss of the first ``steps`` steps of a mechanism on these batches.

        Parameters
        ----------
        step : PrivacyLoss
            Of one step on a batch that is known, under `neighboring`: of what one unit in it changes.
        steps : int
            From 0 to the planned number.

        Returns
        -------
        PrivacyLoss
        """

    def loss(self, noise_multiplier: float) -> PrivacyLoss:
        """Return the loss of all steps with independent Gaussian noise.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the most by which one unit's presence moves the sum over a
            batch in the L2 norm (`Clipping.sensitivity`), whatever `neighboring` is.

        Returns
        -------
        PrivacyLoss
            Under `neighboring`.
        """
        return self.loss_of(noise_multiplier, self.steps)

    def loss_of(self, noise_multiplier: float, steps: int) -> PrivacyLoss:
        """Return the loss of the first ``steps`` steps; see `loss`.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the sensitivity.
        steps : int
            How many of the first steps.

        Returns
        -------
        PrivacyLoss
        """
        return self.priced(self.step_loss(noise_multiplier), self._counted(steps))

    def step_loss(self, noise_multiplier: float) -> Gaussian:
        """Return the loss of Gaussian noise on one batch that is known; see `gaussian_step`.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the sensitivity.

        Returns
        -------
        Gaussian
        """
        return gaussian_step(noise_multiplier, self.neighboring)

    @property
    def simulated(self) -> bool:
        """Whether the batches follow from a number, so that no loss but that of a simulation is theirs."""
        return Seed.of(self.seed).simulated

    def batches(self, start: int = 0) -> Iterator[Indices]:
        """Yield the batches from a step on.

        Parameters
        ----------
        start : int
            The first step.

        Returns
        -------
        iterator of ndarray
        """
        for step in range(_check.integer("start", start), self.steps):
            yield self.batch(step)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_common(self) -> None:
        self._set("steps", _check.integer("steps", self.steps, minimum=1))
        self._set("seed", Seed.of(self.seed))

    def _counted(self, steps: int) -> int:
        if _check.integer("steps", steps) > self.steps:
            _check.refuse("steps", f"be at most the planned {self.steps}", steps, "plan a longer run")
        return steps

    def _step(self, step: int) -> int:
        remedy = "steps count from 0; plan a longer run for more"
        if _check.integer("step", step, remedy=remedy) >= self.steps:
            _check.refuse("step", f"be below the planned {self.steps}", step, remedy)
        return int(step)

    def _stream(self, purpose: str, step: int) -> KeyedStream:
        return Seed.of(self.seed).stream(purpose, step)

    def _own(self, step: PrivacyLoss) -> PrivacyLoss:
        if step.neighboring is not self.neighboring:
            raise NeighboringMismatch(
                f"step must be under {self.neighboring}, got {step.neighboring}; "
                "price the step under the sampler's relation"
            )
        return step
