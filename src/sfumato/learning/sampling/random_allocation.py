"""Random allocation: in each round of steps, each example takes part in some, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from sfumato import _check
from sfumato.learning.sampling.independent import ExampleSampler
from sfumato.learning.sampling.permutations import Allocated, LastValue, subsets
from sfumato.learning.sampling.sampler import Indices
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.allocation import RandomAllocation

__all__ = ["AllocationSampler"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllocationSampler(ExampleSampler):
    """In each round, each example is in a fixed number of the batches, of its own and fresh in every round.

    Parameters
    ----------
    population : int
        How many examples there are; at least 1.
    round_steps : int
        Length of a round. With one selected step this is an epoch.
    selected : int
        In how many batches of a round each example is; from 1 to ``round_steps``.
    steps : int
        The planned number of steps, over all rounds.
    neighboring : Neighboring
        Add/remove, or zero-out where the number of examples is public.
    public_batch_size : float, optional
        The expected batch size where the number of examples is private; see `IndependentSampler`.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Notes
    -----
    Guarantee: add/remove or zero-out, `RandomAllocation` for each round that was begun (Feldman, Shenfeld
    2025): what is not run of the last one is left away after the fact. Conditions: the seed stays secret, and
    the noise of the steps is independent.

    Examples
    --------
    >>> sampler = AllocationSampler(population=5, round_steps=4, selected=2, steps=4, seed=1)
    >>> sum(batch.size for batch in sampler.batches()), sampler.expected_batch_size
    (10, 2.5)
    """

    round_steps: int
    selected: int = 1
    _last: LastValue[Allocated] = field(default_factory=LastValue, init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_examples()
        for name in ("round_steps", "selected"):
            self._set(name, _check.integer(name, getattr(self, name), minimum=1))
        if self.selected > self.round_steps:
            remedy = "an example is once in a batch"
            _check.refuse("selected", "be at most round_steps", self.selected, remedy)

    @property
    def sampling_rate(self) -> float:
        """The share of the steps that an example is in."""
        return self.selected / self.round_steps

    @property
    def participation(self) -> Participation:
        """So many steps in each round; those of one round may be followed at once by those of the next."""
        return Participation(max_participations=self.selected * self._rounds(self.steps))

    def batch(self, step: int) -> Indices:
        """Return the examples of a step, sorted.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        number, index = divmod(self._step(step), self.round_steps)
        return self._last.of(number, lambda: self._round(number)).batch(index)

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return the loss of all rounds that were begun.

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
        node = RandomAllocation(self._own(step), self.round_steps, self.selected)
        return node * self._rounds(self._counted(steps))

    def _rounds(self, steps: int) -> int:
        return -(-steps // self.round_steps)

    def _round(self, number: int) -> Allocated:
        stream = self._stream("allocation", number)
        indices = subsets(self.population, self.round_steps, self.selected, stream)
        return Allocated.of(indices, self.round_steps)
