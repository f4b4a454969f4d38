"""Noise for the measures of one query: one distribution, one threshold, calibrated jointly to OPTIONS.

Each measure has a share of the query. Laplace noise of share w and n entries has the scale
``n / (w epsilon)`` over its sensitivity, so its loss is ``w epsilon``. Gaussian noise has the parameter
``f sqrt(n) / w`` with one factor f for all: in Gaussian DP a measure of share w then costs ``w / f``, and
what all cost together meets (epsilon, delta).

Where groups are unknown, one more unit turns a group from absent to present. The noisy count of such a group
is 1 + Z, so it is shown with the probability that Z reaches the threshold less 1, which is at most a share of
delta. Truncated Laplace noise never exceeds its limit: with the threshold just above it, the probability of
the limit is all that such a group can show, and the same mass is all that pure noise would have beyond
epsilon. A pre-threshold m drops groups of fewer than m units by their exact count and raises the threshold by
m - 1: then a group of m units is what a group of one was, and for groups of more, neighbors are both noised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TypeAlias

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.mechanisms.base.rational import sqrt_up
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.noise.truncated_laplace import TruncatedLaplace
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.conversion import rho_for
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.plan.measure import Measure
from sfumato.queries.pricing.measures.measure_request import MeasureRequest, on_grids

__all__ = [
    "AnyMechanism",
    "NoiseDistribution",
    "NoisePlan",
    "NoiseRequest",
    "by_expected_error",
    "distribution_of",
    "met",
    "start",
]

AnyMechanism: TypeAlias = Laplace | Gaussian | TruncatedLaplace

_SCALE_GRID = 1 << 24  # scales are multiples of 2**-24, so their denominators stay small
_ROUNDING_SLACK = 1 + Fraction(1, 1 << 30)  # outweighs every outward rounding in the loss that is read back
_LATTICE_SLACK = 1 + Fraction(1, 1 << 16)  # what noise on the integers costs more, where it is wide


class NoiseDistribution(Enum):
    """The distribution of the noise."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "discrete Gaussian"
    TRUNCATED = "truncated discrete Laplace"


def distribution_of(mechanism: AnyMechanism) -> NoiseDistribution:
    """Return the distribution of a mechanism's noise."""
    match mechanism:
        case Laplace():
            return NoiseDistribution.LAPLACE
        case Gaussian():
            return NoiseDistribution.GAUSSIAN
        case TruncatedLaplace():
            return NoiseDistribution.TRUNCATED


@dataclass(frozen=True)
class NoiseRequest:
    """What is to be noised, and what it may cost.

    Parameters
    ----------
    requests : tuple of MeasureRequest
        Where groups are unknown, the first is the count of units that the threshold is applied to.
    weights : tuple of Fraction
        The share of each; they sum to one.
    max_groups : int
        The most groups that a unit counts in.
    epsilon, delta : float
        What all of it must meet.
    unknown_groups : bool
        Whether a threshold is due.
    minimum_units : int
        The fewest units of a group that is considered.
    """

    requests: tuple[MeasureRequest, ...]
    weights: tuple[Fraction, ...]
    max_groups: int
    epsilon: float
    delta: float
    unknown_groups: bool
    minimum_units: int = 1

    @cached_property
    def norm(self) -> float:
        """The square root of the sum of the squared shares."""
        return math.sqrt(sum(float(weight) ** 2 for weight in self.weights))


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """A distribution with its noise.

    Parameters
    ----------
    distribution : NoiseDistribution
        Of the noise on every measure; ``TRUNCATED`` truncates that of the first and leaves Laplace noise on
        the others.
    factor : Fraction
        The noise that a single entry of share one has, over its sensitivity.
    selection_delta : float or None
        The chance that a group of one unit shows up; None where groups are public and no threshold is due.
    measures, mechanisms : tuple
    threshold : int or None
    loss : PrivacyLoss
    """

    distribution: NoiseDistribution
    factor: Fraction
    selection_delta: float | None
    measures: tuple[Measure, ...]
    mechanisms: tuple[AnyMechanism, ...]
    threshold: int | None
    loss: PrivacyLoss


def by_expected_error(
    distributions: Iterable[NoiseDistribution], demand: NoiseRequest
) -> list[NoiseDistribution]:
    """Return the distributions in the order of what they cost in accuracy, by closed forms, the best first.

    What is compared is the mean logarithm of standard deviations over sensitivities, plus that of the
    threshold.
    """
    return sorted(distributions, key=lambda distribution: _badness(distribution, demand))


def _badness(distribution: NoiseDistribution, demand: NoiseRequest) -> float:
    factor = _factor(distribution, demand)
    per_group = _selection_delta(distribution, demand) / demand.max_groups if demand.unknown_groups else 1.0
    if factor is None or per_group <= 0:
        return math.inf
    gaussian = distribution is NoiseDistribution.GAUSSIAN
    moved = [float(request.moved(demand.max_groups)) for request in demand.requests]
    noise = [
        float(factor) * (math.sqrt(many) if gaussian else many) / float(weight)
        for many, weight in zip(moved, demand.weights, strict=True)
    ]
    error = math.fsum(map(math.log, noise)) / len(noise) + (0.0 if gaussian else math.log(2) / 2)
    if not demand.unknown_groups:
        return error
    tail = -NormalDist().inv_cdf(min(per_group, 0.5)) if gaussian else max(0.0, -math.log(2 * per_group))
    return error + math.log(1 + noise[0] * tail)


def _factor(distribution: NoiseDistribution, demand: NoiseRequest) -> Fraction | None:
    """Return the noise of one entry of share one: by the sum of epsilons for Laplace, or continuous noise."""
    if distribution is not NoiseDistribution.GAUSSIAN:
        return 1 / Fraction(demand.epsilon) * _ROUNDING_SLACK
    delta = demand.delta - (_selection_delta(distribution, demand) if demand.unknown_groups else 0.0)
    try:
        stddev = analytic_gaussian_stddev(sensitivity=demand.norm, epsilon=demand.epsilon, delta=delta)
    except ParameterError:
        return None
    return Fraction(stddev) * _LATTICE_SLACK


def _selection_delta(distribution: NoiseDistribution, demand: NoiseRequest) -> float:
    return demand.delta * (0.5 if distribution is NoiseDistribution.GAUSSIAN else 1.0)


def start(distribution: NoiseDistribution, demand: NoiseRequest) -> NoisePlan | None:
    """Calibrate by closed forms; None where the distribution's noise or threshold would be out of reach."""
    factor = _factor(distribution, demand)
    if factor is None:
        return None
    try:
        selection_delta = _selection_delta(distribution, demand) if demand.unknown_groups else None
        return _with_factor(distribution, demand, factor, selection_delta)
    except ParameterError:
        return None


def met(plan: NoisePlan, demand: NoiseRequest) -> NoisePlan | None:
    """Return the plan if its whole loss meets the demand; else one with a little more noise that does.

    The loss of Laplace noise is that of its closed form or less. Gaussian noise on the integers costs a
    little more than the continuous noise that it starts from, most where it is only a few steps wide: it is
    widened by as much as its Gaussian DP parameter says, and where that is not enough, by zCDP.
    """

    def probe(factor: Fraction) -> NoisePlan | None:
        try:
            found = _with_factor(plan.distribution, demand, factor, plan.selection_delta)
        except ParameterError:
            return None
        return found if found.loss.quick_epsilon(demand.delta) <= demand.epsilon else None

    if plan.loss.quick_epsilon(demand.delta) <= demand.epsilon:
        return plan
    if plan.distribution is not NoiseDistribution.GAUSSIAN:
        return None
    excess = plan.loss.gdp().mu * float(plan.factor) / demand.norm
    found = probe(plan.factor * Fraction(excess) * _LATTICE_SLACK**64) if excess < 2 else None
    if found is not None:
        return found
    rho = rho_for(demand.epsilon, demand.delta - (plan.selection_delta or 0.0))
    found = probe(Fraction(demand.norm / math.sqrt(2 * rho)) * _ROUNDING_SLACK) if rho > 0 else None
    return None if found is None else _tightened(found, plan.factor, probe)


def _tightened(
    plan: NoisePlan, too_little: Fraction, probe: Callable[[Fraction], NoisePlan | None]
) -> NoisePlan:
    """Shrink noise that is enough towards noise that is not, to within a thousandth."""
    while plan.factor - too_little > plan.factor / 1000:
        middle = Fraction(float(too_little + plan.factor) / 2)
        found = probe(middle)
        if found is None:
            too_little = middle
        else:
            plan = found
    return plan


def _with_factor(
    distribution: NoiseDistribution, demand: NoiseRequest, factor: Fraction, selection_delta: float | None
) -> NoisePlan:
    gaussian = distribution is NoiseDistribution.GAUSSIAN
    units = [factor / weight for weight in demand.weights]
    moved = [request.moved(demand.max_groups) for request in demand.requests]
    multipliers = tuple(
        unit * (Fraction(math.sqrt(many)) if gaussian else many)
        for unit, many in zip(units, moved, strict=True)
    )
    measures = on_grids(demand.requests, multipliers)
    entries = [request.numbers(demand.max_groups) for request in demand.requests]
    mechanisms = list(map(_gaussian if gaussian else _laplace, measures, units, entries))
    threshold, selection = None, []
    if selection_delta is not None:
        # The union bound over the groups; division of floats may round up, so step down once. A share that
        # vanishes in floats (delta 5e-324 has no half) is refused below: there must be a threshold.
        per_group = math.nextafter(selection_delta / demand.max_groups, 0.0)
        if distribution is NoiseDistribution.TRUNCATED:
            mechanisms[0] = limited = _truncated(units[0] * entries[0], entries[0], per_group)
            threshold = demand.minimum_units + int(limited.limit)
        else:
            threshold = demand.minimum_units + mechanisms[0].distribution.quantile_above(per_group)
            selection = [ApproximateDP(0.0, selection_delta)]
    losses = [*(mechanism.privacy_loss for mechanism in mechanisms), *selection]
    return NoisePlan(
        distribution, factor, selection_delta, measures, tuple(mechanisms), threshold, compose(losses)
    )


def _on_scale_grid(scale: Fraction) -> Fraction:
    return Fraction(math.ceil(scale * _SCALE_GRID), _SCALE_GRID)


def _laplace(measure: Measure, unit: Fraction, entries: int) -> AnyMechanism:
    sensitivity = max(1, measure.sensitivity)
    if measure.l1 is None or measure.l1 >= entries * sensitivity:
        scale = _on_scale_grid(unit * entries * sensitivity)
        return Laplace(sensitivity=sensitivity, scale=scale, l0=entries)
    total = max(1, measure.l1)
    return Laplace(l1=total, scale=_on_scale_grid(unit * total), l0=entries)


def _gaussian(measure: Measure, unit: Fraction, entries: int) -> AnyMechanism:
    sensitivity = max(1, measure.sensitivity)
    if measure.l1 is None or measure.l1 >= entries * sensitivity:
        stddev = _on_scale_grid(unit * Fraction(math.sqrt(entries)) * sensitivity)
        return Gaussian(sensitivity=sensitivity, stddev=stddev, l0=entries)
    # the squares of entries within the sensitivity sum to at most the sensitivity times their sum
    norm = sqrt_up(Fraction(sensitivity * max(1, measure.l1)))
    return Gaussian(l2=norm, stddev=_on_scale_grid(unit * norm), l0=entries, integral=True)


def _truncated(scale: Fraction, entries: int, delta: float) -> TruncatedLaplace:
    """Return noise on a count of units with the smallest limit whose probability is at most ``delta``."""
    scale = _on_scale_grid(scale)
    delta = _check.unit_interval("delta", delta)

    @lru_cache
    def enough(limit: int) -> bool:
        return TruncatedLaplaceDistribution(scale, limit).pmf(limit).upper <= delta

    rate = math.expm1(min(700.0, 1 / float(scale)))
    # the solution of P(limit) = delta in reals; in integers it is next to it
    odds = math.log(rate / 2) - math.log(delta)
    guess = (max(odds, 0.0) + math.log1p(math.exp(-abs(odds))) - math.log1p(rate / 2)) * float(scale)
    high, step = max(1, math.ceil(guess)), 1
    while not enough(high):
        high, step = high + step, 2 * step
    low, step = high - 1, 1
    while low and enough(low):
        high, low, step = low, max(0, low - step), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return TruncatedLaplace(sensitivity=1, scale=scale, limit=high, l0=entries)
