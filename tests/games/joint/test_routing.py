"""Private routing: the gap falls as drivers grow in number, and routes lead where they should."""

import itertools
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games.joint.roads import RoadNetwork
from sfumato.games.joint.routing import PrivateRouting


def grid(side: int, drivers: int) -> RoadNetwork:
    """Return a grid of two-way streets, whose capacities are in proportion to the drivers."""
    nodes = np.arange(side * side).reshape(side, side)
    pairs = [(nodes[:, :-1], nodes[:, 1:]), (nodes[:-1], nodes[1:])]
    ends = np.array([[a.ravel(), b.ravel()] for a, b in pairs]).transpose(1, 0, 2).reshape(2, -1)
    tails, heads = np.concatenate([ends, ends[::-1]], axis=1)
    rng = np.random.default_rng(1)
    capacities = rng.uniform(0.5, 1.5, len(tails)) * drivers * side / len(tails)
    return RoadNetwork(
        tails=tails, heads=heads, free_times=rng.uniform(1, 2, len(tails)), capacities=capacities
    )


def relative_gap(drivers: int, seed: int = 1) -> float:
    network = grid(5, drivers)
    trips = np.random.default_rng(seed).integers(0, network.nodes, (drivers, 2))
    routing = PrivateRouting(network=network, agents=drivers, epsilon=2.0, delta=1e-6)
    routes = routing.release(trips, rng=seed).parts(trips)
    for place in np.flatnonzero(trips[:, 0] != trips[:, 1])[:50]:
        edges = routes[place][routes[place] < network.edges][::-1]
        assert [network.tails[edges[0]], network.heads[edges[-1]]] == trips[place].tolist()
        assert (network.tails[edges[1:]] == network.heads[edges[:-1]]).all()
    assert (routes[trips[:, 0] == trips[:, 1]] == network.edges).all()
    return network.equilibrium_gap(routes, trips).relative


def test_the_gap_falls_as_drivers_grow_in_number() -> None:
    gaps = [relative_gap(drivers) for drivers in (100, 1000, 10_000)]
    assert all(later < earlier for earlier, later in itertools.pairwise(gaps))
    assert gaps[0] > 0.5
    assert gaps[-1] < 0.05


@pytest.mark.exhaustive
def test_the_gap_of_a_hundred_thousand_drivers() -> None:
    assert relative_gap(100_000) < 0.01


def test_without_noise_worth_the_name_it_is_nearly_an_equilibrium() -> None:
    network = grid(3, 200)
    trips = np.random.default_rng(2).integers(0, 9, (200, 2))
    routing = PrivateRouting(
        network=network, agents=200, epsilon=5000.0, delta=0.01, rounds=6, turns=6, blocks=100, tolerance=0.0
    )
    routes = routing.release(trips, rng=1).parts(trips)
    assert network.equilibrium_gap(routes, trips).relative < 0.01


def test_turns_and_tolerance() -> None:
    network = grid(3, 400)
    trips = np.random.default_rng(2).integers(0, 9, (400, 2))
    given: dict[str, Any] = {"network": network, "agents": 400, "epsilon": 4.0, "delta": 0.01, "blocks": 40}
    first = PrivateRouting(**given, turns=1)
    signal = first.release(trips, rng=1).value
    early = PrivateRouting(**given, turns=1, rounds=1)
    assert first.counter.turns == 1
    part = first.release(trips, rng=1).parts(trips)
    # With one turn nobody changes after the first round.
    players = early._players(np.arange(400), trips)
    rows = iter(signal[:40])
    early.play(players, np.arange(400), lambda change: next(rows))
    assert np.array_equal(players.routes, part)
    assert PrivateRouting(**given, turns=9).turns == 4
    stubborn = PrivateRouting(**given, turns=4, tolerance=0.999)
    rows = iter(signal)
    players = stubborn._players(np.arange(400), trips)
    stubborn.play(players, np.arange(400), lambda change: next(rows))
    assert (players.changes[trips[:, 0] != trips[:, 1]] == 1).all()


def test_the_most_edges_of_a_route() -> None:
    network = grid(3, 400)
    routing = PrivateRouting(network=network, agents=400, epsilon=4.0, delta=0.01, most_edges=4, blocks=40)
    assert routing.counter.step_squared == routing.counter.state_squared == 8
    assert PrivateRouting(network=network, agents=9, epsilon=4.0, delta=0.01, blocks=3).most_edges == 8
    # At wild counts the fastest ways are long: whoever finds one sets out on the one with the fewest edges.
    trips = np.array([[0, 8]] * 400)
    players = routing._players(np.arange(400), trips)
    snake = [0, 1, 2, 5, 4, 3, 6, 7, 8]
    empty = set(itertools.pairwise(snake))
    pairs = zip(network.tails.tolist(), network.heads.tolist(), strict=True)
    wild = np.array([0.0 if pair in empty else 400.0 for pair in pairs])
    routing.play(players, np.arange(400), lambda change: wild)
    assert ((players.routes < network.edges).sum(axis=1) == 4).all()


def test_what_is_refused() -> None:
    network = grid(3, 400)
    given: dict[str, Any] = {"network": network, "agents": 10, "epsilon": 1.0, "delta": 0.01, "blocks": 5}
    far = RoadNetwork(tails=[0, 1], heads=[1, 0], free_times=[1.0, 1.0], capacities=[1.0, 1e-30], power=16.0)
    for change, message in (
        ({"network": None}, "network must be a RoadNetwork"),
        ({"network": far}, "network must have finite times with all agents on an edge"),
        ({"turns": 0}, "turns must be"),
        ({"tolerance": 1.0}, "tolerance must be"),
        ({"most_edges": 3}, "most_edges must be at least 4"),
    ):
        with pytest.raises(ParameterError, match=message):
            PrivateRouting(**given | change)
    routing = PrivateRouting(**given)
    with pytest.raises(ParameterError, match="reports must be an array"):
        routing.release([[0, 1]] * 9 + [[0]])
    for trips in (np.zeros((9, 2), int), np.zeros((10, 2)), np.zeros((10, 3), int)):
        with pytest.raises(ParameterError, match="reports must be pairs of nodes"):
            routing.release(trips)
    for node in (-1, 9):
        with pytest.raises(ParameterError, match="reports must be nodes of the network"):
            routing.release(np.full((10, 2), node))
