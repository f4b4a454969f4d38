"""Road graphs as they are found: loops, double edges, dead ends, nodes of any name.

>>> roads = road_graph(
...     [("home", "mill", 4.0, 900.0), ("mill", "home", 4.0, 900.0), ("mill", "home", 6.0, 300.0),
...      ("mill", "pier", 2.0, 500.0)]
... )
>>> roads.nodes, roads.network.edges, roads.left_out
(('home', 'mill'), 2, ('pier',))
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from sfumato import _check
from sfumato.games.joint.roads import RoadNetwork

__all__ = ["RoadGraph", "road_graph"]

_Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoadGraph:
    """A network with the names of its nodes, and what was left out of the graph.

    Parameters
    ----------
    network : RoadNetwork
        Of numbered nodes.
    nodes : tuple
        The name of each node.
    left_out : tuple
        Nodes from which some other cannot be reached, or that cannot be reached.

    Examples
    --------
    >>> from sfumato.games import road_graph
    >>> roads = road_graph([("a", "b", 1.0, 10.0), ("b", "a", 1.0, 10.0)])
    >>> roads.trips([("a", "b"), ("b", "b")]).tolist()
    [[0, 1], [1, 1]]
    """

    network: RoadNetwork
    nodes: tuple[Any, ...]
    left_out: tuple[Any, ...]

    def trips(self, ends: Iterable[tuple[Hashable, Hashable]]) -> _Integers:
        """Return trips between named nodes as `PrivateRouting` takes them.

        Parameters
        ----------
        ends : iterable of (node, node)
            Origin and destination of each driver, the same if it is absent.

        Returns
        -------
        int64 array of shape (drivers, 2)

        Raises
        ------
        ParameterError
            If an end is no node of the network; the message does not show it.
        """
        place = {node: at for at, node in enumerate(self.nodes)}
        try:
            found = [(place[origin], place[destination]) for origin, destination in ends]
        except (KeyError, TypeError, ValueError):
            remedy = "map places that were left out to the nearest node first"
            _check.refuse_state("ends", "be pairs of the network's nodes", "one of them is none", remedy)
        return np.array(found, np.int64).reshape(-1, 2)

    def route(self, edges: Any) -> list[Any]:
        """Return the names along a driver's part.

        Parameters
        ----------
        edges : int array
            A part of `PrivateRouting`: edges, the last one first, filled up with the number of all edges.

        Returns
        -------
        list
            From origin to destination; empty for a driver that stays.

        Examples
        --------
        >>> from sfumato.games import road_graph
        >>> road_graph([("a", "b", 1.0, 10.0), ("b", "a", 1.0, 10.0)]).route([0, 2, 2])
        ['a', 'b']
        """
        used = np.asarray(edges, np.int64)
        used = used[used < self.network.edges][::-1]
        ends = [*self.network.tails[used[:1]], *self.network.heads[used]]
        return [self.nodes[end] for end in ends]


def road_graph(
    edges: Iterable[tuple[Hashable, Hashable, float, float]], *, growth: float = 0.15, power: float = 4.0
) -> RoadGraph:
    """Make a `RoadNetwork` of a road graph as it is found: of a map, or of a planner's file.

    Parameters
    ----------
    edges : iterable of (node, node, float, float)
        Where each one-way edge begins and ends, its free travel time and its capacity. A loop is left out;
        of several edges between the same nodes the fastest empty one stays. Public.
    growth, power : float
        As in `RoadNetwork`.

    Returns
    -------
    RoadGraph
        Of the largest set of nodes that all lead to one another; of several that are as large, the one whose
        first node comes first.

    Raises
    ------
    ParameterError
        If no two nodes lead to each other, or as for `RoadNetwork`.

    Notes
    -----
    What is left out depends on the graph alone, never on a trip.
    """
    place: dict[Hashable, int] = {}
    best: dict[tuple[int, int], tuple[float, float]] = {}
    rows: Iterable[Any] = edges
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != 4:
            remedy = "pass (tail, head, free time, capacity) for each"
            _check.refuse_type("edges", "be rows of four", row, remedy)
        tail, head, free_time, capacity = row
        numbers = _check.positive("free time", free_time), _check.positive("capacity", capacity)
        pair = place.setdefault(tail, len(place)), place.setdefault(head, len(place))
        if pair[0] != pair[1] and (pair not in best or numbers[0] < best[pair][0]):
            best[pair] = numbers
    tails, heads = np.array(list(best), np.int64).reshape(-1, 2).T
    inside = _largest(tails, heads, len(place))
    if len(inside) < 2:
        remedy = "pass both directions of streets that are no one-way streets"
        _check.refuse_state("edges", "lead from two nodes to each other", "no two are so", remedy)
    number = np.full(len(place), -1)
    number[inside] = np.arange(len(inside))
    among = (number[tails] >= 0) & (number[heads] >= 0)
    times, capacities = np.array(list(best.values())).T[:, among]
    names = list(place)
    return RoadGraph(
        network=RoadNetwork(
            tails=number[tails[among]],
            heads=number[heads[among]],
            free_times=times,
            capacities=capacities,
            growth=growth,
            power=power,
        ),
        nodes=tuple(names[at] for at in inside.tolist()),
        left_out=tuple(name for at, name in enumerate(names) if number[at] < 0),
    )


def _largest(tails: _Integers, heads: _Integers, nodes: int) -> _Integers:
    """Return the nodes of the largest strongly connected component, ascending."""
    if not len(tails):
        return np.zeros(0, np.int64)
    graph = csr_array((np.ones(len(tails)), (tails, heads)), shape=(nodes, nodes))
    labels = connected_components(graph, connection="strong")[1]
    sizes = np.bincount(labels)
    first = int(np.argmax(sizes[labels] == sizes.max()))
    return np.flatnonzero(labels == labels[first])
