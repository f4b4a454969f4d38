"""A loader whose batches a sampler draws, each under a step's own number."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, final

from torch.utils.data import DataLoader

from sfumato import _check
from sfumato.errors import RunExhausted
from sfumato.learning.recipes.augmentation import Views
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.training.distributed.ranks import Ranks
from sfumato.learning.training.loop.empty_batches import Collate
from sfumato.learning.training.loop.steps import Steps

__all__ = ["BatchReceiver", "GivenBatch", "PrivateLoader"]


class GivenBatch(NamedTuple):
    """A physical batch: a part of a step's logical one.

    ``size`` counts this process's examples; ``last`` says whether the logical batch ends with it.
    """

    step: int
    size: int
    last: bool


class BatchReceiver(Protocol):
    """Who is notified of the batches."""

    def restart(self) -> None:
        """Forget batches that were given and not used."""

    def give(self, given: GivenBatch, batch: Any) -> None:
        """Be notified of a batch that is about to be used."""


@final
class _Drawn:
    """The batch sampler: takes step numbers, and cuts their batches into physical ones."""

    def __init__(self, sampler: Sampler, steps: Steps, ranks: Ranks, steps_per_epoch: int) -> None:
        self.sampler, self.steps, self.ranks = sampler, steps, ranks
        self.steps_per_epoch = steps_per_epoch
        self.largest: int | None = None
        self.given: deque[GivenBatch] = deque()

    def __iter__(self) -> Iterator[list[int]]:
        self.given.clear()
        self.steps.rewind()
        for index in range(self.steps_per_epoch):
            try:
                step = self.steps.take()
            except RunExhausted:
                if index == 0:
                    raise
                return
            yield from self.cut(step)

    def cut(self, step: int) -> Iterator[list[int]]:
        whole = self.sampler.batch(step)
        # A process takes every n-th example: which of them it is follows from the sample alone.
        own = whole[self.ranks.rank :: self.ranks.size].tolist()
        max_size = self.largest or max(1, len(whole))
        parts = max(1, -(-len(whole) // (max_size * self.ranks.size)))
        for part in range(parts):
            piece = own[part * max_size : (part + 1) * max_size]
            self.given.append(GivenBatch(step, len(piece), part == parts - 1))
            yield piece

    def __len__(self) -> int:
        return self.steps_per_epoch


@final
class PrivateLoader(DataLoader[Any]):
    """Batches of the user's dataset, by the user's collate function, as a sampler draws them.

    An iteration gives an epoch's number of logical batches; a batch of nobody is given too, empty. Each is
    drawn under a number of its own, which no other batch ever has.

    Parameters
    ----------
    loader : DataLoader
        Whose dataset, collate function, workers and memory settings are taken over.
    sampler : Sampler
    steps : Steps
    receiver : BatchReceiver
    ranks : Ranks
    steps_per_epoch : int
    views : Views, optional
        Made of each example, all in one physical batch.
    """

    def __init__(
        self,
        loader: DataLoader[Any],
        *,
        sampler: Sampler,
        steps: Steps,
        receiver: BatchReceiver,
        ranks: Ranks,
        steps_per_epoch: int,
        views: Views | None = None,
    ) -> None:
        collate = loader.collate_fn if views is None else views.collated(loader.collate_fn)
        self._drawn = _Drawn(sampler, steps, ranks, steps_per_epoch)
        self._receiver = receiver
        self._turn = 0
        self.ended = True
        """Whether the batch given last ends its logical batch."""
        self.size = 0
        """How many examples the batch given last has."""
        super().__init__(
            loader.dataset,
            batch_sampler=self._drawn,
            collate_fn=Collate(collate, loader.dataset),
            num_workers=loader.num_workers,
            pin_memory=loader.pin_memory,
            timeout=loader.timeout,
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context,
            generator=loader.generator,
            prefetch_factor=loader.prefetch_factor,
            persistent_workers=loader.persistent_workers,
        )

    def limit(self, largest: int | None) -> None:
        """Give physical batches of at most so many examples; None gives logical batches whole."""
        if largest is not None:
            largest = _check.integer("max_physical_batch_size", largest, minimum=1)
        self._drawn.largest = largest

    @property
    def largest(self) -> int | None:
        """The most examples of a physical batch, in each process; None if there is no limit."""
        return self._drawn.largest

    @property
    def private_sampler(self) -> Sampler:
        """What draws the batches."""
        return self._drawn.sampler

    def __iter__(self) -> Any:
        """Yield the physical batches of an epoch."""
        self._receiver.restart()
        return self._reported(super().__iter__())

    def _reported(self, batches: Iterator[Any]) -> Iterator[Any]:
        self._turn += 1
        turn = self._turn
        for batch in batches:
            if turn != self._turn:
                remedy = "finish one before the next"
                rule = "be iterated once at a time"
                _check.refuse_state("loader", rule, "another iteration has begun", remedy)
            given = self._drawn.given.popleft()
            self.ended, self.size = given.last, given.size
            self._receiver.give(given, batch)
            yield batch
