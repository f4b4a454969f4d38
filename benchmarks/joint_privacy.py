"""Private allocation and routing: welfare, gaps beside runs without noise, CPU time and memory."""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from sfumato.games import (
    CongestionGame,
    NoRegretPlay,
    PrivateAllocation,
    PrivateRouting,
    RoadNetwork,
    welfare_ceiling,
)

FREE = 1e6  # an epsilon at which noise is below one agent


def grid(side: int, drivers: int) -> RoadNetwork:
    """Return a grid of two-way streets, whose capacities are in proportion to the drivers."""
    nodes = np.arange(side * side).reshape(side, side)
    ends = np.concatenate(
        [
            np.stack([a.ravel(), b.ravel()])
            for a, b in ((nodes[:, :-1], nodes[:, 1:]), (nodes[:-1], nodes[1:]))
        ],
        axis=1,
    )
    tails, heads = np.concatenate([ends, ends[::-1]], axis=1)
    rng = np.random.default_rng(3)
    capacities = rng.uniform(0.5, 1.5, len(tails)) * drivers * side / len(tails)
    return RoadNetwork(
        tails=tails, heads=heads, free_times=rng.uniform(1, 2, len(tails)), capacities=capacities
    )


def routing(drivers: int, epsilon: float) -> str:
    """Run private routing, and return its gap over the travel time, and its CPU seconds."""
    network = grid(16, drivers)
    trips = np.random.default_rng(4).integers(0, network.nodes, (drivers, 2))
    began = time.process_time()
    run = PrivateRouting(
        network=network, agents=drivers, epsilon=epsilon, delta=1e-6, blocks=min(32, drivers)
    )
    routes = run.release(trips, rng=1).parts(trips)
    spent = time.process_time() - began
    return f"{network.equilibrium_gap(routes, trips).relative:8.4f} {spent:6.2f}"


def allocation(agents: int, goods: int, supply: int) -> None:
    """Run a private allocation and print its welfare beside what no allocation exceeds."""
    values = np.random.default_rng(5).random((agents, goods)) * np.linspace(0.2, 1, goods)
    for epsilon in (4.0, 32.0, FREE):
        began = time.process_time()
        market = PrivateAllocation(
            agents=agents,
            supply=(supply,) * goods,
            epsilon=epsilon,
            delta=1e-7,
            step=0.2,
            rounds=6,
            blocks=128,
            turns=4,
        )
        release = market.release(values, rng=1)
        goods_held = release.parts(values)
        spent = time.process_time() - began
        ceiling = welfare_ceiling(values, market.supply, market.prices(release.value))
        guarantee = market.guarantee(release.value)
        print(
            f"{epsilon:9g}  {market.reserve:7.0f}  {(values * goods_held).sum():8.0f}  {ceiling:8.0f}  "
            f"{guarantee.gap:8.0f}  {guarantee.supply_condition!s:>5}  {spent:6.2f}"
        )


def no_regret(agents: int, rounds: int) -> None:
    """Print the mean regret of no-regret play over the mean cost."""
    rng = np.random.default_rng(6)
    uses = np.zeros((3, 4, 6), bool)
    for kind in range(3):
        for action in range(4):
            uses[kind, action, rng.choice(6, 2, replace=False)] = True
    game = CongestionGame(uses=uses, fixed=rng.random(6) * 0.2, growth=rng.random(6) + 0.5, agents=agents)
    types = rng.integers(0, 3, agents)
    found = []
    for epsilon in (1.0, FREE):
        play = NoRegretPlay(game=game, epsilon=epsilon, delta=1e-6, rounds=rounds)
        regret = game.play_regret(types, play.release(types, rng=1).parts(types))
        found.append(f"{regret.mean_external / regret.cost:8.4f}")
    print(f"{agents:9} {rounds:7} ", *found)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks joint-privacy", description=__doc__)
    parser.add_argument("--agents", type=int, default=100_000, help="the most of them")
    arguments = parser.parse_args(argv)
    sizes = [size for size in (100, 1000, 10_000, 100_000) if size <= arguments.agents]
    print("routing on 960 streets: gap over travel time and CPU s, at epsilon 2, then with no noise")
    for drivers in sizes:
        print(f"{drivers:9}  {routing(drivers, 2.0)}   {routing(drivers, FREE)}")
    print(f"\nallocation of 100 goods to {arguments.agents} agents")
    print("  epsilon  reserve   welfare   ceiling       gap   cond.  CPU s")
    allocation(arguments.agents, 100, max(1, 3 * arguments.agents // 100))
    print("\nno-regret play: mean regret over mean cost, at epsilon 1, then with no noise")
    for agents, rounds in zip(sizes, (50, 200, 800, 800), strict=False):
        no_regret(agents, rounds)
    print(f"\n{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at the most")
    return 0
