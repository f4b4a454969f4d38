"""A logistic regression of a few features, fitted by Newton's method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["fit"]

_STEPS = 25
_RIDGE = 1e-3


def fit(features: NDArray[np.float64], second: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weights of the features that best tell the rows of one input from those of the other.

    Parameters
    ----------
    features : array of shape (rows, features)
        Of magnitudes about 1; a constant is added here.
    second : bool array of shape (rows,)
        Which rows came from the second input.

    Returns
    -------
    array of shape (features,)
        Their sum over a row grows with the odds of the *first* input. Without the constant.

    Notes
    -----
    The classifier of DP-Sniper (Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper: black-box discovery of
    differential privacy violations using classifiers", S&P 2021), with a small ridge; how well it fits
    decides how much an audit finds, never whether what it finds holds.
    """
    design = np.column_stack([features, np.ones(len(features))])
    target = np.where(second, 0.0, 1.0)
    weights = np.zeros(design.shape[1])
    ridge = _RIDGE * len(design) * np.eye(design.shape[1])
    for _ in range(_STEPS):
        odds = expit(design @ weights)
        slope = design.T @ (target - odds) - ridge @ weights
        curvature = (design * (odds * (1 - odds))[:, None]).T @ design + ridge
        step = np.linalg.solve(curvature, slope)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(weights[:-1], dtype=np.float64)
