"""Picture of a holdout that is looked at again and again: what it says where there is nothing to find."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docs.pictures.style import BLUE, GRAY, INK, ORANGE, figure, save
from sfumato import adaptive

__all__ = ["draw"]

_ROWS, _FEATURES = 2000, 500
_COUNTS = (5, 10, 20, 50, 100, 150, 200, 300)


def draw(path: Path) -> None:
    """Draw the accuracy of a classifier of noise, by its holdout, by a reusable one, and by fresh rows."""
    rng = np.random.default_rng(1)
    train, holdout, fresh = ((rng.normal(size=(_ROWS, _FEATURES)), rng.random(_ROWS) < 0.5) for _ in range(3))
    plan = adaptive.Thresholdout(
        rows=_ROWS, threshold=0.06, noise=0.001, overfits=100, queries=_FEATURES + len(_COUNTS)
    )
    reusable = adaptive.ReusableHoldout(train, holdout, plan, rng=1)
    first, second = _agreement(train), _agreement(holdout)
    told = np.array([reusable.ask(partial(_agrees, j)).value for j in range(_FEATURES)]) - 0.5
    naive = [_chosen(first, second, count) for count in _COUNTS]
    guarded = [_chosen(first, told, count) for count in _COUNTS]
    drawn = figure(7, 3.4)
    axes = drawn.subplots()
    axes.plot(_COUNTS, [_right(holdout, w).mean() for w in naive], color=ORANGE, label="its own holdout")
    stated = [reusable.ask(partial(_right, weights=w)).value for w in guarded]
    axes.plot(_COUNTS, stated, color=BLUE, label="a reusable holdout")
    axes.plot(_COUNTS, [_right(fresh, w).mean() for w in naive], color=GRAY, label="fresh rows")
    axes.axhline(0.5, color=INK, linestyle=":", label="the truth")
    axes.set_xscale("log")
    axes.set_xlabel("features chosen of 500, all of them noise")
    axes.set_ylabel("accuracy that is reported")
    axes.legend(frameon=False, loc="upper left")
    save(drawn, path)


def _agrees(feature: int, side: Any) -> NDArray[np.bool_]:
    """Return for each row whether one feature's sign agrees with the label."""
    inputs, labels = side
    return np.asarray((inputs[:, feature] > 0) == labels)


def _agreement(side: Any) -> NDArray[np.float64]:
    """Return how much more often than not each feature's sign agrees with the label."""
    inputs, labels = side
    return np.asarray(((inputs > 0) == labels[:, None]).mean(axis=0) - 0.5)


def _chosen(first: NDArray[np.float64], second: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return signs of the features on which two sides agree most."""
    weights = np.where(first * second > 0, first, 0.0)
    weights[np.argsort(np.abs(weights))[:-count]] = 0.0
    return np.sign(weights)


def _right(side: Any, weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which rows are classified rightly."""
    inputs, labels = side
    return np.asarray((inputs @ weights > 0) == labels)
