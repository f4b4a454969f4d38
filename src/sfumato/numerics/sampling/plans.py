"""Sampling plans of distributions: a table, a kernel, and exact decisions where the kernel leaves one open.

A *direct* plan looks up the magnitude with 63 bits of one word; the 64th is the sign. A *cells* plan, for
large scales, cuts the magnitudes into cells of ``2^low_bits`` integers, looks up a cell c by the
distribution's value f at its first integer, takes a uniform offset r in it and accepts with probability
``f(c 2^low_bits + r) / f(c 2^low_bits)``, above 7/8. For the Laplace distribution that quotient is
``exp(-r / scale)``, for the Gaussian ``exp(-r (2 c 2^low_bits + r) / (2 stddev^2))``; the values at the first
integers are the same distribution at the scale divided by ``2^low_bits``. So a table has a few thousand
entries whatever the scale.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from operator import neg
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics import _kernels
from sfumato.numerics.certified.fixed_point import (
    Tail,
    gaussian_magnitude,
    laplace_magnitude,
    poisson_magnitude,
    polya_magnitude,
    thresholds,
)
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import UniformBits, below_exp

__all__ = ["Coarse", "SamplingPlan", "gaussian_plan", "laplace_plan", "poisson_plan", "polya_plan"]

LAPLACE_DIRECT = 128
GAUSSIAN_DIRECT = 1024
"""Scales up to these are looked up directly."""

LAPLACE_CELLS = 128
GAUSSIAN_CELLS = 256
"""Beyond, the scale in cells is at most this and above half of it."""

_TABLE_BITS = 63


@final
@dataclass(frozen=True, slots=True)
class Coarse:
    """Cells of ``2^low_bits`` integers, accepted with ``exp(-r (alpha c + beta r + delta))``.

    Parameters
    ----------
    low_bits : int
        Bits of the offset r within a cell c.
    alpha, beta, delta : Fraction
        Coefficients of the exponent, exact.
    """

    low_bits: int
    alpha: Fraction
    beta: Fraction
    delta: Fraction

    def exponent(self, c: int, r: int) -> Fraction:
        """Return the exact exponent at offset ``r`` of cell ``c``."""
        return r * (self.alpha * c + self.beta * r + self.delta)


@final
@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Everything that a distribution needs to be drawn; immutable, shared by threads.

    Parameters
    ----------
    tail : callable
        Tail of the looked-up magnitude or cell.
    coarse : Coarse or None
        None for a direct plan.
    """

    tail: Tail
    coarse: Coarse | None
    _draw: Callable[[NDArray[np.uint64], NDArray[np.int64]], tuple[int, int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        table = _kernels.table(np.array(thresholds(self.tail, _TABLE_BITS), np.uint64))
        coarse = self.coarse

        def direct(words: NDArray[np.uint64], out: NDArray[np.int64]) -> tuple[int, int]:
            return _kernels.direct(table, words, out)

        def cells(words: NDArray[np.uint64], out: NDArray[np.int64]) -> tuple[int, int]:
            return _kernels.cells(table, words, out, low_bits, *coefficients)

        if coarse is not None:
            low_bits = coarse.low_bits
            coefficients = float(coarse.alpha), float(coarse.beta), float(coarse.delta)
        object.__setattr__(self, "_draw", direct if coarse is None else cells)

    @property
    def words_per_draw(self) -> int:
        """Random words that one draw reads, unless it stays open."""
        return 1 if self.coarse is None else 2

    def fill(self, out: NDArray[np.int64], source: RandomSource) -> int:
        """Make as many draws as ``out`` has room for and store those that are accepted.

        Parameters
        ----------
        out : ndarray of int64
            Overwritten from the front.
        source : RandomSource
            Gives the words of all draws at once, then the further words of open draws in their order.

        Returns
        -------
        int
            How many were accepted: all of them in a direct plan.
        """
        words = source.words(out.size * self.words_per_draw)
        used, made = self._draw(words, out)
        while used * self.words_per_draw < words.size:
            at = used * self.words_per_draw
            value = self.resolve([int(w) for w in words[at : at + self.words_per_draw]], source)
            if value is not None:
                out[made] = value
                made += 1
            more, new = self._draw(words[at + self.words_per_draw :], out[made:])
            used, made = used + 1 + more, made + new
        return made

    def resolve(self, words: list[int], source: RandomSource) -> int | None:
        """Decide one draw exactly, with as many further words as it takes.

        Parameters
        ----------
        words : list of int
            The draw's own words.
        source : RandomSource
            Gives further bits of the uniforms that these words begin.

        Returns
        -------
        int or None
            The value, or None for a refused draw.
        """
        cell = self._look_up(UniformBits(words[0] >> 1, _TABLE_BITS, source))
        negative = words[0] & 1
        if self.coarse is None:
            return -cell if negative else cell
        low = self.coarse.low_bits
        offset = words[1] & ((1 << low) - 1)
        magnitude = (cell << low) + offset
        accepted = below_exp(
            UniformBits(words[1] >> low, 64 - low, source), self.coarse.exponent(cell, offset)
        )
        if not accepted or (negative and not magnitude):
            return None
        return -magnitude if negative else magnitude

    def _look_up(self, uniform: UniformBits) -> int:
        """Return how many tail probabilities lie above a uniform."""
        while True:
            table = thresholds(self.tail, uniform.width)
            above = bisect_left(table, -uniform.value, key=neg)
            if uniform.value != (table[above] if above < len(table) else 0):
                return above
            uniform.extend()


def _low_bits(scale: Fraction, largest: int) -> int:
    """Return the fewest bits that bring a scale down to ``largest``."""
    bits = 0
    while scale > largest << bits:
        bits += 1
    return bits


@lru_cache(maxsize=64)
def laplace_plan(scale: Fraction) -> SamplingPlan:
    """Return the plan of a discrete Laplace distribution; the last 64 are cached.

    Parameters
    ----------
    scale : Fraction
        Positive, at most 2^40.
    """
    if scale <= LAPLACE_DIRECT:
        return SamplingPlan(laplace_magnitude(scale, folded=True), None)
    low = _low_bits(scale, LAPLACE_CELLS)
    return SamplingPlan(
        laplace_magnitude(scale / 2**low, folded=False), Coarse(low, Fraction(0), Fraction(0), 1 / scale)
    )


@lru_cache(maxsize=64)
def gaussian_plan(stddev: Fraction) -> SamplingPlan:
    """Return the plan of a discrete Gaussian distribution; the last 64 are cached.

    Parameters
    ----------
    stddev : Fraction
        Positive, at most 2^40.
    """
    if stddev <= GAUSSIAN_DIRECT:
        return SamplingPlan(gaussian_magnitude(stddev, folded=True), None)
    low = _low_bits(stddev, GAUSSIAN_CELLS)
    rate = 1 / (stddev * stddev)
    coarse = Coarse(low, 2**low * rate, rate / 2, Fraction(0))
    return SamplingPlan(gaussian_magnitude(stddev / 2**low, folded=False), coarse)


@lru_cache(maxsize=16)
def polya_plan(scale: Fraction, parts: int) -> SamplingPlan:
    """Return the plan of a part of a geometric number; its table has up to 44 entries for each unit of scale.

    Parameters
    ----------
    scale : Fraction
        Positive, at most 2^14.
    parts : int
        How many parts make a geometric number.
    """
    return SamplingPlan(polya_magnitude(scale, parts), None)


@lru_cache(maxsize=16)
def poisson_plan(mean: Fraction) -> SamplingPlan:
    """Return the plan of a Poisson number with a sign, which is to be dropped; its table grows with the mean.

    Parameters
    ----------
    mean : Fraction
        Positive, at most 2^14.
    """
    return SamplingPlan(poisson_magnitude(mean), None)
