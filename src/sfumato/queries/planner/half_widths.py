"""The errors that a plan states: how far each column of an answer may be off, before anything is spent.

A count or a sum is off by its own noise. A mean, a variance, a standard deviation, a covariance and a
correlation are functions of several noisy sums, and fall with the units of the group, a public or released
figure: what is stated is half of the interval that a group of so many units would get. A quantile is off by
ranks, whatever the data.

Notes
-----
*Where the data matter* an average, a variance and a covariance are planned for the least favorable data
within the bounds (`sfumato.queries.pricing.expected_error`): all rows at the bound that is farther out. (With
both means at the very bounds a covariance can only be small, and its interval says so; with a few rows in a
hundred off them it is nearly as wide as planned.) For a standard deviation or a correlation there is no such
number, for either is least certain where values hardly vary; they are planned for values that are even over
their bounds, of columns that are independent.

*Ranks.* One choice of scale b among c candidates, one of which has the target's rank, is off by more than t
ranks with probability at most :math:`r / (1 + r)`, :math:`r = (c - 1) e^{-t/b}`; see
`BinnedQuantiles.rank_half_width`, and `rank_half_width` for noisy trees.

>>> import pyarrow as pa
>>> import sfumato as sf
>>> from sfumato.queries.pricing.price import price
>>> people = pa.table({"person": range(1000), "age": [20, 40] * 500})
>>> text = '''SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0, max_rows_per_group=1)
...           MEDIAN(age, contribution_bounds_per_row => (0, 120)) AS m FROM data'''
>>> with sf.connect(people, privacy_unit="person", epsilon=1) as session:
...     priced = price(session.read(text))
>>> 5 < expected_errors(priced, units=None, level=0.95)["m"] < 20
True
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinnedQuantiles
from sfumato.mechanisms.statistics.quantile.count_tree import TreeShape
from sfumato.mechanisms.statistics.quantile.tree_estimates import rank_half_width
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from sfumato.queries.plan.query import ADDITIVE, MOMENT_KINDS, AggregateKind
from sfumato.queries.pricing.aggregate_measures import ColumnEstimator
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.release.moment_columns import MEANS_SPARE
from sfumato.queries.release.noise import public_measures
from sfumato.queries.release.percentile_intervals import noise_points, percentile_interval
from sfumato.queries.release.ratio_intervals import NoiseTerm, ratio_interval
from sfumato.queries.release.record import NoisyMeasure
from sfumato.queries.release.tails.noise_tails import noise_tail
from sfumato.queries.release.variance_estimates import SAMPLED, PlainSum, correlation_line, covariance_line

__all__ = ["BY_RANK", "expected_errors", "remark_on", "unit_of"]

BY_RANK: Final = frozenset({AggregateKind.QUANTILE, AggregateKind.QUANTILES})
"""Aggregates whose error is a number of ranks."""

_EVEN: Final = frozenset({AggregateKind.CORR, AggregateKind.STDDEV_POP, AggregateKind.STDDEV_SAMP})
"""Aggregates that are planned for values that are even over their bounds."""

_COVARIANCES: Final = frozenset({AggregateKind.CORR, AggregateKind.COVAR_POP, AggregateKind.COVAR_SAMP})


def unit_of(kind: AggregateKind) -> str:
    """Return what the error of an aggregate is counted in: nothing where that is the column's own unit.

    Examples
    --------
    >>> unit_of(AggregateKind.QUANTILE), unit_of(AggregateKind.SUM)
    (' ranks', '')
    """
    return " ranks" if kind in BY_RANK else ""


def remark_on(kind: AggregateKind) -> str:
    """Return what the error of an aggregate presumes of the values.

    Examples
    --------
    >>> remark_on(AggregateKind.STDDEV_SAMP)
    ', where values are even over their bounds'
    """
    return ", where values are even over their bounds" if kind in _EVEN else ""


def expected_errors(priced: PricedQuery, *, units: float | None, level: float) -> dict[str, float]:
    """Return the half-width of each aggregate's interval, in its unit; of a quantile in ranks.

    Parameters
    ----------
    priced : PricedQuery
    units : float or None
        Units in a group, a public or released figure, which the error of averages, variances, covariances,
        standard deviations and correlations depends on. Each has at least one row.
    level : float

    Returns
    -------
    dict of str to float
        NaN where public parameters do not determine it.
    """
    measures = public_measures(priced)
    return {each.name: _half_width(priced, each, measures, units, level) for each in priced.estimators}


def _half_width(
    priced: PricedQuery,
    estimator: ColumnEstimator,
    measures: tuple[NoisyMeasure, ...],
    units: float | None,
    level: float,
) -> float:
    total = measures[estimator.total]
    if total.found and not priced.bounds_known:
        return math.nan
    if estimator.kind in BY_RANK:
        return _ranks(priced, estimator, total, level)
    if estimator.kind in ADDITIVE:
        return total.noise.half_width(level)[0] * 2.0**total.exponent
    if units is None or estimator.count is None:
        return math.nan
    if estimator.kind in MOMENT_KINDS:
        return _moment_error(estimator, measures, units, level)
    return _mean_error(total, measures[estimator.count], max(1.0, units), level) * 2.0**total.exponent


def _ranks(priced: PricedQuery, estimator: ColumnEstimator, total: NoisyMeasure, level: float) -> float:
    """Return the half-width in ranks, of the worst of a column's quantiles."""
    mechanism = priced.mechanisms[estimator.total]
    bins = (total.row_upper or 0) - (total.row_lower or 0) + 1
    if isinstance(mechanism, BinnedQuantiles):
        return mechanism.rank_half_width(bins, level)
    noise = total.noise
    if not isinstance(noise, DiscreteGaussianDistribution | DiscreteLaplaceDistribution):
        return math.nan
    return rank_half_width(TreeShape.of(bins), noise, estimator.quantiles, level)


def _mean_error(total: NoisyMeasure, count: NoisyMeasure, units: float, level: float) -> float:
    """Return the half-width of a mean's interval, in grid steps, where the mean is farthest out."""
    reach = max(total.upper - total.center, total.center - total.lower) * units
    terms = [NoiseTerm(noise_tail(total.noise), 1.0, 0.0), NoiseTerm(noise_tail(count.noise), 0.0, 1.0)]
    low, high = ratio_interval(np.array([reach]), np.array([units]), terms, np.array([1 - level]))
    return float(min(high[0] - low[0], total.upper - total.lower)) / 2


def _moment_error(
    estimator: ColumnEstimator, measures: tuple[NoisyMeasure, ...], units: float, level: float
) -> float:
    """Return the half-width of the interval that a group gets whose noisy sums are those of chosen data."""
    kind, sample = estimator.kind, estimator.kind in SAMPLED
    first, count, *others = (measures[index] for index in estimator.measures)
    rows, miss = max(units, 2.0 if sample else 1.0), np.array([1 - level])
    columns = others[:2] if kind in _COVARIANCES else [others[0], others[0]]
    means, deviations = zip(*(_column(each, even=kind in _EVEN) for each in columns), strict=True)
    squares = [mean**2 + deviation**2 for mean, deviation in zip(means, deviations, strict=True)]
    counted, *noises = noise_points([noise_tail(each.noise) for each in (count, *others)])
    plain = [
        PlainSum((mean - each.center) * rows + noise[None, :], each.center)
        for each, mean, noise in zip(others, [*means[: len(others)], *squares], noises, strict=False)
    ]
    together = means[0] * means[1] if kind in _COVARIANCES else squares[0]
    products = PlainSum(np.full((1, 1), (together - first.center) * rows), first.center)
    counts, tail = rows + counted[None, :], noise_tail(first.noise)
    if kind is AggregateKind.CORR:
        lines = correlation_line(products, (plain[0], plain[1]), (plain[2], plain[3]), counts)
        low, high = percentile_interval(tail, lines, miss, (-1.0, 1.0))
        return float(high[0] - low[0]) / 2
    lines, miss = (
        covariance_line(products, plain[0], plain[-1], counts, sample=sample),
        miss * (1 - MEANS_SPARE),
    )
    ranges = [((each.row_upper or 0) - (each.row_lower or 0)) / 2 for each in columns]
    largest = ranges[0] * ranges[1] * (2 if sample else 1)
    low, high = percentile_interval(tail, lines, miss, (-largest, largest))
    if kind in _COVARIANCES:
        return float(high[0] - low[0]) / 2 * 2.0**first.exponent
    if kind in _EVEN:
        low, high = (np.sqrt(np.maximum(0.0, end)) for end in (low, high))
        return float(high[0] - low[0]) / 2 * 2.0 ** (first.exponent // 2)
    return min(float(high[0] - low[0]), largest) / 2 * 2.0**first.exponent


def _column(measure: NoisyMeasure, *, even: bool) -> tuple[float, float]:
    """Return mean and standard deviation of a column: even over its bounds, or all at the farther bound."""
    low, high = float(measure.row_lower or 0), float(measure.row_upper or 0)
    if even:
        return (low + high) / 2, (high - low) / math.sqrt(12)
    return max(low, high, key=abs), 0.0
