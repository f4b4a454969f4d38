"""Bounds that were found: read off the noisy counts of the searches, and put into the measures.

A measure was priced within the stand-ins -1 and 1, whose distance from the middle is S steps, and has its
noise for S. What is found are powers of two, so there is a power of two that takes the stand-ins to bounds
that hold the found ones: the measure's own bounds are as many steps apart, only a step is another. For sums,
what one unit adds is within the larger of the two in either direction, for zero is within reach of every
unit. For means and spreads bounds are widened until half their distance is a power of two. Quantiles are read
within the very bounds, for the noise is on counts of rows; of no tree over them are there more levels than of
the one that was priced.

Notes
-----
Guarantee: post-processing of the noisy counts; a settled measure has at most the sensitivity of the one that
was priced, which is checked, and its noise is that one's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.source import RandomSource
from sfumato.queries.plan.query import AggregationJob, ColumnType, Factor, FoundBounds, Measure, MeasureKind
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.grids import MeasureRequest
from sfumato.queries.pricing.magnitude_bins import MagnitudeBins
from sfumato.queries.pricing.price import PricedQuery, PricedSearch
from sfumato.queries.pricing.quantile_bins import bin_counts, quantile_bins

__all__ = ["BETA", "FALLBACK_BOUNDS", "find", "find_bounds", "read_off", "threshold", "with_found_bounds"]

FALLBACK_BOUNDS: Final = (-1.0, 1.0)
"""The bounds where no bin stands out: the same for all data."""

BETA: Final = 1e-6
"""The chance that some empty bin of a search stands out by its noise alone."""


def find_bounds(
    priced: PricedQuery, ask: Callable[[AggregationJob], pa.Table], source: RandomSource
) -> tuple[PricedQuery, tuple[FoundBounds, ...]]:
    """Find the bounds that a priced query lacks, and return it with them.

    Parameters
    ----------
    priced : PricedQuery
        Charged already.
    ask : callable
        Has the engine compute a job.
    source : RandomSource
    """
    found = {each.search: find(each, ask(each.search.job(priced.query)), source) for each in priced.searches}
    return (with_found_bounds(priced, found) if found else priced), tuple(found.values())


def threshold(priced: PricedSearch) -> int:
    """Return the noisy count from which on a bin stands out."""
    return max(1, priced.mechanism.law.quantile_above(BETA / priced.search.bins.many))


def find(priced: PricedSearch, exact: pa.Table, source: RandomSource) -> FoundBounds:
    """Release the bounds: the outer borders of the outermost bins whose noisy counts stand out.

    Parameters
    ----------
    priced : PricedSearch
    exact : pyarrow.Table
        The engine's answer to the job of the search.
    source : RandomSource
    """
    search = priced.search
    noisy = np.asarray(priced.mechanism.release(_counts(search, exact), source).value)
    bounds = read_off(search.bins, noisy, threshold(priced))
    return FoundBounds(search.words(), *(bounds or FALLBACK_BOUNDS), found=bounds is not None)


def read_off(bins: MagnitudeBins, noisy: NDArray[np.int64], least: int) -> tuple[float, float] | None:
    """Return the bounds that noisy counts of all bins show; None where no bin stands out."""
    out = np.flatnonzero(noisy >= least)
    return bins.bounds(int(out[0]), int(out[-1])) if out.size else None


def _counts(search: BoundSearch, exact: pa.Table) -> NDArray[np.int64]:
    counts = bin_counts(exact["m0"])
    full = np.zeros(search.bins.many, dtype=np.int64)
    full[counts.leaves] = counts.counts
    return full


def with_found_bounds(priced: PricedQuery, found: Mapping[BoundSearch, FoundBounds]) -> PricedQuery:
    """Return the query with the bounds that were found in the place of the stand-ins."""
    pairs = zip(priced.requests, priced.measures, strict=True)
    measures = tuple(
        _with_bounds(request, measure, found) if request.found else measure for request, measure in pairs
    )
    for request, before, now in zip(priced.requests, priced.measures, measures, strict=True):
        if now.sensitivity > before.sensitivity:
            _check.refuse("bounds", "move no more steps than were priced", request.kind.value)
    return replace(priced, measures=measures, bounds_known=True)


def _with_bounds(
    request: MeasureRequest, measure: Measure, found: Mapping[BoundSearch, FoundBounds]
) -> Measure:
    if measure.kind is MeasureKind.MOMENT:
        factors = tuple(_factor(factor, found[BoundSearch(factor.expression)]) for factor in measure.factors)
        return replace(measure, factors=factors, exponent=sum(factor.exponent for factor in factors))
    (search,) = request.searches
    bounds = found[search]
    if measure.kind is MeasureKind.SUM:
        return replace(measure, exponent=measure.exponent + _power(max(-bounds.lower, bounds.upper)))
    if measure.kind is MeasureKind.LEAVES:
        return _leaves(request, measure, (bounds.lower, bounds.upper))
    lower, upper, power = _even(bounds, measure.upper)
    return replace(
        measure,
        exponent=measure.exponent + power,
        lower=lower,
        upper=upper,
        center=(lower + upper) // 2,
    )


def _factor(factor: Factor, bounds: FoundBounds) -> Factor:
    lower, upper, power = _even(bounds, factor.upper)
    return replace(
        factor, exponent=factor.exponent + power, lower=lower, upper=upper, center=(lower + upper) // 2
    )


def _leaves(request: MeasureRequest, measure: Measure, bounds: tuple[float, float]) -> Measure:
    grid = quantile_bins(bounds, whole=request.typed(ColumnType.INTEGER))
    if grid.shape.height > request.entries:
        _check.refuse("bounds", "make no more levels than were priced", bounds)
    return replace(measure, exponent=grid.exponent, row_lower=grid.lower, row_upper=grid.upper)


def _even(bounds: FoundBounds, half: int) -> tuple[int, int, int]:
    """Widen bounds until half their distance is a power of two.

    Parameters
    ----------
    bounds : FoundBounds
    half : int
        The steps that this is to be.

    Returns
    -------
    tuple
        Lower and upper bound in steps, and the power of two.
    """
    lower, upper = Fraction(bounds.lower), Fraction(bounds.upper)
    if lower < 0 < upper:
        upper = max(-lower, upper)
        lower = -upper
    elif lower >= 0 and upper != 2 * lower:
        lower = Fraction(0)
    elif upper <= 0 and lower != 2 * upper:
        upper = Fraction(0)
    distance = (upper - lower) / 2
    return int(lower / distance * half), int(upper / distance * half), _power(float(distance))


def _power(value: float) -> int:
    """Return the exponent of a power of two."""
    return math.frexp(value)[1] - 1
