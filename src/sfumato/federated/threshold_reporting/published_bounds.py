"""Published bounds of sample-and-threshold, to compare with the exact loss: nothing is charged by them."""

from __future__ import annotations

import math
from typing import NamedTuple

from sfumato import _check

__all__ = ["PublishedBound", "sample_and_threshold_bound", "trie_heavy_hitters_bound"]


class PublishedBound(NamedTuple):
    """An (epsilon, delta) that a paper states.

    Attributes
    ----------
    epsilon : float
    delta : float

    Examples
    --------
    >>> PublishedBound(epsilon=1.0, delta=1e-6).delta
    1e-06
    """

    epsilon: float
    delta: float


def trie_heavy_hitters_bound(sampling_probability: float, threshold: int, levels: int) -> PublishedBound:
    """Return what Zhu et al. state for heavy hitters in a trie.

    Parameters
    ----------
    sampling_probability : float
        The sample's part of the clients of each level: gamma / sqrt(n) in the paper.
    threshold : int
        Theta, at least 4; below the inverse of the sampling probability.
    levels : int

    Returns
    -------
    PublishedBound
        ``levels * log(1 + 1 / (sqrt(n) / (gamma theta) - 1))`` and ``(theta - 2) / ((theta - 3) theta!)``.

    References
    ----------
    Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential privacy".
    Its samples have a fixed size, so that the comparison with independent sampling is at equal expected size.

    Examples
    --------
    >>> bound = trie_heavy_hitters_bound(0.01, 10, 10)
    >>> round(bound.epsilon, 4), round(bound.delta * 1e7, 3)
    (1.0536, 3.149)
    """
    q = _check.unit_interval("sampling_probability", sampling_probability)
    theta = _check.integer("threshold", threshold, minimum=4)
    count = _check.integer("levels", levels, minimum=1)
    if q * theta >= 1:
        rule = "be below the inverse of the sampling probability"
        _check.refuse("threshold", rule, threshold, "the published bound says nothing there")
    log_delta = math.log((theta - 2) / (theta - 3)) - math.lgamma(theta + 1)
    return PublishedBound(-count * math.log1p(-q * theta), math.exp(log_delta))


def sample_and_threshold_bound(epsilon: float, alpha: float, threshold: int) -> PublishedBound:
    """Return what Cormode and Bharadwaj state at the sampling probability ``alpha (1 - exp(-epsilon))``.

    Parameters
    ----------
    epsilon : float
    alpha : float
        Below 1.
    threshold : int

    Returns
    -------
    PublishedBound
        Epsilon, and the delta ``exp(-(log(1 / alpha) - 1 / (1 + alpha)) threshold)``, at most 1.

    References
    ----------
    Cormode, Bharadwaj (2022), "Sample-and-threshold differential privacy: histograms and applications".

    Examples
    --------
    >>> round(sample_and_threshold_bound(1.0, 0.25, 20).delta * 1e6, 2)
    8.08
    """
    alpha = _check.unit_interval("alpha", alpha)
    rate = -math.log(alpha) - 1 / (1 + alpha)
    count = _check.integer("threshold", threshold, minimum=1)
    return PublishedBound(_check.positive("epsilon", epsilon), math.exp(-max(0.0, rate * count)))
