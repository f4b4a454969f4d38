"""Games: a price for a million bids, revenue and its guarantees, exact regret, exactly truthful choices."""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks import game_targets
from sfumato import games


def prices(bids: int) -> None:
    """Print the time of a price, and revenue against epsilon beside the theorems and Vickrey's."""
    values = np.random.default_rng(1).uniform(0, 10, bids)
    best = games.DigitalGoods(upper=10, epsilon=1).optimum(values)
    began = time.process_time()
    games.DigitalGoods(upper=10, epsilon=1).release(values, rng=1)
    print(f"one price from {bids:,} bids: {time.process_time() - began:.2f} CPU s")
    print(f"optimum {best.revenue:.0f}; Vickrey sells as many units for ", end="")
    print(f"{games.multi_unit_vickrey(values, supply=best.sold).revenue:.0f}")
    print("epsilon   expected   our bound  McSherry-Talwar")
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        auction = games.DigitalGoods(upper=10, epsilon=epsilon)
        bound = auction.revenue_guarantee(values)
        earned = auction.expected_revenue(values)
        print(f"{epsilon:7}  {earned:9.0f}  {bound.partition_function:10.0f}  {bound.mcsherry_talwar:15.0f}")


def regret(agents: int) -> None:
    """Print exact regrets beside the theorem's bounds, and their times."""
    rng = np.random.default_rng(1)
    homes = tuple(np.linspace(0, 1, 5).tolist())
    visits = games.Game(
        types=homes, alternatives=homes, agents=8, utilities=lambda home, site: 1 - np.abs(home - site)
    )
    drawn = games.Game(types=range(5), alternatives=range(5), utilities=rng.random((5, 5)), agents=8)
    print("\nlargest gain of a lie, 8 agents x 5 types\nepsilon  on a line  at random  by the theorem")
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        found = [games.regret(games.ExponentialChoice(game=g, epsilon=epsilon), g) for g in (visits, drawn)]
        gains = [f"{each.gain.lower:9.4f}" for each in found]
        print(f"{epsilon:7}  {'  '.join(gains)}  {found[0].bound:14.4f}")
    general = rng.random((5, 6, 8))
    large = rng.random((20, 5))
    for name, game in (
        ("general, 5 agents x 6 types", games.Game(types=range(6), alternatives=range(8), utilities=general,
                                                   agents=5, anonymous=False)),
        (f"anonymous, {agents} agents x 20 types", games.Game(types=range(20), alternatives=range(5),
                                                            utilities=large, agents=agents)),
    ):  # fmt: skip
        began = time.process_time()
        found_one = games.regret(games.ExponentialChoice(game=game, epsilon=1), game)
        spent = time.process_time() - began
        print(f"{name}: {found_one.gain.lower:.4f} of {found_one.bound:.4f}, "
              f"{found_one.profiles:,} profiles of the others, {spent:.1f} CPU s")  # fmt: skip


def truthful() -> None:
    """Print how the cost of truthfulness falls, and the three probabilities of the lottery."""
    points = np.linspace(0, 1, 5)
    print("\ntwo facilities among 5 points of a line, exactly truthful")
    print(" agents  epsilon  lottery  gap to the optimum    bound  bound * sqrt(n)")
    for agents in (100, 1_000, 10_000, 100_000):
        game = games.facility_location(points, np.abs(points[:, None] - points), agents=agents)
        mechanism = games.GapMechanism.calibrated(game)
        gap = mechanism.expected_shortfall(np.repeat(points, agents // 5))
        bound = mechanism.shortfall_bound
        print(f"{agents:7}  {mechanism.epsilon:7.4f}  {float(mechanism.probability):7.4f}"
              f"  {gap:18.5f}  {bound:7.4f}  {bound * agents**0.5:15.2f}")  # fmt: skip
    sale = games.price_list((1, 2, 3, 4), (0.5, 1.5, 2.5, 3.5), agents=6)
    scores = games.price_scores(sale)
    print("\nlottery that makes truth dominant in a price list, 6 agents x 4 values")
    print("epsilon  least  sufficient  paper")
    for epsilon in (0.01, 0.1, 0.3, 1.0):
        chosen = games.GapMechanism.calibrated(sale, epsilon=epsilon, scores=scores)
        found = chosen.probabilities_of_truth()
        print(f"{epsilon:7}  {found.least:5.3f}  {found.sufficient:10.3f}  {found.paper:5.3f}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks games", description=__doc__)
    parser.add_argument("--bids", type=int, default=1_000_000)
    parser.add_argument("--agents", type=int, default=12, help="of the anonymous game with 20 types")
    parser.add_argument("--target", choices=game_targets.TARGETS, help="measure this target only")
    parser.add_argument("--targets", action="store_true", help="measure all targets only")
    arguments = parser.parse_args(argv)
    if arguments.target:
        game_targets.measure(arguments.target)
        return 0
    game_targets.measure_all()
    game_targets.supplies(30_000)
    game_targets.joint()
    if arguments.targets:
        return 0
    prices(arguments.bids)
    regret(arguments.agents)
    truthful()
    return 0
