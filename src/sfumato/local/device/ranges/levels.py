"""The client halves of range queries: a level of a tree is drawn, and the value's node on it reported."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise, product
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import CategoricalRandomizer, category_protocol
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.sampled_question import SampledQuestionRandomizer
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.grid import Grid
from sfumato.local.device.domains.tree import Shape
from sfumato.numerics.randomness.source import RandomSource

__all__ = [
    "HaarGridRandomizer",
    "HaarHistogramRandomizer",
    "HierarchicalHistogramRandomizer",
    "LevelsRandomizer",
]

_WORD: Final = 1 << 64
_MIN: Final = Fraction(1, 1 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsRandomizer(SampledQuestionRandomizer):
    r"""A client half that reports the true value's category on one level of a tree, with all of epsilon.

    Parameters
    ----------
    epsilon : float
        See `Randomizer`.
    domain : Domain or Bins
        What may be true, in its order; from 2 to 2^24.
    protocols : tuple of str
        For each level, the wire name of the client half that reports a category.
    weights : tuple of float, optional
        How likely the levels are drawn, in proportion; all alike if left out.

    Attributes
    ----------
    parts : tuple of CategoricalRandomizer
        One for each level, from the coarsest on.
    thresholds : tuple of int
        A word of 64 bits draws the level of the first threshold that it is below; the last is 2^64.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: see `SampledQuestionRandomizer`. A level's
    category follows from the value, so that its report is :math:`\epsilon`-DP for the value too.
    """

    index_bytes: ClassVar[int] = 1
    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "domain", "protocols", "weights")
    ordered: ClassVar[tuple[type, ...]] = (Domain, Bins)

    domain: Domain | Bins | Grid
    protocols: tuple[str, ...]
    weights: tuple[float, ...] | None = None
    parts: tuple[CategoricalRandomizer, ...] = field(init=False, repr=False, compare=False)
    thresholds: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def _prepare(self) -> None:
        given: object = self.domain
        if not isinstance(given, self.ordered):
            rule = f"be a {' or '.join(kind.__name__ for kind in self.ordered)}"
            remedy = "pass Domain(values), or Bins(edges) for numbers"
            _check.refuse_type("domain", rule, given, remedy)
        sizes = self._sizes()
        named: object = self.protocols
        if not isinstance(named, tuple | list) or len(named) != len(sizes):
            _check.refuse("protocols", f"be a list of {len(sizes)} names", named, "pass one for each level")
        self._set(protocols=tuple(named), thresholds=_thresholds(self.weights, len(sizes)))
        plain = None if self.weights is None else tuple(float(weight) for weight in self.weights)
        self._set(weights=plain)
        pairs = zip(named, sizes, strict=True)
        self._set(parts=tuple(_part(name, self.epsilon, size) for name, size in pairs))

    @abstractmethod
    def _sizes(self) -> list[int]:
        """Return how many categories each level has."""

    @property
    def chances(self) -> tuple[Fraction, ...]:
        """How likely each level is drawn, exactly."""
        return tuple(Fraction(high - low, _WORD) for low, high in pairwise((0, *self.thresholds)))

    def _drawn(self, size: int, source: RandomSource) -> NDArray[np.int64]:
        inner = np.array(self.thresholds[:-1], np.uint64)
        return np.searchsorted(inner, source.words(size), side="right").astype(np.int64)

    def _records(self, values: Any, source: RandomSource) -> Records:
        return self._encode(self.domain.codes(values), source)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalHistogramRandomizer(LevelsRandomizer):
    r"""The node of a tree, at a level drawn by chance, that the true value lies in.

    Parameters
    ----------
    epsilon, domain, protocols, weights
        See `LevelsRandomizer`; the levels are those below the root, of the tree of `Shape`.
    branching : int
        Children of a node, at least 2.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see `LevelsRandomizer`.

    Examples
    --------
    >>> names = ("optimized-unary-encoding",) * 2
    >>> sixteen = Domain(range(16))
    >>> device = HierarchicalHistogramRandomizer(epsilon=1.0, domain=sixteen, protocols=names, branching=4)
    >>> [len(part.domain) for part in device.parts], [str(chance) for chance in device.chances]
    ([4, 16], ['1/2', '1/2'])
    """

    wire_name: ClassVar[str] = "hierarchical-histogram"
    chosen: ClassVar[tuple[str, ...]] = (*LevelsRandomizer.chosen, "branching")

    branching: int

    @property
    def shape(self) -> Shape:
        """The tree."""
        return Shape(len(self.domain), self.branching)

    def _sizes(self) -> list[int]:
        shape = self.shape
        return [shape.nodes(level) for level in range(1, shape.levels + 1)]

    def answers(self, codes: NDArray[np.int64], question: int) -> NDArray[np.int64]:
        """Return the nodes of a level that contain given values.

        Parameters
        ----------
        codes : int64 array, shape (n,)
            Indices in the domain.
        question : int
            The level, counted from 0, the coarsest.

        Returns
        -------
        int64 array, shape (n,)
            Indices of the level's categories.
        """
        return np.asarray(codes // self.shape.span(question + 1))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HaarHistogramRandomizer(LevelsRandomizer):
    r"""The node of a binary tree, at a level drawn by chance, and the half of it that the true value is in.

    Parameters
    ----------
    epsilon, domain, protocols, weights
        See `LevelsRandomizer`; the levels are those above the leaves, the root first.

    Notes
    -----
    A level's category 2v is the first half of node v and 2v + 1 the second: the Haar coefficient's sign.

    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see `LevelsRandomizer`.

    Examples
    --------
    >>> names = ("signed-hadamard",) * 3
    >>> device = HaarHistogramRandomizer(epsilon=1.0, domain=Domain(range(8)), protocols=names)
    >>> [len(part.domain) for part in device.parts], device.answers(np.array([5]), 0).tolist()
    ([2, 4, 8], [1])
    """

    wire_name: ClassVar[str] = "haar-histogram"

    @property
    def shape(self) -> Shape:
        """The binary tree."""
        return Shape(len(self.domain), 2)

    def _sizes(self) -> list[int]:
        shape = self.shape
        return [2 * shape.nodes(level) for level in range(shape.levels)]

    def answers(self, codes: NDArray[np.int64], question: int) -> NDArray[np.int64]:
        """Return the halves of a level's nodes that contain given values.

        Parameters
        ----------
        codes : int64 array, shape (n,)
            Indices in the domain.
        question : int
            The level, counted from 0, the coarsest.

        Returns
        -------
        int64 array, shape (n,)
            Indices of the level's categories.
        """
        return np.asarray(codes // self.shape.span(question + 1))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HaarGridRandomizer(LevelsRandomizer):
    r"""Nodes of two binary trees, at levels drawn by chance, and whether both true halves are alike.

    Parameters
    ----------
    epsilon, domain, protocols, weights
        See `LevelsRandomizer`; the domain is a `Grid`. A level is one of each tree: "all" or one above the
        leaves, the root's first, but not "all" of both. Those with "all" of the first tree come first.

    Notes
    -----
    Of the pair v of two nodes, a level's category 2v is that of halves with the same sign and 2v + 1 the
    other: "all" has a plus, first halves have a plus and second ones a minus.

    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see `LevelsRandomizer`.

    Examples
    --------
    >>> grid = Grid(Domain(range(4)), Domain(range(4)))
    >>> device = HaarGridRandomizer(epsilon=1.0, domain=grid, protocols=("signed-hadamard",) * 8)
    >>> device.pairs
    [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    """

    wire_name: ClassVar[str] = "haar-grid"

    ordered: ClassVar[tuple[type, ...]] = (Grid,)

    @property
    def shapes(self) -> tuple[Shape, Shape]:
        """The binary trees."""
        grid: Any = self.domain
        return Shape(len(grid.first), 2), Shape(len(grid.second), 2)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The levels of both trees, 0 for "all" and 1 for the root's."""
        one, other = self.shapes
        return [at for at in product(range(one.levels + 1), range(other.levels + 1)) if at != (0, 0)]

    def nodes(self, level: int) -> tuple[int, int]:
        """Return the number of nodes of each tree at a level.

        Parameters
        ----------
        level : int
            Position in `pairs`.

        Returns
        -------
        tuple of two int
        """
        one, other = self.pairs[level]
        first, second = self.shapes
        return first.nodes(max(0, one - 1)), second.nodes(max(0, other - 1))

    def _sizes(self) -> list[int]:
        levels = range(len(self.pairs))
        return [2 * one * other for one, other in (self.nodes(level) for level in levels)]

    def answers(self, codes: NDArray[np.int64], question: int) -> NDArray[np.int64]:
        """Return pairs of nodes, each with the product of the two signs.

        Parameters
        ----------
        codes : int64 array, shape (n,)
            Indices in the grid.
        question : int
            Position in `pairs`.

        Returns
        -------
        int64 array, shape (n,)
            Indices of the level's categories.
        """
        grid: Any = self.domain
        parts = zip(np.divmod(codes, len(grid.second)), self.shapes, self.pairs[question], strict=True)
        halves = [positions // shape.span(at) if at else 0 * positions for positions, shape, at in parts]
        nodes = (halves[0] >> 1) * self.nodes(question)[1] + (halves[1] >> 1)
        return np.asarray(2 * nodes + ((halves[0] ^ halves[1]) & 1))


def _thresholds(weights: Any, count: int) -> tuple[int, ...]:
    """Return the cumulative chances of levels, in steps of 2^-64."""
    given = [1.0] * count if weights is None else weights
    if not isinstance(given, tuple | list) or len(given) != count:
        _check.refuse("weights", f"be {count} positive numbers", given, "pass one for each level")
    parts = [Fraction(_check.positive("weights", weight)) for weight in given]
    if min(parts) < _MIN * sum(parts):
        _check.refuse("weights", "be at least 2**-20 of their sum", min(given), "leave no level out")
    return tuple(int(reach * _WORD / sum(parts)) for reach in accumulate(parts))


def _part(name: object, epsilon: float, size: int) -> CategoricalRandomizer:
    """Return the client half of one level."""
    return category_protocol("protocols", name)(epsilon=epsilon, domain=Domain(range(size))).within()
