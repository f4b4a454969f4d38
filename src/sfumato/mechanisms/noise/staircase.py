"""The staircase mechanism: pure DP with the smallest expected magnitude of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.mechanisms.base.additive import AdditiveMechanism, as_number
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.rational import Number
from sfumato.numerics.distributions.staircase import StaircaseDistribution
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves import staircase as leaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Staircase"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(AdditiveMechanism):
    r"""Noise whose probability falls by :math:`e^{-\epsilon}` once in every sensitivity.

    Parameters
    ----------
    sensitivity : int, float or Fraction
        The most that one unit moves an entry.
    epsilon : int, float or Fraction
        Of each entry; taken as the exact rational.
    gamma : float, optional
        Where the first step ends, in sensitivities, above 0 and at most 1; rounded to whole lattice steps.
        By default :math:`1/(1 + e^{\epsilon/2})`, which has the smallest expected magnitude.
    l0 : int, optional
        The most entries of an array that one unit moves; 1 unless given.
    grid : Grid, optional
        What values are rounded to; chosen from ``sensitivity`` and ``epsilon`` unless given.
    integral : bool, optional
        As in `Laplace`.
    neighboring : Neighboring
        The relation under which ``sensitivity`` and ``l0`` are stated.

    Notes
    -----
    Guarantee: ``epsilon * l0``-DP, and the profile of the loss ``privacy.Staircase(epsilon, gamma') * l0`` at
    every delta. Proof: let s be the sensitivity in steps, r where the first step ends, :math:`b =
    e^{-\epsilon}`. A shift of at most s changes the number of borders below a magnitude by at most one, so
    the losses are 0 and :math:`\pm\epsilon`, and the profile is that of the leaf at any :math:`\gamma'` whose
    total variation is no less. That of the integers is the mass of the d central ones for a shift d, greatest
    at d = s, where ``min(s, 2 r - 1)`` of them have weight 1 and the others b; that of the leaf rises to its
    greatest, which no :math:`\epsilon`-DP distribution exceeds, at :math:`\gamma' = 1/2`.

    On whole numbers with sensitivity 1 there is one step for each number: the discrete Laplace distribution.

    References
    ----------
    Geng, Viswanath (2014), "The optimal mechanism in differential privacy"; Geng, Kairouz, Oh, Viswanath
    (2015), "The staircase mechanism in differential privacy".

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> stairs = Staircase(sensitivity=1.0, epsilon=4.0)
    >>> stairs.privacy_loss.epsilon(0.0)
    4.0
    >>> plain = Laplace.calibrated(sensitivity=1.0, epsilon=4.0)
    >>> round(stairs.release(5.0).stddev, 2), round(plain.release(5.0).stddev, 2)
    (0.27, 0.35)
    """

    sensitivity: Number
    epsilon: Number
    gamma: float | None = None
    l0: int = None  # type: ignore[assignment]  # settled in __post_init__
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        if self.gamma is not None and not 0 < _check.finite("gamma", self.gamma) <= 1:
            _check.refuse("gamma", "be above 0 and at most 1", self.gamma, "leave it out for the best one")
        self._settle()
        if not 2.0**-40 <= self.epsilon <= 2.0**10:
            _check.refuse(
                "epsilon", "be from 2**-40 to 1024", self.epsilon, "take Laplace outside of that range"
            )
        if Fraction(self._per_entry()) / Fraction(self.epsilon) > 1 << 40:
            rule = f"be at least 2**-40 times the sensitivity, {self._per_entry()} steps of {self.grid}"
            _check.refuse("epsilon", rule, self.epsilon, "pass a coarser grid, or values in other units")

    @property
    def distribution(self) -> StaircaseDistribution:
        """The distribution of the noise on each entry, in steps."""
        return StaircaseDistribution(self.epsilon, self._per_entry(), self._first())

    def _first(self) -> int:
        width, epsilon = self._per_entry(), float(self.epsilon)
        best = math.exp(-epsilon / 2) / (1 + math.exp(-epsilon / 2))
        share = Fraction(best if self.gamma is None else self.gamma)
        return min(width, max(1, round(share * width)))

    def _noise(self) -> Fraction:
        return Fraction(self.sensitivity) / Fraction(self.epsilon)

    def _price(self, noise: Fraction) -> PrivacyLoss:
        del noise
        epsilon = fraction_up(Fraction(self.epsilon))
        return leaf.Staircase(epsilon, self._dominating_gamma(), neighboring=self.neighboring) * self.l0

    def _dominating_gamma(self) -> float:
        """Return a gamma at which the leaf's total variation is no less than that of the integers."""
        width, first = self._per_entry(), self._first()
        b, gap = math.exp(-float(self.epsilon)), -math.expm1(-float(self.epsilon))
        inner = min(width, 2 * first - 1)
        # Total variation over 1 - b.
        central = (inner + b * (width - inner)) / (2 * (first + (width - first) * b) - gap)
        central *= 1 + 1e-12
        if central >= 1 / (1 + b):
            return 0.5
        if 2 * first <= width:
            gamma = b * (1 / (2 * (1 - central)) - 1) / gap
            return min(0.5, max(0.0, gamma) * (1 + 1e-12))
        return max(0.5, min(1.0, (1 / (2 * central) - b) / gap) * (1 - 1e-12))
