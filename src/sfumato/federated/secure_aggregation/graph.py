"""The random k-regular graph of SecAgg+: a circle in random order, each client joined to those near it."""

from __future__ import annotations

from typing import final

import numpy as np

from sfumato.numerics.randomness.source import RandomSource

__all__ = ["NeighborGraph"]


@final
class NeighborGraph:
    """Who is whose neighbor, and where an edge stands in its other end's list.

    Parameters
    ----------
    clients : int
    degree : int
        Even, or all others.
    source : RandomSource
        What the order of the circle is drawn from.

    Attributes
    ----------
    neighbors : ndarray of int64, shape (clients, degree)
        Each row in ascending order.
    opposite : ndarray of int64, shape (clients, degree)
        For the edge from a client to a neighbor, the flat index of the edge back.

    Examples
    --------
    >>> from sfumato.numerics.randomness.source import SecureSource
    >>> NeighborGraph(3, 2, SecureSource()).neighbors.tolist()
    [[1, 2], [0, 2], [0, 1]]
    """

    __slots__ = ("neighbors", "opposite")

    def __init__(self, clients: int, degree: int, source: RandomSource) -> None:
        if degree == clients - 1:
            others = np.arange(degree)[None, :]
            neighbors = others + (others >= np.arange(clients)[:, None])
        else:
            # Two of the words agree with probability below clients^2 / 2^65.
            order = np.argsort(source.words(clients), kind="stable")
            steps = np.concatenate([np.arange(1, degree // 2 + 1), -np.arange(1, degree // 2 + 1)])
            neighbors = np.empty((clients, degree), np.int64)
            neighbors[order] = order[(np.arange(clients)[:, None] + steps) % clients]
            neighbors.sort(axis=1)
        self.neighbors = neighbors.astype(np.int64)
        # Edges stand in order of (from, to); sorted by (to, from), the r-th is the edge back of the r-th.
        back = np.argsort(self.neighbors * clients + np.arange(clients)[:, None], axis=None, kind="stable")
        self.opposite = np.empty((clients, degree), np.int64)
        self.opposite.reshape(-1)[back] = np.arange(clients * degree)
