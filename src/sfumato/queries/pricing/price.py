"""The price step: one mechanism per measure, one threshold, one loss, calibrated jointly to OPTIONS.

Guarantee: (epsilon, delta)-DP of the whole answer under adding or removing one privacy unit. Conditions: the
engine bounds each unit to ``max_groups`` groups and each measure to its sensitivity; at most ``l0`` groups
of a measure then move, each in at most ``entries`` numbers by at most the sensitivity, which is
``DiscreteLaplace(scale, sensitivity) * (l0 * entries)`` or its Gaussian counterpart. With unknown groups, a
group that only the one unit is in shows up with probability at most delta_selection / l0, so the neighbor
without that unit differs in the set of groups with probability at most delta_selection (a union bound over l0
groups): an additive ``ApproximateDP(0, delta_selection)``. A coin between two thresholds makes that
probability delta_selection / l0 just so (`sfumato.mechanisms.selection.randomized_threshold`). Truncated
noise has no such addend: either kind of neighbor reveals all of delta, never both.

Rows that are counted by bin may lie in several bins of a level: then more numbers than ``entries`` move,
those of a level together by at most the sensitivity. That reveals no more than one number that moves by all
of it, for log-concave noise, which both distributions are. Let f_a be the trade-off function between the
noise and itself moved by a. The pairs on the way (0, 0), (a, 0), (a, b) have f_a and f_b, so its ends have at
least f_b(1 - f_a), as in group privacy (Dong, Roth, Su, "Gaussian differential privacy", 2022). And that is
f_(a + b): a test by one threshold is best at each level for every move, so the best test of a move by a + b
is best on both parts of the way. By induction the same holds for any number of bins.

A few quantiles are chosen from the counts by bin, by the exponential mechanism, and have no noise on numbers:
`sfumato.mechanisms.statistics.quantile.binned_quantiles`, with as many choices of bounded range as a unit
takes part in. They are chosen in the groups that are shown only, which is what choosing in all of them and
showing some would release.

Bounds that are to be found are priced before they are known: every such measure has placeholders for its
bounds, noise in their unit, and half of its share pays for the search. What is found then only chooses the
power of two that a step of the grid is (`sfumato.queries.pricing.found_bounds`), so the noise, and how many
steps one unit moves a measure, are the same whatever is found. The loss is known before any row is read, and
it composes although a measure's grid depends on the outcome of a search, for each is dominated by a pair of
its own that does not (Zhu, Dong, Wang, "Optimal accounting of differential privacy via characteristic
function", 2022, Theorem 10).

A report of what the limits cut off has its stated part of epsilon, at delta 0; all else is calibrated to the
rest of epsilon and all of delta, so that both together meet OPTIONS by basic composition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from sfumato.errors import OptionError
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.privacy.decimal_cost import delta_needed
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.plan.measure import Measure
from sfumato.queries.plan.query import AggregationJob, GroupSelection, Options, Query
from sfumato.queries.pricing.aggregate_measures import ColumnEstimator, requests_and_estimators
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.calibration import (
    AnyMechanism,
    NoiseDistribution,
    NoiseMechanism,
    NoiseRequest,
    best_plan,
)
from sfumato.queries.pricing.epsilon_split import Claimant, split_epsilon
from sfumato.queries.pricing.measures.counts import CountBounds
from sfumato.queries.pricing.measures.measure_request import MeasureRequest
from sfumato.queries.pricing.truncation_report import PricedTruncation, price_truncation

__all__ = ["NoiseDistribution", "PricedQuery", "PricedSearch", "loss_at", "price"]

_DOWN = 1 - 2.0**-40  # so that parts which sum to the whole still do where each was rounded


@dataclass(frozen=True, slots=True)
class PricedSearch:
    """A search for bounds, and the noise on its counts."""

    search: BoundSearch
    mechanism: NoiseMechanism


@dataclass(frozen=True, slots=True)
class PricedQuery:
    """A query with its noise: what the engine must compute, and what is added to it.

    Parameters
    ----------
    query : Query
    measures : tuple of Measure
        What the engine computes; the first is the count of units where ``threshold`` is set.
    estimators : tuple of ColumnEstimator
        How each aggregate is read off the measures.
    distribution : NoiseDistribution
    mechanisms : tuple of Laplace, Gaussian or BinMechanism
        One for each measure.
    threshold : RandomizedThreshold or None
        Which noisy numbers of units are shown; None where groups are public.
    loss : PrivacyLoss
        What is charged: the sum of the mechanisms' losses, the searches', the threshold's and the report's.
    requests : tuple of MeasureRequest
        What the measures were made from.
    searches : tuple of PricedSearch
        What finds the bounds of measures whose requests have none.
    bounds_known : bool
        Whether all measures have their own bounds; else some have placeholders: nothing can be computed yet.
    truncation : PricedTruncation or None
        The report of what the limits cut off, where one is asked for.
    """

    query: Query
    measures: tuple[Measure, ...]
    estimators: tuple[ColumnEstimator, ...]
    distribution: NoiseDistribution
    mechanisms: tuple[AnyMechanism, ...]
    threshold: RandomizedThreshold | None
    loss: PrivacyLoss
    requests: tuple[MeasureRequest, ...]
    searches: tuple[PricedSearch, ...] = ()
    bounds_known: bool = True
    truncation: PricedTruncation | None = None

    @property
    def charged_delta(self) -> float:
        """The delta of the charge: that of OPTIONS, or 0 where the noise keeps epsilon without it."""
        return delta_needed(self.loss, self.query.options.epsilon, self.query.options.delta)

    @property
    def jobs(self) -> tuple[AggregationJob, ...]:
        """All that the engine is asked: searches, the job, with placeholders for their bounds, the report."""
        searches = (priced.search.job(self.query) for priced in self.searches)
        report = () if self.truncation is None else (self.truncation.job(self.query),)
        return (*searches, self.job, *report)

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
            max_rows_contributed=query.options.max_rows_contributed,
        )


def price(query: Query) -> PricedQuery:
    """Choose distribution, noise and threshold so that the whole loss meets OPTIONS(epsilon, delta).

    The distribution is the one with the smaller product of error and threshold (`best_plan`), from
    public parameters only: Laplace (truncated, for the count that the threshold is applied to) where a unit
    touches few groups, Gaussian where it touches many. Measures have noise in proportion to their shares of
    epsilon, which are equal unless the query states others.

    Raises
    ------
    OptionError
        If epsilon is so small that the noise would leave the samplers' range, a sum is of so many rows that
        the rows would be rounded away, stated parts of epsilon exceed it, or a report is asked for of limits
        that cut nothing off.
    """
    truncation = price_truncation(query)
    wanted, estimators = requests_and_estimators(query)
    searches = tuple(dict.fromkeys(search for request in wanted for search in request.searches))
    requests = (*wanted, *(CountBounds(searched=search) for search in searches))
    options = query.options
    demand = _demand(query, requests, estimators)
    best = best_plan(_allowed_distributions(options, unknown=demand.unknown_groups), demand)
    if best is None:
        raise _out_of_reach(options)
    for request, measure in zip(requests, best.measures, strict=True):
        request.require_rows_on_grid(measure)
    many, noise = len(wanted), best.mechanisms
    return PricedQuery(
        query=query,
        measures=best.measures[:many],
        estimators=estimators,
        distribution=best.distribution,
        mechanisms=noise[:many],
        threshold=best.threshold,
        loss=best.loss if truncation is None else compose([best.loss, truncation.loss]),
        requests=wanted,
        searches=tuple(map(PricedSearch, searches, cast("tuple[NoiseMechanism, ...]", noise[many:]))),
        bounds_known=not searches,
        truncation=truncation,
    )


def loss_at(query: Query) -> Callable[[float], PrivacyLoss]:
    """Return the loss of a query as a function of its epsilon; stated parts of it stay in proportion."""

    def loss(epsilon: float) -> PrivacyLoss:
        return price(_smaller(query, epsilon)).loss

    return loss


def _smaller(query: Query, epsilon: float) -> Query:
    ratio = epsilon / query.options.epsilon * _DOWN

    def part(stated: float | None) -> float | None:
        return None if stated is None else stated * ratio

    aggregates = (
        replace(
            aggregate,
            epsilon=part(aggregate.epsilon),
            interval_epsilon=part(aggregate.interval_epsilon),
        )
        for aggregate in query.aggregates
    )
    selection, report = (
        part(stated) for stated in (query.options.group_selection_epsilon, query.options.truncation_epsilon)
    )
    options = replace(
        query.options, epsilon=epsilon, group_selection_epsilon=selection, truncation_epsilon=report
    )
    return replace(query, aggregates=tuple(aggregates), options=options)


def _demand(
    query: Query, requests: tuple[MeasureRequest, ...], estimators: tuple[ColumnEstimator, ...]
) -> NoiseRequest:
    options = query.options
    unknown_groups = bool(query.keys) and query.public_groups is None
    parties = []
    for aggregate, estimator in zip(query.aggregates, estimators, strict=True):
        own = estimator.measures
        if aggregate.interval_epsilon is not None:
            parties.append(Claimant(f"the interval of {aggregate.name}", own[1:], aggregate.interval_epsilon))
            own = own[:1]
        parties.append(Claimant(aggregate.name, own, aggregate.epsilon))
    if unknown_groups:
        parties.append(Claimant("the choice of groups", (0,), options.group_selection_epsilon))
    if options.truncation_epsilon is not None:
        parties.append(Claimant("the truncation report", (), options.truncation_epsilon))
    searches = [index for index, request in enumerate(requests) if request.search is not None]
    shares = split_epsilon(parties, len(requests) - len(searches), options.epsilon)
    return NoiseRequest(
        requests=requests,
        weights=_with_searches(requests, shares.weights),
        max_groups=options.max_groups_contributed or options.max_rows_contributed or 1,
        epsilon=shares.epsilon,
        delta=options.delta,
        unknown_groups=unknown_groups,
        minimum_units=options.min_privacy_units,
        answered=tuple(sorted({index for each in estimators for index in each.measures} | {*searches})),
    )


def _with_searches(requests: Sequence[MeasureRequest], weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Give half of the share of each measure without bounds to the searches for them, evenly."""
    found = {request.search: Fraction(0) for request in requests if request.search is not None}
    weighted = []
    for request, weight in zip(requests, weights, strict=False):
        wanted = request.searches
        weighted.append(weight / 2 if wanted else weight)
        for search in wanted:
            found[search] += weight / (2 * len(wanted))
    return (*weighted, *found.values())


def _allowed_distributions(options: Options, *, unknown: bool) -> tuple[NoiseDistribution, ...]:
    laplace = NoiseDistribution.TRUNCATED if unknown else NoiseDistribution.LAPLACE
    if options.delta == 0:
        return (NoiseDistribution.LAPLACE,)
    match options.group_selection:
        case GroupSelection.LAPLACE_THRESHOLD:
            return (NoiseDistribution.LAPLACE,)
        case GroupSelection.TRUNCATED_GEOMETRIC:
            return (laplace,)
        case GroupSelection.GAUSSIAN_THRESHOLD:
            return (NoiseDistribution.GAUSSIAN,)
        case _:
            return (laplace, NoiseDistribution.GAUSSIAN)


def _out_of_reach(options: Options) -> OptionError:
    return OptionError(
        f"epsilon must leave the noise within 2**40 grid steps, got {options.epsilon!r} with delta "
        f"{options.delta!r}; use a larger epsilon or delta, or fewer groups or rows"
    )
