"""Private routing: drivers take turns to choose the fastest way at noisy counts of traffic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_array
from sfumato.games.joint.action_counter import ActionCounter
from sfumato.games.joint.roads import RoadNetwork
from sfumato.games.joint.turns import TurnDynamics

__all__ = ["PrivateRouting"]

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivateRouting(TurnDynamics):
    r"""Best-response dynamics of drivers on a road network, which learn nothing of each other's trips.

    In its turn a driver compares its route with the fastest way at the announced counts, and changes if that
    saves more than ``tolerance``.

    Parameters
    ----------
    network : RoadNetwork
        Public.
    agents : int
        How many drivers; public.
    epsilon, delta : float
        Of the whole run, jointly.
    rounds, blocks : int
        In each round every block of drivers has one turn. Drivers of a block see the same counts: make blocks
        so small that it does not matter if all of them take the same way.
    turns : int
        The most turns in which a driver changes its route, the first one, in which it sets out, included.
    tolerance : float
        The part of its travel time that a change must save, from 0 up to 1.
    most_edges : int, optional
        The most edges of a route; twice what the farthest two nodes need unless given.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    A report is a trip: an origin and a destination. An absent driver reports a trip from a node to itself. A
    driver's part is its route: the edges, last one first, filled up with the number of all edges. Whoever
    finds the fastest way to be longer than ``most_edges`` stays where it is; the first time it takes the way
    with the fewest edges.

    Guarantee: (epsilon, delta)-joint differential privacy under replacing one trip, by `TurnDynamics`: a
    driver changes at most ``2 most_edges`` counts by 1 in each of at most ``turns`` steps, and the routes of
    two trips differ in at most that many counts. What drivers show by driving is not covered: a stranger who
    follows a car learns its trip.

    *Equilibrium.* The noise on a count does not depend on the number of drivers. Where travel times depend on
    shares of all drivers, its effect falls as their number grows, as in the theorems of Rogers and Roth; no
    bound is stated here: `RoadNetwork.equilibrium_gap` computes the gap on the instance, for the curator.

    References
    ----------
    Rogers, Roth (2014), "Asymptotically truthful equilibrium selection in large congestion games" (EC),
    private best-response dynamics; Kearns, Pai, Roth, Ullman (2014), "Mechanism design in large games".

    Examples
    --------
    >>> import numpy as np
    >>> ring = RoadNetwork(tails=[0, 1, 2, 1, 2, 0], heads=[1, 2, 0, 0, 1, 2], free_times=[1.0] * 6,
    ...                    capacities=[2000.0] * 6)
    >>> routing = PrivateRouting(network=ring, agents=9000, epsilon=1.0, delta=1e-6, blocks=200)
    >>> trips = np.array([[0, 1]] * 6000 + [[1, 2]] * 3000)
    >>> release = routing.release(trips, rng=1)
    >>> routes = release.parts(trips)
    >>> ring.equilibrium_gap(routes, trips).relative < 0.2
    True
    >>> bool((release.part(8999, [1, 2]) == routes[-1]).all())
    True
    """

    network: RoadNetwork
    agents: int
    epsilon: float
    delta: float
    rounds: int = 4
    blocks: int = 32
    turns: int = 3
    tolerance: float = 0.01
    most_edges: int | None = None
    _counter: ActionCounter = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check.instance("network", self.network, RoadNetwork, "pass RoadNetwork(...)")
        self._check_turns()
        with np.errstate(over="ignore"):
            slowest = self.network.times(np.full(self.network.edges, self.agents)).sum()
        if not np.isfinite(slowest):
            remedy = "raise capacities, or state times in another unit"
            _check.refuse_state(
                "network", "have finite times with all agents on an edge", "it has not", remedy
            )
        object.__setattr__(self, "turns", min(_check.integer("turns", self.turns, minimum=1), self.rounds))
        _check.probability("tolerance", self.tolerance)
        least = self.network.most_hops
        most = 2 * least if self.most_edges is None else _check.integer("most_edges", self.most_edges)
        if most < least:
            _check.refuse(
                "most_edges", f"be at least {least}", self.most_edges, "the farthest two nodes need so many"
            )
        object.__setattr__(self, "most_edges", min(most, self.network.nodes - 1))
        moved = 2 * (self.most_edges or 0)
        counter = ActionCounter(
            steps=self.rounds * self.blocks,
            columns=self.network.edges,
            turns=self.turns,
            separation=self.blocks,
            step_squared=moved,
            state_squared=moved,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        object.__setattr__(self, "_counter", counter)

    @property
    def counter(self) -> ActionCounter:
        """What counts the drivers on each edge."""
        return self._counter

    def _checked(self, reports: Any, count: int) -> _Integers:
        nodes = self.network.nodes
        remedy = f"pass an origin and a destination from 0 to {nodes - 1} for each driver, the same if absent"
        trips = as_array("reports", reports, remedy)
        if trips.shape != (count, 2) or trips.dtype.kind not in "iu":
            _check.refuse_type("reports", "be pairs of nodes", trips, remedy)
        if trips.min() < 0 or trips.max() >= nodes:
            _check.refuse_state("reports", "be nodes of the network", "one of them is none", remedy)
        return trips.astype(np.int64)

    def _opening(self) -> _Floats:
        return np.zeros(self.network.edges)

    def _players(self, agents: _Integers, reports: Any) -> _Drivers:
        return _Drivers(self, reports)

    def _final(self, players: _Drivers, signal: _Floats) -> _Integers:
        return players.routes


class _Drivers:
    """Drivers with their trips, and the routes that they are on."""

    def __init__(self, routing: PrivateRouting, trips: _Integers) -> None:
        self.routing, self.network = routing, routing.network
        self.origins, self.destinations = trips[:, 0].copy(), trips[:, 1].copy()
        self.most = routing.most_edges or 0
        self.routes = np.full((len(trips), self.most), self.network.edges, np.int64)
        self.changes = np.zeros(len(trips), np.int64)

    def act(self, who: _Integers, before: _Floats) -> _Integers:
        """Change to the fastest ways, where that saves enough."""
        who = who[self.changes[who] < self.routing.turns]
        if not len(who):
            return np.zeros(self.network.edges, np.int64)
        times = self.network.times(np.minimum(before, self.routing.agents))
        origins, rows = np.unique(self.origins[who], return_inverse=True)
        distances, previous = self.network.shortest(times, origins)
        present = np.append(times, 0.0)[self.routes[who]].sum(axis=1)
        saves = distances[rows, self.destinations[who]] < present * (1 - self.routing.tolerance)
        first = (self.changes[who] == 0) & (self.origins[who] != self.destinations[who])
        places = np.flatnonzero(saves | first)
        found, fits = self._routes(previous, rows[places], who[places])
        fewest = np.flatnonzero(~fits & first[places])
        if len(fewest):
            hops = self.network.shortest(np.ones(self.network.edges), origins)[1]
            found[fewest], fits[fewest] = self._routes(hops, rows[places[fewest]], who[places[fewest]])
        return self._change(who[places[fits]], found[fits])

    def observe(self, who: _Integers, after: _Floats) -> None:
        """Need nothing of the counts after the step."""

    def _routes(
        self, previous: NDArray[np.int32], rows: _Integers, who: _Integers
    ) -> tuple[_Integers, NDArray[np.bool_]]:
        ends = self.origins[who], self.destinations[who]
        return self.network.routes(previous, rows, *ends, self.most)

    def _change(self, who: _Integers, routes: _Integers) -> _Integers:
        change = self.network.loads(routes) - self.network.loads(self.routes[who])
        self.routes[who] = routes
        self.changes[who] += 1
        return change
