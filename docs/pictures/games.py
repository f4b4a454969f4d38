"""Picture of what truthfulness privacy costs and buys: revenue, and what a lie gains, against epsilon."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from docs.pictures.style import BLUE, GRAY, INK, ORANGE, figure, save
from sfumato import games

__all__ = ["draw"]

_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def draw(path: Path) -> None:
    """Draw the share of the optimum that 1,000 bids bring, and the largest gain of a lie in a small town."""
    bids = np.random.default_rng(1).uniform(0, 10, 1000)
    homes = tuple(np.linspace(0, 1, 5).tolist())
    town = games.Game(
        types=homes, alternatives=homes, agents=6, utilities=lambda home, site: 1 - np.abs(home - site)
    )
    auctions = [games.DigitalGoods(upper=10, epsilon=epsilon) for epsilon in _EPSILONS]
    best = auctions[0].optimum(bids).revenue
    bounds = [auction.revenue_guarantee(bids) for auction in auctions]
    found = [games.regret(games.ExponentialChoice(game=town, epsilon=e), town) for e in _EPSILONS]
    drawn = figure(9, 3.4)
    revenue, gain = drawn.subplots(1, 2)
    for label, color, earned in (
        ("expected", BLUE, [auction.expected_revenue(bids) for auction in auctions]),
        ("partition function", ORANGE, [bound.partition_function for bound in bounds]),
        ("McSherry, Talwar", GRAY, [bound.mcsherry_talwar for bound in bounds]),
    ):
        revenue.plot(_EPSILONS, np.maximum(earned, 0) / best, color=color, label=label)
    revenue.set_ylabel("revenue over the optimum")
    gain.plot(_EPSILONS, [each.gain.upper for each in found], color=BLUE, label="in this game, exact")
    gain.plot(_EPSILONS, [each.bound for each in found], color=INK, linestyle=":", label="theorem, any game")
    gain.set_ylabel("largest gain of a lie")
    gain.set_yscale("log")
    for axes in (revenue, gain):
        axes.set_xscale("log")
        axes.set_xlabel("epsilon")
        axes.legend(frameon=False)
    save(drawn, path)
