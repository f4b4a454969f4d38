"""Canonical noise: one number with exactly the trade-off of (epsilon, delta)-DP or of Gaussian DP."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, final

from sfumato import _check
from sfumato.mechanisms.base.additive import AdditiveMechanism, as_number
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.numerics.decimals import outward
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.distributions.rounded_normal import RoundedNormalDistribution
from sfumato.numerics.distributions.tulap import TulapDistribution, finest_cells
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves.declared import ApproximateDP, PureDP
from sfumato.privacy.leaves.gaussian_dp import GaussianDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["CanonicalNoise"]

_WIDEST: Final = 1 << 40
_REMEDY: Final = "pass epsilon=, with delta= if you like, for Tulap noise, or mu= for normal noise"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalNoise(AdditiveMechanism):
    r"""Noise whose trade-off between a value and one a sensitivity away is exactly the guarantee's.

    Tulap noise (truncated uniform-Laplace) for (epsilon, delta)-DP, normal noise for Gaussian DP. Tests on
    one noisy count have the most power with it: pass the release to `binomial_test`.

    Parameters
    ----------
    sensitivity : int, float or Fraction
        The most that one unit moves an entry.
    epsilon : int, float or Fraction, optional
        Of each entry; taken as the exact rational.
    delta : float
        Of each entry, 0 unless given; what the noise has is at most this, and less by a part in 2**40 or so.
    mu : int, float or Fraction, optional
        Of Gaussian DP, in the place of epsilon and delta; taken as the exact rational.
    l0 : int, optional
        The most entries of an array that one unit moves; 1 unless given.
    grid : Grid, optional
        What values are rounded to; chosen from the sensitivity and the noise unless given.
    integral : bool, optional
        As in `Laplace`. On a grid finer than the sensitivity, as floats have it by default, the noise is
        closer to the continuous one.
    neighboring : Neighboring
        The relation under which ``sensitivity`` and ``l0`` are stated.

    Notes
    -----
    Guarantee, for each entry that moves: (epsilon, delta)-DP, or mu-Gaussian DP. Proof: let s be the
    sensitivity in steps, the rounding counted, and N the continuous noise. What is added to a whole number of
    steps is the nearest integer to s N, so that the release is the rounded sum of number and s N: a
    post-processing of that sum. *Normal*: two normal distributions with means at most s apart, with the
    standard deviation s / mu, are mu-Gaussian DP by definition. *Tulap*: the density of N falls by
    :math:`e^{-\epsilon}` at 1/2, 3/2, ..., up to its limit, and nearest integers of the magnitudes of x and
    of x - d differ by at most 1 for d up to 1: so it is (epsilon, delta)-DP, with delta the probability of
    the outermost d, which is greatest at d = 1. The limit is chosen from delta by that probability, rounded
    up. At a distance of s no other noise is better: the trade-off is that of the guarantee (Awan, Vadhan
    2023, canonical noise distributions), also of the integers (Awan, Ramasethu 2024).

    Normal numbers are drawn one by one, in about a millisecond each: `Gaussian` is for large arrays.

    References
    ----------
    Awan, Vadhan, "Canonical noise distributions and private hypothesis tests" (Annals of Statistics 2023);
    Awan, Slavkovic, "Differentially private uniformly most powerful tests for binomial data" (NeurIPS 2018);
    Awan, Ramasethu, "Optimizing noise for f-differential privacy via anti-concentration and stochastic
    dominance" (JMLR 2024).

    Examples
    --------
    >>> from sfumato.mechanisms import binomial_test
    >>> from sfumato.privacy import Neighboring
    >>> noise = CanonicalNoise(
    ...     sensitivity=1.0,
    ...     epsilon=1.0,
    ...     delta=0.01,
    ...     grid=Grid(exponent=-4),
    ...     neighboring=Neighboring.REPLACE_ONE,
    ... )
    >>> release = noise.release(580, rng=1)
    >>> round(release.value, 2), release.loss.epsilon(0.01)
    (578.69, 1.0)
    >>> binomial_test(release, n=1000, proportion=0.5).p_value < 1e-5
    True
    """

    sensitivity: Number
    epsilon: Number | None = None
    delta: float = 0.0
    mu: Number | None = None
    l0: int = None  # type: ignore[assignment]  # settled in __post_init__
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__
    _limit: Fraction | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.mu is None):
            _check.refuse("epsilon", "be given, or else mu", self.epsilon, _REMEDY)
        name = "mu" if self.epsilon is None else "epsilon"
        object.__setattr__(self, name, as_number(name, getattr(self, name), _REMEDY))
        delta = _check.probability("delta", self.delta, "pass one below 1, or leave it out")
        if delta and self.mu is not None:
            _check.refuse("delta", "be 0 where mu is given", delta, "leave it out")
        if not 2.0**-40 <= getattr(self, name) <= 2.0**10:
            rule = "be from 2**-40 to 1024"
            _check.refuse(name, rule, getattr(self, name), "take another mechanism outside of that range")
        object.__setattr__(self, "delta", delta)
        self._settle()
        if self._noise() / self.grid.step > _WIDEST:
            rule = f"be at least 2**-40 times the sensitivity, {self._per_entry()} steps of {self.grid}"
            _check.refuse(name, rule, getattr(self, name), "pass a coarser grid, or values in other units")
        if self._per_entry() > 1 << 50:
            rule = f"be at most 2**50 steps of {self.grid}"
            _check.refuse("sensitivity", rule, self.sensitivity, "pass a coarser grid")
        object.__setattr__(self, "_limit", self._smallest_limit() if delta else None)

    @property
    def distribution(self) -> SymmetricDistribution:
        """The distribution of the noise on each entry, in steps."""
        if self.mu is not None:
            return RoundedNormalDistribution(self._per_entry() / Fraction(self.mu))
        return self._tulap(self._limit)

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise on each entry, in the unit of the values."""
        return self.distribution.stddev * float(self.grid.step)

    def _tulap(self, limit: Fraction | None) -> TulapDistribution:
        return TulapDistribution(drawn_epsilon(self.epsilon or 0), self._per_entry(), limit)

    def _smallest_limit(self) -> Fraction:
        """Return the smallest limit that delta allows, at least 1."""
        cells = finest_cells(self._per_entry())
        low, high = cells - 1, cells
        while not self._within(Fraction(high, cells)):
            low, high = high, 2 * high
            if high * self._per_entry() > cells << 60:
                rule = "be 0, or larger for a sensitivity of so many steps"
                _check.refuse("delta", rule, self.delta, "leave it out")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._within(Fraction(middle, cells)) else (middle, high)
        return Fraction(high, cells)

    def _within(self, limit: Fraction) -> bool:
        """Return whether noise of that limit has at most delta beyond 1 less; at 1 that is one half."""
        beyond = outward(self._tulap(limit).beyond_one.upper)
        return beyond <= self.delta or (limit == 1 and self.delta >= 0.5)

    def _noise(self) -> Fraction:
        return Fraction(self.sensitivity) / Fraction(self.epsilon or self.mu or 1)

    def _price(self, noise: Fraction) -> PrivacyLoss:
        del noise
        if self.mu is not None:
            each: PrivacyLoss = GaussianDP(fraction_up(Fraction(self.mu)), neighboring=self.neighboring)
            return each * self.l0
        epsilon = outward(drawn_epsilon(self.epsilon or 0))
        if self._limit is None:
            return PureDP(epsilon, neighboring=self.neighboring) * self.l0
        delta = outward(self._tulap(self._limit).beyond_one.upper)
        return ApproximateDP(epsilon, delta, neighboring=self.neighboring) * self.l0
