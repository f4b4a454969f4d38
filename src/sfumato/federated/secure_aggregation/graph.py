"""The random k-regular graph of SecAgg+: a circle in random order, each client joined to those near it."""

from __future__ import annotations

import hashlib
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.randomness.source import RandomSource

__all__ = ["NeighborGraph", "circle_neighbors", "drawn_order", "surviving_neighbors"]


def drawn_order(seed: bytes, clients: int) -> NDArray[np.int64]:
    """Return the order of the circle that follows from a seed.

    Each client has 192 bits of SHAKE256, so that two of them agree with probability below clients^2 / 2^193.
    """
    words = np.frombuffer(hashlib.shake_256(seed).digest(24 * clients), "<u8").reshape(3, clients)
    return np.lexsort(words)


def circle_neighbors(order: NDArray[np.int64], degree: int, client: int) -> NDArray[np.int64]:
    """Return a client's neighbors in ascending order.

    >>> circle_neighbors(np.array([2, 0, 3, 1, 4]), 2, 3).tolist()
    [0, 1]
    """
    if degree == len(order) - 1:
        return np.delete(np.arange(len(order)), client)
    at = int(np.flatnonzero(order == client)[0])
    return np.sort(order[(at + _steps(degree)) % len(order)])


def surviving_neighbors(
    order: NDArray[np.int64], degree: int, chosen: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return for each client how many of its neighbors are chosen.

    >>> surviving_neighbors(np.array([2, 0, 3, 1, 4]), 2, np.array([True, False, False, True, True])).tolist()
    [1, 2, 2, 1, 0]
    """
    if degree == len(order) - 1:
        return np.int64(chosen.sum()) - chosen
    half, there = degree // 2, chosen[order].astype(np.int64)
    sums = np.cumsum(np.concatenate([[0], there[-half:], there, there[:half]]))
    found = np.empty_like(there)
    found[order] = sums[degree + 1 :] - sums[: -degree - 1] - there
    return found


def _steps(degree: int) -> NDArray[np.int64]:
    forward = np.arange(1, degree // 2 + 1)
    return np.concatenate([forward, -forward])


@final
class NeighborGraph:
    """Who is whose neighbor, and where an edge stands in its other end's list.

    Parameters
    ----------
    clients : int
    degree : int
        Even, or all others.
    source : RandomSource or ndarray of int64, shape (clients,)
        What the order of the circle is drawn from, or the order.

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

    def __init__(self, clients: int, degree: int, source: RandomSource | NDArray[np.int64]) -> None:
        if degree == clients - 1:
            others = np.arange(degree)[None, :]
            neighbors = others + (others >= np.arange(clients)[:, None])
        else:
            # Two of the words agree with probability below clients^2 / 2^65.
            if isinstance(source, np.ndarray):
                order = source
            else:
                order = np.argsort(source.words(clients), kind="stable")
            neighbors = np.empty((clients, degree), np.int64)
            neighbors[order] = order[(np.arange(clients)[:, None] + _steps(degree)) % clients]
            neighbors.sort(axis=1)
        self.neighbors = neighbors.astype(np.int64)
        # Edges stand in order of (from, to); sorted by (to, from), the r-th is the edge back of the r-th.
        back = np.argsort(self.neighbors * clients + np.arange(clients)[:, None], axis=None, kind="stable")
        self.opposite = np.empty((clients, degree), np.int64)
        self.opposite.reshape(-1)[back] = np.arange(clients * degree)
