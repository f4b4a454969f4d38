"""Lazily drawn uniform numbers: as many bits as a comparison needs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.certified.fixed_point import exp_bounds
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["UniformBits", "below_exp", "uniform_integers"]

_GUARD = 32


class UniformBits:
    """A uniform real of which more and more bits are known: ``value / 2^width`` and up to one unit more.

    Parameters
    ----------
    value, width : int
        The bits known so far.
    source : RandomSource
        Gives the further ones.
    """

    __slots__ = ("_source", "value", "width")

    def __init__(self, value: int, width: int, source: RandomSource) -> None:
        self.value, self.width, self._source = value, width, source

    def extend(self) -> None:
        """Draw 64 more bits."""
        self.value = self.value << 64 | int(self._source.words(1)[0])
        self.width += 64


def below_exp(uniform: UniformBits, exponent: Fraction) -> bool:
    """Decide whether a uniform lies below ``exp(-exponent)``, for an exponent of at least 0."""
    while True:
        low, high = exp_bounds(exponent, uniform.width + _GUARD)
        if (uniform.value + 1) << _GUARD <= low:
            return True
        if uniform.value << _GUARD >= high:
            return False
        uniform.extend()


def uniform_integers(bound: int, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Draw independent uniform integers from 0 to ``bound - 1``, exactly.

    Parameters
    ----------
    bound : int
        From 1 to 2^62.
    size : int
    source : RandomSource

    Returns
    -------
    ndarray of int64

    Notes
    -----
    A word is refused if it lies beyond the last multiple of ``bound`` that 64 bits hold, which happens with
    probability below ``bound / 2^64``; else its remainder is uniform.

    Examples
    --------
    >>> from sfumato.numerics.randomness.source import SimulatedSource
    >>> bool((uniform_integers(3, 100, SimulatedSource(1)) < 3).all())
    True
    """
    last = (1 << 64) - (1 << 64) % bound - 1
    words = source.words(size)
    while (refused := np.flatnonzero(words > np.uint64(last))).size:
        words[refused] = source.words(refused.size)
    return (words % np.uint64(bound)).astype(np.int64)
