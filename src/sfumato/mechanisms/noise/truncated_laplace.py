"""The truncated Laplace mechanism: noise never exceeds a limit, for a delta."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.mechanisms.base.additive import AdditiveMechanism, as_bound, as_entries, as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_pure_noise
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.numerics.decimals import outward
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution, as_weight
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves.declared import ApproximateDP, PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["TruncatedLaplace"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedLaplace(AdditiveMechanism):
    """Laplace noise, given that it is at most a limit in magnitude.

    Parameters
    ----------
    sensitivity : int, float or Fraction
        The most that one unit moves an entry.
    scale : int, float or Fraction
        Scale of the Laplace distribution, in the unit of the values.
    limit : int, float or Fraction
        The greatest noise, in the same unit, rounded up to whole steps; at least the sensitivity.
    weight : Fraction, optional
        The probability that the limit is one step less, drawn anew for each entry; 0 unless given.
    l0 : int, optional
        The most entries of an array that one unit moves; 1 unless given.
    grid : Grid, optional
        What values are rounded to; chosen from ``sensitivity`` and ``scale`` unless given.
    integral : bool, optional
        As in `Laplace`.
    neighboring : Neighboring
        The relation under which ``sensitivity`` and ``l0`` are stated.

    Notes
    -----
    Guarantee, for each entry that moves: (epsilon, delta)-DP with epsilon = s / scale, s the sensitivity in
    steps with the rounding counted, and delta the probability of the s largest values of the noise.
    Proof: where both neighbors' answers can fall, the quotient of their probabilities is at most
    exp(s / scale), as both have one normaliser; outside lie at most the s largest values.

    With a weight w, which is public, delta is w times that of the limit one step less plus 1 - w times that
    of the limit. Proof: the draw of the limit does not depend on the value, and the largest excess of a
    probability over exp(epsilon) times the other is convex in the pair of distributions.

    References
    ----------
    Geng, Ding, Guo, Kumar, "Tight analysis of privacy and utility tradeoff in approximate differential
    privacy" (AISTATS 2020).

    Examples
    --------
    >>> mechanism = TruncatedLaplace.calibrated(sensitivity=1, epsilon=1.0, delta=1e-6)
    >>> mechanism.scale, mechanism.limit
    (1, 14)
    >>> release = mechanism.release(100, rng=1)
    >>> abs(release.value - 100) <= 14
    True
    """

    sensitivity: Number
    scale: Number
    limit: Number
    weight: Fraction = Fraction(0)
    l0: int = None  # type: ignore[assignment]  # settled in __post_init__
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        remedy = "pass epsilon= and delta= to TruncatedLaplace.calibrated to have it chosen"
        for name in ("scale", "limit"):
            object.__setattr__(self, name, as_number(name, getattr(self, name), remedy))
        self._settle()
        self._check_range("scale")
        if self._limit() < self._per_entry():
            rule = f"be at least the sensitivity, {self._per_entry()} steps of {self.grid}"
            _check.refuse("limit", rule, self.limit, "pass a larger one; less noise would show the value")
        if self._limit() > 1 << 60:
            _check.refuse("limit", f"be at most 2**60 steps of {self.grid}", self.limit, "use Laplace")
        object.__setattr__(self, "weight", as_weight(self.weight, self._limit() - self._per_entry() + 1))

    @classmethod
    def calibrated(
        cls,
        *,
        sensitivity: Number,
        epsilon: float,
        delta: float,
        l0: int | None = None,
        grid: Grid | None = None,
        integral: bool | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> TruncatedLaplace:
        """Return the mechanism with the smallest limit at the scale that epsilon allows.

        Parameters
        ----------
        epsilon, delta : float
            Of the whole answer; each of ``l0`` entries takes an equal share. Delta must be positive.
        sensitivity, l0, grid, integral, neighboring
            As in the class.

        Returns
        -------
        TruncatedLaplace
        """
        request = PrivacyTarget.approximate(epsilon, delta, "use Laplace for delta 0")
        entries = as_entries(l0)
        bound = as_bound("sensitivity", sensitivity)
        exact = Fraction(bound) * entries / request.exact_epsilon
        template = cls(
            sensitivity=bound,
            scale=plain(exact),
            limit=plain(800 * exact + 2 * Fraction(bound)),
            l0=entries,
            grid=grid,  # type: ignore[arg-type]
            integral=integral,  # type: ignore[arg-type]
            neighboring=neighboring,
        )
        shift, step = template._per_entry(), template.grid.step
        scale = minimum_pure_noise(
            lambda noise: PureDP(outward(shift / noise)) * entries,
            request,
            shift * entries / request.exact_epsilon,
        )
        allowed = Fraction(request.delta)
        limits = range(shift, template._limit())
        above = bisect_left(
            limits, x=True, key=lambda limit: _visible(scale, limit, shift) * entries <= allowed
        )
        return replace(template, scale=plain(scale * step), limit=plain((shift + above) * step))

    @property
    def distribution(self) -> TruncatedLaplaceDistribution:
        """The distribution of the noise on each entry, in steps."""
        return TruncatedLaplaceDistribution(self._noise() / self.grid.step, self._limit(), self.weight)

    @property
    def delta(self) -> float:
        """The probability that one entry reveals its move, rounded up: the delta of the loss of an entry."""
        return self._delta(self._noise() / self.grid.step)

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise on each entry, in the unit of the values."""
        return self.distribution.stddev * float(self.grid.step)

    def _limit(self) -> int:
        return math.ceil(Fraction(self.limit) / self.grid.step)

    def _noise(self) -> Fraction:
        return Fraction(self.scale)

    def _price(self, noise: Fraction) -> PrivacyLoss:
        epsilon = outward(self._per_entry() / noise)
        return ApproximateDP(epsilon, outward(self._delta(noise)), neighboring=self.neighboring) * self.l0

    def _delta(self, noise: Fraction) -> float:
        shift, limit = self._per_entry(), self._limit()
        longer = _visible(noise, limit, shift)
        if not self.weight:
            return float(longer)
        shorter = _visible(noise, limit - 1, shift)
        return fraction_up(self.weight * shorter + (1 - self.weight) * longer)


def _visible(scale: Fraction, limit: int, shift: int) -> Fraction:
    """Return the probability of the ``shift`` largest values, rounded up to a float."""
    return Fraction(TruncatedLaplaceDistribution(scale, limit).upper_tail(limit - shift + 1).upper)
