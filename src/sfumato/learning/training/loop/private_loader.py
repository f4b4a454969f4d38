"""A loader whose batches a sampler draws, each under a step's own number.

A step that drew nobody still adds its noise: its batch is empty, in the form of the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

from sfumato import _check
from sfumato.errors import RunExhausted
from sfumato.learning.recipes.augmentation import Views
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.training.distributed.ranks import Ranks
from sfumato.learning.training.loop.steps import Steps

__all__ = ["BatchReceiver", "Collate", "GivenBatch", "PrivateLoader", "emptied"]


def emptied(batch: Any) -> Any:
    """Return a batch of one example without it: the same keys, dtypes and further dimensions.

    >>> emptied({"x": torch.ones(1, 3), "name": ["a"], "pair": (torch.ones(1), torch.ones(1, 2))})
    {'x': tensor([], size=(0, 3)), 'name': [], 'pair': (tensor([]), tensor([], size=(0, 2)))}
    """
    if isinstance(batch, (torch.Tensor, np.ndarray)):
        return batch[:0] if batch.ndim else batch
    if isinstance(batch, Mapping):
        values = {key: emptied(value) for key, value in batch.items()}
        return values if type(batch) is dict else _remade(batch, values)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(emptied(value) for value in batch))
    if isinstance(batch, tuple):
        return tuple(emptied(value) for value in batch)
    if isinstance(batch, Sequence) and not isinstance(batch, (str, bytes)):
        return [emptied(value) for value in batch if isinstance(value, (torch.Tensor, Mapping, tuple, list))]
    return batch


def _remade(batch: Any, values: dict[Any, Any]) -> Any:
    try:
        return type(batch)(values)
    except TypeError:
        return values


@final
class Collate:
    """The user's way to make a batch of examples, also of none.

    Parameters
    ----------
    collate : callable or None
        Takes a list of examples; torch's own if None.
    dataset : Dataset
        Its first example is looked at for the form of an empty batch, and nothing else. Of a `TensorDataset`
        without examples the tensors give the form; of any other without examples, the collate function must.
    """

    def __init__(self, collate: Callable[[list[Any]], Any] | None, dataset: Dataset[Any]) -> None:
        self._collate = default_collate if collate is None else collate
        self._dataset = dataset
        self._empty: Any = None

    def __call__(self, examples: list[Any]) -> Any:
        """Return the batch."""
        if examples:
            return self._collate(examples)
        if self._empty is None:
            self._empty = emptied(self._collate(self._one()))
        return self._empty

    def _one(self) -> list[Any]:
        """Return a list of one example, or of none where there is none."""
        if len(self._dataset):  # type: ignore[arg-type]
            return [self._dataset[0]]
        if isinstance(self._dataset, TensorDataset):
            return [tuple(tensor.new_zeros(tensor.shape[1:]) for tensor in self._dataset.tensors)]
        return []


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
        self.begun = -1
        """The step of the batch given last: others that lie here were loaded ahead, and nobody got them."""

    def take(self) -> GivenBatch:
        """Return what is known of the batch that is given now."""
        batch = self.given.popleft()
        self.begun = batch.step
        return batch

    def __iter__(self) -> Iterator[list[int]]:
        self.steps.rewind(sorted({batch.step for batch in self.given} - {self.begun}))
        self.given.clear()
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
            given = self._drawn.take()
            self.ended, self.size = given.last, given.size
            self._receiver.give(given, batch)
            yield batch
