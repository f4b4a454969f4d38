r"""Weights of reports of windows, whose sum estimates a wanted mean over the grid points without bias.

Of d grid points and N reports let :math:`P(y \mid k)` be the distribution. Numbers :math:`a_y` with
:math:`\sum_y P(y \mid k)\, a_y = f_k` for every k make :math:`a_Y` an unbiased report of :math:`f_k`,
whatever the distribution is.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_toeplitz

from sfumato.local.device.numeric.window import WindowRandomizer
from sfumato.local.frequency.variance import Array

__all__ = ["unbiased_weights"]


def unbiased_weights(device: WindowRandomizer, wanted: Array) -> Array:
    r"""Return numbers for reports whose means are those wanted, and with the least squares.

    Parameters
    ----------
    device : WindowRandomizer
    wanted : array, shape (steps + 1,)
        The f.

    Returns
    -------
    array, shape (outputs,)

    Notes
    -----
    A chance is :math:`\phi` plus, in the window, :math:`\delta > 0`. So the matrix of products of two grid
    points' distributions is :math:`\delta^2 T + c 1 1^T`, T holding how many reports two windows share,
    :math:`\max(0, w - |k - l|)`, and :math:`c = \phi^2 N + 2 \phi \delta w`. The windows are linearly
    independent, as each begins one report later than the last: T is positive definite, and the numbers with
    the least squares are :math:`a = P b`, :math:`(\delta^2 T + c 1 1^T) b = f` (Levinson's recursion, and the
    rank one after it). A constant has itself as its mean: of all :math:`a(f - z) + z` that with the least
    squares of the first part is taken.
    """
    numbers, even = _least(device, wanted), _least(device, np.ones(len(wanted)))
    middle = float(numbers @ even) / float(even @ even)
    return np.asarray(numbers - middle * even + middle)


def _least(device: WindowRandomizer, wanted: Array) -> Array:
    """Return the numbers with the least squares, and the means that are wanted."""
    window, points = device.window, device.steps + 1
    near, far = float(device.inside.chance) / window, float(1 - device.inside.chance) / device.steps
    lift = near - far
    shared = np.maximum(0.0, window - np.arange(points))
    found, ones = (solve_toeplitz(shared, part) for part in (wanted, np.ones(points)))
    common = far * far * device.outputs + 2 * far * lift * window
    found = (found - ones * (common * found.sum() / (lift * lift + common * ones.sum()))) / lift**2
    sums = np.concatenate([[0.0], np.cumsum(found)])
    reports = np.arange(device.outputs)
    ends, starts = np.minimum(reports, device.steps) + 1, np.maximum(reports - window + 1, 0)
    return np.asarray(far * found.sum() + lift * (sums[ends] - sums[starts]))
