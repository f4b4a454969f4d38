"""The exact distribution of a label and its divergence from every neighbor's: for the data's owner only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.aggregator import Aggregator
from sfumato.learning.pate.confident import ConfidentGNMax
from sfumato.learning.pate.gnmax import GNMax
from sfumato.learning.pate.lnmax import LNMax

__all__ = ["label_distribution", "vote_divergence"]

_Array = NDArray[np.float64]

_EXPONENT: Final = 720.0
"""Minus the log of the smallest probability that is followed."""


def label_distribution(aggregator: Aggregator, votes: NDArray[np.int64]) -> _Array:
    """Return the probability of every label of one question: private.

    Parameters
    ----------
    aggregator : LNMax, GNMax or ConfidentGNMax
    votes : int64 array of shape (classes,)

    Returns
    -------
    float64 array of shape (classes,), or (classes + 1,)
        The last entry is that of no answer, where there may be none. Small ones too are right to about 1e-10
        of themselves.

    Notes
    -----
    With the winner's noisy count z, it wins against those that are below z, and against k that are equal to z
    with chance 1/(k + 1), which is the integral of :math:`x^k` over x from 0 to 1. So the distribution is a
    sum over z of integrals of a polynomial, for which Gauss and Legendre's rule is exact.
    """
    if isinstance(aggregator, LNMax):
        return _winner_distribution(votes, *_laplace(float(aggregator.scale)))
    if isinstance(aggregator, GNMax):
        return _winner_distribution(votes, *_gaussian(float(aggregator.stddev)))
    if isinstance(aggregator, ConfidentGNMax):
        pmf, below = _gaussian(float(aggregator.check_stddev))
        reach = len(pmf) // 2
        index = min(max(aggregator.threshold - int(votes.max()) + reach, 0), len(pmf) - 1)
        # The distribution is symmetric: the chance to pass is summed from its own end.
        fails, passes = below[index], below[len(pmf) - 1 - index] + pmf[index]
        winner = _winner_distribution(votes, *_gaussian(float(aggregator.stddev)))
        return np.append(passes * winner, fails)
    remedy = "use GNMax or ConfidentGNMax"
    rule = "ask questions that depend on no earlier label"
    return _check.refuse_type("aggregator", rule, aggregator, remedy)


def vote_divergence(aggregator: Aggregator, votes: NDArray[np.int64], order: float) -> float:
    """Return the greatest Rényi divergence of a question's label from any neighbor's: private.

    Parameters
    ----------
    aggregator : LNMax, GNMax or ConfidentGNMax
    votes : int64 array of shape (classes,)
    order : float
        Above 1.

    Returns
    -------
    float
        Of the label on these votes from the label on neighboring ones: with as many teachers changed as one
        unit changes, by enumeration. To about 1e-9, not rounded outward.
    """
    distribution = label_distribution(aggregator, votes)
    found = {tuple(near.tolist()) for near in _near(votes, aggregator.teachers_moved)}
    return max(
        (
            _renyi(distribution, label_distribution(aggregator, np.array(near)), order)
            for near in sorted(found)
        ),
        default=0.0,
    )


def _near(votes: NDArray[np.int64], moved: int) -> Iterator[NDArray[np.int64]]:
    for old in np.flatnonzero(votes > 0):
        for new in range(len(votes)):
            if new != old:
                near = votes.copy()
                near[old] -= 1
                near[new] += 1
                yield near
                if moved > 1:
                    yield from _near(near, moved - 1)


def _renyi(p: _Array, q: _Array, order: float) -> float:
    positive = (p > 0) & (q > 0)
    terms = order * np.log(p[positive]) + (1 - order) * np.log(q[positive])
    return max(0.0, float(np.logaddexp.reduce(terms)) / (order - 1))


@lru_cache(maxsize=8)
def _gaussian(stddev: float) -> tuple[_Array, _Array]:
    reach = math.ceil(stddev * math.sqrt(2 * _EXPONENT))
    return _cumulated(np.exp(-((np.arange(-reach, reach + 1) / stddev) ** 2) / 2))


@lru_cache(maxsize=8)
def _laplace(scale: float) -> tuple[_Array, _Array]:
    reach = math.ceil(scale * _EXPONENT)
    return _cumulated(np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale))


def _cumulated(weights: _Array) -> tuple[_Array, _Array]:
    """Return the probability of each noise, and of less than each."""
    pmf = weights / weights.sum()
    return pmf, np.concatenate([[0.0], np.cumsum(pmf)[:-1]])


def _winner_distribution(votes: NDArray[np.int64], pmf: _Array, below: _Array) -> _Array:
    reach, classes = len(pmf) // 2, len(votes)
    z = np.arange(votes.min() - reach, votes.max() + reach + 1)
    at = z[None, :] - votes[:, None] + reach
    inside = (at >= 0) & (at < len(pmf))
    index = np.clip(at, 0, len(pmf) - 1)
    equal = np.where(inside, pmf[index], 0.0)
    less = np.where(inside, below[index], np.where(at < 0, 0.0, 1.0))
    nodes, rule = np.polynomial.legendre.leggauss(classes // 2 + 1)
    distribution = np.zeros(classes)
    for node, weight in zip((nodes + 1) / 2, rule / 2, strict=True):
        factors = less + node * equal
        ones = np.ones((1, len(z)))
        before = np.cumprod(np.concatenate([ones, factors[:-1]]), axis=0)
        behind = np.cumprod(np.concatenate([ones, factors[:0:-1]]), axis=0)[::-1]
        distribution += weight * (equal * before * behind).sum(axis=1)
    return distribution
