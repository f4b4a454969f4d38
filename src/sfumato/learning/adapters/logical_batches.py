"""A private loader whose items are whole logical batches, each as the list of its parts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, final

from sfumato import _check
from sfumato.errors import RunExhausted
from sfumato.learning.engine.trace.calls import tensors_in
from sfumato.learning.training.loop.private_loader import PrivateLoader

__all__ = ["LogicalBatches", "size_of", "until_exhausted"]


@final
class LogicalBatches:
    """Gives a loop one item for each step of the optimizer.

    Parameters
    ----------
    loader : PrivateLoader
        Its parts are collated each by itself.
    """

    def __init__(self, loader: PrivateLoader) -> None:
        self._loader = loader

    @property
    def dataset(self) -> Any:
        """What examples are drawn from."""
        return self._loader.dataset

    def __len__(self) -> int:
        """Return how many steps an epoch has."""
        return len(self._loader)

    def __iter__(self) -> Iterator[list[Any]]:
        """Yield the parts of each logical batch of an epoch; nothing after the last step of the run."""
        parts: list[Any] = []
        for part in until_exhausted(self._loader):
            if size_of(part) != self._loader.size:
                # A row of several examples is clipped as one: any of them could move it by two clip norms.
                remedy = "leave packing out"
                _check.refuse_state(
                    "data_collator",
                    "make one row of each example",
                    "a batch has another number of rows than examples",
                    remedy,
                )
            parts.append(part)
            if self._loader.ended:
                yield parts
                parts = []


def size_of(batch: Any) -> int:
    """Return how many rows a batch has: those of its first tensor."""
    tensors = tensors_in(batch)
    return int(tensors[0].shape[0]) if tensors and tensors[0].ndim else 0


def until_exhausted(loader: PrivateLoader) -> Iterator[Any]:
    """Yield an epoch's parts of batches; if the run ends before the epoch, with a warning."""
    whole = 0
    with suppress(RunExhausted):
        for part in loader:
            yield part
            whole += loader.ended
    if whole < len(loader):
        warnings.warn(
            "all steps of the run have been claimed, some of them by a process that did not end it: training "
            "stops here; make another run for more",
            UserWarning,
            stacklevel=2,
        )
