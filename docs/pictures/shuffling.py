"""Picture of what a shuffler buys: estimates of one collection, by whom the devices trust."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from docs.pictures.style import BLUE, GRAY, ORANGE, figure, save
from sfumato import local
from sfumato.local import shuffle

__all__ = ["draw"]

_DEVICES = 1_000_000


def draw(path: Path) -> None:
    """Draw ten shares with their intervals, from devices alone and through a shuffler, at epsilon 1."""
    domain = local.Domain(range(10))
    shares = 0.7 ** np.arange(10)
    counts = np.round(shares / shares.sum() * _DEVICES).astype(np.int64)
    alone = local.OptimalLocalHashing(epsilon=1.0, domain=domain).simulate(counts, rng=5)
    protocol = shuffle.ShuffledHistogram(epsilon=1.0, delta=1e-8, clients=int(counts.sum()), domain=domain)
    mixed = protocol.simulate(counts, rng=5)
    drawn = figure(7, 3.2)
    axes = drawn.subplots()
    places = np.arange(10)
    axes.axhline(0, color=GRAY, linewidth=1, label="truth")
    for estimate, color, label, shift in (
        (alone, ORANGE, "devices alone", -0.12),
        (mixed, BLUE, "through a shuffler", 0.12),
    ):
        interval = estimate.interval(0.95)
        middle = estimate.frequencies
        off = 100 * (middle - counts / counts.sum())
        reach = 100 * np.stack([middle - interval.lower, interval.upper - middle])
        axes.errorbar(places + shift, off, np.maximum(reach, 0), fmt="o", ms=4, color=color, label=label)
    axes.set_xticks(places, [f"{100 * share:.1f} %" for share in counts / counts.sum()])
    axes.set_xlabel("true share of a category")
    axes.set_ylabel("estimate less truth,\npercentage points")
    axes.set_ylim(-0.8, 0.9)
    axes.legend(frameon=False, ncols=3, fontsize=9, loc="upper right")
    save(drawn, path)
