"""Real random numbers of which ever more bits are known, until they decide how a multiple of them rounds.

A scale that depends on the data admits no table of probabilities. Here a number is drawn once, as nested
rational enclosures; a rounded multiple of it is decided when both ends of the enclosure agree. Every decision
holds for all reals that the bits drawn so far leave open, so the bits still to come stay uniform.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import floor, isqrt
from typing import Final, Protocol, TypeAlias, final

from sfumato.numerics.certified.fixed_point import exp_bounds, log_bounds
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import UniformBits, below_exp

__all__ = ["Deviate", "Draw", "exponential", "normal", "rounded", "student"]

_WORDS: Final = 2
_GUARD: Final = 32
_HALF: Final = Fraction(1, 2)

Enclosure: TypeAlias = tuple[Fraction, Fraction | None]
"""Ends of an interval that holds the number; None where nothing is known above."""


class Deviate(Protocol):
    """A magnitude that was drawn, and is known ever better."""

    def bounds(self) -> Enclosure:
        """Return what is known."""

    def extend(self) -> None:
        """Draw further bits."""


Draw: TypeAlias = Callable[[RandomSource], Deviate]


def _uniform(source: RandomSource) -> UniformBits:
    uniform = UniformBits(0, 0, source)
    for _ in range(_WORDS):
        uniform.extend()
    return uniform


@final
class _Exponential:
    """Minus the logarithm of a uniform number."""

    __slots__ = ("_uniform",)

    def __init__(self, source: RandomSource) -> None:
        self._uniform = _uniform(source)

    def bounds(self) -> Enclosure:
        value, width = self._uniform.value, self._uniform.width
        unit = 1 << (width + _GUARD)
        low = log_bounds(Fraction(1 << width, value + 1), width + _GUARD)[0]
        if not value:
            return Fraction(low, unit), None
        high = log_bounds(Fraction(1 << width, value), width + _GUARD)[1]
        return Fraction(low, unit), Fraction(high, unit)

    def extend(self) -> None:
        self._uniform.extend()


@final
class _Student:
    """One coordinate of a point in a ball, over the length of the others."""

    __slots__ = ("_coordinates", "_degrees")

    def __init__(self, degrees: int, source: RandomSource) -> None:
        self._degrees = degrees
        while True:
            self._coordinates = [_uniform(source) for _ in range(degrees + 1)]
            while (inside := self._inside()) is None:
                self.extend()
            if inside:
                return

    def _inside(self) -> bool | None:
        whole = 1 << (2 * self._coordinates[0].width)
        if sum((part.value + 1) ** 2 for part in self._coordinates) <= whole:
            return True
        return False if sum(part.value**2 for part in self._coordinates) >= whole else None

    def bounds(self) -> Enclosure:
        first, *rest = self._coordinates
        unit = 1 << (first.width + _GUARD)
        low = self._degrees * (first.value * unit) ** 2 // sum((part.value + 1) ** 2 for part in rest)
        length = sum(part.value**2 for part in rest)
        if not length:
            return Fraction(isqrt(low), unit), None
        high = self._degrees * ((first.value + 1) * unit) ** 2 // length
        return Fraction(isqrt(low), unit), Fraction(isqrt(high) + 1, unit)

    def extend(self) -> None:
        for part in self._coordinates:
            part.extend()


@final
class _Normal:
    """A whole part and a uniform rest, accepted together.

    Notes
    -----
    A whole part k with probability proportional to :math:`e^{-k/2}`, a uniform rest x, both accepted with
    probability :math:`e^{-k(k-1)/2} e^{-x(2k+x)/2}`: the density is proportional to :math:`e^{-(k+x)^2/2}`
    (Karney 2016, "Sampling exactly from the normal distribution", Algorithm N).
    """

    __slots__ = ("_rest", "_whole")

    def __init__(self, source: RandomSource) -> None:
        while True:
            self._whole = k = 0
            while below_exp(_uniform(source), _HALF):
                self._whole = k = k + 1
            self._rest = _uniform(source)
            if below_exp(_uniform(source), Fraction(k * (k - 1), 2)) and self._accepted(_uniform(source)):
                return

    def _accepted(self, coin: UniformBits) -> bool:
        """Return heads with probability ``exp(-x (2 k + x) / 2)`` for the rest x and the whole part k."""
        while True:
            bits = coin.width + _GUARD
            if (coin.value + 1) << _GUARD <= exp_bounds(self._exponent(1), bits)[0]:
                return True
            if coin.value << _GUARD >= exp_bounds(self._exponent(0), bits)[1]:
                return False
            coin.extend()
            self._rest.extend()

    def _exponent(self, more: int) -> Fraction:
        x = Fraction(self._rest.value + more, 1 << self._rest.width)
        return x * (2 * self._whole + x) / 2

    def bounds(self) -> Enclosure:
        value, unit = self._rest.value, 1 << self._rest.width
        return self._whole + Fraction(value, unit), self._whole + Fraction(value + 1, unit)

    def extend(self) -> None:
        self._rest.extend()


exponential: Final[Draw] = _Exponential
"""Draws from the exponential distribution of mean 1: the magnitude of Laplace noise of scale 1."""

normal: Final[Draw] = _Normal
"""Draws the magnitude of a standard normal number."""


def student(degrees: int) -> Draw:
    r"""Return how to draw the magnitude of Student's t distribution; one degree is the Cauchy distribution.

    Notes
    -----
    The direction of independent normal numbers is uniform, and so is that of a uniform point X in the ball of
    ``degrees + 1`` dimensions; Student's distribution is that of
    :math:`X_0 / \sqrt{(X_1^2 + \dots + X_d^2)/d}`, which depends on the direction only. A point in the cube
    is refused if it is outside the ball, so that few degrees are quick: three refuse two points in three.
    """
    return partial(_Student, degrees)


def rounded(draw: Draw, scale: Fraction, limit: int, source: RandomSource) -> int:
    """Draw a number of a symmetric distribution, times a scale, to the nearest integer, exactly.

    Parameters
    ----------
    draw : callable
        Draws the magnitude.
    scale : Fraction
        Positive; it may be secret.
    limit : int
        Greater magnitudes count as this.
    source : RandomSource

    Returns
    -------
    int

    Notes
    -----
    Ties have probability 0. About one draw in ``2^100 / scale`` takes further bits.

    Examples
    --------
    >>> from sfumato.numerics.randomness.source import SimulatedSource
    >>> source = SimulatedSource(4)
    >>> [rounded(exponential, Fraction(10), 1 << 60, source) for _ in range(4)]
    [-7, -5, 17, -1]
    """
    sign = 1 if int(source.words(1)[0]) & 1 else -1
    deviate = draw(source)
    while True:
        low, high = deviate.bounds()
        smallest = floor(scale * low + _HALF)
        if smallest >= limit:
            return sign * limit
        if high is not None and floor(scale * high + _HALF) == smallest:
            return sign * smallest
        deviate.extend()
