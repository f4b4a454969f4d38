"""The probabilities of any columns' cells, also where no clique has them all."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from sfumato.synthetic.graphical_model.calibration import Array, Calibrated, summed
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["ModelMarginals"]

_REMEMBERED = 1 << 22


class ModelMarginals:
    """Reads marginals off a calibrated tree; what several of them need is computed once.

    Parameters
    ----------
    model : Calibrated

    Notes
    -----
    Columns that no clique has together are connected through the highest clique that is above all of them:
    the conditional distribution of those below a child, given the child's separator, is passed up and
    multiplied in, and what is in neither is summed out.

    Examples
    --------
    >>> from sfumato.synthetic.graphical_model.calibration import Calibration
    >>> from sfumato.synthetic.graphical_model.junction_tree import junction_tree
    >>> scopes = [(0, 1), (1, 2)]
    >>> calibration = Calibration(junction_tree((2, 2, 2), scopes), scopes)
    >>> same = np.log([[0.9, 0.1], [0.1, 0.9]])
    >>> ModelMarginals(calibration([same, same]))((0, 2)).round(3).tolist()
    [[0.41, 0.09], [0.09, 0.41]]
    """

    def __init__(self, model: Calibrated) -> None:
        self._model, tree = model, model.tree
        self._first = {}
        for k, (clique, separator) in enumerate(zip(tree.cliques, tree.separators, strict=True)):
            for column in clique[len(separator) :]:
                self._first[column] = k
        self._children: list[list[int]] = [[] for _ in tree.cliques]
        self._below = [set(clique[len(s) :]) for clique, s in zip(tree.cliques, tree.separators, strict=True)]
        for k in range(len(tree.cliques) - 1, 0, -1):
            self._children[tree.parents[k]].append(k)
            self._below[tree.parents[k]] |= self._below[k]
        self._passed: dict[tuple[int, Clique], Array] = {}
        self._cells = 0

    def __call__(self, columns: Clique) -> Array:
        """Return the probabilities of some columns' cells.

        Parameters
        ----------
        columns : tuple of int
            Different ones, in the order of the axes.

        Returns
        -------
        array
        """
        tree = self._model.tree
        home = tree.home(columns)
        if home is not None:
            return summed(self._model.beliefs[home], tree.cliques[home], columns)
        top = self._top(columns)
        axes, table = self._joined(top, tree.cliques[top], self._model.beliefs[top], columns, columns)
        return summed(table, axes, columns)

    def _top(self, columns: Iterable[int]) -> int:
        """Return the lowest clique that is above the first one of each column, or is it."""
        nodes = {self._first[column] for column in columns}
        while len(nodes) > 1:
            lowest = max(nodes)  # parents come first
            nodes = (nodes - {lowest}) | {self._model.tree.parents[lowest]}
        return nodes.pop()

    def _joined(
        self, k: int, axes: Clique, table: Array, columns: Clique, onto: Clique
    ) -> tuple[Clique, Array]:
        """Multiply in what children know of some columns, and sum out what is not wanted after."""
        tree, own = self._model.tree, set(tree_columns := axes)
        parts = []
        for child in self._children[k]:
            below = tuple(sorted(self._below[child] & set(columns) - own))
            if below:
                parts.append((child, below))
        needed = set(onto) | {column for child, _ in parts for column in tree.separators[child]}
        left = tuple(column for column in tree_columns if column in needed)
        table = summed(table, axes, left)
        for place, (child, below) in enumerate(parts):
            later = {column for other, _ in parts[place + 1 :] for column in tree.separators[other]}
            wanted = set(onto) | later
            separator = tree.separators[child]
            left, table = _product(table, left, self._up(child, below), (*separator, *below), wanted)
        return left, table

    def _up(self, k: int, columns: Clique) -> Array:
        """Return the distribution of columns below or in a clique, given its separator."""
        found = self._passed.get((k, columns))
        if found is None:
            tree, separator = self._model.tree, self._model.tree.separators[k]
            conditional = self._model.conditionals[k].reshape(tree.shape(tree.cliques[k]))
            onto = (*separator, *columns)
            axes, table = self._joined(k, tree.cliques[k], conditional, columns, onto)
            found = np.ascontiguousarray(summed(table, axes, onto))
            if self._cells + found.size <= _REMEMBERED:
                self._passed[k, columns] = found
                self._cells += found.size
        return found


def _product(
    one: Array, one_axes: Clique, two: Array, two_axes: Clique, wanted: set[int]
) -> tuple[Clique, Array]:
    """Return the product of two tables, summed over what is not wanted: a batch of matrix products."""
    shared = [column for column in one_axes if column in two_axes]
    batch = [column for column in shared if column in wanted]
    inner = [column for column in shared if column not in wanted]
    left = [column for column in one_axes if column in wanted and column not in shared]
    right = [column for column in two_axes if column in wanted and column not in shared]
    one = summed(one, one_axes, tuple(batch + left + inner))
    two = summed(two, two_axes, tuple(batch + inner + right))
    cut = len(batch), len(batch) + len(left), len(batch) + len(inner)
    shape = one.shape[: cut[1]] + two.shape[cut[2] :]
    rows, depth = prod(one.shape[: cut[0]]), prod(one.shape[cut[1] :])
    result = np.matmul(one.reshape(rows, -1, depth), two.reshape(rows, depth, -1))
    return tuple(batch + left + right), result.reshape(shape)
