"""The error to expect of each aggregate, and what each costs alone; from public parameters only.

A count or a sum is off by its own noise. A mean, a variance or a covariance is a quotient, so its error falls
with the number of units or rows in the group, a public or released figure: what is stated is the standard
deviation times that number, to first order in the noise over the number, and the largest that any data within
the bounds give it. Quantiles are off by ranks.

Notes
-----
With n the number, h half the distance of the bounds, values taken from their middle, and Z the noise of each
sum: a mean m moves by ``(Z_sum - m Z_n) / n``, and ``|m| <= h``. A variance moves by
``(Z_squares - 2 m Z_sum + (m**2 + h**2/2 - v) Z_n) / n``, where the squares have half of ``h**2`` taken off,
and the variance v is from 0 to ``h**2 - m**2``. A covariance c moves by
``(Z_products - m_y Z_x - m_x Z_y + (m_x m_y - c) Z_n) / n``, and ``|m_x m_y| + |c| <= h_x h_y`` by the
inequality of Cauchy and Schwarz. The rank of a border of a tree of h levels and b children is a linear form
of the noise with the squared weight ``b (max(p, 1 - p)**2 + (h - 1) / 4)`` at most
(`sfumato.mechanisms.statistics.quantile.tree_estimates`); that counts are not negative makes it less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from sfumato.mechanisms.statistics.quantile.count_tree import TreeShape
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.plan.query import ADDITIVE, MOMENT_KINDS, AggregateKind, Measure
from sfumato.queries.pricing.aggregates import ColumnEstimator
from sfumato.queries.pricing.price import PricedQuery

__all__ = ["ExpectedError", "cost_alone", "expected_error", "loss_alone"]

_HALF = "times half the distance of the bounds"
_DEVIATIONS = (AggregateKind.STDDEV_POP, AggregateKind.STDDEV_SAMP)


@final
@dataclass(frozen=True, slots=True)
class ExpectedError:
    """How far an aggregate will be off the bounded answer.

    Parameters
    ----------
    stddev : float
        The standard deviation of the error, or the most that it can be.
    half_width : float or None
        Of the interval, where the error is the noise of a single measure.
    over : str
        What ``stddev`` is to be divided by: ``"units"`` or ``"rows"`` of the group; empty for nothing.
    unit : str
        What it is counted in: empty for the aggregate's own unit; else ``"ranks"``, or in words how it
        follows from bounds that are not found yet.
    """

    stddev: float
    half_width: float | None = None
    over: str = ""
    unit: str = ""


def loss_alone(priced: PricedQuery, estimator: ColumnEstimator) -> PrivacyLoss:
    """Return the loss of what an aggregate is read off, the searches for its bounds included."""
    wanted = {search for index in estimator.measures for search in priced.requests[index].searches}
    losses = [priced.mechanisms[index].privacy_loss for index in dict.fromkeys(estimator.measures)]
    losses += [each.mechanism.privacy_loss for each in priced.searches if each.search in wanted]
    return compose(losses)


def cost_alone(priced: PricedQuery, loss: PrivacyLoss) -> float:
    """Return the epsilon of a part of a query at the query's delta."""
    return loss.quick_epsilon(priced.query.options.delta)


def expected_error(
    priced: PricedQuery, estimator: ColumnEstimator, *, level: float = 0.95
) -> ExpectedError | None:
    """Return the error to expect of an aggregate; None where no number of rows or units tells it.

    Parameters
    ----------
    priced : PricedQuery
    estimator : ColumnEstimator
    level : float
        Coverage of the interval whose half-width is stated.
    """
    total = priced.measures[estimator.total]
    pending = priced.requests[estimator.total].found and not priced.bounds_known
    stddev = float(priced.mechanisms[estimator.total].stddev)
    step = 2.0**total.exponent
    if estimator.kind in ADDITIVE:
        width = priced.mechanisms[estimator.total].distribution.half_width(level)[0] * step
        return ExpectedError(stddev * step, width, unit="times the larger bound" if pending else "")
    if estimator.quantiles:
        weight = _rank_weight(_tree(total, pending=pending), estimator.quantiles)
        return ExpectedError(stddev * math.sqrt(weight), unit="ranks")
    if estimator.count is None:
        return None
    over = priced.requests[estimator.count].counts
    counted = float(priced.mechanisms[estimator.count].stddev)
    if estimator.kind is AggregateKind.AVG:
        deviation = math.hypot(stddev, total.sensitivity * counted) * step
        return ExpectedError(deviation, over=over, unit=_HALF if pending else "")
    if estimator.kind not in MOMENT_KINDS or estimator.kind in (AggregateKind.CORR, *_DEVIATIONS):
        return None
    sums = [float(priced.mechanisms[index].stddev) for index in estimator.more]
    halves = [(factor.upper - factor.lower) / 2 for factor in total.value.columns]
    if len(sums) == 1:
        parts = stddev, 2 * halves[0] * sums[0], 1.5 * halves[0] ** 2 * counted
    else:
        crossed = math.hypot(halves[1] * sums[0], halves[0] * sums[1])
        parts = stddev, crossed, halves[0] * halves[1] * counted
    unit = f"{_HALF}, squared" if len(sums) == 1 else f"{_HALF} of either column"
    return ExpectedError(math.hypot(*parts) * step, over=over, unit=unit if pending else "")


def _tree(measure: Measure, *, pending: bool) -> TreeShape:
    """Return the tree over a measure's bins; over bounds that are not found yet, the largest there may be."""
    (column,) = measure.value.columns
    bins = 1 << 16 if pending else column.upper - column.lower + 1
    return TreeShape.of(bins)


def _rank_weight(shape: TreeShape, orders: tuple[float, ...]) -> float:
    farthest = max(max(order, 1 - order) for order in orders)
    return shape.branching * (farthest**2 + (shape.height - 1) / 4)
