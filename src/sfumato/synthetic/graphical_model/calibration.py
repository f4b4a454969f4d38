r"""The distribution :math:`q(x) \propto \exp \sum_r \theta_r(x_r)` on a junction tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.graphical_model.junction_tree import JunctionTree
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["Array", "Calibrated", "Calibration", "aligned", "summed"]

Array: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Calibrated:
    """A distribution on a junction tree.

    Parameters
    ----------
    tree : JunctionTree
    log_normalizer : float
        Of the unnormalized weights; minus infinity where none is positive.
    beliefs : tuple of array
        The probabilities of each clique's cells, an axis for each column in its order.
    conditionals : tuple of array of shape (separator's cells, other cells)
        Of each clique's other columns given its separator; zeros where the separator's cell has no mass.
    """

    tree: JunctionTree
    log_normalizer: float
    beliefs: tuple[Array, ...]
    conditionals: tuple[Array, ...]


@final
class Calibration:
    """Where the tables of a model are in its tree: made once, used for many values of them.

    Parameters
    ----------
    tree : JunctionTree
    scopes : sequence of tuple of int
        The columns of each table, rising; each within a clique.
    base : mapping of tuple of int to array, optional
        Log-weights that all values of the tables are added to; minus infinity for what is impossible.

    Examples
    --------
    >>> from sfumato.synthetic.graphical_model.junction_tree import junction_tree
    >>> model = Calibration(junction_tree((2, 2), [(0, 1)]), [(0, 1), (0,)])
    >>> found = model([np.zeros((2, 2)), np.log([1.0, 3.0])])
    >>> round(float(np.exp(found.log_normalizer)), 9), found.beliefs[0].round(3).tolist()
    (8.0, [[0.125, 0.125], [0.375, 0.375]])
    """

    def __init__(
        self, tree: JunctionTree, scopes: Sequence[Clique], base: Mapping[Clique, Array] | None = None
    ) -> None:
        self.tree, self.scopes = tree, tuple(scopes)
        self.homes = [self._home(scope) for scope in scopes]
        self._logs = [np.empty(tree.shape(clique)) for clique in tree.cliques]
        self._base = [np.zeros(())] * len(tree.cliques)
        for scope, factor in (base or {}).items():
            home = self._home(scope)
            clique = tree.cliques[home]
            self._base[home] = self._base[home] + np.broadcast_to(
                aligned(factor, scope, clique), tree.shape(clique)
            )
        self._rows = [prod(tree.shape(separator)) for separator in tree.separators]

    def __call__(self, thetas: Sequence[Array]) -> Calibrated:
        """Return the distribution of some log-weights.

        Parameters
        ----------
        thetas : sequence of array
            One for each scope; minus infinity for what is impossible.

        Returns
        -------
        Calibrated

        Notes
        -----
        Each clique sends the log of its sum to its parent and stays with the conditional distribution of its
        other columns, each row of it shifted by its own maximum before it is exponentiated: weights beyond
        the range of floats do no harm.
        """
        tree, logs = self.tree, self._logs
        for log, base in zip(logs, self._base, strict=True):
            log[...] = base
        for scope, theta, home in zip(self.scopes, thetas, self.homes, strict=True):
            logs[home] += aligned(theta, scope, tree.cliques[home])
        conditionals: list[Array] = [np.empty(0)] * len(logs)
        log_normalizer = 0.0
        for k in range(len(logs) - 1, -1, -1):
            rows = logs[k].reshape(self._rows[k], -1)
            conditionals[k], message = _normalized(rows)
            if k:
                sent = message.reshape(tree.shape(tree.separators[k]))
                logs[tree.parents[k]] += aligned(sent, tree.separators[k], tree.cliques[tree.parents[k]])
            else:
                log_normalizer = float(message[0])
        beliefs: list[Array] = []
        for k, conditional in enumerate(conditionals):
            belief = conditional
            if k:
                parent = tree.parents[k]
                belief = conditional * summed(
                    beliefs[parent], tree.cliques[parent], tree.separators[k]
                ).reshape(-1, 1)
            beliefs.append(belief.reshape(logs[k].shape))
        return Calibrated(tree, log_normalizer, tuple(beliefs), tuple(conditionals))

    def _home(self, scope: Clique) -> int:
        home = self.tree.home(scope)
        if home is None:
            raise ValueError("each table must be within a clique")
        return home

    def tables(self, found: Calibrated) -> list[Array]:
        """Return the probabilities of each table's cells.

        Parameters
        ----------
        found : Calibrated

        Returns
        -------
        list of array
        """
        cliques = self.tree.cliques
        return [
            summed(found.beliefs[home], cliques[home], scope)
            for scope, home in zip(self.scopes, self.homes, strict=True)
        ]


def _normalized(rows: Array) -> tuple[Array, Array]:
    """Return each row's exponentials over their sum, and the log of the sum."""
    highest = rows.max(axis=1, keepdims=True)
    possible = highest[:, 0] > -np.inf
    if possible.all():
        weights = np.exp(rows - highest)
        sums = weights.sum(axis=1)
        weights /= sums[:, None]
        return weights, highest[:, 0] + np.log(sums)
    highest[~possible] = 0.0
    weights = np.exp(rows - highest)
    sums = weights.sum(axis=1)
    sums[~possible] = 1.0
    weights /= sums[:, None]
    return weights, np.where(possible, highest[:, 0] + np.log(sums), -np.inf)


def aligned(table: Array, axes: Clique, into: Clique) -> Array:
    """Return a table as a view that broadcasts over further columns.

    Parameters
    ----------
    table : array
        An axis for each of ``axes``.
    axes : tuple of int
    into : tuple of int
        Columns in any order, those of ``axes`` among them.

    Returns
    -------
    array
    """
    order = sorted(range(len(axes)), key=lambda axis: into.index(axes[axis]))
    turned = table.transpose(order)
    sizes = iter(turned.shape)
    return turned.reshape([next(sizes) if column in axes else 1 for column in into])


def summed(table: Array, axes: Clique, onto: Clique) -> Array:
    """Return the sum of a table over all columns but some, in their order.

    Parameters
    ----------
    table : array
        An axis for each of ``axes``.
    axes : tuple of int
    onto : tuple of int
        Among ``axes``.

    Returns
    -------
    array
    """
    left = [column for column in axes if column in onto]
    drop = tuple(axis for axis, column in enumerate(axes) if column not in onto)
    total = table.sum(axis=drop) if drop else table
    if tuple(left) == onto:
        return np.asarray(total)
    return np.asarray(np.transpose(total, [left.index(column) for column in onto]))
