"""Broken local randomizers: bits that are never flipped, and an order that reveals the true value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.audit.input_pairs import InputPair
from sfumato.audit.specimens.specimen import Specimen

__all__ = ["OrderedSubset", "SureUnaryEncoding"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SureUnaryEncoding(Specimen):
    """Unary encoding whose ones are never flipped: a bit that is 0 rules its category out.

    Unary encoding sends a bit for each category, a one at the own, each flipped at random; with
    ``p = P(1 stays 1)`` and ``q = P(0 becomes 1)`` it is DP with ``log(p (1 - q) / (q (1 - p)))`` (Wang,
    Blocki, Li, Jha 2017, "Locally differentially private protocols for frequency estimation"). At p = 1 that
    is infinite, however often zeros are flipped.

    Parameters
    ----------
    categories : int

    Examples
    --------
    >>> broken = SureUnaryEncoding(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    categories: int = 4

    def __post_init__(self) -> None:
        super(SureUnaryEncoding, self).__post_init__()
        object.__setattr__(self, "categories", _check.integer("categories", self.categories, minimum=2))

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=0, second=1),)
    """Two categories."""

    def __call__(self, data: Any, size: int) -> NDArray[np.bool_]:
        """Return bits, one for each category."""
        flipped = self._generator.random((size, self.categories)) < 1 / (1 + math.exp(self.epsilon))
        flipped[:, int(data)] = True
        return flipped


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderedSubset(Specimen):
    """Subset selection that reports its subset in the order in which it was made, the own category first.

    A random subset of w of k categories holds the own with the odds of an epsilon-DP report (Ye, Barg 2018,
    "Optimal schemes for discrete distribution estimation under locally differential privacy"; S. Wang and
    others 2016, "Mutual information optimally local private discrete distribution estimation"). That is a
    theorem on sets. With the own category in front, whenever it is there at all, a category in any other
    index is ruled out. Not private for any epsilon.

    Parameters
    ----------
    categories : int
    subset : int
        How many are reported.

    Examples
    --------
    >>> broken = OrderedSubset(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    categories: int = 6
    subset: int = 3

    def __post_init__(self) -> None:
        super(OrderedSubset, self).__post_init__()
        subset = _check.integer("subset", self.subset, minimum=2)
        remedy = "pass more categories than the subset holds"
        categories = _check.integer("categories", self.categories, minimum=subset + 1, remedy=remedy)
        object.__setattr__(self, "subset", subset)
        object.__setattr__(self, "categories", categories)

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=0, second=1),)
    """Two categories."""

    def __call__(self, data: Any, size: int) -> NDArray[np.int64]:
        """Return subsets, each a row of category numbers."""
        weight = self.subset * math.exp(self.epsilon)
        holds = self._generator.random(size) < weight / (weight + self.categories - self.subset)
        order = self._generator.random((size, self.categories)).argsort(axis=1)
        # The own category goes to the front where it is held, to the end where it is not.
        keys = np.where(order == int(data), np.where(holds, -1, self.categories)[:, None], 0)
        indices = np.argsort(keys, axis=1, kind="stable")
        return np.take_along_axis(order, indices, axis=1)[:, : self.subset]
