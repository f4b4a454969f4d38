r"""Tracing statistics: each is a constant plus one weight for each attribute that a person has.

With :math:`m_j` the published frequency of attribute :math:`j` among :math:`n` members, :math:`p_j` that of
the population, and :math:`y_j` whether the target has it:

- Homer and others 2008: :math:`\sum_j |y_j - p_j| - |y_j - m_j|`.
- Likelihood ratio (Sankararaman and others 2009): :math:`\sum_j y_j \log\frac{m_j}{p_j} + (1 - y_j)
  \log\frac{1 - m_j}{1 - p_j}`. It is exact, for members drawn independently and attributes independent of
  one another: the count is :math:`y_j` plus a binomial of :math:`n - 1` if the target is in, else a binomial
  of :math:`n`.
- Inner product (Dwork and others 2015): :math:`\sum_j (y_j - p_j)(m_j - 1/2)`, which needs no more than some
  people of the population in the place of :math:`p_j`, and no knowledge of the noise.
- Known others: the likelihood ratio of an attacker who knows the counts of all other people, and the noise:
  the noise alone hides the target. No attack on the release is better (Neyman and Pearson).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from sfumato.numerics.distributions.discrete import SymmetricDistribution

__all__ = [
    "IMPOSSIBLE",
    "ScoreWeights",
    "homer_weights",
    "inner_product_weights",
    "known_others_weights",
    "likelihood_ratio_weights",
]

Floats = NDArray[np.float64]

IMPOSSIBLE: Final = -1e6
"""In the place of minus infinity, where the release excludes that the target is in it."""


class ScoreWeights(NamedTuple):
    """A statistic that is linear in a person's attributes.

    Attributes
    ----------
    without, having : array of shape (attributes,)
        What an attribute adds to the score of a person without it, and of one who has it.
    """

    without: Floats
    having: Floats


def homer_weights(published: Floats, frequencies: Floats) -> ScoreWeights:
    """Return the weights of Homer's statistic."""
    without = frequencies - np.abs(published)
    return ScoreWeights(without, 1 - frequencies - np.abs(1 - published))


def inner_product_weights(published: Floats, frequencies: Floats) -> ScoreWeights:
    """Return the weights of the inner product; frequencies may be of a few people."""
    middle = np.clip(published, 0.0, 1.0) - 0.5
    return ScoreWeights(-frequencies * middle, (1 - frequencies) * middle)


def likelihood_ratio_weights(
    published: Floats, frequencies: Floats, members: int, noise_variance: float = 0.0
) -> ScoreWeights:
    """Return the weights of the likelihood ratio: exact without noise, of normal densities with it.

    Parameters
    ----------
    published, frequencies : array of shape (attributes,)
        Of the members (with noise, if any) and of the population, the latter strictly between 0 and 1.
    members : int
        How many.
    noise_variance : float
        Of the noise on a count.

    Returns
    -------
    ScoreWeights
    """
    if noise_variance == 0:
        m = np.clip(published, 0.0, 1.0)
        having = np.where(m > 0, xlogy(1.0, np.where(m > 0, m, 1.0)) - np.log(frequencies), IMPOSSIBLE)
        without = np.where(m < 1, xlog1py(1.0, -np.where(m < 1, m, 0.0)) - np.log1p(-frequencies), IMPOSSIBLE)
        return ScoreWeights(without, having)
    counts, one = published * members, frequencies * (1 - frequencies)
    outside = members * one + noise_variance
    inside = (members - 1) * one + noise_variance
    shared = (counts - members * frequencies) ** 2 / (2 * outside) + np.log(outside / inside) / 2
    without, having = (
        shared - (counts - y - (members - 1) * frequencies) ** 2 / (2 * inside) for y in (0.0, 1.0)
    )
    return ScoreWeights(without, having)


def known_others_weights(
    counts: NDArray[np.int64], others: NDArray[np.int64], noise: SymmetricDistribution
) -> ScoreWeights:
    """Return the likelihood ratio of the noise, in against absent, where all other people are known."""
    rest = counts - others
    values = np.arange(int(rest.min()) - 1, int(rest.max()) + 1)
    logs = np.log([max(float(noise.pmf(int(value)).upper), 1e-300) for value in values])
    having = logs[rest - 1 - values[0]] - logs[rest - values[0]]
    return ScoreWeights(np.zeros(len(rest)), having)
