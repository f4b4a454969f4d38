"""Where the examples lie in a tensor of a batch, and finding it from two small batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

__all__ = ["BatchLayout", "Unclear", "infer"]

_CLOSE = {torch.float64: 1e-6, torch.float32: 1e-3}
_BLOCK = 2**18


class Unclear(Exception):
    """No one place of the examples explains both small batches."""


@final
@dataclass(frozen=True, slots=True)
class BatchLayout:
    """The dimension that the examples lie along, each with one or more consecutive or interleaved positions.

    Parameters
    ----------
    dim : int
        Which dimension.
    minor : bool
        Whether the examples take turns (position ``j`` is example ``j % count``), or follow one another.
    """

    dim: int
    minor: bool = False

    def holds(self, tensor: Tensor, count: int) -> bool:
        """Return whether the tensor can have this layout, with so many examples."""
        return self.dim < tensor.dim() and tensor.shape[self.dim] % count == 0

    def examples(self, tensor: Tensor, count: int) -> Tensor:
        """Return a view of shape (count, ...) with an example's own positions left along `dim`."""
        parts = (-1, count) if self.minor else (count, -1)
        apart: Tensor = tensor.unflatten(self.dim, parts)
        return apart.movedim(self.dim + int(self.minor), 0)

    def together(self, examples: Tensor) -> Tensor:
        """Return the tensor that `examples` would take apart."""
        return examples.movedim(0, self.dim + int(self.minor)).flatten(self.dim, self.dim + 1)

    def rows(self, tensor: Tensor, count: int) -> Tensor:
        """Return shape (count, rows of one example, features), the last dimension being the features."""
        if self.dim == 0 and not self.minor:
            return tensor.reshape(count, -1, tensor.shape[-1])
        return self.examples(tensor, count).reshape(count, -1, tensor.shape[-1])

    def expanded(self, values: Tensor, tensor: Tensor) -> Tensor:
        """Return one value for each example in a shape that broadcasts against the tensor."""
        each = tensor.shape[self.dim] // len(values)
        if each > 1:
            values = values.repeat(each) if self.minor else values.repeat_interleave(each)
        return values.view([-1 if dim == self.dim else 1 for dim in range(tensor.dim())])


def infer(two: Tensor, three: Tensor) -> BatchLayout | None:
    """Find where the examples lie in a tensor, given it for two examples and for those and a third.

    Returns
    -------
    Layout or None
        None if the tensor is the same for both: it belongs to no example.

    Raises
    ------
    Unclear
        If no layout explains both, by shape and by value: what belongs to the first two examples must not
        change with the third.
    """
    if two.dim() != three.dim() or two.dtype != three.dtype:
        raise Unclear
    grown = [dim for dim, (a, b) in enumerate(zip(two.shape, three.shape, strict=True)) if a != b]
    if not grown:
        if not _alike(two, three):
            raise Unclear
        return None
    dim = grown[0]
    if len(grown) > 1 or two.shape[dim] * 3 != three.shape[dim] * 2:
        raise Unclear
    each = two.shape[dim] // 2
    layouts = [BatchLayout(dim)] if each == 1 else [BatchLayout(dim), BatchLayout(dim, minor=True)]
    fitting = [way for way in layouts if _alike(way.examples(two, 2), way.examples(three, 3)[:2])]
    if len(fitting) != 1:
        raise Unclear
    return fitting[0]


def _alike(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are the same up to the rounding of kernels that depends on the batch."""
    one, other = one.detach(), other.detach()
    if one.shape != other.shape:
        return False
    if torch.equal(one, other) or not one.dtype.is_floating_point:
        return torch.equal(one, other)
    tolerance = _CLOSE.get(one.dtype, 5e-2)
    least = tolerance * max(map(_largest, _blocks(one)), default=0.0)
    return all(
        torch.allclose(a, b, rtol=tolerance, atol=least, equal_nan=True)
        for a, b in zip(_blocks(one), _blocks(other), strict=True)
    )


def _largest(tensor: Tensor) -> float:
    """Return the largest finite magnitude."""
    low, high = map(float, tensor.aminmax())
    if math.isfinite(low) and math.isfinite(high):
        return max(-low, high)
    return float(tensor.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max())


def _blocks(tensor: Tensor) -> Iterator[Tensor]:
    """Give views of so few entries that what is computed of them stays small beside a large output."""
    if tensor.numel() <= _BLOCK:
        if tensor.numel():
            yield tensor
        return
    dim = max(range(tensor.dim()), key=lambda own: tensor.shape[own])
    for half in tensor.tensor_split(2, dim):
        yield from _blocks(half)


def shapes(tensors: Sequence[Tensor]) -> str:
    """Return shapes for a message."""
    return ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
