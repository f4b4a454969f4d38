r"""The distribution that makes the reports of windows most likely, by expectation maximization.

Of d grid points and N reports the distribution of the reports is a matrix with two values, of which one lies
on windows: it is multiplied by running sums, in N + d steps instead of N d.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sfumato.local.device.numeric.window import WindowRandomizer
from sfumato.local.frequency.variance import Array

__all__ = ["most_likely"]

_MAX_ROUNDS: Final = 20_000


def most_likely(counts: Array, device: WindowRandomizer, *, smooth: bool, tolerance: float) -> Array:
    """Return shares of the grid points under which the reports are nearly most likely.

    Parameters
    ----------
    counts : array, shape (outputs,)
        How often each report came; at least one did.
    device : WindowRandomizer
        Its distribution is what is inverted.
    smooth : bool
        Whether shares are averaged with their neighbors (1, 2, 1) after each round: less noise, less detail.
    tolerance : float
        Rounds end when the log-likelihood gains less than this.

    Returns
    -------
    array, shape (steps + 1,)
        Non-negative, with sum 1.
    """
    window, total = device.window, float(counts.sum())
    near, far = (
        float(device.inside.chance) / window,
        float(1 - device.inside.chance) / device.steps,
    )
    ends = np.minimum(np.arange(device.outputs), device.steps) + 1
    starts = np.maximum(np.arange(device.outputs) - window + 1, 0)
    shares = np.full(device.steps + 1, 1 / (device.steps + 1))
    sums, backs = np.zeros(device.steps + 2), np.zeros(device.outputs + 1)
    before = -np.inf
    for _ in range(_MAX_ROUNDS):
        np.cumsum(shares, out=sums[1:])
        distribution = far + (near - far) * np.maximum(sums[ends] - sums[starts], 0.0)
        reached = float(counts @ np.log(distribution))
        if reached - before < tolerance:
            break
        before = reached
        ratios = counts / (total * distribution)
        np.cumsum(ratios, out=backs[1:])
        within = np.maximum(backs[window:] - backs[: device.steps + 1], 0.0)
        shares = shares * (far * backs[-1] + (near - far) * within)
        if smooth:
            wide = np.pad(shares, 1, mode="edge")
            shares = (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4
        shares = shares / shares.sum()
    return np.asarray(shares)
