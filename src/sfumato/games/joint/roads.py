"""Road networks: travel times that grow with traffic, and how far drivers' routes are from equilibrium."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from sfumato import _check
from sfumato.games.arrays import as_numbers
from sfumato.mechanisms.base.release import read_only

__all__ = ["EquilibriumGap", "RoadNetwork"]

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]
_BLOCK: Final = 1 << 22  # distances at a time
_TINY: Final = math.ulp(0.0)  # the least cost of an edge in a search, which drops entries that are 0
_ROUNDING: Final = 1e-12  # of a sum of travel times, for ways of up to thousands of edges


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EquilibriumGap:
    """How much drivers would gain by another route, if all others stayed on theirs: private, for the curator.

    Parameters
    ----------
    mean, largest : float
        Upper bounds on the mean and on the largest gain of a driver, in the unit of travel times.
    mean_lower : float
        A lower bound on the mean gain.
    travel_time : float
        The mean travel time.

    Examples
    --------
    >>> EquilibriumGap(mean=0.5, largest=2.0, mean_lower=0.45, travel_time=10.0).relative
    0.05
    """

    mean: float
    largest: float
    mean_lower: float
    travel_time: float

    @property
    def relative(self) -> float:
        """The bound on the mean gain over the mean travel time."""
        return self.mean / self.travel_time if self.travel_time else 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoadNetwork:
    r"""A directed graph whose edges take longer the more drivers use them.

    Parameters
    ----------
    tails, heads : array of shape (edges,)
        Where each edge begins and ends: nodes from 0. No two edges have both in common.
    free_times : array of shape (edges,)
        Travel times of empty edges, positive.
    capacities : array of shape (edges,)
        Drivers at which the travel time has grown by ``growth`` of itself, positive.
    growth, power : float
        Of the travel time :math:`t (1 + g (x/c)^p)` with x drivers on the edge; 0.15 and 4, the usual ones,
        unless given.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or some node cannot be reached from some other.

    Notes
    -----
    All of it is public. Driving with these times is a congestion game: it has a potential.

    References
    ----------
    Bureau of Public Roads (1964), "Traffic assignment manual", for the travel times; Rosenthal (1973), "A
    class of games possessing pure-strategy Nash equilibria".

    Examples
    --------
    >>> ring = RoadNetwork(tails=[0, 1, 2, 1, 2, 0], heads=[1, 2, 0, 0, 1, 2], free_times=[1.0] * 6,
    ...                    capacities=[50.0] * 6)
    >>> ring.nodes, ring.most_hops, ring.times([0, 0, 50, 0, 0, 0]).round(2).tolist()
    (3, 1, [1.0, 1.0, 1.15, 1.0, 1.0, 1.0])
    """

    tails: Any
    heads: Any
    free_times: Any
    capacities: Any
    growth: float = 0.15
    power: float = 4.0
    nodes: int = field(init=False)
    most_hops: int = field(init=False)
    _order: _Integers = field(init=False, repr=False)
    _keys: _Integers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tails, heads = (_nodes(name, getattr(self, name)) for name in ("tails", "heads"))
        edges, nodes = len(tails), int(max(tails.max(), heads.max())) + 1
        if len(heads) != edges or (tails == heads).any() or len(np.unique(tails * nodes + heads)) < edges:
            found = "their numbers differ, or an edge is a loop or there twice"
            _check.refuse_state("tails and heads", "be the ends of distinct edges", found, "merge such edges")
        for name, value in (("tails", tails), ("heads", heads)):
            object.__setattr__(self, name, read_only(value))
        for name in ("free_times", "capacities"):
            object.__setattr__(self, name, read_only(_positive(name, getattr(self, name), edges)))
        _check.non_negative("growth", self.growth)
        if not 1 <= _check.positive("power", self.power) <= 16:
            _check.refuse("power", "be from 1 to 16", self.power, "pass 4, the usual one")
        object.__setattr__(self, "nodes", nodes)
        keys = tails * nodes + heads
        object.__setattr__(self, "_order", np.argsort(keys))
        object.__setattr__(self, "_keys", keys[self._order])
        hops, rows = self._graph(np.ones(edges)), max(1, _BLOCK // nodes)
        starts = np.split(np.arange(nodes), range(rows, nodes, rows))
        most = max(float(dijkstra(hops, unweighted=True, indices=some).max()) for some in starts)
        if not math.isfinite(most):
            remedy = "leave nodes out, or add edges"
            _check.refuse_state(
                "edges", "lead from every node to every other", "some pair has no way", remedy
            )
        object.__setattr__(self, "most_hops", int(most))

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return len(self.tails)

    def times(self, loads: Any) -> _Floats:
        """Return the edges' travel times.

        Parameters
        ----------
        loads : array of shape (edges,)
            Drivers on each edge; less than 0 counts as 0.

        Returns
        -------
        float64 array of shape (edges,)
        """
        share = np.maximum(np.asarray(loads, np.float64), 0.0) / self.capacities
        return np.asarray(self.free_times * (1 + self.growth * share**self.power))

    def shortest(self, costs: _Floats, origins: _Integers) -> tuple[_Floats, NDArray[np.int32]]:
        """Return distances from some origins to all nodes, and predecessors on the ways, by Dijkstra.

        Parameters
        ----------
        costs : float64 array of shape (edges,)
            Positive.
        origins : int64 array of shape (k,)

        Returns
        -------
        (float64 array, int32 array), each of shape (k, nodes)
        """
        graph = self._graph(np.maximum(costs, _TINY))
        distances, before = dijkstra(graph, indices=origins, return_predecessors=True)
        return distances, before

    def routes(
        self,
        before: NDArray[np.int32],
        rows: _Integers,
        origins: _Integers,
        destinations: _Integers,
        most: int,
    ) -> tuple[_Integers, NDArray[np.bool_]]:
        """Return shortest routes as edges, the last one first.

        Parameters
        ----------
        before : int32 array of shape (k, nodes)
            Predecessors, from `shortest`.
        rows, origins, destinations : int64 array of shape (m,)
            Of each route: its row in ``before``, and its ends.
        most : int
            The most edges of a route.

        Returns
        -------
        (int64 array of shape (m, most), bool array of shape (m,))
            Edges, the number of all edges after the end of a route; and which of them end within ``most``.
        """
        routes = np.full((len(rows), most), self.edges, np.int64)
        at = destinations.copy()
        for place in range(most):
            going = np.flatnonzero(at != origins)
            if not len(going):
                break
            previous = before[rows[going], at[going]].astype(np.int64)
            routes[going, place] = self._edge_numbers(previous, at[going])
            at[going] = previous
        return routes, at == origins

    def loads(self, routes: Any) -> _Integers:
        """Return how many drivers use each edge.

        Parameters
        ----------
        routes : int array of shape (drivers, places)
            Edges of each driver's route; other places hold the number of all edges.

        Returns
        -------
        int64 array of shape (edges,)
        """
        return np.bincount(np.asarray(routes).ravel(), minlength=self.edges + 1)[:-1].astype(np.int64)

    def equilibrium_gap(self, routes: Any, trips: Any) -> EquilibriumGap:
        r"""Compute how much drivers would gain by leaving their routes: private, for the curator.

        Parameters
        ----------
        routes : int array of shape (drivers, places)
        trips : int array of shape (drivers, 2)
            Origins and destinations.

        Returns
        -------
        EquilibriumGap

        Notes
        -----
        A driver who leaves alone takes at least the time of the shortest way at the present times, as edges
        that are new to it only get slower; and at most that of the shortest way at the times with one more
        driver on every edge. Both searches are over all ways, so the bounds hold for every deviation.

        Examples
        --------
        >>> ring = RoadNetwork(tails=[0, 1, 2, 1, 2, 0], heads=[1, 2, 0, 0, 1, 2], free_times=[1.0] * 6,
        ...                    capacities=[50.0] * 6)
        >>> ring.equilibrium_gap([[0, 6], [1, 0]], [[0, 1], [0, 2]]).largest.__round__(3)
        1.0
        """
        routes, trips = np.asarray(routes, np.int64), np.asarray(trips, np.int64)
        if routes.ndim != 2 or not len(routes) or trips.shape != (len(routes), 2):
            remedy = "pass a route and a trip for each driver"
            _check.refuse_type("routes", "be rows, one for each of the trips", routes, remedy)
        if routes.size and not 0 <= routes.min() <= routes.max() <= self.edges:
            remedy = "fill routes up with the number of all edges"
            _check.refuse_state("routes", "hold edges", "one of them is none", remedy)
        loads = self.loads(routes)
        own = np.append(self.times(loads), 0.0)[routes].sum(axis=1)
        origins, rows = np.unique(trips[:, 0], return_inverse=True)
        best = self.shortest(self.times(loads), origins)[0][rows, trips[:, 1]]
        later = self.shortest(self.times(loads + 1), origins)[0][rows, trips[:, 1]]
        slack = _ROUNDING * own
        upper, lower = np.maximum(own - best + slack, 0.0), np.maximum(own - later - slack, 0.0)
        return EquilibriumGap(
            mean=float(upper.mean()),
            largest=float(upper.max()),
            mean_lower=float(lower.mean()),
            travel_time=float(own.mean()),
        )

    def _graph(self, costs: _Floats) -> csr_array:
        """Return the graph with costs, in the order and the type of index that every scipy takes."""
        starts = np.searchsorted(self.tails[self._order], np.arange(self.nodes + 1)).astype(np.int32)
        ends = self.heads[self._order].astype(np.int32)
        return csr_array((costs[self._order], ends, starts), shape=(self.nodes, self.nodes))

    def _edge_numbers(self, tails: _Integers, heads: _Integers) -> _Integers:
        return self._order[np.searchsorted(self._keys, tails * self.nodes + heads)]


def _nodes(name: str, value: object) -> _Integers:
    nodes = np.asarray(value)
    if nodes.ndim != 1 or not len(nodes) or nodes.dtype.kind not in "iu" or nodes.min() < 0:
        _check.refuse_type(name, "be whole numbers from 0", nodes, "pass a node for each edge")
    return nodes.astype(np.int64)


def _positive(name: str, value: object, count: int) -> _Floats:
    numbers = as_numbers(name, value, "pass a number for each edge")
    if numbers.shape != (count,) or not ((numbers > 0) & (numbers < math.inf)).all():
        _check.refuse_type(name, "be positive and finite", numbers, "pass a number for each edge")
    return numbers
