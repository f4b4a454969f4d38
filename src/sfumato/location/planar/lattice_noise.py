"""Noise on the square lattice, close to the planar Laplace distribution, drawn exactly from integer tables.

The noise is a pair of integers z. Its distribution is a mixture, which `probabilities` states and `draw`
follows:

- with weight about ``1 - 2**-33``: ``exp(-RATE sqrt(|z|^2 + 1))`` for ``|z| <= 480``, as 64-bit integer
  weights. There are three tables (0 to 160, 160 to 320, 320 to 480 steps); the first has an entry that
  leads to the second, and so on. Each table has its own 64 bits, so that a weight far out is as precise as
  one near the centre;
- with the rest: two independent discrete Laplace variables of scale 24, drawn by `sfumato.numerics`. They
  make every pair of integers possible, so that no output rules a position out.

A position is put on the lattice at random first (`round_to_lattice`), by the quadratic B-spline: position x
becomes the integer i with probability ``B(x - i)``, ``B(t) = 3/4 - t^2`` for ``|t| <= 1/2`` and
``(3/2 - |t|)^2 / 2`` up to 3/2. Positions are integers too, in units of ``2**-31`` of a step, so that the
coins are exact.

Theorem. Let p be the distribution of the noise and ``f_z(x) = sum_ij B(x_1 - i) B(x_2 - j) p(z - (i, j))``
the probability that position x gives output z. Then ``|log f_z(x) - log f_z(y)| <= SLOPE |x - y|`` for all
x and y of the plane and all z, where distances are Euclidean, in steps.

Proof. On each square of the mesh that is shifted by half a step, f is a quadratic polynomial in each
coordinate; so are its two derivatives, after raising their degree. Written in Bernstein's basis, which is
non-negative, f has nine coefficients ``f_k``, all positive, and the gradient has nine ``g_k`` in the plane.
If ``|g_k| <= SLOPE f_k`` for each k, then ``|grad f| <= SLOPE f`` on the square. f has continuous
derivatives, so the inequality may be integrated along the segment from x to y. `largest_slope` takes the
largest ``|g_k| / f_k`` over all squares that the tables reach; beyond them p is the product of discrete
Laplace distributions, whose ratio is at most ``sqrt(2) sinh(1/24) < SLOPE`` by the same coefficients. QED.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics import RandomSource, discrete_laplace

__all__ = ["FINE_BITS", "RATE", "SLOPE", "draw", "largest_slope", "probabilities", "round_to_lattice"]

RATE = 0.125
SLOPE = 0.12533
"""At least the largest slope of a log-probability, in 1/step: `largest_slope` is below it."""
FINE_BITS = 31

_SHELL = 160
_LEVELS = 3
_TAIL_SCALE = 24
_TAIL = 2.0**-33
_BUCKET_BITS = 15
_LOW_BITS = 64 - _BUCKET_BITS
_HALF = 1 << (FINE_BITS - 1)
_BLOCK = 1 << 14


class _Level(NamedTuple):
    """One shell of the lattice's first quadrant: entries, their weights in 2**-64, and what leads further."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    weights: NDArray[np.uint64]
    escape: int


@cache
def _levels() -> tuple[_Level, ...]:
    axis = np.arange(_LEVELS * _SHELL + 1)
    first, second = (grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij"))
    squared = first**2 + second**2
    # A pair with a zero has one sign less to draw.
    mass = (
        np.exp(-RATE * (np.sqrt(squared + 1.0) - 1)) * np.where(first > 0, 2, 1) * np.where(second > 0, 2, 1)
    )
    shells = np.ceil(np.sqrt(squared) / _SHELL).astype(int).clip(1) - 1
    masses = np.bincount(shells, mass)[:_LEVELS]
    rest = masses[::-1].cumsum()[::-1] + _TAIL * masses.sum()
    found = []
    for level in range(_LEVELS):
        chosen = shells == level
        weights = (mass[chosen] / rest[level] * 2.0**64).astype(np.uint64)
        found.append(_Level(first[chosen], second[chosen], weights, 2**64 - int(weights.sum(dtype=object))))
    return tuple(found)


@cache
def _alias() -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]:
    """Return thresholds, and for each bucket the packed pair above and below its threshold; -1 is the escape.

    Notes
    -----
    Walker's alias method in integers: the weights add up to ``2**64``, a bucket holds ``2**49`` of them.
    """
    level = _levels()[0]
    codes = [*(level.first * 1024 + level.second).tolist(), -1]
    weights = [*(int(weight) for weight in level.weights), level.escape]
    buckets, size = 1 << _BUCKET_BITS, 1 << _LOW_BITS
    weights += [0] * (buckets - len(weights))
    codes += [-1] * (buckets - len(codes))
    thresholds, above = [size] * buckets, list(range(buckets))
    small = [i for i, weight in enumerate(weights) if weight < size]
    large = [i for i, weight in enumerate(weights) if weight >= size]
    while small:
        i, j = small.pop(), large[-1]
        thresholds[i], above[i] = weights[i], j
        weights[j] -= size - weights[i]
        if weights[j] < size:
            small.append(large.pop())
    below = np.array(codes, np.int32)
    return np.array(thresholds, np.uint64), below[np.array(above)], below


def _further(count: int, source: RandomSource) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw, without signs, what the first table leads to."""
    first, second = np.empty(count, np.int64), np.empty(count, np.int64)
    open_ones = np.arange(count)
    for level in _levels()[1:]:
        borders = level.weights.cumsum()
        at = np.searchsorted(borders, source.words(open_ones.size), side="right")
        inside = at < borders.size
        first[open_ones[inside]] = level.first[at[inside]]
        second[open_ones[inside]] = level.second[at[inside]]
        open_ones = open_ones[~inside]
    first[open_ones] = np.abs(discrete_laplace(_TAIL_SCALE, open_ones.size, source))
    second[open_ones] = np.abs(discrete_laplace(_TAIL_SCALE, open_ones.size, source))
    return first, second


def round_to_lattice(positions: NDArray[np.int64], uniform: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return lattice coordinates drawn around positions by the quadratic B-spline.

    Parameters
    ----------
    positions : ndarray of int64
        In units of ``2**-31`` of a step.
    uniform : ndarray of int64
        Independent uniform integers in ``[0, 2**63)``.

    Returns
    -------
    ndarray of int64
    """
    nearest = (positions + _HALF) >> FINE_BITS
    offset = positions - (nearest << FINE_BITS)
    down, up = _HALF - offset, _HALF + offset
    np.multiply(down, down, out=down)
    np.multiply(up, up, out=up)
    nearest -= uniform < down
    nearest += uniform > np.int64(2**63 - 1) - up
    return nearest


def _report(
    positions: NDArray[np.int64], noise: NDArray[np.int64], words: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return rounded positions plus noise, whose sign is the lowest bit of a word; the other 63 round."""
    sign = -(words & np.uint64(1)).view(np.int64)
    noise ^= sign
    noise -= sign
    noise += round_to_lattice(positions, (words >> np.uint64(1)).view(np.int64))
    return noise


def draw(
    first: NDArray[np.int64], second: NDArray[np.int64], source: RandomSource
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lattice points that are reported for positions.

    Parameters
    ----------
    first, second : ndarray of int64
        Positions in units of ``2**-31`` of a step, at most ``2**62`` in size.
    source : RandomSource
        Where the bits come from.

    Returns
    -------
    tuple of two ndarrays of int64
        Integers, in steps.
    """
    out_first, out_second = np.empty(first.size, np.int64), np.empty(first.size, np.int64)
    thresholds, above, below = _alias()
    low = np.uint64((1 << _LOW_BITS) - 1)
    for start in range(0, first.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        size = first[part].size
        words = source.words(3 * size).reshape(3, size)
        bucket = (words[2] >> np.uint64(_LOW_BITS)).view(np.int64)
        words[2] &= low
        code = np.where(words[2] < thresholds.take(bucket), below.take(bucket), above.take(bucket))
        right, up = (code >> 10).astype(np.int64), (code & 1023).astype(np.int64)
        far = np.flatnonzero(code < 0)
        if far.size:
            right[far], up[far] = _further(far.size, source)
        out_first[part] = _report(first[part], right, words[0])
        out_second[part] = _report(second[part], up, words[1])
    return out_first, out_second


def probabilities(reach: int) -> NDArray[np.float64]:
    """Return the probabilities of the noise in the first quadrant, from the weights that are drawn by.

    Parameters
    ----------
    reach : int
        Largest coordinate.

    Returns
    -------
    ndarray of shape (reach + 1, reach + 1)
        Entry (a, b) is the probability of (a, b), and of (-a, b) and so on.
    """
    axis = np.arange(max(reach, _LEVELS * _SHELL) + 1)
    entered, found = 1.0, np.zeros((axis.size, axis.size))
    for level in _levels():
        signs = np.where(level.first > 0, 2, 1) * np.where(level.second > 0, 2, 1)
        found[level.first, level.second] = entered * level.weights.astype(float) / 2.0**64 / signs
        entered *= level.escape / 2.0**64
    tail = np.tanh(0.5 / _TAIL_SCALE) * np.exp(-axis / _TAIL_SCALE)
    return (found + entered * np.outer(tail, tail))[: reach + 1, : reach + 1]


def largest_slope() -> float:
    """Return the largest ratio of Bernstein coefficients, gradient over value, over all squares.

    Returns
    -------
    float
        In 1/step; the theorem above holds for whatever is at least this.
    """
    quadrant = probabilities(_LEVELS * _SHELL + 4)
    # Two lines beyond the axes, by symmetry.
    p = np.pad(quadrant, ((2, 0), (2, 0)), mode="reflect")
    value = np.array([[0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5]])
    slope = np.array([[-1, 1, 0], [-0.5, 0, 0.5], [0, -1, 1]])
    stencils = np.lib.stride_tricks.sliding_window_view(p, (3, 3))
    worst = 0.0
    for k in range(3):
        for m in range(3):
            f = np.einsum("xyij,i,j->xy", stencils, value[k], value[m])
            right = np.einsum("xyij,i,j->xy", stencils, slope[k], value[m])
            up = np.einsum("xyij,i,j->xy", stencils, value[k], slope[m])
            worst = max(worst, float((np.hypot(right, up) / f).max()))
    return worst
