"""Sums over the entries of tensors, exact to about seven digits, without a copy of a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import torch
from torch import Tensor

__all__ = ["squared_distance", "squared_sum", "weighted_sum"]

_PART: Final = 1 << 16
"""How many entries are added up at a time; the sums of parts are added up in float64."""
_SMALL, _LARGE = 1e-20, 1e30


def _parts(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield the tensors' entries, so many at a time."""
    flat = [tensor.detach().cpu().reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), _PART):
        yield tuple(one[start : start + _PART] for one in flat)


def _square(part: Tensor) -> float:
    """Return the sum of squares: in float64 where float32 would come near to its ends."""
    if part.dtype == torch.float32 and _SMALL < (found := float(part @ part)) < _LARGE:
        return found
    wide = part.double()
    return float(wide @ wide)


def squared_sum(tensor: Tensor) -> float:
    """Return the sum of the squares of a tensor's entries.

    Examples
    --------
    >>> squared_sum(torch.tensor([[3.0], [4.0]]))
    25.0
    """
    return math.fsum(_square(part) for (part,) in _parts(tensor))


def squared_distance(first: Tensor, second: Tensor) -> float:
    """Return the sum of the squares of two tensors' differences; they have the same shape.

    Examples
    --------
    >>> squared_distance(torch.tensor([3.0, 1.0]), torch.tensor([0.0, 1.0]))
    9.0
    """
    return math.fsum(_square(one.sub(other)) for one, other in _parts(first, second))


def weighted_sum(weights: Tensor, rows: Tensor) -> Tensor:
    """Return the sum of rows, each times its weight, in float32 or a wider type of theirs.

    Parameters
    ----------
    weights : Tensor of shape (rows,)
    rows : Tensor of shape (rows, ...)

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> weighted_sum(torch.tensor([2.0, 0.5]), torch.tensor([[1.0, 2.0], [4.0, 8.0]]))
    tensor([4., 8.])
    """
    total = torch.zeros(rows.shape[1:], dtype=torch.promote_types(rows.dtype, torch.float32))
    for weight, row in zip(weights.tolist(), rows.detach().cpu(), strict=True):
        total.add_(row, alpha=weight)
    return total
