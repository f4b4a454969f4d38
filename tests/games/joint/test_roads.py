"""Road networks: travel times, routes, and the gap against all simple ways of a small graph."""

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games.joint import roads
from sfumato.games.joint.roads import RoadNetwork

GIVEN: dict[str, Any] = {
    "tails": [0, 1, 1, 2, 2, 3, 3, 0, 0, 2], "heads": [1, 0, 2, 1, 3, 2, 0, 3, 2, 0],
    "free_times": [1.0, 2, 3, 1, 2, 3, 1, 2, 3, 1.5], "capacities": [3.0] * 10, "growth": 0.5, "power": 2.0,
}  # fmt: skip
GRID = RoadNetwork(**GIVEN)


def simple_ways(origin: Any, destination: Any, seen: tuple[int, ...] = ()) -> list[list[int]]:
    """Return all ways without a node twice, as lists of edges."""
    if origin == destination:
        return [[]]
    found: list[list[int]] = []
    for edge, (tail, head) in enumerate(zip(GIVEN["tails"], GIVEN["heads"], strict=True)):
        if tail == origin and head not in (*seen, origin):
            found += [[edge, *rest] for rest in simple_ways(head, destination, (*seen, origin))]
    return found


def test_travel_times_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = np.array([0, 3, 6, -2, 0, 0, 0, 0, 0, 0])
    assert GRID.times(loads)[:4].tolist() == [1.0, 3.0, 9.0, 1.0]
    assert GRID.nodes == 4
    assert GRID.edges == 10
    assert GRID.most_hops == 2
    for block in (1, 12):
        monkeypatch.setattr(roads, "_BLOCK", block)
        assert RoadNetwork(**GIVEN).most_hops == 2


def test_routes_are_the_fastest_ways() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        costs = rng.random(10)
        distances, before = GRID.shortest(costs, np.arange(4))
        origins, destinations = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
        routes, fits = GRID.routes(before, origins, origins, destinations, 3)
        assert fits.all()
        for origin, destination, route in zip(origins, destinations, routes, strict=True):
            best = min(sum(costs[edge] for edge in way) for way in simple_ways(origin, destination))
            assert np.append(costs, 0)[route].sum() == pytest.approx(best)
            assert distances[origin, destination] == pytest.approx(best)
            edges = route[route < 10][::-1]
            assert [GRID.tails[e] for e in edges[1:]] == [GRID.heads[e] for e in edges[:-1]]
        short, fits = GRID.routes(before, origins, origins, destinations, 1)
        assert (fits == ((routes < 10).sum(axis=1) <= 1)).all()
        assert short.shape == (16, 1)


def test_the_gap_against_all_ways() -> None:
    rng = np.random.default_rng(2)
    trips = rng.integers(0, 4, (20, 2))
    ways = [simple_ways(*trip) for trip in trips]
    chosen = [options[rng.integers(len(options))] for options in ways]
    routes = np.array([way + [10] * (4 - len(way)) for way in chosen])
    loads = GRID.loads(routes)
    assert loads.sum() == sum(map(len, chosen))
    now, joined = GRID.times(loads), GRID.times(loads + 1)
    gains = []
    for own, options in zip(chosen, ways, strict=True):
        paid = sum(now[edge] for edge in own)
        other = min(sum(now[e] if e in own else joined[e] for e in way) for way in options)
        gains.append(paid - other)
    gap = GRID.equilibrium_gap(routes, trips)
    assert gap.mean_lower <= np.mean(gains) <= gap.mean
    assert max(gains) <= gap.largest
    assert gap.mean_lower > 0.3 * gap.mean
    assert gap.travel_time == pytest.approx(np.mean([sum(now[edge] for edge in own) for own in chosen]))
    assert gap.relative == gap.mean / gap.travel_time
    still = GRID.equilibrium_gap([[10]], [[2, 2]])
    assert still.largest == still.relative == 0


def test_the_gap_is_an_upper_bound_in_any_unit() -> None:
    # One driver takes 3 directly and 2 by way of the third node, each with its own share of traffic.
    gain = 1 + 0.15 / 50**4
    for unit in (1.0, 1e-13, 1e-200, 1e200):
        network = RoadNetwork(
            tails=[0, 1, 2, 1, 2, 0], heads=[1, 2, 0, 0, 1, 2],
            free_times=np.array([1.0, 1, 1, 1, 1, 3]) * unit, capacities=[50.0] * 6,
        )  # fmt: skip
        gap = network.equilibrium_gap([[5, 6]], [[0, 2]])
        assert gap.mean_lower <= gain * unit <= gap.largest <= 1.001 * unit
        best = network.equilibrium_gap([[1, 0]], [[0, 2]])
        assert 0 < best.largest < 1e-7 * unit
        assert best.mean_lower == 0


def test_what_is_refused() -> None:
    for change, message in (
        ({"tails": [0, 0], "heads": [1, 1]}, "tails and heads must be the ends of distinct edges"),
        ({"tails": [0, 1], "heads": [0, 1]}, "tails and heads must be the ends of distinct edges"),
        ({"tails": [0, 1], "heads": [1, 2]}, "edges must lead from every node to every other"),
        ({"tails": [-1, 1]}, "tails must be whole numbers from 0"),
        ({"heads": [0.5, 1]}, "heads must be whole numbers from 0"),
        ({"free_times": [0.0, 1.0]}, "free_times must be positive and finite"),
        ({"capacities": [1.0]}, "capacities must be positive and finite"),
        ({"capacities": [1.0, np.inf]}, "capacities must be positive and finite"),
        ({"growth": -1.0}, "growth must be non-negative"),
        ({"power": 0.5}, "power must be from 1 to 16"),
        ({"power": 17}, "power must be from 1 to 16"),
    ):
        given: dict[str, Any] = {
            "tails": [0, 1],
            "heads": [1, 0],
            "free_times": [1.0, 1.0],
            "capacities": [1.0, 1.0],
        }
        with pytest.raises(ParameterError, match=message):
            RoadNetwork(**given | change)
    for routes, trips in (
        (np.zeros((0, 1), int), np.zeros((0, 2), int)), ([[1]], [[0, 1], [1, 2]]), ([1], [[0, 1]]),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match="routes must be rows, one for each of the trips"):
            GRID.equilibrium_gap(routes, trips)
    for edge in (-1, 11):
        with pytest.raises(ParameterError, match="routes must hold edges"):
            GRID.equilibrium_gap([[edge]], [[0, 1]])
    with pytest.raises(ParameterError, match="distinct edges"):
        RoadNetwork(tails=[0, 1], heads=[1, 0, 1], free_times=[1.0] * 2, capacities=[1.0] * 2)
