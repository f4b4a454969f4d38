"""Equilibrium gap against the number of agents: from 100 to 100,000 it falls, for routes and for actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import (
    CongestionGame,
    EquilibriumGap,
    NoRegretPlay,
    PlayRegret,
    PrivateRouting,
    RoadNetwork,
    gap_curve,
)

ENDS = [(a, b) for row in (*np.arange(16).reshape(4, 4), *np.arange(16).reshape(4, 4).T)
        for a, b in zip(row.tolist(), row[1:].tolist(), strict=False)]  # fmt: skip


def driven(drivers: int) -> EquilibriumGap:
    """Route so many drivers over a grid of 48 streets whose capacities grow with them."""
    tails, heads = np.array([*ENDS, *((b, a) for a, b in ENDS)]).T
    network = RoadNetwork(
        tails=tails, heads=heads, free_times=np.ones(len(tails)), capacities=np.full(len(tails), drivers / 16)
    )
    trips = np.random.default_rng(1).integers(0, 16, (drivers, 2))
    routing = PrivateRouting(network=network, agents=drivers, epsilon=2.0, delta=1e-6)
    return network.equilibrium_gap(routing.release(trips, rng=1).parts(trips), trips)


def played(agents: int, rounds: int = 60) -> PlayRegret:
    """Let so many agents learn to use two resources."""
    game = CongestionGame(uses=[[[1, 0], [0, 1]]], fixed=[0.0, 0.3], growth=[1.0, 1.0], agents=agents)
    play = NoRegretPlay(game=game, epsilon=1.0, delta=1e-6, rounds=rounds)
    types = np.zeros(agents, int)
    return game.play_regret(types, play.release(types, rng=2).parts(types))


def test_the_gap_of_routes_falls_as_drivers_grow_in_number() -> None:
    curve = gap_curve((100, 1000, 10_000), driven)
    assert (np.diff(curve.relative) < 0).all()
    assert curve.relative[0] > 0.5
    assert curve.relative[-1] < 0.05


@pytest.mark.exhaustive
def test_the_gap_of_routes_falls_from_a_hundred_drivers_to_a_hundred_thousand() -> None:
    curve = gap_curve((100, 1000, 10_000, 100_000), driven)
    assert (np.diff(curve.relative) < 0).all()
    assert curve.relative[-1] < 0.01


def test_the_regret_of_actions_falls_with_the_number_of_agents() -> None:
    curve = gap_curve((10_000, 100, 1000), played)
    assert curve.agents.tolist() == [100, 1000, 10_000]
    assert curve.relative[-1] < 0.5 * curve.relative[0]
    one = played(100)
    assert (curve.relative[0], curve.largest[0]) == (one.mean_external / one.cost, one.external)


def test_the_picture_and_the_table() -> None:
    def play(count: int) -> EquilibriumGap:
        return EquilibriumGap(mean=5 / count, largest=1.5, mean_lower=0.0, travel_time=2.0)

    curve = gap_curve((10, 100), play)
    ax = curve.plot()
    (line,) = ax.get_lines()
    assert line.get_xydata().tolist() == [[10, 0.25], [100, 0.025]]
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", "agents")
    assert ax.get_ylabel() == "mean gain of leaving, over the mean cost"
    assert ax.get_legend() is None
    assert curve.plot(ax, label="roads").get_legend().get_texts()[0].get_text() == "roads"
    assert curve.plot(label="").axes.get_legend() is None
    assert str(curve).splitlines()[2].split() == ["100", "0.0250", "1.5000"]
    free = PlayRegret(external=0.0, swap=0.0, mean_external=0.0, mean_swap=0.0, cost=0.0)
    still = gap_curve((10,), lambda count: free)
    assert still.relative.tolist() == [0.0]
    assert still.plot().get_yscale() == "linear"


def test_what_does_not_fit_is_refused() -> None:
    cases: tuple[tuple[Any, Any, str], ...] = (
        ((), played, "agents must be one or more"),
        ((0,), played, "agents must be an integer of at least 1"),
        ((5,), lambda count: 0.5, "play must return an EquilibriumGap or a PlayRegret"),
    )
    for agents, play, message in cases:
        with pytest.raises(ParameterError, match=message):
            gap_curve(agents, play)
