"""Several rows that are one example: augmented views, whose gradients are summed before their norm."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from sfumato import _check
from sfumato.errors import UnfitModule
from sfumato.learning.engine.gradients.gathered_rows import GatheredRows
from sfumato.learning.engine.gradients.outer_products import OuterProducts
from sfumato.learning.engine.gradients.per_example import (
    DenseGradients,
    PerExampleGradients,
    RecomputedGradients,
    squares,
)

__all__ = ["of_examples", "power_of_two", "whole"]

_MAX = 2.0**40


def whole(rows: int, views: int) -> int:
    """Return a number of rows if it is that of whole examples.

    Raises
    ------
    UnfitModule
        If it is not: whose views the last rows are would be unknown.
    """
    if rows % views:
        raise UnfitModule(
            f"batch must have {views} rows in a row for each example, got another number of rows; "
            "make it by Views, or leave views out"
        )
    return rows


def power_of_two(name: str, value: float) -> float:
    """Return a power of two from 1 to 2**40: dividing by it is exact in floats.

    Beyond, float32 would not hold the squares of scaled gradients, or the scale's own, to full accuracy: what
    is lost of a norm is not clipped.
    """
    value = _check.positive(name, value)
    if math.frexp(value)[0] != 0.5 or not 1 <= value <= _MAX:
        _check.refuse(name, "be a power of two from 1 to 2**40", value, "pass 65536.0, say")
    return value


def of_examples(by_row: PerExampleGradients, views: int, *, max_entries: int) -> PerExampleGradients:
    """Return one use of rows as one of examples, each with the sum of its rows' gradients.

    Parameters
    ----------
    by_row : PerExampleGradients
        Of one row after the other; ``squared_norms`` was not called.
    views : int
        How many rows in a row are one example.
    max_entries : int
        How many entries of gradients may be stored.

    Notes
    -----
    Guarantee: that of `PerExampleGradients`, for examples. Sums of outer products and of looked-up rows stay
    what they are, with as many more terms; of anything else an example's rows are added up before examples
    are.
    """
    count = by_row.count // views
    if isinstance(by_row, OuterProducts):
        left, right = (side.reshape(count, -1, side.shape[2]) for side in (by_row.left, by_row.right))
        return OuterProducts(left, right, max_entries=by_row.max_entries, pool=by_row.pool)
    if isinstance(by_row, GatheredRows):
        rows = by_row.rows.reshape(count, -1, by_row.rows.shape[2])
        return GatheredRows(by_row.index.reshape(count, -1), rows, by_row.shape)
    if isinstance(by_row, DenseGradients):
        return DenseGradients(by_row.gradients.unflatten(0, (count, views)).sum(1))
    return _Joined(by_row, views, max_entries)


@final
class _Joined(RecomputedGradients):
    """The gradients of another use, added up over the rows of each example.

    Parameters
    ----------
    rows : PerExampleGradients
    views : int
    max_entries : int
        How many entries of gradients may be stored.
    """

    __slots__ = ("_rows", "_views", "_whole")

    def __init__(self, rows: PerExampleGradients, views: int, max_entries: int) -> None:
        super().__init__(rows.shape, rows.count // views, max_entries // views)
        self._rows, self._views = rows, views
        self._whole: Tensor | None = None
        if self.count * math.prod(self.shape) <= max_entries:
            self._whole = torch.cat([part for _, part in self._parts()])
            del self._rows

    def per_example(self, start: int, stop: int) -> Tensor:
        if self._whole is not None:
            return self._whole[start:stop].view(-1, *self.shape)
        rows = self._rows.per_example(start * self._views, stop * self._views)
        joined: Tensor = rows.unflatten(0, (stop - start, self._views)).sum(1)
        return joined

    def weighted(self, factors: Tensor) -> Tensor:
        if self._whole is None:
            return super().weighted(factors)
        return (factors.to(self._whole.dtype) @ self._whole).view(self.shape)

    def squared_norms(self) -> Tensor:
        return super().squared_norms() if self._whole is None else squares(self._whole)

    def drop(self, examples: Tensor) -> None:
        if self._whole is not None:
            self._whole[examples] = 0
        else:
            self._rows.drop(examples.repeat_interleave(self._views))
