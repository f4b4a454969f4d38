r"""The pair of a mechanism that ran in several steps, in one of which, drawn at random, the unit takes part.

With the ratios :math:`R_i = dP/dQ` of the steps, independent under Q, the distributions of all steps with the
unit and without it have the ratio :math:`A = \sum_i w_i R_i`, :math:`w_i` the chance that it is in step i.
Everything follows from the distribution of :math:`A` under :math:`Q`, see
`sfumato.privacy.pairs.sampling.likelihood_ratios`; the proofs are in ``docs/proofs/allocation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.rounding import expm1_down, log1p_down
from sfumato.privacy._outward import UNIT, below
from sfumato.privacy.pairs.bins import NO_ATOMS, Bins, Mass, Number, Points
from sfumato.privacy.pairs.derived import DerivedPair
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.sampling.likelihood_ratios import TINY, RatioDistribution, Side, joined, thinned

__all__ = ["AllocationPair", "TwoSidedPair"]

_Array = NDArray[np.float64]

_LIMIT: Final = 500.0
"""Losses beyond count as infinite."""
_BINS: Final = 3000
_STEPS: Final = (0.018, 0.018, 0.011, 0.0065)
"""Widths of cells at the first look, in the first plan, and in those after it."""
_LEVELS: Final = 2.0
_MIN_REACH: Final = 8.0
_NEGLIGIBLE: Final = 1e-3
"""Times the mass beyond the reach: what is less likely is not distinguished."""
_CUT: Final = 100.0
"""Times that: what may be taken for an infinite loss."""
_LATE: Final = 1e-9
"""Steps of less weight in all are not followed."""
_ROUNDING: Final = 1e-11
_SLACK: Final = 1 + 1e-9


class _Cut(NamedTuple):
    """How a base is cut for a reach."""

    cuts: _Array
    floor: float
    step: float


@final
@dataclass(frozen=True, slots=True)
class TwoSidedPair(Bins):
    """A pair discretised twice: bins from above, for upper bounds, and beside them bins from below.

    Parameters
    ----------
    read_below : callable
        Returns the bins from below, which `merged` reads; everything else reads those from above.
    """

    read_below: Callable[[], Bins] = field(default=lambda: Bins(NO_ATOMS, np.zeros(0), np.zeros(0)))

    @classmethod
    def of(cls, read_below: Callable[[], Bins], above: Bins) -> TwoSidedPair:
        """Return what two cuts of one pair say together, each about its own side."""
        return cls(**{f.name: getattr(above, f.name) for f in fields(Bins)}, read_below=read_below)

    @property
    def below(self) -> Bins:
        """The bins from below, which are made when they are first read."""
        return self.read_below()

    @property
    def above(self) -> Bins:
        """The bins from above, alone."""
        return Bins(**{f.name: getattr(self, f.name) for f in fields(Bins)})

    @property
    def certain(self) -> Number:
        """That of the bins from below: from above, what is hardly likely or too great counts as infinite."""
        return self.below.certain

    def swapped(self) -> Bins:
        """Return the pair (Q, P)."""
        return TwoSidedPair.of(cache(lambda: self.read_below().swapped()), self.above.swapped())

    def mixed(self, q: float) -> Bins:
        """Return the pair ((1 - q) Q + q P, Q), for q in (0, 1)."""
        return TwoSidedPair.of(cache(lambda: self.read_below().mixed(q)), self.above.mixed(q))

    def merged(self) -> DiscreteLoss:
        """Return a distribution from below."""
        return self.below.merged()


class AllocationPair(DerivedPair):
    r"""The unit takes part in one of several steps.

    Parameters
    ----------
    base : Pair
        Of one step, with the unit against without it.
    steps : int
        At least 1.
    probability : float, optional
        If None, all steps are equally likely. Else the unit takes part in each step with this probability,
        strictly between 0 and 1, until it has taken part: maybe never.
    runs : int
        How often the base runs in each step, with the unit in all of them or in none.
    whole : bool
        Whether no finite loss may be taken for an infinite one; high moments need it.
    """

    __slots__ = ("_base", "_cut", "_probability", "_runs", "_steps", "_whole")

    def __init__(
        self,
        base: Pair,
        steps: int,
        *,
        probability: float | None = None,
        runs: int = 1,
        whole: bool = False,
    ) -> None:
        self._base, self._steps, self._probability, self._runs = base, steps, probability, runs
        self._whole = whole
        self._cut: dict[tuple[float, float, bool], Bins] = {}

    symmetric = False
    """Never: the unit that is there is more easily seen."""

    @property
    def enclosed(self) -> bool:
        """Whether the base is; the two distributions of `bins` are not cuts of one partition."""
        return self._base.enclosed

    @property
    def supremum(self) -> float:
        """The largest loss of a step, as it may show in all steps; sampled, if the unit may stay away."""
        top = below(self._base.supremum * self._runs)
        if math.isinf(top) or self._probability is None:
            return max(0.0, top)
        q = self._chance()[0]
        found = log1p_down(q * expm1_down(top)) if top < 700 else top + math.log(q)
        return max(0.0, found * (1 - 2.0**-50))

    def _chance(self) -> tuple[float, float]:
        """Return bounds on the chance that the unit takes part at all."""
        if self._probability is None:
            return 1.0, 1.0
        exponent = self._steps * math.log1p(-self._probability)
        chance, scale = -math.expm1(exponent), 8 * UNIT * (1 + min(-exponent, 800.0))
        return chance * (1 - scale), min(1.0, chance * (1 + scale))

    def cuts(self, reach: float) -> _Array:
        """Return how far to look, in steps, so that near tasks have the same distribution."""
        return np.array([max(_MIN_REACH, _LEVELS * math.ceil(reach / _LEVELS))])

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return one distribution from below and one from above."""
        key = float(cuts[0]), _STEPS[len(cuts) - 1], swapped
        if key not in self._cut:
            cut = self._base_cut(cuts)
            below = cache(lambda: self._one(cut, swapped=swapped, upper=False))
            self._cut[key] = TwoSidedPair.of(below, self._one(cut, swapped=swapped, upper=True))
        return self._cut[key]

    def sharper(self, cuts: _Array) -> _Array:
        """Return a cut more: each makes the cells of averages narrower, up to a point."""
        return np.append(cuts, cuts[0]) if len(cuts) < len(_STEPS) else cuts

    def _base_cut(self, own: _Array) -> _Cut:
        """Cut the base finely where its loss is small, and ever more coarsely farther out."""
        reach, step = float(own[0]), _STEPS[len(own) - 1]
        floor = max(_NEGLIGIBLE * math.exp(-0.5 * reach * reach), 1e-280)
        cuts = self._base.cuts(reach)
        if not self._base.continuous or len(cuts) < 2:
            return _Cut(cuts, floor, step)
        cuts = self._base.snapped(cuts)
        edges = self._base.bins(cuts, swapped=False).edges
        distribution = self._distribution(_Cut(cuts, floor, step), swapped=False, upper=False)
        far = np.nan_to_num(edges / (12 * max(distribution.deviation, 1e-12)), posinf=1e9, neginf=-1e9)
        weights = np.abs(np.diff(far / (1 + np.abs(far))))
        wanted = _BINS * _STEPS[0] / step * weights / max(float(weights.sum()), 1e-300)
        return _Cut(self._base.finer(cuts, wanted), floor, step)

    def _one(self, cut: _Cut, *, swapped: bool, upper: bool) -> Bins:
        """Return the pair's bins in one order, from one side."""
        with np.errstate(under="ignore", over="ignore", divide="ignore"):
            return self._counted(cut, swapped=swapped, upper=upper)

    def _counted(self, cut: _Cut, *, swapped: bool, upper: bool) -> Bins:
        side = (Side.FALLING if swapped else Side.RISING) if upper else Side.LOWER
        distribution = self._distribution(cut, swapped=swapped, upper=upper)
        if len(distribution.value):
            distribution = self._average(
                self._product(thinned(distribution, side), side), side, rising=upper != swapped
            )
        bins = _bins(distribution, swapped=swapped, upper=upper)
        if upper:
            bins = self._with_tail(bins, cut, swapped=swapped)
        chance = self._chance()[1 if upper else 0]
        if chance == 1:
            return bins
        return bins.swapped().mixed(chance).swapped() if swapped else bins.mixed(chance)

    def _distribution(self, cut: _Cut, *, swapped: bool, upper: bool) -> RatioDistribution:
        """Return the ratios of one run."""
        bins = self._base.bins(cut.cuts, swapped=swapped)
        distribution = _start(bins.split() if upper else bins.merged(), swapped=swapped, upper=upper)
        return distribution._replace(
            floor=cut.floor, step=cut.step, cut=0.0 if self._whole else _CUT * cut.floor
        )

    def _product(self, distribution: RatioDistribution, side: Side) -> RatioDistribution:
        """Return the ratios of all runs of one step."""
        whole = distribution
        for bit in f"{self._runs:b}"[1:]:
            whole = joined(whole, whole, None, math.sqrt(2) * whole.deviation, side)
            if bit == "1":
                whole = joined(
                    whole, distribution, None, math.hypot(whole.deviation, distribution.deviation), side
                )
        return whole

    def _average(self, distribution: RatioDistribution, side: Side, *, rising: bool) -> RatioDistribution:
        """Return the weighted average over the steps, built up by halves."""
        whole, steps = distribution, 1
        for bit in f"{self._steps:b}"[1:]:
            whole, steps = self._joined(whole, steps, whole, steps, side, rising=rising), 2 * steps
            if bit == "1":
                whole, steps = self._joined(whole, steps, distribution, 1, side, rising=rising), steps + 1
        return whole

    def _joined(
        self, one: RatioDistribution, m: int, two: RatioDistribution, n: int, side: Side, *, rising: bool
    ) -> RatioDistribution:
        """Join the averages over m and over n steps, the second after the first."""
        first, second, error = self._weights(m, n)
        if second < _LATE:
            return _without(one, first, second, side, rising=rising)
        variances = [math.expm1(min(600.0, distribution.deviation**2)) for distribution in (one, two)]
        deviation = math.sqrt(math.log1p(first * first * variances[0] + second * second * variances[1]))
        found = joined(one, two, (first, second), max(deviation, 1e-12), side)
        return found._replace(value_error=found.value_error + error)

    def _weights(self, m: int, n: int) -> tuple[float, float, float]:
        """Return the weights of the first m steps among m + n, of the others, and their relative error."""
        if self._probability is None:
            return m / (m + n), n / (m + n), 4 * UNIT
        rate = math.log1p(-self._probability)
        first, second, all_of_them = (-math.expm1(k * rate) for k in (m, n, m + n))
        error = 16 * UNIT * (1 + min(-rate * (m + n), 800.0))
        return first / all_of_them, math.exp(m * rate) * second / all_of_them, error

    def _with_tail(self, bins: Bins, cut: _Cut, *, swapped: bool) -> Bins:
        """Distinguish the tail of the base from an infinite loss, if there is only a tail."""
        base = self._base.bins(cut.cuts, swapped=swapped)
        if (
            not self._whole
            or base.only_p > 0
            or bins.only_p == 0
            or self._runs > 1
            or not self._within(cut, swapped=swapped)
        ):
            return bins
        log_p, log_q = math.log(bins.only_p), -math.inf
        if not swapped:
            log_q = min(0.0, math.log(self._steps) + float(base.high.log_q))
            log_p = float(np.logaddexp(log_p, log_q))
        high = Mass(log_p * (1 - 4 * UNIT) + 1e-9, log_q * (1 - 4 * UNIT) + 1e-9)
        # With one step in its tail the average is no less than this.
        smallest = float(base.edges[-1] - base.edge_error[-1]) - (0.0 if swapped else self._smallest_weight())
        edge = np.array([smallest - 1e-9 * (1 + abs(smallest))])
        return Bins(NO_ATOMS, edge, np.zeros(1), atoms=bins.atoms, high=high, only_q=bins.only_q)

    def _smallest_weight(self) -> float:
        """Return minus the logarithm of the smallest weight."""
        if self._probability is None:
            return math.log(self._steps)
        p = self._probability
        return math.log(self._chance()[1] / p) - (self._steps - 1) * math.log1p(-p)

    def _within(self, cut: _Cut, *, swapped: bool) -> bool:
        """Whether all finite losses are distinguished from infinite ones."""
        loss = self._base.bins(cut.cuts, swapped=swapped).split().loss
        return bool(len(loss) == 0 or loss.max() < _LIMIT)

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        r"""Bound the tail by that of the base.

        Notes
        -----
        Let T be the event that some step is in its tail, :math:`\alpha = c + 1`. By convexity :math:`E_Q[
        A^\alpha; T] \le E_Q[R^\alpha; \text{tail}] + (t - 1) Q(\text{tail}) E_Q R^\alpha`. In the other order
        only what is in all tails has no other bound, and :math:`E_Q[A^{-c}; T] \le E_Q[R^{-c}; \text{tail}]
        Q(\text{tail})^{t-1}`. A unit that may stay away adds a constant to A.
        """
        cut = self._base_cut(cuts)
        base = self._base.bins(cut.cuts, swapped=swapped)
        tail = self._base.log_tail(tilts, cut.cuts, swapped=swapped)
        if swapped:
            found = tail + (self._steps - 1) * min(0.0, float(base.high.log_p))
            away = 1 - self._chance()[1]
            if away > 0:
                found = np.fmin(found, self._steps * float(base.high.log_p) - tilts * math.log(away))
        else:
            all_of_it = np.logaddexp(base.split().log_moments(tilts), tail) + 1e-9
            others = math.log(max(1, self._steps - 1)) + float(base.high.log_q) + all_of_it
            found = np.logaddexp(tail, others if self._steps > 1 else -np.inf)
            found = np.logaddexp(found, math.log(self._steps) + float(base.high.log_q))
        return np.asarray(found + 1e-9 + 64 * UNIT * np.abs(found))


def _without(
    distribution: RatioDistribution, first: float, second: float, side: Side, *, rising: bool
) -> RatioDistribution:
    """Return a distribution for the weighted sum of this one and of another, which has hardly any weight.

    Upwards the first steps alone are worse, as weights that are more unequal make an average of independent
    values more spread. Downwards the others are put to their mean, at most 1, or to 0.
    """
    if side is not Side.LOWER:
        return distribution
    if not rising:
        return distribution._replace(value=first * distribution.value, infinite=first * distribution.infinite)
    return distribution._replace(value=first * distribution.value + second, zero=0.0)


def _start(distribution: DiscreteLoss, *, swapped: bool, upper: bool) -> RatioDistribution:
    """Return the ratios of a distribution of the loss under its Q.

    Where values are too far from 1, they go in the direction that is conservative: up if ``upper`` is not
    ``swapped``, down otherwise.
    """
    some = np.isfinite(distribution.log_mass) & np.isfinite(distribution.loss)
    loss, log_p = distribution.loss[some], distribution.log_mass[some]
    log_value, log_q = (-loss, log_p) if swapped else (loss, log_p - loss)
    infinite, zero = (0.0, float(distribution.infinite)) if swapped else (float(distribution.infinite), 0.0)
    far, near = log_value > _LIMIT, log_value < -_LIMIT
    if upper != swapped:
        if upper:
            infinite += float(np.exp(log_p[far]).sum()) * _SLACK
        selected = ~far
    else:
        if swapped:
            zero += float(np.exp(log_q[near]).sum()) * _SLACK
        selected = ~near
    size = float(np.abs(loss).max(initial=0.0)) + float(np.abs(log_q[log_q > -700]).max(initial=0.0))
    error = UNIT * (16 + 4 * size)
    value, mass = np.exp(np.clip(log_value[selected], -_LIMIT, _LIMIT)), np.exp(log_q[selected])
    moved = error
    if not swapped:
        # What is missing to one has no P-mass; what is too much is divided out.
        rest, slack = 1 - math.fsum(mass), error + UNIT * (len(mass) + 64)
        zero, excess = max(0.0, rest + slack if upper else rest - slack), max(0.0, -rest) + slack
        if upper and zero < _ROUNDING:
            # Where the value is 0, rising functions are smallest: so little may go to all values.
            zero, error = 0.0, error + 2 * zero
        moved, error = (moved + excess, error) if upper else (moved, error + excess)
    if upper and not len(value):
        value, mass = np.ones(1), np.full(1, TINY)
    order = np.argsort(value, kind="stable")
    return RatioDistribution(value[order], mass[order], zero, min(1.0, infinite), 0.0, 0.0, error, moved)


def _bins(distribution: RatioDistribution, *, swapped: bool, upper: bool) -> Bins:
    """Return a distribution of ratios as atoms of a pair, in one order."""
    log_a, log_q = np.log(distribution.value), np.log(distribution.mass)
    rounding = 8 * UNIT * (1 + np.abs(log_a) + np.abs(log_q))
    errors = distribution.mass_error + rounding, distribution.value_error + rounding
    # The error of a mass is at least 16 units (`_start`): room enough for the roundings of these products.
    zero = (
        min(1.0, distribution.zero * (1 + distribution.mass_error))
        if upper
        else distribution.zero * max(0.0, 1 - distribution.mass_error)
    )
    nothing = np.zeros(0)
    if swapped:
        points = Points(log_q[::-1], -log_a[::-1], errors[0][::-1], errors[1][::-1])
        lone = max(0.0, 1 - float(distribution.mass @ distribution.value))
        return Bins(NO_ATOMS, nothing, nothing, atoms=points, only_p=zero, only_q=lone)
    points = Points(log_q + log_a, log_a, errors[0] + errors[1], errors[1])
    return Bins(NO_ATOMS, nothing, nothing, atoms=points, only_p=min(1.0, distribution.infinite), only_q=zero)
