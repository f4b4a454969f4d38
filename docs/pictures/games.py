"""Pictures of the games' guides: revenue, what a lie gains, and how far from equilibrium play ends."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from docs.pictures.style import figure, save
from sfumato import games

__all__ = ["draw", "equilibrium"]

_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_DRIVERS = (100, 300, 1000, 3000, 10_000, 30_000)


def draw(path: Path) -> None:
    """Draw the share of the optimum that 1,000 bids bring, and the largest gain of a lie in a small town."""
    bids = np.random.default_rng(1).uniform(0, 10, 1000)
    homes = tuple(np.linspace(0, 1, 5).tolist())
    town = games.Game(
        types=homes, alternatives=homes, agents=6, utilities=lambda home, site: 1 - np.abs(home - site)
    )
    drawn = figure(9, 3.4)
    revenue, gain = drawn.subplots(1, 2)
    games.revenue_curve(bids, upper=10, epsilons=_EPSILONS).plot(revenue)
    games.regret_curve(town, epsilons=_EPSILONS).plot(gain)
    save(drawn, path)


def equilibrium(path: Path) -> None:
    """Draw the gap of private routes on a grid of 48 streets against the number of drivers."""
    nodes = np.arange(16).reshape(4, 4)
    ends = [(a, b) for row in (*nodes, *nodes.T) for a, b in itertools.pairwise(row)]
    tails, heads = np.array([*ends, *((b, a) for a, b in ends)]).T
    drawn = figure(6, 3.4)
    axes = drawn.subplots()
    for epsilon in (0.5, 2.0, 8.0):

        def play(drivers: int, epsilon: float = epsilon) -> games.EquilibriumGap:
            network = games.RoadNetwork(
                tails=tails,
                heads=heads,
                free_times=np.ones(len(tails)),
                capacities=np.full(len(tails), drivers / 16),
            )
            trips = np.random.default_rng(1).integers(0, 16, (drivers, 2))
            routing = games.PrivateRouting(network=network, agents=drivers, epsilon=epsilon, delta=1e-6)
            return network.equilibrium_gap(routing.release(trips, rng=1).parts(trips), trips)

        games.gap_curve(_DRIVERS, play).plot(axes, label=f"epsilon {epsilon:g}")
    axes.set_ylabel("mean gain over mean travel time")
    save(drawn, path)
