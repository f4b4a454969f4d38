r"""Exact coins: chances that are whole multiples of a power of two, rounded to the private side.

A protocol is described by such chances and by nothing else: they are what is drawn, what is priced and what
the estimator inverts. For :math:`\epsilon`-DP a ratio of chances must be at most :math:`e^\epsilon`; the
ratio is compared, as the rational it is, with `odds_below`, which is proved not to exceed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.certified.fixed_point import exp_bounds
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["MAX_EPSILON", "Coin", "checked_epsilon", "odds_below", "truth_coin"]

_BITS: Final = 160
_WORD: Final = 64
MAX_EPSILON: Final = 40.0


def checked_epsilon(value: object, name: str = "epsilon") -> float:
    """Return an epsilon of a local protocol, positive and at most 40, as a float.

    Parameters
    ----------
    value : object
        What the caller passed.
    name : str
        What errors call it.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If it is not a number above 0 and at most 40.
    """
    epsilon = _check.positive(name, value)
    if epsilon > MAX_EPSILON:
        _check.refuse(name, "be at most 40", value, "lower it: such reports hide nothing")
    return epsilon


def odds_below(epsilon: float) -> Fraction:
    r"""Return a rational that is at most :math:`e^\epsilon`, and less by a relative :math:`2^{-100}` at most.

    Parameters
    ----------
    epsilon : float
        From 0 to 40, taken as the exact rational it is.

    Returns
    -------
    Fraction

    Examples
    --------
    >>> float(odds_below(1.0))
    2.718281828459045
    """
    return Fraction(1 << _BITS, exp_bounds(Fraction(epsilon), _BITS)[1])


@final
@dataclass(frozen=True, slots=True)
class Coin:
    """A coin that falls on heads with probability ``threshold / 2**bits``, exactly.

    Parameters
    ----------
    threshold : int
        At least 1 and below ``2**bits``.
    bits : int
        From 1 to 64.

    Examples
    --------
    >>> from sfumato.numerics.randomness.source import SimulatedSource
    >>> coin = Coin.below(Fraction(1, 3), bits=8)
    >>> coin.chance, int(coin.flip(1000, SimulatedSource(1)).sum())
    (Fraction(85, 256), 337)
    """

    threshold: int
    bits: int = _WORD

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= _WORD or not 0 < self.threshold < 1 << self.bits:
            rule = "be strictly between 0 and 1 in steps of a power of two down to 2**-64"
            found = f"it is {self.threshold} / 2**{self.bits}"
            _check.refuse_state("chance", rule, found, "choose an epsilon nearer to 1")

    @classmethod
    def below(cls, chance: Fraction, bits: int = _WORD) -> Coin:
        """Return the coin with the largest chance that is at most ``chance``.

        Parameters
        ----------
        chance : Fraction
            Strictly between 0 and 1.
        bits : int
            From 1 to 64.

        Returns
        -------
        Coin

        Raises
        ------
        ParameterError
            If the chance rounds to 0.
        """
        return cls((chance.numerator << bits) // chance.denominator, bits)

    @classmethod
    def above(cls, chance: Fraction, bits: int = _WORD) -> Coin:
        """Return the coin with the smallest chance that is at least ``chance``.

        Parameters
        ----------
        chance : Fraction
            Strictly between 0 and 1.
        bits : int
            From 1 to 64.

        Returns
        -------
        Coin

        Raises
        ------
        ParameterError
            If the chance rounds to 1.
        """
        return cls(-((-chance.numerator << bits) // chance.denominator), bits)

    @property
    def chance(self) -> Fraction:
        """The probability of heads."""
        return Fraction(self.threshold, 1 << self.bits)

    def flip(self, size: int, source: RandomSource) -> NDArray[np.bool_]:
        """Flip it ``size`` times, independently; one word each.

        Parameters
        ----------
        size : int
            Number of flips.
        source : RandomSource

        Returns
        -------
        bool array, shape (size,)
            True for heads.
        """
        return source.words(size) >> np.uint64(_WORD - self.bits) < np.uint64(self.threshold)


def truth_coin(
    epsilon: float,
    true: Fraction | int = 1,
    other: Fraction | int = 1,
    *,
    stated: float | None = None,
    categories: int | None = None,
) -> Coin:
    r"""Return the coin of a report that supports the truth, the likeliest that epsilon allows.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of the report.
    true, other : Fraction or int
        How many reports support the truth, or what part of all, and how many others there are. All of the
        first are alike likely, and all of the others: with the coin's chance p the ratio :math:`\frac{p /
        true}{(1 - p) / other}` is at most :math:`e^\epsilon`, exactly.
    stated : float, optional
        The epsilon that an error shows, if it is another one.
    categories : int, optional
        Of the domain, where fewer of them would help.

    Returns
    -------
    Coin

    Raises
    ------
    ParameterError
        If epsilon is so small that no coin of 64 bits supports the truth.

    Examples
    --------
    >>> round(float(truth_coin(1.0, 1, 3).chance), 6)  # randomized response of 4 categories
    0.475367
    """
    mass = odds_below(epsilon) * true
    coin = Coin.below(mass / (mass + other))
    if coin.chance * other <= (1 - coin.chance) * true:
        value = epsilon if stated is None else stated
        if categories is not None:
            remedy = "raise it, or hash the domain to fewer values"
            _check.refuse("epsilon", f"be greater for {categories} categories", value, remedy)
        _check.refuse("epsilon", "be above about 2**-60", value, "raise it: reports are mere noise")
    return coin
