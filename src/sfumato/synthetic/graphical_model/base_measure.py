"""What a model is before any table is fitted: public log-weights, minus infinity where no row can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.domain.structural_zeros import StructuralZero, possible_cells
from sfumato.synthetic.graphical_model.calibration import Array, Calibrated, Calibration, aligned, summed
from sfumato.synthetic.graphical_model.junction_tree import JunctionTree, junction_tree, tree_cells
from sfumato.synthetic.marginals.workload import Clique, maximal

__all__ = ["BaseMeasure", "Cells"]

Cells: TypeAlias = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, eq=False)
class BaseMeasure:
    r"""A measure :math:`b(x) = \exp \sum_S f_S(x_S)` that a model's log-weights are relative to.

    Parameters
    ----------
    sizes : tuple of int
        Cells of each column.
    factors : mapping of tuple of int to array
        Log-weights by columns, rising; minus infinity where no row can be. None of them: all cells alike.

    Examples
    --------
    >>> base = BaseMeasure.from_zeros((2, 2), [((0, (0,)), (1, (1,)))])
    >>> np.exp(base.factors[0, 1]).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    >>> [len(set(each.tolist())) for each in base.classes()]
    [2, 2]
    """

    sizes: tuple[int, ...]
    factors: Mapping[Clique, Array]

    @classmethod
    def from_zeros(cls, sizes: Sequence[int], zeros: Sequence[StructuralZero]) -> BaseMeasure:
        """Return the measure that counts the cells which can hold a row.

        Parameters
        ----------
        sizes : sequence of int
        zeros : sequence of StructuralZero

        Returns
        -------
        BaseMeasure
            A factor for each set of columns that is within no other one.
        """
        factors: dict[Clique, Array] = {}
        for scope in maximal(tuple(place for place, _ in zero) for zero in zeros):
            inside = [zero for zero in zeros if {place for place, _ in zero} <= set(scope)]
            factors[scope] = np.where(possible_cells(scope, sizes, inside), 0.0, -np.inf)
        return cls(tuple(sizes), factors)

    @staticmethod
    def scopes_of(zeros: Sequence[StructuralZero]) -> tuple[Clique, ...]:
        """Return the columns of each factor that `from_zeros` makes, without making it.

        Parameters
        ----------
        zeros : sequence of StructuralZero

        Returns
        -------
        tuple of tuple of int
        """
        return maximal(tuple(place for place, _ in zero) for zero in zeros)

    def times(self, other: BaseMeasure) -> BaseMeasure:
        """Return the product of two measures.

        Parameters
        ----------
        other : BaseMeasure
            Of the same cells.

        Returns
        -------
        BaseMeasure
        """
        factors = dict(self.factors)
        for scope, factor in other.factors.items():
            factors[scope] = factors[scope] + factor if scope in factors else factor
        return BaseMeasure(self.sizes, factors)

    @property
    def cells(self) -> int:
        """How many cells the junction tree of its factors has; 0 where there is none."""
        return tree_cells(self.sizes, self.factors) if self.factors else 0

    def calibrated(self) -> Calibrated:
        """Return the measure as a distribution.

        Returns
        -------
        Calibrated
        """
        scopes = (*((column,) for column in range(len(self.sizes))), *self.factors)
        return Calibration(junction_tree(self.sizes, scopes), (), self.factors)(())

    def feasible(self) -> bool:
        """Whether any cell can hold a row.

        Returns
        -------
        bool
        """
        if not self.factors:
            return True
        scopes = tuple(self.factors)
        return bool(self.possible(junction_tree(self.sizes, scopes), scopes[:1])[0].any())

    def count(self, columns: Clique) -> int:
        """Return how many cells of a table can hold a row, in view of the factors of its own columns.

        Parameters
        ----------
        columns : tuple of int
            Rising.

        Returns
        -------
        int
        """
        shape = [self.sizes[column] for column in columns]
        inside = [s for s, f in self.factors.items() if set(s) <= set(columns) and np.isneginf(f).any()]
        if not inside:
            return prod(shape)
        possible: Cells = np.ones(shape, bool)
        for scope in inside:
            possible &= _aligned(self.factors[scope] > -np.inf, scope, columns)
        return int(possible.sum())

    def classes(self) -> list[NDArray[np.int64]]:
        """Return which cells of each column no factor tells apart.

        Returns
        -------
        list of int64 array of shape (cells,)
            A number for each cell, the same for those that may be merged: the measure of a product of merged
            cells is that of any of its cells times their number.
        """
        found = [np.zeros(size, np.int64) for size in self.sizes]
        for scope, factor in self.factors.items():
            for axis, column in enumerate(scope):
                slices = np.moveaxis(factor, axis, 0).reshape(self.sizes[column], -1)
                _, own = np.unique(slices, axis=0, return_inverse=True)
                pairs = np.stack([found[column], own.reshape(-1)], axis=1)
                _, joint = np.unique(pairs, axis=0, return_inverse=True)
                found[column] = joint.reshape(-1).astype(np.int64)
        return found

    def grouped(self, groups: Sequence[NDArray[np.int64]]) -> BaseMeasure:
        """Return the measure of groups of cells.

        Parameters
        ----------
        groups : sequence of int64 array of shape (cells,)
            By column the group of each cell, from 0; all cells of a group are of one class.

        Returns
        -------
        BaseMeasure
        """
        firsts = [np.unique(group, return_index=True)[1] for group in groups]
        factors: dict[Clique, Array] = {}
        for scope, factor in self.factors.items():
            factors[scope] = factor[np.ix_(*(firsts[column] for column in scope))]
        grouped = BaseMeasure(tuple(map(len, firsts)), factors)
        widths = [np.bincount(group) for group in groups]
        if not self.factors or all(width.max() == 1 for width in widths):
            return grouped
        logs: dict[Clique, Array] = {
            (column,): np.log(width) for column, width in enumerate(widths) if width.max() > 1
        }
        return grouped.times(BaseMeasure(grouped.sizes, logs))

    def possible(self, tree: JunctionTree, scopes: Sequence[Clique]) -> list[Cells]:
        """Return which cells of some tables can hold a row, in view of all factors together.

        Parameters
        ----------
        tree : JunctionTree
            In which each factor and each table is within a clique.
        scopes : sequence of tuple of int

        Returns
        -------
        list of bool array
            Exact: sums of products of truth values up the tree and down again.
        """
        tables: list[Cells] = [np.ones(tree.shape(clique), bool) for clique in tree.cliques]
        for scope, factor in self.factors.items():
            home = _home(tree, scope)
            tables[home] &= _aligned(factor > -np.inf, scope, tree.cliques[home])
        for k in range(len(tables) - 1, 0, -1):
            shape = tree.shape(tree.separators[k])
            message = np.asarray(tables[k].reshape(prod(shape), -1).any(axis=1)).reshape(shape)
            tables[tree.parents[k]] &= _aligned(message, tree.separators[k], tree.cliques[tree.parents[k]])
        for k in range(1, len(tables)):
            message = _any(tables[tree.parents[k]], tree.cliques[tree.parents[k]], tree.separators[k])
            tables[k] &= _aligned(message, tree.separators[k], tree.cliques[k])
        homes = [_home(tree, scope) for scope in scopes]
        return [_any(tables[h], tree.cliques[h], scope) for h, scope in zip(homes, scopes, strict=True)]


def _home(tree: JunctionTree, scope: Clique) -> int:
    home = tree.home(scope)
    if home is None:
        raise ValueError("each table must be within a clique")
    return home


def _aligned(table: Cells, axes: Clique, into: Clique) -> Cells:
    return aligned(table.astype(np.float64), axes, into) > 0


def _any(table: Cells, axes: Clique, onto: Clique) -> Cells:
    return summed(table.astype(np.float64), axes, onto) > 0
