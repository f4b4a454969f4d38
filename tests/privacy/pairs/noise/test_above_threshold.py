"""Stopping times of noisy numbers above a threshold, against their exact laws in both orders."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sfumato.privacy import GaussianSparseVector
from sfumato.privacy.leaves.gaussian_sparse_vector import _parts
from sfumato.privacy.pairs.noise.above_threshold import above_threshold_pair
from sfumato.privacy.pairs.pair import Pair
from tests.cases import cases

RATIOS = np.exp(np.linspace(-5, 5, 41))
Array = NDArray[np.float64]


def divergences(pair: Pair) -> Array:
    """The hockey-stick divergences of the first order, at all ratios."""
    bins = pair.bins(np.zeros(0), swapped=False)
    mass, loss = np.exp(bins.atoms.log_p), bins.atoms.loss
    return np.array([float(mass @ np.maximum(0, 1 - u * np.exp(-loss)) + bins.only_p) for u in RATIOS])


def truth(z: Array, distances: Array) -> Array:
    """Those of when the first number is above, if any is."""
    distributions = []
    for line in (z, z + distances):
        left = np.concatenate([[0.0], np.cumsum(log_ndtr(line))])
        distributions.append(np.exp(np.append(left[:-1] + log_ndtr(-line), left[-1])))
    return np.array([float(np.maximum(0, distributions[0] - u * distributions[1]).sum()) for u in RATIOS])


@cases("distance", [0.05, 0.5, 3.0])
@cases("length", [1, 2, 30, 3000])
def test_it_dominates_at_all_ratios(distance: float, length: int) -> None:
    # Below 1 too, where going on tells of the second law: a symmetric pair does not.
    rng = np.random.default_rng(length)
    claimed = divergences(above_threshold_pair(distance, length))
    levels = [np.full(length, level) for level in np.linspace(-2.5, 4.5, 15)]
    levels += [rng.normal(centre, 1.5, length) for centre in (-1.0, 1.0, 3.0)]
    for z in levels:
        for share in (1.0, rng.random(length)):
            assert (truth(z, distance * share * np.ones(length)) <= claimed + 1e-12).all()


def test_each_above_is_priced_by_what_composes() -> None:
    # A hundred thousand numbers, each of which is above four times in a hundred thousand.
    loss = GaussianSparseVector(1e6, 40.0, 100_000)
    (_, threshold), (stop, positives) = _parts(loss)
    assert (threshold, positives) == (1, 1)
    z = np.full(100_000, 3.9)
    assert (truth(z, np.full(100_000, 0.05)) <= divergences(stop) + 1e-12).all()


def test_no_number_is_refused() -> None:
    for distance in (1e-300, 1e-9, 40.0, 1e200):
        for length in (1, 2**50):
            claimed = divergences(above_threshold_pair(distance, length))
            assert (claimed <= 1 + 1e-9).all()
            assert (np.diff(claimed) <= 1e-12).all()
            assert math.isfinite(float(claimed.sum()))
