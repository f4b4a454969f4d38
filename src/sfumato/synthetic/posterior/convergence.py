"""Whether chains have come to the same distribution, and how many independent draws theirs are worth."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
import scipy.special

from sfumato.synthetic.graphical_model.calibration import Array

__all__ = ["Convergence", "convergence"]


class Convergence(NamedTuple):
    """The worst of several quantities.

    Attributes
    ----------
    r_hat : float
        The largest; 1 where chains agree.
    effective_draws : float
        The fewest, of all chains together.
    """

    r_hat: float
    effective_draws: float


def convergence(drawn: Array) -> Convergence:
    """Return the largest R-hat and the smallest effective number of draws.

    Parameters
    ----------
    drawn : array of shape (chains, draws, quantities)

    Returns
    -------
    Convergence

    Notes
    -----
    Chains are split in halves, and all draws replaced by normal scores of their ranks; R-hat is the larger
    one of these and of their distances from the median.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter, Bürkner, "Rank-normalization, folding, and localization: an improved
    R-hat" (Bayesian Analysis 2021).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> good = convergence(rng.standard_normal((4, 500, 1)))
    >>> good.r_hat < 1.01, 1500 < good.effective_draws < 2500
    (True, True)
    >>> convergence(rng.standard_normal((4, 500, 1)) + np.arange(4)[:, None, None]).r_hat > 1.5
    True
    """
    half = drawn.shape[1] // 2
    split = np.concatenate([drawn[:, :half], drawn[:, -half:]])
    folded = np.abs(split - np.median(split, axis=(0, 1)))
    scores = _normal_scores(split)
    r_hat = max(float(_r_hat(scores).max()), float(_r_hat(_normal_scores(folded)).max()))
    return Convergence(r_hat, float(_effective_draws(scores).min()))


def _normal_scores(drawn: Array) -> Array:
    """Return normal scores of the ranks of each quantity's draws."""
    flat = drawn.reshape(-1, drawn.shape[2])
    ranks = flat.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable") + 1
    return np.asarray(scipy.special.ndtri((ranks - 0.375) / (len(flat) + 0.25))).reshape(drawn.shape)


def _variances(drawn: Array) -> tuple[Array, Array]:
    """Return the mean variance within chains, and an estimate of that of all."""
    draws = drawn.shape[1]
    within = drawn.var(axis=1, ddof=1).mean(axis=0)
    between = drawn.mean(axis=1).var(axis=0, ddof=1)
    return within, within * (draws - 1) / draws + between


def _r_hat(drawn: Array) -> Array:
    within, total = _variances(drawn)
    return np.sqrt(total / within)


def _effective_draws(drawn: Array) -> Array:
    """Return the effective number of draws of each quantity, by Geyer's initial monotone sequence."""
    chains, draws, _ = drawn.shape
    centered = drawn - drawn.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centered, 2 * draws, axis=1)) ** 2
    covariances = np.fft.irfft(spectrum, axis=1)[:, :draws].mean(axis=0) / draws
    within, total = _variances(drawn)
    correlations = 1 - (within - covariances * draws / (draws - 1)) / total
    correlations[0] = 1.0
    pairs = correlations[: draws // 2 * 2].reshape(draws // 2, 2, -1).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(2 * falling.sum(axis=0) - 1, 1 / log(chains * draws, 10))
    return np.asarray(chains * draws / time)
