"""A junction tree over the columns of measured tables, and how large it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import final

from sfumato.synthetic.marginals.workload import Clique

__all__ = ["JunctionTree", "junction_tree", "maximal_cliques", "tree_cells"]


@final
@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Cliques of columns in a tree, each after its parent.

    Parameters
    ----------
    sizes : tuple of int
        Cells of each column.
    cliques : tuple of tuple of int
        Each with the columns that its parent has first, then the others; both rising.
    parents : tuple of int
        Of each clique; -1 of the first.
    separators : tuple of tuple of int
        The columns that each clique shares with its parent.

    Notes
    -----
    The cliques that have a column are connected in the tree (the running intersection property), as it is a
    maximum spanning tree by the number of shared columns over the maximal cliques of a chordal graph (Jensen,
    Jensen 1994, "Optimal junction trees").
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    separators: tuple[Clique, ...]

    def shape(self, columns: Iterable[int]) -> tuple[int, ...]:
        """Return the cells of each of some columns.

        Parameters
        ----------
        columns : iterable of int

        Returns
        -------
        tuple of int
        """
        return tuple(self.sizes[column] for column in columns)

    @property
    def cells(self) -> int:
        """How many cells all cliques have together."""
        return sum(prod(self.shape(clique)) for clique in self.cliques)

    def home(self, columns: Clique) -> int | None:
        """Return the smallest clique with these columns, or None.

        Parameters
        ----------
        columns : tuple of int

        Returns
        -------
        int or None
        """
        wanted = set(columns)
        having = [k for k, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(having, key=lambda k: (prod(self.shape(self.cliques[k])), k), default=None)


def maximal_cliques(sizes: Sequence[int], scopes: Iterable[Clique]) -> list[int]:
    """Return the maximal cliques of a chordal graph in which the columns of each scope are connected.

    Parameters
    ----------
    sizes : sequence of int
        Cells of each column.
    scopes : iterable of tuple of int

    Returns
    -------
    list of int
        A bit for each column. By elimination of the column with the smallest clique, again and again.

    Examples
    --------
    >>> maximal_cliques((2, 3, 4), [(0, 1), (1, 2)])
    [3, 6]
    """
    near = [1 << column for column in range(len(sizes))]
    for scope in scopes:
        mask = sum(1 << column for column in scope)
        for column in scope:
            near[column] |= mask
    weights = {column: prod([sizes[other] for other in _bits(mask)]) for column, mask in enumerate(near)}
    found: list[int] = []
    while weights:
        column = min(weights, key=weights.__getitem__)  # the first of the smallest
        mask = near[column]
        del weights[column]
        if not any(mask & other == mask for other in found):
            found.append(mask)
        for other in _bits(mask ^ (1 << column)):
            near[other] = (near[other] | mask) ^ (1 << column)
            weights[other] = prod([sizes[each] for each in _bits(near[other])])
    return found


def tree_cells(sizes: Sequence[int], scopes: Iterable[Clique]) -> int:
    """Return how many cells the junction tree of some tables has, without making it.

    Parameters
    ----------
    sizes : sequence of int
    scopes : iterable of tuple of int

    Returns
    -------
    int

    Examples
    --------
    >>> tree_cells((2, 3, 4), [(0, 1), (1, 2)])
    18
    """
    return sum(prod([sizes[each] for each in _bits(mask)]) for mask in maximal_cliques(sizes, scopes))


def junction_tree(sizes: Sequence[int], scopes: Iterable[Clique]) -> JunctionTree:
    """Return a junction tree in which each scope is within a clique.

    Parameters
    ----------
    sizes : sequence of int
        Cells of each column.
    scopes : iterable of tuple of int
        The columns of each table.

    Returns
    -------
    JunctionTree

    Examples
    --------
    >>> tree = junction_tree((2, 3, 4), [(0, 1), (1, 2)])
    >>> tree.cliques, tree.parents, tree.separators
    (((0, 1), (1, 2)), (-1, 0), ((), (1,)))
    """
    masks = maximal_cliques(sizes, scopes)
    shared, parent = [(masks[0] & mask).bit_count() for mask in masks], [0] * len(masks)
    order, left = [0], set(range(1, len(masks)))
    while left:
        new = min(left, key=lambda each: (-shared[each], each))
        order.append(new)
        left.discard(new)
        for other in left:
            common = (masks[new] & masks[other]).bit_count()
            if common > shared[other]:
                shared[other], parent[other] = common, new
    place = {mask: k for k, mask in enumerate(order)}
    parents = (-1, *(place[parent[each]] for each in order[1:]))
    separators, cliques = list[Clique]([()]), [tuple(_bits(masks[0]))]
    for each in order[1:]:
        separator = tuple(_bits(masks[each] & masks[parent[each]]))
        separators.append(separator)
        cliques.append((*separator, *_bits(masks[each] & ~masks[parent[each]])))
    return JunctionTree(tuple(sizes), tuple(cliques), parents, tuple(separators))


@lru_cache(maxsize=1 << 12)
def _bits(mask: int) -> tuple[int, ...]:
    return tuple(column for column in range(mask.bit_length()) if mask >> column & 1)
