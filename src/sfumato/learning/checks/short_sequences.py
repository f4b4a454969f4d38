"""Batches of shorter sequences, for comparisons whose work grows with their length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sfumato.learning.checks.batch_tensors import batch_size, is_example, leaves, mapped

__all__ = ["cutter", "sequence_length", "shortened"]


def sequence_length(batch: Any) -> int:
    """Return how many positions a batch's first tensor of whole numbers has for an example; 0 if none has.

    Examples
    --------
    >>> sequence_length({"weight": torch.ones(2), "ids": torch.zeros(2, 9, dtype=torch.long)})
    9
    """
    size = batch_size(batch)
    whole = (t for _, t in leaves(batch) if not t.is_floating_point() and t.dtype != torch.bool)
    return next((t.shape[1] for t in whole if is_example(t, size) and t.ndim > 1), 0)


def shortened(batch: Any, length: int) -> Any:
    """Return a batch whose sequences are cut.

    Parameters
    ----------
    batch : object
        Every dimension of `sequence_length` is cut, but for that of the examples.
    length : int
        How many positions are left.

    Returns
    -------
    object
        The same object where there are no longer sequences.

    Examples
    --------
    >>> tokens, mask, weight = torch.zeros(2, 9, dtype=torch.long), torch.ones(9, 9), torch.ones(2)
    >>> [tuple(tensor.shape) for tensor in shortened((tokens, mask, weight), 4)]
    [(2, 4), (4, 4), (2,)]
    """
    size, found = batch_size(batch), sequence_length(batch)
    if found <= length:
        return batch

    def cut(_: str, tensor: Tensor) -> Tensor:
        for dimension in range(int(is_example(tensor, size)), tensor.ndim):
            if tensor.shape[dimension] == found:
                tensor = tensor.narrow(dimension, 0, length)
        return tensor

    return mapped(cut, batch)


def cutter(length: int, batch: Any, runs: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Return what cuts batches, or what leaves them as they are where short ones do not run.

    Parameters
    ----------
    length : int
    batch : object
        One of the batches.
    runs : callable of a batch
        Whether it can be used; what it raises means that it cannot.
    """
    short = shortened(batch, length)
    try:
        works = short is not batch and runs(short)
    except Exception:  # whatever a module raises that takes sequences of one length only
        works = False
    return (lambda given: shortened(given, length)) if works else (lambda given: given)
