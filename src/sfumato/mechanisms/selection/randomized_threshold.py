"""A threshold for noisy counts that a coin raises by one, so that it uses all of a delta.

Counts are whole, and so is noise on them: of the thresholds that are whole numbers too, the smallest that
delta allows may be up to one unit late. Between two of them there is a coin.

Guarantee: let the noise on the number of units of a group be (epsilon, delta)-DP where that number moves by
one, and let groups of fewer than ``count`` units never be shown. Then what is released of one group, nothing
or its noisy number, is (epsilon, delta')-DP under adding or removing one unit, with delta' the greater of
delta and the probability with which a group of ``count`` units is shown. Conditions: the coin is drawn for
each group and depends on nothing but public parameters; a group's name, and all else about it, is released
only if it is shown, and all else has a loss of its own.

*Proof.* Let n and n + 1 units be in the group.

- n + 1 < count: nothing is released in either case.
- n + 1 = count: nothing is released with n units, so any set of outcomes has a probability with n + 1 that
  exceeds e**epsilon times that with n by at most the probability of being shown, delta'. The other way round,
  with s for that probability, the excess is at most ``1 - e**epsilon (1 - s) <= s``.
- n >= count: given the coin, what is released is a function of the noisy number alone, in both cases the
  same one. The largest excess of one distribution over e**epsilon times the other does not grow by a function
  of both, and it is convex in the pair: for the mixture over the coin it is at most delta.

Truncated noise of two limits (`TruncatedLaplaceDistribution` with a weight and the longer limit T) has one
more coin. A group at the threshold whose noise is the lowest, -T, is shown with the probability
``g = min(1, h / (1 - h))``, not h. That is so for a single number of units N only. *Proof* for N and its
neighbors. With ``q = exp(-1 / scale)`` the probability of noise k is ``A q**abs(k)``, but ``y = B q**T`` for
k = T and k = -T; the noise is (1 / scale, D)-DP with ``D = y + (A - B) q**(T - 1)``. `smallest` takes h of at
most ``(A - B) / A``, so ``B <= (1 - h) A`` and ``g y <= h A q**T``. By how much do probabilities exceed
exp(1 / scale) times the other, in sum?

- N - 1 over N: the row at the threshold by ``h A q**(T - 1) - g y / q`` and no row by
  ``(1 - h) A q**(T - 1) + y - (1 - g) y / q``. Neither is negative, by the inequalities, and they add up to
  ``A q**(T - 1) + y - y / q = D``. No other row does.
- N over N - 1: the row does not, as ``g y <= h A q**(T - 1) / q``, nor does no row, as ``y <= y / q``; the
  rows of the noise T and T - 1 do by D.
- N over N + 1: the row, which N + 1 cannot have, by ``g y``; no row by ``(1 - g) y``; the row above by
  ``A q**(T - 1) - y / q``: D in all. N + 1 over N: only the rows of the noise T and T - 1, by D.

A unit that is in k groups costs k times as much, by basic composition: the noise and the coins are
independent, and groups that the unit is not in have the same distribution.

The outcomes of the coins are not released.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.rounding import fraction_down, fraction_up

__all__ = ["RandomizedThreshold"]

_FINEST: Final = 1 << 62


@final
@dataclass(frozen=True, slots=True)
class RandomizedThreshold:
    """A threshold of noisy counts: above it all are shown, and at it some, by a coin.

    Parameters
    ----------
    units : int
        The smallest noisy count that may be shown.
    probability : Fraction
        With which one of exactly ``units`` is shown, above 0 and at most 1, a multiple of 2**-62: that of
        the coin that leaves the threshold at ``units`` and does not raise it by one.

    Examples
    --------
    >>> from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
    >>> noise = DiscreteLaplaceDistribution(1)
    >>> found = RandomizedThreshold.smallest(noise, 1e-6)
    >>> found.units, round(float(found.probability), 3)
    (14, 0.375)
    >>> 0.999999 < found.shown(noise, 1).upper / 1e-6 <= 1.0
    True
    """

    units: int
    probability: Fraction

    def __post_init__(self) -> None:
        remedy = "use RandomizedThreshold.smallest"
        probability = _check.fraction("probability", self.probability, remedy)
        if probability > 1 or _FINEST % probability.denominator:
            rule = "be at most 1, a multiple of 2**-62"
            _check.refuse("probability", rule, self.probability, remedy)
        object.__setattr__(self, "probability", probability)

    @classmethod
    def smallest(cls, noise: SymmetricDistribution, mass: float, count: int = 1) -> RandomizedThreshold:
        """Return the threshold that shows a group of ``count`` units with a probability of just ``mass``.

        Parameters
        ----------
        noise : SymmetricDistribution
            On the count.
        mass : float
            Strictly between 0 and 1; it is never exceeded, and met to within 2**-60 of it. For noise of two
            limits it is at least the delta of that noise, and no more of it than that is used.
        count : int

        Returns
        -------
        RandomizedThreshold
        """
        if isinstance(noise, TruncatedLaplaceDistribution) and noise.weight:
            if mass < noise.at_limit.lower:
                remedy = "pass the delta of the mechanism; a smaller one needs noise of its own"
                _check.refuse("mass", "be at least the delta of the noise", mass, remedy)
            mass = min(mass, noise.at_limit.upper)
        beyond = noise.quantile_above(mass)
        left = Fraction(mass) - Fraction(noise.upper_tail(beyond).upper)
        # pmf is positive at the step below, where the tail exceeds the mass
        share = min(Fraction(1), left / Fraction(noise.pmf(beyond - 1).upper))
        probability = Fraction(math.floor(share * _FINEST), _FINEST)
        if not probability:
            return cls(count + beyond, Fraction(1))
        return cls(count + beyond - 1, probability)

    @classmethod
    def lowest(cls, enough: Callable[[RandomizedThreshold], bool], start: int) -> RandomizedThreshold:
        """Return the lowest threshold that is enough, where all above it are.

        Parameters
        ----------
        enough : callable
            Whether a threshold is.
        start : int
            A guess, at least 1.

        Returns
        -------
        RandomizedThreshold
            Of at least 1; a coin that is more often heads by 2**-62 would not be enough.

        Examples
        --------
        >>> found = RandomizedThreshold.lowest(lambda each: each.units + 1 - each.probability >= 8.25, 1)
        >>> found.units, float(found.probability)
        (8, 0.75)
        """
        high, step = max(1, start), 1
        while not enough(cls(high, Fraction(1))):
            high += step
            step *= 2
        units = 1 + bisect_left(range(1, high), x=True, key=lambda whole: enough(cls(whole, Fraction(1))))
        below, often = units - 1, range(1, _FINEST)
        if not below:
            return cls(units, Fraction(1))
        # the first multiple of 2**-62 is due to the index, from which the one before it is enough
        heads = bisect_left(often, x=True, key=lambda each: not enough(cls(below, Fraction(each, _FINEST))))
        return cls(below, Fraction(heads, _FINEST)) if heads else cls(units, Fraction(1))

    def flipped(self, source: RandomSource) -> int:
        """Return the threshold of a single list of groups, its coin flipped: ``units`` or one more.

        Parameters
        ----------
        source : RandomSource

        Returns
        -------
        int
        """
        tails = int(uniform_integers(_FINEST, 1, source)[0]) >= self.probability * _FINEST
        return self.units + tails

    def shown(self, noise: SymmetricDistribution, count: int) -> Interval:
        """Bound the probability that a group of ``count`` units is shown.

        Parameters
        ----------
        noise : SymmetricDistribution
        count : int

        Returns
        -------
        Interval
        """
        at, above = noise.pmf(self.units - count), noise.upper_tail(self.units + 1 - count)
        coin = self._at_lowest if self.units - count == _lowest(noise) else self.probability
        lower, upper = (
            Fraction(beyond) + coin * Fraction(mass) for beyond, mass in zip(above[:2], at[:2], strict=True)
        )
        return Interval(min(1.0, fraction_down(lower)), min(1.0, fraction_up(upper)))

    def select(
        self,
        counts: NDArray[np.int64],
        noisy: NDArray[np.int64],
        noise: SymmetricDistribution,
        source: RandomSource,
    ) -> NDArray[np.bool_]:
        """Return which groups are shown; every one has a coin, so that time follows none of them.

        Parameters
        ----------
        counts : int64 array of shape (n,)
            The exact counts.
        noisy : int64 array of shape (n,)
            With noise added.
        noise : SymmetricDistribution
            What the noise was drawn from.
        source : RandomSource

        Returns
        -------
        bool array of shape (n,)
        """
        coin = uniform_integers(_FINEST, noisy.size, source)
        most, lowest = (int(each * _FINEST) for each in (self.probability, self._at_lowest))
        heads = coin < most
        rare = _lowest(noise)
        if rare is not None:
            heads = np.where(noisy - counts == rare, coin < lowest, heads)
        return np.asarray((noisy > self.units) | ((noisy == self.units) & heads))

    @property
    def _at_lowest(self) -> Fraction:
        """The probability of the other coin, less what rounding could add to the first."""
        share = self.probability / (1 - self.probability) if self.probability < Fraction(1, 2) else 1
        return Fraction(math.floor(share * (_FINEST - (_FINEST >> 40))), _FINEST)


def _lowest(noise: SymmetricDistribution) -> int | None:
    """Return the lowest noise, where it has a coin of its own."""
    if isinstance(noise, TruncatedLaplaceDistribution) and noise.weight:
        return -noise.limit
    return None
