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
(`sfumato.mechanisms.statistics.quantile.tree_estimates`); that counts are not negative makes it less. Of
quantiles that are chosen `BinnedQuantiles` states the error.
"""

from __future__ import annotations

import math
from typing import Final

from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.plan.query import AggregateKind
from sfumato.queries.pricing.aggregate_measures import ColumnEstimator
from sfumato.queries.pricing.measures.measure_request import EstimateNoise, ExpectedError
from sfumato.queries.pricing.price import PricedQuery

__all__ = ["cost_alone", "expected_error", "loss_alone"]

_ROOTS_AND_RATIOS: Final = (AggregateKind.CORR, AggregateKind.STDDEV_POP, AggregateKind.STDDEV_SAMP)
"""Aggregates whose error depends on the very values, not on the number of rows alone."""


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
    """Return the error to expect of an aggregate; None where numbers of rows or units do not determine it.

    Parameters
    ----------
    priced : PricedQuery
    estimator : ColumnEstimator
    level : float
        Coverage of the interval whose half-width is stated.
    """
    if estimator.kind in _ROOTS_AND_RATIOS:
        return None
    request, mechanism = priced.requests[estimator.total], priced.mechanisms[estimator.total]
    pending = request.found and not priced.bounds_known
    if isinstance(mechanism, BinMechanism):
        measure = priced.measures[estimator.total]
        return request.choice_error(mechanism, measure, estimator.quantiles, pending=pending)
    count = estimator.count
    return request.expected_error(
        EstimateNoise(
            measure=priced.measures[estimator.total],
            stddev=float(mechanism.stddev),
            half_width=lambda: mechanism.distribution.half_width(level)[0],
            pending=pending,
            over="" if count is None else priced.requests[count].counts,
            count_stddev=math.nan if count is None else _stddev(priced, count),
            further=tuple(_stddev(priced, index) for index in estimator.more),
            quantiles=estimator.quantiles,
        )
    )


def _stddev(priced: PricedQuery, index: int) -> float:
    """Return the standard deviation of the noise of a measure, which is no quantile's."""
    mechanism = priced.mechanisms[index]
    return math.nan if isinstance(mechanism, BinMechanism) else float(mechanism.stddev)
