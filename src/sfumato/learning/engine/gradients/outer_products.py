"""Sums of outer products: what a linear map leaves of each example."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sfumato.learning.engine.gradients.memory_pool import MemoryPool
from sfumato.learning.engine.gradients.per_example import LARGE, PerExampleGradients, squares, wide

__all__ = ["OuterProducts"]

_DOUBTFUL = 1e-3
"""A squared norm this much below its bound by rows is computed again without cancellation."""
_ROUNDING, _ALLOWED = 2.0**-22, 2.0**-13
"""What may be lost of the bound if all terms are rounded alike, and of a norm, by the slack of `Clipping`."""


class OuterProducts(PerExampleGradients):
    """Gradients that are, for each example, a sum over its rows of ``left`` times ``right``.

    Parameters
    ----------
    left : Tensor of shape (examples, rows, first dimension)
    right : Tensor of shape (examples, rows, second dimension)
    max_entries : int
        How many entries of gradients to make at a time.
    pool : Arena
        Where they are stored from the norms to the sums, if it has room.
    sizes : Tensor, optional
        The squared norms of `left` where each example has one row, if they are known.
    """

    __slots__ = ("_sizes", "_whole", "left", "max_entries", "pool", "right")

    def __init__(
        self, left: Tensor, right: Tensor, *, max_entries: int, pool: MemoryPool, sizes: Tensor | None = None
    ) -> None:
        super().__init__((left.shape[2], right.shape[2]), left.shape[0])
        self.left, self.right, self.max_entries = wide(left), wide(right), max_entries
        self.pool, self._sizes = pool, sizes
        self._whole: Tensor | None = None

    @classmethod
    def joined(cls, parts: Sequence[OuterProducts]) -> OuterProducts:
        """Return the sum of several uses of one parameter."""
        if len(parts) == 1:
            return parts[0]
        left = torch.cat([part.left for part in parts], 1)
        right = torch.cat([part.right for part in parts], 1)
        return cls(left, right, max_entries=parts[0].max_entries, pool=parts[0].pool)

    def per_example(self, start: int, stop: int) -> Tensor:
        """Return one product of matrices for each example."""
        if self._whole is not None:
            return self._whole[start:stop]
        return self.left[start:stop].transpose(1, 2) @ self.right[start:stop]

    def weighted(self, factors: Tensor) -> Tensor:
        """Return one product of matrices for all, or of a vector and the stored gradients."""
        if self._whole is not None:
            return (factors @ self._whole.view(self.count, -1)).view(self.shape)
        left = (self.left * factors[:, None, None]).flatten(0, 1)
        return left.t() @ self.right.flatten(0, 1)

    def squared_norms(self) -> Tensor:
        """Return them by the cheapest of three ways: products of norms, Gram matrices, the gradients."""
        rows, (first, second) = self.left.shape[1], self.shape
        if rows == 1:
            own = squares(self.left[:, 0]) if self._sizes is None else self._sizes
            return self._product(own, squares(self.right[:, 0]))
        entries = first * second
        if self.pool.holds(self.count * entries) and 2 * entries < 64 * rows * rows:
            whole = self.pool.take((self.count, first, second), self.left)
            self._whole = torch.bmm(self.left.transpose(1, 2), self.right, out=whole)
            self.left = self.right = self.left.new_empty(0)  # the gradients say all
            return squares(self._whole.view(self.count, -1))
        reach, largest = self._terms()
        gram = rows * (first + second) < entries
        norms = self._by_gram(reach, largest) if gram else self._by_parts(range(self.count))
        return self.without_faint(norms, reach)

    def _product(self, own: Tensor, other: Tensor) -> Tensor:
        """Return products of squares, in double where one may be too small for the other."""
        norms = own * other
        if torch.maximum(own, other).amax() <= LARGE:  # not so for what is no number
            return norms
        wild = (own > LARGE) | (other > LARGE)
        left, right = (side[wild, 0].double() for side in (self.left, self.right))
        norms[wild] = (squares(left) * squares(right)).to(norms.dtype)
        return norms

    def _terms(self) -> tuple[Tensor, Tensor]:
        """Return the square of what the norms of an example's terms add up to, and its largest row's."""
        sides = [torch.linalg.vector_norm(side, dim=-1) for side in (self.left, self.right)]
        largest = torch.maximum(*(side.amax(1) for side in sides)).square()
        reach: Tensor = (sides[0] * sides[1]).sum(1).square()
        return reach, largest

    def _by_gram(self, reach: Tensor, largest: Tensor) -> Tensor:
        """Return inner products of rows with rows; where they cancel out, the gradients decide.

        With n rows, terms of either sign leave about 1/n of the bound. A rounding of 2**-24 of each term is
        far below the slack of `Clipping` then if roundings are of either sign too; for rows that are alike
        they are not, and what they may take from the bound beyond half of the slack is added. An example
        whose terms cancel out further is computed anew.
        """
        gram = self.left @ self.left.transpose(1, 2)
        gram.mul_(self.right @ self.right.transpose(1, 2))
        norms = gram.sum((1, 2))
        floor = min(_DOUBTFUL, 0.1 / self.left.shape[1])
        doubtful = (norms < reach * floor) | (largest > LARGE)
        if doubtful.any():
            chosen = doubtful.nonzero()[:, 0]
            norms[chosen] = self._by_parts(chosen.tolist())
        return norms + (reach * _ROUNDING - norms * _ALLOWED).clamp(min=0).masked_fill(doubtful, 0)

    def _by_parts(self, examples: range | list[int]) -> Tensor:
        """Return the norms of gradients that are made a few at a time."""
        entries = self.shape[0] * self.shape[1]
        few = max(1, min(len(examples), self.max_entries // max(1, entries)))
        norms = []
        for start in range(0, len(examples), few):
            part = examples[start : start + few]
            index = slice(part.start, part.stop) if isinstance(part, range) else part
            gradients = self.left[index].transpose(1, 2) @ self.right[index]
            norms.append(squares(gradients.view(len(gradients), -1)))
        return torch.cat(norms)

    def drop(self, examples: Tensor) -> None:
        """Fill both factors with zeros."""
        if self._whole is not None:
            self._whole[examples] = 0
            return
        left, right = self.left.clone(), self.right.clone()
        left[examples], right[examples] = 0, 0
        self.left, self.right = left, right
