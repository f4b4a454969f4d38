"""Gradients of rows that were looked up: as many as were, never one for each row of the table."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sfumato.learning.engine.gradients.outer_products import OuterProducts
from sfumato.learning.engine.gradients.per_example import PerExampleGradients, squares, wide

__all__ = ["GatheredRows", "inner"]


class GatheredRows(PerExampleGradients):
    """Gradients that are, for each example, rows added up at their positions in a table.

    Parameters
    ----------
    index : Tensor of shape (examples, rows)
    rows : Tensor of shape (examples, rows, features)
    shape : sequence of int
        The table's.
    """

    __slots__ = ("index", "rows")

    def __init__(self, index: Tensor, rows: Tensor, shape: Sequence[int]) -> None:
        super().__init__(shape, len(index))
        self.index, self.rows = index.long(), wide(rows)

    @classmethod
    def joined(cls, parts: Sequence[GatheredRows]) -> GatheredRows:
        """Return the sum of several uses of one table."""
        index = torch.cat([part.index for part in parts], 1)
        return cls(index, torch.cat([part.rows for part in parts], 1), parts[0].shape)

    def per_example(self, start: int, stop: int) -> Tensor:
        """Return whole tables, one for each example."""
        index, rows = self.index[start:stop], self.rows[start:stop]
        tables = rows.new_zeros(stop - start, *self.shape)
        return tables.scatter_add_(1, index[:, :, None].expand_as(rows), rows)

    def weighted(self, factors: Tensor) -> Tensor:
        """Return one table."""
        rows = (self.rows * factors[:, None, None]).flatten(0, 1)
        return rows.new_zeros(self.shape).index_add_(0, self.index.flatten(), rows)

    def squared_norms(self) -> Tensor:
        """Return them with rows of the same position added up first, which sorting brings together."""
        count, rows, features = self.rows.shape
        if rows == 1:
            return squares(self.rows[:, 0])
        ordered, order = self.index.sort(dim=1)
        first = torch.ones_like(ordered, dtype=torch.bool)
        first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        row = first.flatten().cumsum(0) - 1
        moved = self.rows.gather(1, order[:, :, None].expand(count, rows, features))
        added = moved.new_zeros(count * rows, features).index_add_(0, row, moved.flatten(0, 1))
        owner = torch.arange(count, device=row.device).repeat_interleave(rows)
        norms = moved.new_zeros(count)
        norms.index_add_(0, owner[first.flatten()], squares(added[: int(row[-1]) + 1]))
        return self.without_faint(norms, torch.linalg.vector_norm(self.rows, dim=-1).sum(1).square())

    def drop(self, examples: Tensor) -> None:
        """Fill rows with zeros."""
        rows = self.rows.clone()
        rows[examples] = 0
        self.rows = rows


def inner(gather: GatheredRows, outer: OuterProducts) -> Tensor:
    """Return the inner product of each example's two gradients of one table."""
    count, rows, _ = outer.left.shape
    index = gather.index[:, None, :].expand(count, rows, gather.index.shape[1])
    chosen = outer.left.gather(2, index)
    return (chosen * (outer.right @ gather.rows.transpose(1, 2))).sum((1, 2))
