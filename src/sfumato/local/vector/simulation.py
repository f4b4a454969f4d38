"""Reports of vectors drawn from their distribution alone, without the candidates that devices make."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from sfumato.local.device.vector.directions import DirectionRandomizer
from sfumato.local.device.vector.random_vectors import UNIT
from sfumato.local.frequency.variance import Array
from sfumato.local.vector.sums import VectorMoments

__all__ = [
    "Reported",
    "normal_reports",
    "opposite_reports",
    "reported_sums",
    "signed_reports",
    "sphere_reports",
]

Reported = Callable[[DirectionRandomizer, Array, np.random.Generator], Array]
"""What draws a reported vector for each row of unit vectors, in units of 1."""


def reported_sums(
    device: DirectionRandomizer,
    moments: VectorMoments,
    vectors: Array,
    people: NDArray[np.int64],
    *,
    reported: Reported,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw what the vectors that are reported add up to.

    Parameters
    ----------
    device : DirectionRandomizer
    moments : VectorMoments
        Which sums.
    vectors : array, shape (kinds, dimension)
        In units of the radius.
    people : array of int, shape (kinds,)
    reported : callable
    generator : numpy Generator
    """
    norms = np.minimum(np.sqrt((vectors * vectors).sum(axis=1)), 1.0)
    units = vectors / np.where(norms > 0, norms, 1.0)[:, None]
    units[norms == 0, 0] = 1.0
    # A shorter vector goes to either side by chance, so that its mean stays.
    ahead = generator.binomial(people, (1 + norms) / 2)
    sides, counts = np.concatenate([units, -units]), np.concatenate([ahead, people - ahead])
    sums = np.zeros(moments.size, np.int64)
    ends = np.cumsum(counts)
    for start in range(0, int(counts.sum()), moments.rows):
        which = np.searchsorted(
            ends, np.arange(start, min(start + moments.rows, int(ends[-1]))), side="right"
        )
        sums += moments.of(np.rint(UNIT * reported(device, sides[which], generator)).astype(np.int64))
    return sums


def _quantiles(device: DirectionRandomizer, size: int, generator: np.random.Generator) -> Array:
    """Draw of how many vectors' heights the reported one is above, as a quantile of one height.

    Notes
    -----
    Of K even numbers the one with r others above it has a beta distribution of K - r and r + 1.
    """
    rank = _ranks(device, size, generator)
    return generator.beta(device.count - rank, rank + 1)


def _ranks(device: DirectionRandomizer, size: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw how many candidates are above the reported one."""
    near = generator.integers(0, device.near, size)
    far = generator.integers(device.near, device.count, size)
    return np.where(generator.random(size) < float(device.inside.chance), near, far)


def _across(rows: Array, generator: np.random.Generator) -> Array:
    """Draw normal vectors that are orthogonal to rows of unit vectors."""
    drawn = generator.standard_normal(rows.shape)
    return np.asarray(drawn - (drawn * rows).sum(axis=1, keepdims=True) * rows)


def normal_reports(device: DirectionRandomizer, rows: Array, generator: np.random.Generator) -> Array:
    """Draw vectors as `PrivUnitG` reports them."""
    heights = ndtri(_quantiles(device, len(rows), generator))
    return np.asarray(heights[:, None] * rows + _across(rows, generator))


def signed_reports(device: DirectionRandomizer, rows: Array, generator: np.random.Generator) -> Array:
    """Draw vectors as `ProjUnit` reports them: the rank counts heights and their opposites."""
    rank, half = _ranks(device, len(rows), generator), device.count // 2
    above = np.minimum(rank, device.count - 1 - rank)
    nearer = (1 + generator.beta(half - above, above + 1)) / 2
    return _on_sphere(np.where(rank < half, nearer, 1 - nearer), rows, generator)


def sphere_reports(device: DirectionRandomizer, rows: Array, generator: np.random.Generator) -> Array:
    """Draw vectors as `PrivUnit` reports them."""
    return _on_sphere(_quantiles(device, len(rows), generator), rows, generator)


def opposite_reports(device: DirectionRandomizer, rows: Array, generator: np.random.Generator) -> Array:
    """Draw vectors as `SphereSampling` reports them: of two opposite ones mostly the nearer."""
    nearer = (1 + generator.random(len(rows))) / 2
    inside = generator.random(len(rows)) < float(device.inside.chance)
    return _on_sphere(np.where(inside, nearer, 1 - nearer), rows, generator)


def _on_sphere(quantiles: Array, rows: Array, generator: np.random.Generator) -> Array:
    """Draw vectors on the sphere of squared radius d whose heights have such quantiles."""
    dimension = rows.shape[1]
    cosines = 2 * betaincinv((dimension - 1) / 2, (dimension - 1) / 2, quantiles) - 1
    across = _across(rows, generator)
    across *= (np.sqrt(1 - cosines * cosines) / np.sqrt((across * across).sum(axis=1)))[:, None]
    return np.asarray(math.sqrt(dimension) * (cosines[:, None] * rows + across))
