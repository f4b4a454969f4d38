"""The price step: one mechanism per measure, one threshold, one loss, calibrated jointly to OPTIONS.

Guarantee: (epsilon, delta)-DP of the whole answer under adding or removing one privacy unit. Conditions: the
engine bounds each unit to ``max_groups`` groups and each measure to its sensitivity; at most ``l0`` entries
of a measure then move, each by at most the sensitivity, which is ``DiscreteLaplace(scale, sensitivity) * l0``
or its Gaussian counterpart. With unknown groups, a group that only the one unit is in shows up with
probability at most delta_selection / l0, so the neighbor without that unit differs in the set of groups with
probability at most delta_selection (a union bound over l0 groups): an additive
``ApproximateDP(0, delta_selection)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import OptionError, ParameterError
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.conversion import rho_for
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.measures import Draft, Reading, drafts_and_readings, on_grids, require_rows_on_grid
from sfumato.queries.plan import AggregationJob, GroupSelection, Measure, Options, Query

__all__ = ["Law", "PricedQuery", "price"]

AnyMechanism: TypeAlias = Laplace | Gaussian

_SCALE_GRID = 1 << 24  # scales are multiples of 2**-24, so their denominators stay small
_ROUNDING_SLACK = 1 + Fraction(1, 1 << 30)  # outweighs every outward rounding in the loss that is read back
_LATTICE_SLACK = 1 + Fraction(1, 1 << 16)  # what noise on the integers costs more, where it is wide


class Law(Enum):
    """The law of the noise."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "discrete Gaussian"


@dataclass(frozen=True, slots=True)
class PricedQuery:
    """A query with its noise: what the engine must compute, and what is added to it.

    Parameters
    ----------
    query : Query
    measures : tuple of Measure
        What the engine computes; the first is the count of units where ``threshold`` is set.
    readings : tuple of Reading
        How each aggregate is read off the measures.
    law : Law
    mechanisms : tuple of Laplace or Gaussian
        One for each measure.
    threshold : int or None
        Least noisy number of units of a group that is shown; None where groups are public.
    loss : PrivacyLoss
        What is charged: the sum of the mechanisms' losses and the threshold's.
    """

    query: Query
    measures: tuple[Measure, ...]
    readings: tuple[Reading, ...]
    law: Law
    mechanisms: tuple[AnyMechanism, ...]
    threshold: int | None
    loss: PrivacyLoss

    @property
    def job(self) -> AggregationJob:
        """The engine's part."""
        query = self.query
        return AggregationJob(
            relation=query.relation,
            keys=query.keys,
            measures=self.measures,
            max_groups=query.options.max_groups_contributed,
            max_rows=query.options.max_rows_per_group,
            public_groups=query.public_groups,
        )


def price(query: Query) -> PricedQuery:
    """Choose law, noise and threshold so that the whole loss meets OPTIONS(epsilon, delta).

    The law is the one with the smaller standard deviation, from public parameters only: Laplace where a unit
    touches few groups, Gaussian where it touches many. Every measure gets the same noise multiplier.

    Raises
    ------
    OptionError
        If epsilon is so small that the noise would leave the samplers' range, or a sum of so many rows that
        the rows would be rounded away.
    """
    drafts, readings = drafts_and_readings(query)
    options = query.options
    l0 = options.max_groups_contributed or 1
    unknown_groups = bool(query.keys) and query.public_groups is None
    starts = (
        _start(law, drafts, l0, options, unknown_groups=unknown_groups) for law in _allowed_laws(options)
    )
    plans = sorted((plan for plan in starts if plan is not None), key=lambda plan: plan.relative_error)
    met = (_met(plan, drafts, l0, options) for plan in plans)
    best = next((plan for plan in met if plan is not None), None)
    if best is None:
        raise _out_of_reach(options)
    require_rows_on_grid(drafts, best.measures)
    return PricedQuery(query, best.measures, readings, best.law, best.mechanisms, best.threshold, best.loss)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A law with its noise; ``selection_delta`` is None where groups are public and no threshold is due."""

    law: Law
    multiplier: Fraction
    selection_delta: float | None
    measures: tuple[Measure, ...]
    mechanisms: tuple[AnyMechanism, ...]
    threshold: int | None
    loss: PrivacyLoss

    @property
    def relative_error(self) -> float:
        """Standard deviation of every measure over its sensitivity: the same for all, up to rounding."""
        return float(self.mechanisms[0].stddev) / max(1, self.measures[0].sensitivity)


def _allowed_laws(options: Options) -> tuple[Law, ...]:
    if options.group_selection is GroupSelection.LAPLACE_THRESHOLD or options.delta == 0:
        return (Law.LAPLACE,)
    if options.group_selection is GroupSelection.GAUSSIAN_THRESHOLD:
        return (Law.GAUSSIAN,)
    return (Law.LAPLACE, Law.GAUSSIAN)


def _out_of_reach(options: Options) -> OptionError:
    return OptionError(
        f"epsilon must leave the noise within 2**40 grid steps, got {options.epsilon!r} with delta "
        f"{options.delta!r}; use a larger epsilon or delta, or fewer groups"
    )


def _start(
    law: Law, drafts: tuple[Draft, ...], l0: int, options: Options, *, unknown_groups: bool
) -> _Plan | None:
    """Calibrate by closed forms: the sum of epsilons for Laplace, continuous noise for Gaussian.

    None where the law's noise or threshold would be out of reach.
    """
    releases = len(drafts) * l0
    share = 1.0 if law is Law.LAPLACE else 0.5
    selection_delta = options.delta * share if unknown_groups else None
    try:
        if law is Law.LAPLACE:
            multiplier = Fraction(releases) / Fraction(options.epsilon) * _ROUNDING_SLACK
        else:
            continuous = analytic_gaussian_stddev(
                sensitivity=math.sqrt(releases),
                epsilon=options.epsilon,
                delta=options.delta - (selection_delta or 0.0),
            )
            multiplier = Fraction(continuous) * _LATTICE_SLACK
        return _with_multiplier(law, drafts, l0, multiplier, selection_delta)
    except ParameterError:
        return None


def _met(plan: _Plan, drafts: tuple[Draft, ...], l0: int, options: Options) -> _Plan | None:
    """Return the plan if its whole loss meets OPTIONS; else one with a little more noise that does.

    The loss of Laplace noise is that of its closed form or less. Gaussian noise on the integers costs a
    little more than the continuous noise that it starts from, most where it is only a few steps wide: it is
    widened by as much as its Gaussian DP parameter says, and where that is not enough, by zCDP.
    """

    def probe(multiplier: Fraction) -> _Plan | None:
        try:
            found = _with_multiplier(plan.law, drafts, l0, multiplier, plan.selection_delta)
        except ParameterError:
            return None
        return found if found.loss.quick_epsilon(options.delta) <= options.epsilon else None

    if plan.loss.quick_epsilon(options.delta) <= options.epsilon:
        return plan
    if plan.law is Law.LAPLACE:
        return None
    releases = len(drafts) * l0
    excess = plan.loss.gdp().mu * float(plan.multiplier) / math.sqrt(releases)
    found = probe(plan.multiplier * Fraction(excess) * _LATTICE_SLACK**64) if excess < 2 else None
    if found is not None:
        return found
    rho = rho_for(options.epsilon, options.delta - (plan.selection_delta or 0.0))
    found = probe(Fraction(math.sqrt(releases / (2 * rho))) * _ROUNDING_SLACK) if rho > 0 else None
    return None if found is None else _tightened(found, plan.multiplier, probe)


def _tightened(plan: _Plan, too_little: Fraction, probe: Callable[[Fraction], _Plan | None]) -> _Plan:
    """Shrink noise that is enough towards noise that is not, to within a thousandth."""
    while plan.multiplier - too_little > plan.multiplier / 1000:
        middle = Fraction(float(too_little + plan.multiplier) / 2)
        found = probe(middle)
        if found is None:
            too_little = middle
        else:
            plan = found
    return plan


def _with_multiplier(
    law: Law, drafts: tuple[Draft, ...], l0: int, multiplier: Fraction, selection_delta: float | None
) -> _Plan:
    measures = on_grids(drafts, multiplier)
    mechanisms = tuple(_mechanism(law, measure, multiplier, l0) for measure in measures)
    losses = [mechanism.privacy_loss for mechanism in mechanisms]
    threshold = None
    if selection_delta is not None:
        # The union bound over l0 groups; division of floats may round up, so step down once. A share that
        # vanishes in floats (delta 5e-324 has no half) is refused below: there must be a threshold.
        per_group = math.nextafter(selection_delta / l0, 0.0)
        threshold = 1 + mechanisms[0].law.quantile_above(per_group)
        losses.append(ApproximateDP(0.0, selection_delta))
    return _Plan(law, multiplier, selection_delta, measures, mechanisms, threshold, compose(losses))


def _mechanism(law: Law, measure: Measure, multiplier: Fraction, l0: int) -> AnyMechanism:
    sensitivity = max(1, measure.sensitivity)
    scale = Fraction(math.ceil(multiplier * sensitivity * _SCALE_GRID), _SCALE_GRID)
    if law is Law.LAPLACE:
        return Laplace(sensitivity=sensitivity, scale=scale, l0=l0)
    return Gaussian(sensitivity=sensitivity, stddev=scale, l0=l0)
