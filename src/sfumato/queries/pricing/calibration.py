"""Noise for the measures of one query: one distribution, one threshold, calibrated jointly to OPTIONS.

Each measure has a share of the query. Laplace noise of share w and n entries has the scale
``n / (w epsilon)`` over its sensitivity, so its loss is ``w epsilon``. Gaussian noise has the parameter
``f sqrt(n) / w`` with one factor f for all: in Gaussian DP a measure of share w then costs ``w / f``, and
what all cost together meets (epsilon, delta).

Where groups are unknown, one more unit turns a group from absent to present. The noisy count of such a group
is 1 + Z, and it is shown if that passes the threshold, which must happen with at most a share of delta. Whole
thresholds are up to a unit late, so a coin decides between two of them: the share is used to the end. A
pre-threshold m drops groups of fewer than m units by their exact count and raises the threshold by m - 1:
then a group of m units is what a group of one was, and for groups of more, neighbors are both noised. The
proof, for all noise and any m, is in `sfumato.mechanisms.selection.randomized_threshold`.

Truncated Laplace noise on that count shows a group as often as is possible
(`sfumato.queries.pricing.truncated_count`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import TypeAlias

from sfumato.errors import ParameterError
from sfumato.mechanisms.base.rational import drawn_epsilon, sqrt_up
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.noise.truncated_laplace import TruncatedLaplace
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism
from sfumato.numerics.decimals import at_most_decimal, decimal_of, outward
from sfumato.numerics.rounding import add_down
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.conversion import rho_for
from sfumato.privacy.decimal_cost import meets
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.plan.measure import Measure
from sfumato.queries.pricing.measures.measure_request import MeasureRequest, on_grids
from sfumato.queries.pricing.truncated_count import truncated_count_noise, truncation_point

__all__ = [
    "AnyMechanism",
    "NoiseDistribution",
    "NoiseMechanism",
    "NoisePlan",
    "NoiseRequest",
    "best_plan",
    "distribution_of",
    "log_cost",
    "met",
    "start",
]

NoiseMechanism: TypeAlias = Laplace | Gaussian | TruncatedLaplace
"""What adds noise to a measure."""

AnyMechanism: TypeAlias = NoiseMechanism | BinMechanism
"""What releases a measure: noise on its numbers, or a choice."""

_SCALE_GRID = 1 << 24  # other scales become multiples of 2**-24, so that their denominators stay small
_ROUNDING_SLACK = 1 + Fraction(1, 1 << 30)  # outweighs every outward rounding in the loss that is read back
_SELECTION_PART = 0.375  # of delta; both noise and threshold of Gaussian noise are smaller than with a half
_LARGEST_FACTOR = 2**256  # beyond all samplers, and a float by far
_FAR = math.log(1.25)  # the closed forms are off by up to a ninth, where noise is a step wide
_LATTICE_SLACK = 1 + Fraction(1, 1 << 16)  # what noise on the integers costs more, where it is wide


class NoiseDistribution(Enum):
    """The distribution of the noise, or of a choice."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "discrete Gaussian"
    TRUNCATED = "truncated discrete Laplace"
    EXPONENTIAL = "exponential mechanism"


def distribution_of(mechanism: AnyMechanism) -> NoiseDistribution:
    """Return the distribution of a mechanism's noise."""
    match mechanism:
        case Laplace():
            return NoiseDistribution.LAPLACE
        case Gaussian():
            return NoiseDistribution.GAUSSIAN
        case TruncatedLaplace():
            return NoiseDistribution.TRUNCATED
        case BinMechanism():
            return NoiseDistribution.EXPONENTIAL


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
    answered : tuple of int
        The requests whose errors the answer shows: not that of a count that only chooses groups.
    """

    requests: tuple[MeasureRequest, ...]
    weights: tuple[Fraction, ...]
    max_groups: int
    epsilon: float
    delta: float
    unknown_groups: bool
    minimum_units: int
    answered: tuple[int, ...]

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
    threshold : RandomizedThreshold or None
    loss : PrivacyLoss
    """

    distribution: NoiseDistribution
    factor: Fraction
    selection_delta: float | None
    measures: tuple[Measure, ...]
    mechanisms: tuple[AnyMechanism, ...]
    threshold: RandomizedThreshold | None
    loss: PrivacyLoss


def best_plan(distributions: Iterable[NoiseDistribution], demand: NoiseRequest) -> NoisePlan | None:
    """Return the plan with the least error and threshold, of those that meet the demand; None if none does.

    What is compared is the product of an error and a threshold. The error is the geometric mean of the
    standard deviations over the sensitivities of what the answer shows; 1 where it shows no numbers, only
    groups. The threshold, where groups are unknown, is that of groups of the fewest units that are
    considered, on average over its coin: less 1, it is the expected number of groups that are not shown, were
    there one group of each number of units from the fewest on.

    A distribution whose product is larger by more than a quarter in closed forms, for continuous noise, is
    calibrated only if no other will do.
    """
    forms = {distribution: _closed_form(distribution, demand) for distribution in distributions}
    best: NoisePlan | None = None
    for distribution in sorted(forms, key=lambda each: forms[each]):
        if best is not None and forms[distribution] > forms[best.distribution] + _FAR:
            break
        plan = start(distribution, demand)
        found = None if plan is None else met(plan, demand)
        if found is not None and (best is None or log_cost(found, demand) < log_cost(best, demand)):
            best = found
    return best


def log_cost(plan: NoisePlan, demand: NoiseRequest) -> float:
    """Return the logarithm of the product of error and threshold; see `best_plan`."""
    shown = [math.log(_error(plan.mechanisms[index], plan.measures[index])) for index in demand.answered]
    error = math.fsum(shown) / len(shown) if shown else 0.0
    if plan.threshold is None:
        return error
    mean = plan.threshold.units + 1 - float(plan.threshold.probability)
    return error + math.log(max(1.0, mean - (demand.minimum_units - 1)))


def _error(mechanism: AnyMechanism, measure: Measure) -> float:
    """Return a standard deviation over the sensitivity; of a choice, that of Laplace noise on its scores."""
    if isinstance(mechanism, BinMechanism):
        return math.sqrt(2) / float(mechanism.epsilon)
    return float(mechanism.stddev) / max(1, measure.sensitivity)


def _closed_form(distribution: NoiseDistribution, demand: NoiseRequest) -> float:
    """Return `log_cost` for continuous noise, but for a constant; infinite where there is no such noise."""
    factor = _factor(distribution, demand)
    per_group = _selection_delta(distribution, demand) / demand.max_groups if demand.unknown_groups else 1.0
    if factor is None or per_group <= 0:
        return math.inf
    gaussian = distribution is NoiseDistribution.GAUSSIAN
    # a choice of bounded range has half of the zCDP that Laplace noise of its scale has
    moved = [
        float(request.moved(demand.max_groups)) / (2 if gaussian and request.chooses else 1)
        for request in demand.requests
    ]
    try:
        noise = [
            float(factor) * (math.sqrt(many) if gaussian else many) / float(weight)
            for many, weight in zip(moved, demand.weights, strict=True)
        ]
    except (OverflowError, ZeroDivisionError):  # a part of epsilon next to 0
        return math.inf
    if math.inf in noise:
        return math.inf
    shown = [math.log(noise[index]) for index in demand.answered]
    error = math.fsum(shown) / len(shown) + (0.0 if gaussian else math.log(2) / 2) if shown else 0.0
    if not demand.unknown_groups:
        return error
    match distribution:
        case NoiseDistribution.GAUSSIAN:
            above = -NormalDist().inv_cdf(min(per_group, 0.5)) * noise[0]
        case NoiseDistribution.TRUNCATED:
            above = truncation_point(noise[0], per_group)
        case NoiseDistribution.LAPLACE:
            above = -noise[0] * math.log(per_group * (1 + math.exp(-1 / noise[0])))
    return error + math.log(1 + max(0.0, above))


def _factor(distribution: NoiseDistribution, demand: NoiseRequest) -> Fraction | None:
    """Return the noise of one entry of share one: by the sum of epsilons for Laplace, or continuous noise.

    None where it is far beyond all samplers, and perhaps no float.
    """
    if distribution is not NoiseDistribution.GAUSSIAN:
        factor = 1 / drawn_epsilon(demand.epsilon)
        return factor if factor < _LARGEST_FACTOR else None
    delta = demand.delta - (_selection_delta(distribution, demand) if demand.unknown_groups else 0.0)
    try:
        stddev = analytic_gaussian_stddev(sensitivity=demand.norm, epsilon=demand.epsilon, delta=delta)
    except ParameterError:
        return None
    return Fraction(stddev) * _LATTICE_SLACK


def _selection_delta(distribution: NoiseDistribution, demand: NoiseRequest) -> float:
    part = _SELECTION_PART if distribution is NoiseDistribution.GAUSSIAN else 1.0
    return at_most_decimal(demand.delta) * part


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

    The loss of Laplace noise is that of its closed form; a part of it that is a float, such as that of a
    choice, was rounded up. Gaussian noise on the integers costs a
    little more than the continuous noise that it starts from, most where it is only a few steps wide: it is
    widened by as much as its Gaussian DP parameter says, and where that is not enough, by zCDP.
    """

    def probe(factor: Fraction) -> NoisePlan | None:
        try:
            found = _with_factor(plan.distribution, demand, factor, plan.selection_delta)
        except ParameterError:
            return None
        return found if meets(found.loss, demand.epsilon, demand.delta) else None

    if meets(plan.loss, demand.epsilon, demand.delta):
        return plan
    if plan.distribution is not NoiseDistribution.GAUSSIAN:
        return probe(plan.factor * _ROUNDING_SLACK)
    excess = plan.loss.gdp().mu * float(plan.factor) / demand.norm
    found = probe(plan.factor * Fraction(excess) * _LATTICE_SLACK**64) if excess < 2 else None
    if found is not None:
        # choices cost less than their Gaussian DP says, which is that of noise that is wider
        chosen = any(isinstance(mechanism, BinMechanism) for mechanism in found.mechanisms)
        return _tightened(found, plan.factor, probe) if chosen else found
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
    noised = list(map(_gaussian if gaussian else _laplace, measures, units, entries))
    mechanisms: list[AnyMechanism] = [
        request.chooser(demand.max_groups, unit, gaussian=gaussian) or noise
        for request, unit, noise in zip(demand.requests, units, noised, strict=True)
    ]
    threshold, selection = None, []
    if selection_delta is not None:
        # The union bound over the groups; division of floats may round up, and a decimal be less than its
        # float, so step down. A share that vanishes in floats (delta 5e-324 has no half) is refused below:
        # there must be a threshold.
        per_group = math.nextafter(selection_delta / demand.max_groups, 0.0)
        if demand.max_groups * Fraction(per_group) > decimal_of(selection_delta):
            per_group = math.nextafter(per_group, 0.0)
        if distribution is NoiseDistribution.TRUNCATED:
            limited = truncated_count_noise(units[0] * entries[0], entries[0], per_group)
            mechanisms[0] = noised[0] = limited
            # noise of the least limit leaves some of a delta that is larger than the probability of 1
            rest = math.nextafter(per_group * (1 - 2.0**-40) - limited.delta, 0.0)
            selection = [ApproximateDP(0.0, outward(rest)) * demand.max_groups] if rest > 0 else []
            per_group = add_down(limited.delta, max(0.0, rest))
        else:
            selection = [ApproximateDP(0.0, selection_delta)]
        threshold = RandomizedThreshold.smallest(noised[0].distribution, per_group, demand.minimum_units)
    losses = [*(mechanism.privacy_loss for mechanism in mechanisms), *selection]
    return NoisePlan(
        distribution, factor, selection_delta, measures, tuple(mechanisms), threshold, compose(losses)
    )


def _on_scale_grid(scale: Fraction) -> Fraction:
    if scale.denominator <= _SCALE_GRID:
        return scale  # such as 10, where 1/10 is asked for
    return Fraction(math.ceil(scale * _SCALE_GRID), _SCALE_GRID)


def _laplace(measure: Measure, unit: Fraction, entries: int) -> NoiseMechanism:
    sensitivity = max(1, measure.sensitivity)
    if measure.l1 is None or measure.l1 >= entries * sensitivity:
        scale = _on_scale_grid(unit * entries * sensitivity)
        return Laplace(sensitivity=sensitivity, scale=scale, l0=entries)
    total = max(1, measure.l1)
    return Laplace(l1=total, scale=_on_scale_grid(unit * total), l0=entries)


def _gaussian(measure: Measure, unit: Fraction, entries: int) -> NoiseMechanism:
    sensitivity = max(1, measure.sensitivity)
    if measure.l1 is None or measure.l1 >= entries * sensitivity:
        stddev = _on_scale_grid(unit * Fraction(math.sqrt(entries)) * sensitivity)
        return Gaussian(sensitivity=sensitivity, stddev=stddev, l0=entries)
    # the squares of entries within the sensitivity sum to at most the sensitivity times their sum
    norm = sqrt_up(Fraction(sensitivity * max(1, measure.l1)))
    return Gaussian(l2=norm, stddev=_on_scale_grid(unit * norm), l0=entries, integral=True)
