"""What the room of games promises to be able to do, each in a process of its own: CPU seconds and memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from itertools import product

import numpy as np

from benchmarks.joint_privacy import grid
from sfumato import games

_FREE = 1e6


def price() -> str:
    """Draw a price for a million bids."""
    bids = np.random.default_rng(1).uniform(0, 10, 1_000_000)
    sold = games.DigitalGoods(upper=10, epsilon=1).release(bids, rng=1)
    return f"price {sold.value:.2f}"


def general_regret() -> str:
    """Find the largest gain of a lie among 5 agents of 6 types who all differ."""
    utilities = np.random.default_rng(1).random((5, 6, 8))
    game = games.Game(types=range(6), alternatives=range(8), utilities=utilities, agents=5, anonymous=False)
    return str(games.regret(games.ExponentialChoice(game=game, epsilon=1), game))


def anonymous_regret() -> str:
    """Find the largest gain of a lie among 12 agents of 20 types."""
    utilities = np.random.default_rng(1).random((20, 5))
    game = games.Game(types=range(20), alternatives=range(5), utilities=utilities, agents=12)
    return str(games.regret(games.ExponentialChoice(game=game, epsilon=1), game))


def allocation() -> str:
    """Allocate 100 goods to 100,000 agents."""
    values = np.random.default_rng(5).random((100_000, 100)) * np.linspace(0.2, 1, 100)
    market = games.PrivateAllocation(
        agents=100_000, supply=(3000,) * 100, epsilon=4.0, delta=1e-7, step=0.2, rounds=6, blocks=128, turns=4
    )
    release = market.release(values, rng=1)
    welfare = float((values * release.parts(values)).sum())
    ceiling = games.welfare_ceiling(values, market.supply, market.prices(release.value))
    return f"welfare at least {welfare / ceiling:.0%} of the best"


def substitutes() -> str:
    """Allocate 8 goods to 100,000 agents of 50 valuations of sets."""
    rng = np.random.default_rng(5)
    kinds = [games.Valuation.assignment(rng.random((3, 8))) for _ in range(50)]
    market = games.PrivateAllocation(
        agents=100_000, supply=(20_000,) * 8, epsilon=8.0, delta=1e-7, blocks=128, valuations=kinds
    )
    types = rng.integers(0, 50, 100_000)
    held = market.release(types, rng=1).parts(types) @ (1 << np.arange(8))
    welfare = float(np.stack([kind.values for kind in kinds])[types, held].sum())
    best = games.optimal_welfare(types, market.supply, valuations=kinds)
    return f"welfare {welfare / best:.0%} of the best"


def congestion() -> str:
    """Route 100,000 drivers over 1,088 streets."""
    network = grid(17, 100_000)
    trips = np.random.default_rng(4).integers(0, network.nodes, (100_000, 2))
    run = games.PrivateRouting(network=network, agents=100_000, epsilon=2.0, delta=1e-6)
    routes = run.release(trips, rng=1).parts(trips)
    gap = network.equilibrium_gap(routes, trips)
    return f"{network.edges} streets, gap {gap.relative:.1%} of the travel time"


TARGETS = {
    "price": (price, "a price for 1e6 bids", "1 s"),
    "general-regret": (general_regret, "exact regret, 5 agents x 6 types, all different", "60 s"),
    "anonymous-regret": (anonymous_regret, "exact regret, 12 agents x 20 types", "60 s"),
    "allocation": (allocation, "allocation, 1e5 agents, 100 goods", "30 s"),
    "substitutes": (substitutes, "allocation of sets, 1e5 agents, 8 goods", "30 s"),
    "congestion": (congestion, "congestion game, 1e5 agents, 1,000 edges", "60 s, 1 GB"),
}


def measure(name: str) -> None:
    """Print one target's row, of this process."""
    run, words, limit = TARGETS[name]
    began = time.process_time()
    found = run()
    spent = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {words} | {spent:.2f} | {memory:.0f} | {limit} | {found} |")


def measure_all() -> None:
    """Print the rows of all targets, each measured in a process of its own."""
    print("| target | CPU s | MB | limit | found |\n| --- | --- | --- | --- | --- |", flush=True)
    for name in TARGETS:
        subprocess.run([sys.executable, "-m", "benchmarks", "games", "--target", name], check=True)


def supplies(agents: int) -> None:
    """Print the supply condition over epsilon, and what was lost."""
    values = np.random.default_rng(3).random((agents, 2))
    supply = (3 * agents // 10,) * 2
    print(f"\nsupply condition, {agents:,} agents, two goods of {supply[0]:,} copies each, alpha 0.25")
    print("| epsilon | needed | holds | met | bound for an agent | lost for an agent, at most |")
    print("| --- | --- | --- | --- | --- | --- |")
    for epsilon in (2.0, 4.0, 8.0, 32.0, _FREE):
        market = games.PrivateAllocation(
            agents=agents, supply=supply, epsilon=epsilon, delta=1e-6, step=0.05, rounds=10, blocks=100
        )
        condition = market.supply_condition(0.25)
        release = market.release(values, rng=1)
        ceiling = games.welfare_ceiling(values, supply, market.prices(release.value))
        lost = (ceiling - float((values * release.parts(values)).sum())) / agents
        met, bound = condition.met(release.value), market.guarantee(release.value).per_agent
        print(
            f"| {epsilon:g} | {condition.needed:,} | {condition.holds} | {met} | {bound:.3f} | {lost:.3f} |"
        )


def joint() -> None:
    """Print joint privacy by enumeration, of a matching of four agents to three goods at private prices."""
    prices = list(product((0.0, 0.25, 0.5), repeat=3))
    scores = [[-_surplus(VALUES[kind], each) - sum(each) / 4 for each in prices] for kind in "abc"]
    game = games.Game(types="abc", alternatives=prices, utilities=np.zeros((3, 27)), agents=4)
    choice = games.ExponentialChoice(game=game, epsilon=1.0, scores=scores)
    check = games.check_joint_privacy(
        games.Billboard(signal=choice, respond=_favorite, agents=4),
        "abc",
        lambda reports: dict(zip(prices, choice.probabilities(reports), strict=True)),
        epsilon=1.0,
    )
    print(
        "\njoint privacy of a matching, 4 agents to 3 goods, by enumeration of all that the others receive:"
    )
    print(f"hockey-stick {check.delta:.1e} at epsilon 1, and {check.signal_delta:.1e} of the signal;")
    print(f"largest log ratio {check.ratio:.3f} of it; {check.pairs} ordered pairs of neighbors")


VALUES = {"a": (1.0, 0.5, 0.0), "b": (0.0, 1.0, 0.5), "c": (0.5, 0.0, 1.0)}


def _surplus(values: tuple[float, ...], prices: tuple[float, ...]) -> float:
    return max(0.0, *(value - price for value, price in zip(values, prices, strict=True)))


def _favorite(signal: tuple[float, ...], report: str) -> int:
    gains = [value - price for value, price in zip(VALUES[report], signal, strict=True)]
    return max(range(3), key=gains.__getitem__) if max(gains) > 0 else -1
