"""Per-example gradients of one use of a parameter: their norms, and their weighted sum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["DenseGradients", "PerExampleGradients", "RecomputedGradients", "faint", "wide"]

_FAINT = 2.0**-22
_BLOCK = 2048
LARGE = 2.0**40
"""Squares above this may meet others too small for float32 to hold."""


def wide(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 at least: norms and what they bound are never in less."""
    return tensor.float() if tensor.dtype.itemsize < 4 else tensor


class PerExampleGradients(ABC):
    """One use of a tensor in one forward: its per-example gradients, stored in some form.

    Guarantee: `per_example`, `weighted` and `squared_norms` speak of the same gradients, up to rounding. What
    is summed over examples at once are gradients, or terms of which an example's add up to at most 2**11
    times its gradient's norm: one whose terms cancel out further, see `faint`, is zero for all three once
    `squared_norms` was called.

    Parameters
    ----------
    shape : sequence of int
        The tensor's shape.
    count : int
        How many examples there are.
    """

    __slots__ = ("count", "shape")

    def __init__(self, shape: Sequence[int], count: int) -> None:
        self.shape = tuple(shape)
        self.count = count

    @abstractmethod
    def per_example(self, start: int, stop: int) -> Tensor:
        """Return the gradients of these examples, of shape (stop - start, *shape)."""

    @abstractmethod
    def weighted(self, factors: Tensor) -> Tensor:
        """Return the sum of all gradients, each times its factor."""

    @abstractmethod
    def squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient."""

    @abstractmethod
    def drop(self, examples: Tensor) -> None:
        """Make the gradients of these examples zero, whatever they were; a boolean for each example."""

    def without_faint(self, norms: Tensor, reach: Tensor) -> Tensor:
        """Return squared norms after dropping the examples whose norms are `faint`."""
        lost = faint(norms, reach)
        if lost.any():
            self.drop(lost)
            norms = norms.masked_fill(lost, 0)
        return norms


class RecomputedGradients(PerExampleGradients):
    """Gradients that are computed whenever they are asked for, some examples at a time.

    Parameters
    ----------
    shape : sequence of int
    count : int
    max_entries : int
        How many entries of gradients may be held at a time.
    """

    __slots__ = ("_few",)

    def __init__(self, shape: Sequence[int], count: int, max_entries: int) -> None:
        super().__init__(shape, count)
        self._few = max(1, min(count, max_entries // max(1, math.prod(self.shape))))

    def _parts(self) -> Iterator[tuple[int, Tensor]]:
        for start in range(0, self.count, self._few):
            part = self.per_example(start, min(start + self._few, self.count))
            yield start, part.reshape(len(part), -1)

    def weighted(self, factors: Tensor) -> Tensor:
        """Return the sum of each example's own gradient: what cancels within one rounds no other's away."""
        total: Any = 0
        for start, part in self._parts():
            own = factors[start : start + len(part)].to(part.dtype)
            total = total + own @ part.masked_fill((own == 0)[:, None], 0)
        summed: Tensor = total
        return summed.view(self.shape)

    def squared_norms(self) -> Tensor:
        """Return sums of squares."""
        return torch.cat([squares(part) for _, part in self._parts()])


class DenseGradients(PerExampleGradients):
    """Per-example gradients as they are.

    Parameters
    ----------
    gradients : Tensor of shape (examples, *shape)
    norms : Tensor, optional
        Their squared norms, where they are known.
    """

    __slots__ = ("_squares", "gradients")

    def __init__(self, gradients: Tensor, norms: Tensor | None = None) -> None:
        self._squares = norms
        super().__init__(gradients.shape[1:], gradients.shape[0])
        self.gradients = wide(gradients)

    def per_example(self, start: int, stop: int) -> Tensor:
        """Return a slice."""
        return self.gradients[start:stop]

    def weighted(self, factors: Tensor) -> Tensor:
        """Return a product of a vector and a matrix."""
        return (factors @ self.gradients.reshape(self.count, -1)).view(self.shape)

    def squared_norms(self) -> Tensor:
        """Return sums of squares."""
        if self._squares is None:
            self._squares = squares(self.gradients.reshape(self.count, -1))
        return self._squares

    def drop(self, examples: Tensor) -> None:
        """Fill with zeros."""
        fresh = self.gradients.clone()
        fresh[examples] = 0
        self.gradients = fresh


def faint(norms: Tensor, reach: Tensor) -> Tensor:
    """Return which squared norms are below 2**-22 of the square of what their terms' norms add up to.

    In float32 such a gradient is what rounding left; in a sum with others, its terms would round theirs away.
    """
    return norms < reach * _FAINT


def squares(tensor: Tensor) -> Tensor:
    """Return the sum of squares over the last dimension.

    The kernel adds terms in rows, and in float32 loses more of some millions than the slack of `Clipping`:
    so it is asked for blocks, of which it loses 2**-13 at most, and these are added in pairs.
    """
    rest = tensor.shape[-1] % _BLOCK
    if tensor.shape[-1] == rest:
        return _in_rows(tensor)
    blocks = _in_rows(tensor[..., rest:].unflatten(-1, (-1, _BLOCK))).sum(-1)
    return blocks + _in_rows(tensor[..., :rest]) if rest else blocks


def _in_rows(tensor: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(tensor, dim=-1)
    return norms.square()
