r"""Exact samplers for K-norm noise: the cube, the Euclidean ball, and polytopes by rejection.

Throughout :math:`q = e^{-1/s}` for a scale s in steps.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.factorization.strategies.integer_strategy import Integers
from sfumato.numerics.certified.exponentials import powers
from sfumato.numerics.certified.fixed_point import exp_bounds
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import UniformBits, below_exp, uniform_integers
from sfumato.numerics.sampling.integer_noise import geometric

__all__ = ["ball_noise", "cube_noise", "eulerian", "offset_weights", "polytope_noise"]

_SPARE = 64


def cube_noise(dimension: int, scale: Fraction, source: RandomSource) -> Integers:
    r"""Draw z in :math:`\mathbb{Z}^d` with probability proportional to :math:`q^{\max |z_i|}`, exactly.

    Parameters
    ----------
    dimension : int
        From 1 to 1,024.
    scale : Fraction
        In steps.
    source : RandomSource

    Notes
    -----
    As :math:`q^m = (1 - q) \sum_{r \ge m} q^r`, the distribution is that of a uniform point of the cube
    :math:`[-r, r]^d` for a random r of weight :math:`(2r+1)^d q^r`. With the Eulerian numbers of type B,
    :math:`\sum_r (2r+1)^d q^r = \sum_j B_{d,j} q^j / (1-q)^{d+1}`: so r is j, of weight :math:`B_{d,j} q^j`,
    plus d + 1 independent geometric numbers.

    References
    ----------
    Hardt, Talwar (2010), "On the geometry of differential privacy", the continuous distribution; Brenti
    (1994), "q-Eulerian polynomials arising from Coxeter groups", the series.
    """
    radius = _offset(dimension, 1 / scale, source) + sum(geometric(scale, dimension + 1, source).tolist())
    return np.asarray(uniform_integers(2 * radius + 1, dimension, source) - radius, dtype=np.int64)


def polytope_noise(
    facets: NDArray[Any], divisor: int, reach: Fraction, scale: Fraction, source: RandomSource
) -> Integers:
    r"""Draw z in :math:`\mathbb{Z}^d` with probability proportional to :math:`q^{N(z)}`, exactly.

    Parameters
    ----------
    facets : object array of ints, shape (m, d)
    divisor : int
        :math:`N(z) = \max_i |\sum_j a_{ij} z_j| / divisor`.
    reach : Fraction
        At least the largest entry of any point of norm 1: :math:`\max |z_i| \le reach \cdot N(z)`.
    scale : Fraction
        In steps.
    source : RandomSource

    Notes
    -----
    Rejection: z of weight :math:`e^{-\max|z_i|/reach\,s}` is taken with the chance :math:`e^{-(N(z) -
    \max|z_i|/reach)/s}`, an exact coin. About as many tries as times the body fits into the cube around it.
    """
    while True:
        z = cube_noise(facets.shape[1], scale * reach, source)
        entries = np.array(z.tolist(), dtype=object)
        norm = Fraction(int(np.abs(facets @ entries).max()), divisor)
        exponent = (norm - Fraction(int(np.abs(entries).max())) / reach) / scale
        if below_exp(UniformBits(int(source.words(1)[0]), 64, source), exponent):
            return z


def ball_noise(dimension: int, scale: Fraction, source: RandomSource) -> Integers:
    r"""Draw z in :math:`\mathbb{Z}^d` with probability proportional to :math:`q^{|z|_2}`, exactly.

    Parameters
    ----------
    dimension : int
        Small: there are about as many tries as times the ball fits into the cube, 60 for 8 dimensions.
    scale : Fraction
        In steps.
    source : RandomSource

    Notes
    -----
    Rejection from the cube, as in `polytope_noise`. The chance :math:`e^{-(|z|_2 - \max|z_i|)/s}` is an
    exponential of a root: uniform bits are compared with both ends of an enclosure that grows ever tighter.
    """
    while True:
        z = cube_noise(dimension, scale, source)
        entries = z.tolist()
        square, largest = sum(entry * entry for entry in entries), max(abs(entry) for entry in entries)
        uniform = UniformBits(int(source.words(1)[0]), 64, source)
        if _below_exp_of_root(uniform, square, largest, 1 / scale):
            return z


def _below_exp_of_root(uniform: UniformBits, square: int, less: int, rate: Fraction) -> bool:
    """Return whether a uniform lies below ``exp(-(sqrt(square) - less) rate)``, at most 1."""
    root = math.isqrt(square)
    if root * root == square:
        return below_exp(uniform, (root - less) * rate)
    while True:
        # The root lies between these two, and is neither.
        bits = uniform.width + _SPARE
        below = Fraction(math.isqrt(square << (2 * bits)), 1 << bits)
        above = below + Fraction(1, 1 << bits)
        if (uniform.value + 1) << _SPARE <= exp_bounds((above - less) * rate, bits)[0]:
            return True
        if uniform.value << _SPARE >= exp_bounds((below - less) * rate, bits)[1]:
            return False
        uniform.extend()


@lru_cache(maxsize=64)
def eulerian(dimension: int) -> tuple[int, ...]:
    """Return the Eulerian numbers of type B of a dimension, from 0 on.

    Examples
    --------
    >>> eulerian(3)
    (1, 23, 23, 1)
    """
    row = [1]
    for d in range(1, dimension + 1):
        below = [*row, 0]
        row = [(2 * j + 1) * below[j] + ((2 * (d - j) + 1) * below[j - 1] if j else 0) for j in range(d + 1)]
    return tuple(row)


def offset_weights(dimension: int, rate: Fraction, bits: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both bounds on the running weights of j, in units of ``2**-bits``; the first weight is 1."""
    numbers = np.array(eulerian(dimension), dtype=object)
    table = powers(rate, bits)
    low = numbers * table.exact(np.arange(dimension + 1))
    return low.cumsum(), (low + numbers * table.error).cumsum()


def _offset(dimension: int, rate: Fraction, source: RandomSource) -> int:
    """Choose j exactly, with as many bits as it takes."""
    size = sum(eulerian(dimension)).bit_length()
    uniform = UniformBits(int(source.words(1)[0]), 64, source)
    while True:
        low, high = offset_weights(dimension, rate, uniform.width + _SPARE + size)
        width, value = uniform.width, uniform.value
        # The uniform times the whole lies in [value low[-1], (value + 1) high[-1]) / 2^width.
        found = int(np.searchsorted(low, value * low[-1] >> width, side="right"))
        if found <= dimension:
            above = found == 0 or high[found - 1] << width <= value * low[-1]
            if above and (value + 1) * high[-1] <= low[found] << width:
                return found
        uniform.extend()
