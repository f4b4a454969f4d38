"""Picture of what cannot be beaten, and of what rows buy: prefix sums, and errors of a share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from docs.pictures.style import BLUE, GRAY, INK, ORANGE, figure, save
from sfumato import bounds
from sfumato.mechanisms import BinaryTree, SquareRoot

__all__ = ["draw"]

_STEPS = (2, 4, 8, 16, 32, 64, 128)
_ROWS = (30, 100, 300, 1000, 3000, 10_000, 30_000)


def draw(path: Path) -> None:
    """Draw errors of prefix sums above their bound, and standard errors of a share beside sampling."""
    drawn = figure(9, 3.4)
    sums, rows = drawn.subplots(1, 2)
    found = [bounds.maximum_error_bound(np.tril(np.ones((n, n))), mu=1.0) for n in _STEPS]
    sums.plot(_STEPS, [BinaryTree(steps=n).max_error() for n in _STEPS], color=GRAY, label="binary tree")
    sums.plot(_STEPS, [SquareRoot(steps=n).max_error() for n in _STEPS], color=ORANGE, label="square root")
    sums.plot(_STEPS, [bound.reached for bound in found], color=BLUE, label="best strategy")
    sums.plot(_STEPS, [bound.error for bound in found], color=INK, linestyle=":", label="bound")
    sums.set_xlabel("steps of prefix sums, mu = 1")
    sums.set_ylabel("greatest root mean squared error")
    share = bounds.NoisyCounts(epsilon=1.0)
    epsilons = (0.1, 0.5, 2.0)
    table = bounds.tradeoff_table(share, rows=_ROWS, epsilons=epsilons, population_stddev=0.5)
    for epsilon, color in zip(epsilons, (GRAY, ORANGE, BLUE), strict=True):
        cells = [cell for cell in table if cell.epsilon == epsilon]
        total = [cell.inflation * cell.sampling for cell in cells]
        rows.plot(_ROWS, total, color=color, label=f"epsilon {epsilon:g}")
    rows.plot(_ROWS, 0.5 / np.sqrt(_ROWS), color=INK, linestyle=":", label="sampling alone")
    rows.set_yscale("log")
    rows.set_xlabel("rows")
    rows.set_ylabel("standard error of a share of one half")
    for axes in (sums, rows):
        axes.set_xscale("log")
        axes.legend(frameon=False)
    save(drawn, path)
