"""What is done to one example of a batch, to see whether it reaches the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from sfumato.learning.checks.batch_tensors import is_example, leaves, mapped

__all__ = ["alike", "changes", "leavings", "one_after_another"]

_LARGE = 1e3
_NEAR = 1e-3


def changes(batch: Any, other: Any, example: int, size: int) -> Iterator[tuple[str, Any]]:
    """Yield what is done to the example, and the batch in which it is done.

    A fresh draw shows in means, a large one in maxima, a copy where examples are counted or compared, and NaN
    in sums that come to nothing otherwise.
    """
    neighbor = (example + 1) % size
    fresh = dict(leaves(other))
    yield "drawn anew", _changed(batch, example, size, lambda path, _: fresh[path][example])
    yield "copied from another", _changed(batch, example, size, lambda _, t: t[neighbor])
    if any(t.is_floating_point() for _, t in leaves(batch)):
        yield "made large", _changed(batch, example, size, lambda _, t: t[example] * _times(t, _LARGE))
        yield "NaN", _changed(batch, example, size, lambda _, t: t[example] * _times(t, torch.nan))


def leavings(crowd: Any, other: Any, size: int) -> Iterator[tuple[str, Any]]:
    """Yield changes that make the first of a crowd ask for another position.

    A large multiple and its opposite ask a linear router for two positions, one of them not the crowd's.
    """
    fresh = dict(leaves(other))
    yield "drawn anew", _changed(crowd, 0, size, lambda path, _: fresh[path][0])
    if any(t.is_floating_point() for _, t in leaves(crowd)):
        yield "made large", _changed(crowd, 0, size, lambda _, t: t[0] * _times(t, _LARGE))
        yield "made large and opposite", _changed(crowd, 0, size, lambda _, t: t[0] * _times(t, -_LARGE))


def one_after_another(batch: Any, other: Any, size: int) -> Iterator[tuple[str, int, Any]]:
    """Yield changes of one example each, on top of all those before, with the example that is changed.

    The first ones make all examples alike, and the next ones leave that crowd.
    """
    fresh = dict(leaves(other))
    for example in reversed(range(size - 1)):
        batch = _changed(batch, example, size, partial(_row, place=example + 1))
        yield "copied from another", example, batch
    for example in (0, size - 1):
        batch = _changed(batch, example, size, partial(_row, place=example, of=fresh))
        yield "drawn anew", example, batch
    if any(t.is_floating_point() for _, t in leaves(batch)):
        batch = _changed(batch, 0, size, lambda _, t: t[0] * _times(t, _LARGE))
        yield "made large", 0, batch
        batch = _changed(batch, size - 1, size, lambda _, t: t[-1] * _times(t, -_LARGE))
        yield "made large and opposite", size - 1, batch
        yield "NaN", 0, _changed(batch, 0, size, lambda _, t: t[0] * _times(t, torch.nan))


def _row(path: str, tensor: Tensor, *, place: int, of: Mapping[str, Tensor] | None = None) -> Tensor:
    return (tensor if of is None else of[path])[place]


def alike(batch: Any, size: int, seed: int) -> Any:
    """Return a batch of examples that are all nearly the first, so that they ask for the same positions."""
    generator = torch.Generator().manual_seed(seed)

    def diverse(_: str, tensor: Tensor) -> Tensor:
        if not is_example(tensor, size):
            return tensor
        same = tensor[:1].expand_as(tensor).clone()
        if not tensor.is_floating_point():
            return same
        noise = torch.randn(tensor.shape, generator=generator)
        return same * (1 + _NEAR * noise).to(device=tensor.device, dtype=tensor.dtype)

    return mapped(diverse, batch)


def _times(tensor: Tensor, factor: float) -> float:
    return factor if tensor.is_floating_point() else 1


def _changed(batch: Any, example: int, size: int, make: Callable[[str, Tensor], Tensor]) -> Any:
    def put(path: str, tensor: Tensor) -> Tensor:
        if not is_example(tensor, size):
            return tensor
        copy = tensor.clone()
        copy[example] = make(path, tensor)
        return copy

    return mapped(put, batch)
