"""Noise for the measures of one query: one law, one threshold, calibrated jointly to (epsilon, delta).

Each measure has a share of the query. Laplace noise of share w and n entries has the scale
``n / (w epsilon)`` over its sensitivity, so its loss is ``w epsilon``. Gaussian noise has the parameter
``f sqrt(n) / w`` with one factor f for all: in Gaussian DP a measure of share w then costs ``w / f``, and
what all cost together meets (epsilon, delta).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from sfumato.errors import ParameterError
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.conversion import rho_for
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.measures import Draft, on_grids
from sfumato.queries.plan import Measure

__all__ = ["AnyMechanism", "Demand", "Law", "NoisePlan", "met", "start"]

AnyMechanism: TypeAlias = Laplace | Gaussian

_SCALE_GRID = 1 << 24  # scales are multiples of 2**-24, so their denominators stay small
_ROUNDING_SLACK = 1 + Fraction(1, 1 << 30)  # outweighs every outward rounding in the loss that is read back
_LATTICE_SLACK = 1 + Fraction(1, 1 << 16)  # what noise on the integers costs more, where it is wide


class Law(Enum):
    """The law of the noise."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "discrete Gaussian"


@dataclass(frozen=True)
class Demand:
    """What is to be noised, and what it may cost.

    Parameters
    ----------
    drafts : tuple of Draft
        Where groups are unknown, the first is the count of units that the threshold is applied to.
    weights : tuple of Fraction
        Each draft's share; they sum to one.
    max_groups : int
        The most groups that a unit counts in.
    epsilon, delta : float
        What all of it must meet.
    unknown_groups : bool
        Whether a threshold is due.
    """

    drafts: tuple[Draft, ...]
    weights: tuple[Fraction, ...]
    max_groups: int
    epsilon: float
    delta: float
    unknown_groups: bool

    @cached_property
    def norm(self) -> float:
        """The square root of the sum of the squared shares."""
        return math.sqrt(sum(float(weight) ** 2 for weight in self.weights))

    def entries(self, place: int) -> int:
        """Return how many entries of a draft's answer one unit moves."""
        return self.max_groups * self.drafts[place].entries


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """A law with its noise; ``selection_delta`` is None where groups are public and no threshold is due.

    ``factor`` is the noise that a single entry of share one has, over its sensitivity.
    """

    law: Law
    factor: Fraction
    selection_delta: float | None
    measures: tuple[Measure, ...]
    mechanisms: tuple[AnyMechanism, ...]
    threshold: int | None
    loss: PrivacyLoss

    @property
    def relative_error(self) -> float:
        """The mean logarithm of the measures' standard deviations over their sensitivities."""
        errors = (
            math.log(float(mechanism.stddev) / max(1, measure.sensitivity))
            for mechanism, measure in zip(self.mechanisms, self.measures, strict=True)
        )
        return math.fsum(errors) / len(self.measures)


def start(law: Law, demand: Demand) -> NoisePlan | None:
    """Calibrate by closed forms: the sum of epsilons for Laplace, continuous noise for Gaussian.

    None where the law's noise or threshold would be out of reach.
    """
    share = 1.0 if law is Law.LAPLACE else 0.5
    selection_delta = demand.delta * share if demand.unknown_groups else None
    try:
        if law is Law.LAPLACE:
            factor = 1 / Fraction(demand.epsilon) * _ROUNDING_SLACK
        else:
            continuous = analytic_gaussian_stddev(
                sensitivity=demand.norm,
                epsilon=demand.epsilon,
                delta=demand.delta - (selection_delta or 0.0),
            )
            factor = Fraction(continuous) * _LATTICE_SLACK
        return _with_factor(law, demand, factor, selection_delta)
    except ParameterError:
        return None


def met(plan: NoisePlan, demand: Demand) -> NoisePlan | None:
    """Return the plan if its whole loss meets the demand; else one with a little more noise that does.

    The loss of Laplace noise is that of its closed form or less. Gaussian noise on the integers costs a
    little more than the continuous noise that it starts from, most where it is only a few steps wide: it is
    widened by as much as its Gaussian DP parameter says, and where that is not enough, by zCDP.
    """

    def probe(factor: Fraction) -> NoisePlan | None:
        try:
            found = _with_factor(plan.law, demand, factor, plan.selection_delta)
        except ParameterError:
            return None
        return found if found.loss.quick_epsilon(demand.delta) <= demand.epsilon else None

    if plan.loss.quick_epsilon(demand.delta) <= demand.epsilon:
        return plan
    if plan.law is Law.LAPLACE:
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


def _with_factor(law: Law, demand: Demand, factor: Fraction, selection_delta: float | None) -> NoisePlan:
    entries = [demand.entries(place) for place in range(len(demand.drafts))]
    multipliers = tuple(
        factor * (Fraction(count) if law is Law.LAPLACE else Fraction(math.sqrt(count))) / weight
        for count, weight in zip(entries, demand.weights, strict=True)
    )
    measures = on_grids(demand.drafts, multipliers)
    mechanisms = tuple(map(_mechanism, [law] * len(entries), measures, multipliers, entries))
    losses = [mechanism.privacy_loss for mechanism in mechanisms]
    threshold = None
    if selection_delta is not None:
        # The union bound over the groups; division of floats may round up, so step down once. A share that
        # vanishes in floats (delta 5e-324 has no half) is refused below: there must be a threshold.
        per_group = math.nextafter(selection_delta / demand.max_groups, 0.0)
        threshold = 1 + mechanisms[0].law.quantile_above(per_group)
        losses.append(ApproximateDP(0.0, selection_delta))
    return NoisePlan(law, factor, selection_delta, measures, mechanisms, threshold, compose(losses))


def _mechanism(law: Law, measure: Measure, multiplier: Fraction, entries: int) -> AnyMechanism:
    sensitivity = max(1, measure.sensitivity)
    scale = Fraction(math.ceil(multiplier * sensitivity * _SCALE_GRID), _SCALE_GRID)
    if law is Law.LAPLACE:
        return Laplace(sensitivity=sensitivity, scale=scale, l0=entries)
    return Gaussian(sensitivity=sensitivity, stddev=scale, l0=entries)
