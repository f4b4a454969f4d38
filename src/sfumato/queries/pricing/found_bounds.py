"""Bounds that were found: read off the noisy counts of the searches, and put into the measures.

A measure was priced within the placeholders -1 and 1, whose distance from the middle is S steps, and has its
noise for S. What is found are powers of two, so there is a power of two that takes the placeholders to bounds
that hold the found ones: the measure's own bounds are as many steps apart, only a step is another. For sums,
what one unit adds is within the larger of the two in either direction, for zero is within reach of every
unit. For means, variances and covariances bounds are widened until half their distance is a power of two.
Quantiles are read within the very bounds, for the noise is on counts of rows; no tree over them has more
levels than the one that was priced.

Notes
-----
Guarantee: post-processing of the noisy counts; a measure with found bounds has at most the sensitivity of the
one that was priced, which is checked, and its noise is that one's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.randomness.source import RandomSource
from sfumato.queries.plan.query import AggregationJob, FoundBounds
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.magnitude_bins import MagnitudeBins
from sfumato.queries.pricing.price import PricedQuery, PricedSearch
from sfumato.queries.pricing.quantile_bins import bin_counts

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
    return max(1, priced.mechanism.distribution.quantile_above(BETA / priced.search.bins.many))


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


def read_off(bins: MagnitudeBins, noisy: NDArray[np.int64], minimum: int) -> tuple[float, float] | None:
    """Return the bounds that noisy counts of all bins show; None where no bin stands out."""
    out = np.flatnonzero(noisy >= minimum)
    return bins.bounds(int(out[0]), int(out[-1])) if out.size else None


def _counts(search: BoundSearch, exact: pa.Table) -> NDArray[np.int64]:
    counts = bin_counts(exact["m0"])
    full = np.zeros(search.bins.many, dtype=np.int64)
    full[counts.leaves] = counts.counts
    return full


def with_found_bounds(priced: PricedQuery, found: Mapping[BoundSearch, FoundBounds]) -> PricedQuery:
    """Return the query with the bounds that were found instead of the placeholders."""
    pairs = list(zip(priced.requests, priced.measures, strict=True))
    measures = tuple(
        request.with_bounds(measure, found) if request.found else measure for request, measure in pairs
    )
    for (request, before), now in zip(pairs, measures, strict=True):
        if now.sensitivity > before.sensitivity:
            rule, found_ones = "move no more steps than were priced", f"those of {request.title} do"
            _check.refuse_state("bounds", rule, found_ones, "price the query again")
    return replace(priced, measures=measures, bounds_known=True)
