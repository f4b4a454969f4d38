"""Road graphs as they are found: what is left out, what stays, and private routes by name."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import PrivateRouting, road_graph

# The island of Kneiphof with its seven bridges, as one-way edges, a ferry that only leaves, and a court.
BRIDGES: list[tuple[Any, ...]] = [
    ("north", "kneiphof", 2.0, 40.0),
    ("north", "kneiphof", 3.0, 40.0),
    ("south", "kneiphof", 2.5, 40.0),
    ("south", "kneiphof", 1.5, 20.0),
    ("east", "kneiphof", 4.0, 60.0),
    ("north", "east", 5.0, 30.0),
    ("south", "east", 6.0, 30.0),
]
ROADS = [*BRIDGES, *((b, a, time, wide) for a, b, time, wide in BRIDGES), ("south", "sea", 9.0, 5.0),
         ("court", "court", 1.0, 1.0), ("spring", "north", 1.0, 1.0)]  # fmt: skip


def test_what_stays_is_the_largest_part_in_which_all_reach_all() -> None:
    roads = road_graph(ROADS, growth=0.5, power=2.0)
    assert roads.nodes == ("north", "kneiphof", "south", "east")
    assert roads.left_out == ("sea", "court", "spring")
    network = roads.network
    assert (network.nodes, network.edges, network.growth, network.power) == (4, 10, 0.5, 2.0)
    at = {
        (roads.nodes[tail], roads.nodes[head]): (time, wide)
        for tail, head, time, wide in zip(
            network.tails, network.heads, network.free_times, network.capacities, strict=True
        )
    }
    assert at["north", "kneiphof"] == (2.0, 40.0)  # the faster of two bridges
    assert at["kneiphof", "south"] == (1.5, 20.0)
    assert len(at) == 10
    two = road_graph([("a", "b", 1, 1), ("b", "a", 1, 1), ("c", "d", 1, 1), ("d", "c", 1, 1)])
    assert (two.nodes, two.left_out) == (("a", "b"), ("c", "d"))


def test_private_routes_lead_where_they_should_by_name() -> None:
    roads = road_graph(ROADS)
    rng = np.random.default_rng(1)
    ends = [(roads.nodes[a], roads.nodes[b]) for a, b in rng.integers(0, 4, (300, 2))]
    trips = roads.trips(ends)
    routing = PrivateRouting(network=roads.network, agents=300, epsilon=8.0, delta=1e-4, blocks=30)
    parts = routing.release(trips, rng=1).parts(trips)
    known = {(tail, head) for tail, head, *_ in ROADS}
    for (origin, destination), part in zip(ends, parts, strict=True):
        names = roads.route(part)
        if origin == destination:
            assert names == []
        else:
            assert (names[0], names[-1]) == (origin, destination)
            assert known.issuperset(itertools.pairwise(names))


def test_what_is_no_road_graph_is_refused() -> None:
    cases: tuple[tuple[Any, str], ...] = (
        ([], "edges must lead from two nodes to each other"),
        ([("a", "a", 1, 1)], "edges must lead from two nodes to each other"),
        ([("a", "b", 1, 1)], "edges must lead from two nodes to each other"),
        ([("a", "b", 1)], "edges must be rows of four"),
        (["abcd"], "edges must be rows of four"),
        ([("a", "b", 0.0, 1)], "free time must be positive"),
        ([("a", "b", 1, float("inf"))], "capacity must be positive"),
        ([("a", "b", float("nan"), 1)], "free time must be positive"),
    )
    for edges, message in cases:
        with pytest.raises(ParameterError, match=message):
            road_graph(edges)
    roads = road_graph(ROADS)
    bad: tuple[Any, ...] = ([("north", "sea")], [("north",)], [("north", [])], ["no"])
    for ends in bad:
        with pytest.raises(ParameterError, match="ends must be pairs of the network's nodes"):
            roads.trips(ends)
    assert roads.trips([]).shape == (0, 2)
