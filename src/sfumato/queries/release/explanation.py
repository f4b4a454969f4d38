"""What a query will do and cost, in words; made from public parameters only."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.filters import own_epsilon
from sfumato.mechanisms.noise.truncated_laplace import TruncatedLaplace
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism
from sfumato.privacy._outward import text_above
from sfumato.queries.plan.expression_words import in_words
from sfumato.queries.plan.measure import Measure
from sfumato.queries.plan.query import FoundBounds, PublicRelation, PublicTable
from sfumato.queries.plan.relation_text import relation_words
from sfumato.queries.pricing.aggregate_measures import ColumnEstimator
from sfumato.queries.pricing.calibration import AnyMechanism, distribution_of
from sfumato.queries.pricing.expected_error import cost_alone, expected_error, loss_alone
from sfumato.queries.pricing.found_bounds import FALLBACK_BOUNDS, threshold, with_found_bounds
from sfumato.queries.pricing.measures.measure_request import MeasureRequest
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.pricing.truncation_report import PricedTruncation
from sfumato.queries.release.record import scale_of

__all__ = ["explain"]


def explain(
    priced: PricedQuery,
    *,
    privacy_unit: str,
    budget: Budget | None = None,
    found: tuple[FoundBounds, ...] = (),
) -> str:
    """Describe plan, bounds, noise, threshold, cost and error of a priced query, a line each.

    Parameters
    ----------
    priced : PricedQuery
    privacy_unit : str
    budget : Budget, optional
        Of the ledger, to say also what its filter is charged, and if the query could not be answered were
        nothing spent of it.
    found : tuple of FoundBounds
        The bounds that were found, one for each search of the query; none before it is answered.
    """
    if found:
        searches = (each.search for each in priced.searches)
        priced = with_found_bounds(priced, dict(zip(searches, found, strict=True)))
    of_budget = () if budget is None else (*_charge(priced, budget), *_misfit(priced, budget))
    return "\n".join((*_lines(priced, privacy_unit, found), *of_budget))


def _lines(priced: PricedQuery, privacy_unit: str, found: tuple[FoundBounds, ...]) -> Iterator[str]:
    query, options = priced.query, priced.query.options
    yield (
        f"Guarantee: ({options.epsilon:g}, {options.delta:g})-differential privacy for this answer alone, "
        f"when one {'row' if query.relation.unit is None else privacy_unit} is added or removed."
    )
    yield f"Rows: {relation_words(query.relation)}"
    if query.keys:
        yield "Groups: " + ", ".join(f"{key.name} = {key.expression.sql}" for key in query.keys)
        yield _selection(priced)
    yield _bounding(priced)
    yield from _uncounted(priced)
    yield from _searches(priced, found)
    for estimator in priced.estimators:
        yield f"{estimator.name}: {_meaning(priced, estimator)}"
        yield f"  {_cost(priced, estimator)}"
        yield f"  {_error(priced, estimator)}"
    for named in query.computed:
        rows = "rows shown" if named.name == query.having else named.name
        yield f"{rows}: {named.expression.sql}, computed from the answer; it costs nothing."
    for request, measure, mechanism in zip(priced.requests, priced.measures, priced.mechanisms, strict=True):
        yield _noise(request, measure, mechanism, pending=request.found and not priced.bounds_known)
    delta = priced.charged_delta
    whole = text_above(own_epsilon(priced.loss, delta), 4)
    yield f"Together: epsilon {whole} at delta {text_above(delta)}, charged before a row is read."
    certified = text_above(priced.loss.epsilon(options.delta), 4)
    yield f"Accountant: epsilon {certified} at delta {options.delta:g} for the same loss, certified."
    yield f"Loss charged: {priced.loss!r}"
    yield "Intervals are for the bounded answer: after the contribution bounds above, before noise."


def _charge(priced: PricedQuery, budget: Budget) -> Iterator[str]:
    """Say what the budget's filter adds up; the noise is set by that, not by the accountant's number."""
    filters = budget.filters
    added = filters.in_units(filters.price(priced.loss, priced.charged_delta), up=True)
    yield "Charged to the budget: " + ", ".join(f"{name} {_added(value)}" for name, value in added.items())


def _added(value: float) -> str:
    return text_above(value, 4) if 0 < value < math.inf else f"{value:g}"


def _misfit(priced: PricedQuery, budget: Budget) -> Iterator[str]:
    delta = priced.charged_delta
    if budget.filters.hold(budget.filters.price(priced.loss, delta)):
        return
    max_delta = max(member.delta for member in budget.filters.members)
    remedy = f"a delta of at most {max_delta:g}" if delta > max_delta else "a smaller epsilon"
    yield f"Budget: this answer alone does not fit into {budget}; ask for {remedy}."


def _selection(priced: PricedQuery) -> str:
    groups, threshold = priced.query.public_groups, priced.threshold
    if groups is not None or threshold is None:
        source = f"table {groups.table}" if isinstance(groups, PublicTable) else "the list given"
        if isinstance(groups, PublicRelation):
            source = relation_words(groups.relation)
        return f"Shown: every group of {source}, also the empty ones; it costs nothing."
    counted, options = priced.requests[0].expression, priced.query.options
    units = "units" if counted is None else f"units with a value of {in_words(counted)}"
    few = options.min_privacy_units
    among = "" if few == 1 else f"of those with at least {few} {units} in fact, "
    single = "a single unit" if few == 1 else f"just {few} {units}"
    return (
        f"Shown: {among}groups whose noisy number of {units} is {_passing(threshold)}; a group of "
        f"{single} is shown with a probability that delta covers."
    )


def _passing(threshold: RandomizedThreshold) -> str:
    if threshold.probability == 1:
        return f"at least {threshold.units}"
    share = _short(float(threshold.probability))
    return f"at least {threshold.units + 1}, or with probability {share} {threshold.units}"


def _bounding(priced: PricedQuery) -> str:
    options = priced.query.options
    if priced.query.relation.unit is None:
        return "Bounding: each row is a unit, in one group."
    groups = options.max_groups_contributed
    limits = "" if groups is None else f" at most {groups} group{'s' if groups > 1 else ''}"
    if options.max_rows_contributed is not None:
        limits = f" at most {options.max_rows_contributed} rows in all groups together"
    rows = options.max_rows_per_group
    limits += "" if rows is None else f"{',' if limits else ''} at most {rows} rows in a group"
    if not limits:
        return "Bounding: each unit keeps all its rows."
    return f"Bounding: each unit keeps{limits}, chosen at random where it has more."


def _uncounted(priced: PricedQuery) -> Iterator[str]:
    """Say what no number of the answer shows, where something can be cut off."""
    options = priced.query.options
    limits = options.max_groups_contributed, options.max_rows_per_group, options.max_rows_contributed
    stated = any(each.group_bounds or each.row_bounds for each in priced.query.aggregates)
    if priced.query.relation.unit is not None and (any(limits) or stated):
        yield (
            "Not counted: what a unit has beyond these limits or bounds; no interval shows how much that is. "
            + _where_shown(priced.truncation)
        )
    if priced.truncation is not None:
        yield from _report(priced, priced.truncation)


def _where_shown(report: PricedTruncation | None) -> str:
    if report is not None:
        return "The report beside the answer does:"
    return (
        "session.suggest_limits() does, for an epsilon of its own, and truncation_epsilon in OPTIONS, for a "
        "part of this one."
    )


def _report(priced: PricedQuery, report: PricedTruncation) -> Iterator[str]:
    """Say what the truncation report counts, with which noise."""
    for each in report.cuts:
        count, mechanism = each.count, each.mechanism
        of_values = "" if count.aggregate is None else f" of {priced.query.aggregates[count.aggregate].name}"
        weight = "once" if count.cap == 1 else f"as {count.cap} at most"
        yield (
            f"  share of {count.kind.value}{of_values} that is cut off: a unit counts {weight}. Noise on "
            f"what is cut off and on what is left: {distribution_of(mechanism).value}, standard deviation "
            f"{_short(float(mechanism.stddev) / each.steps)}"
        )
    yield f"  cost: epsilon {_short(report.epsilon)} of the whole"


def _searches(priced: PricedQuery, found: tuple[FoundBounds, ...]) -> Iterator[str]:
    """Say how bounds that the query does not state are found, or what was found."""
    for each in priced.searches:
        search, mechanism = each.search, each.mechanism
        words = in_words(search.expression)
        what = f"the total of {words} of a unit" if search.totals else words
        deviation = _short(float(mechanism.stddev))
        yield (
            f"Bounds of {what}: found first, by counting one number of each unit by powers of two, in all "
            f"groups together. Noise: {distribution_of(mechanism).value}, standard deviation {deviation}; "
            f"one unit moves one count by 1. A count of {threshold(each)} or more stands out; if none does, "
            f"the bounds are {_pair(*FALLBACK_BOUNDS)}."
        )
    for bounds in found:
        how = "" if bounds.found else "nothing stood out: "
        yield f"Found for {bounds.words}: {how}{_pair(bounds.lower, bounds.upper)}"


def _cost(priced: PricedQuery, estimator: ColumnEstimator) -> str:
    alone = cost_alone(priced, loss_alone(priced, estimator))
    others = {i for other in priced.estimators if other is not estimator for i in other.measures}
    others |= {0} if priced.threshold is not None else set()
    shared = others.intersection(estimator.measures)
    return f"cost: epsilon {_short(alone)} alone" + (", part of it shared with others" if shared else "")


def _error(priced: PricedQuery, estimator: ColumnEstimator) -> str:
    """Tell the error to expect."""
    error = expected_error(priced, estimator)
    if error is None:
        return "expected error: no single figure of the group tells it; the answer has intervals"
    unit = f" {error.unit}" if error.unit else ""
    if error.half_width is not None:
        return (
            f"expected error: at most {_short(error.half_width)}{unit} in 95 % of answers; standard "
            f"deviation {_short(error.stddev)}{unit}"
        )
    if error.typical is not None:
        return (
            f"expected error: by ranks; standard deviation about {_short(error.typical)} rows where values "
            f"are even, at most {_short(error.stddev)} whatever they are"
        )
    if error.unit == "ranks":
        return f"expected error: by ranks; standard deviation at most {_short(error.stddev)} rows"
    return (
        f"expected error: standard deviation at most {_short(error.stddev)}{unit} / n in a group of n "
        f"{error.over}, where n is far above the noise of their number"
    )


def _noise(request: MeasureRequest, measure: Measure, mechanism: AnyMechanism, *, pending: bool) -> str:
    if isinstance(mechanism, BinMechanism):
        return (
            f"Choice of {mechanism.words} from {request.title}: the exponential mechanism; an answer that is "
            f"off by {float(mechanism.scale):.6g} rows, or by fewer near the median, is e times less likely; "
            f"one unit moves a group by at most {mechanism.rows} rows. {mechanism.remark}"
        )
    if pending:
        many = float(mechanism.stddev) / max(1, measure.sensitivity)
        return (
            f"Noise on {request.title}: {distribution_of(mechanism).value}, standard deviation {many:.6g} "
            "times the most that one unit moves a group by, which follows the bounds found."
        )
    exponent = request.noise_exponent(measure)
    step = "" if exponent == 0 else f" steps of 2**{exponent}"
    return (
        f"Noise on {request.title}: {distribution_of(mechanism).value}, "
        f"scale {float(scale_of(mechanism)):.6g}{step}, standard deviation "
        f"{mechanism.stddev * 2.0**exponent:.6g}{_limits(mechanism)}; one unit moves a group by at most "
        f"{measure.sensitivity * 2.0**exponent:.6g}."
    )


def _limits(mechanism: AnyMechanism) -> str:
    """Say how large truncated noise can be."""
    if not isinstance(mechanism, TruncatedLaplace):
        return ""
    limit, weight = int(mechanism.limit), mechanism.weight
    often = f", and at most {limit - 1} with probability {_short(float(weight))}" if weight else ""
    return f", at most {limit}{often}"


def _short(value: float) -> str:
    return f"{value:.4g}"


def _pair(low: float, high: float) -> str:
    return f"[{low:g}, {high:g}]"


def _meaning(priced: PricedQuery, estimator: ColumnEstimator) -> str:
    """Say what an aggregate is, and within which bounds."""
    request, function = priced.requests[estimator.total], estimator.kind.value
    if request.found and not priced.bounds_known:
        meaning = f"{function}, within the bounds found"
    else:
        meaning = request.meaning(function, priced.measures[estimator.total])
    orders = ", ".join(f"{order:g}" for order in estimator.quantiles)
    return f"{meaning}; order {orders}" if orders else meaning
