"""Batches without examples, in the form of those with: a step that drew nobody still adds its noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
import torch
from torch.utils.data import Dataset, TensorDataset, default_collate

__all__ = ["Collate", "emptied"]


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
