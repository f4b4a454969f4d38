"""The noise step: exact bounded integers in, a release record out; nothing raw gets past this file."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.noise.truncated_laplace import TruncatedLaplace
from sfumato.mechanisms.statistics.quantile.binned_quantile_interval import (
    BinnedQuantileInterval,
    CenteredRows,
)
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism, BinnedRows
from sfumato.mechanisms.statistics.quantile.count_tree import TreeShape
from sfumato.mechanisms.statistics.quantile.tree_estimates import estimate_quantiles
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.randomness.source import RandomSource
from sfumato.queries.plan.measure import BinCounts, Measure
from sfumato.queries.plan.query import FoundBounds
from sfumato.queries.pricing.calibration import distribution_of
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.pricing.quantile_bins import bin_counts
from sfumato.queries.release.computed_columns import with_computed
from sfumato.queries.release.record import NoisyCut, NoisyMeasure, ReleasedColumn, ReleaseRecord, scale_of

__all__ = ["add_noise", "chosen_bins", "noisy_cuts", "noisy_quantiles", "public_measures"]


def add_noise(
    priced: PricedQuery,
    exact: pa.Table,
    source: RandomSource,
    *,
    privacy_unit: str,
    found: tuple[FoundBounds, ...] = (),
    truncated: pa.Table | None = None,
) -> ReleaseRecord:
    """Add each mechanism's noise, apply the threshold, and describe the result.

    Parameters
    ----------
    priced : PricedQuery
    exact : pyarrow.Table
        The engine's answer: ``k0``... key columns, ``m0``... int64 measures, one row per group, sorted by
        key.
    source : RandomSource
        Where the noise comes from.
    privacy_unit : str
    found : tuple of FoundBounds
        The bounds that were searched for. Both are carried into the record.
    truncated : pyarrow.Table, optional
        The engine's answer to the job of the truncation report, where the query asks for one.

    Returns
    -------
    ReleaseRecord
    """
    query = priced.query
    noisy: dict[int, NDArray[np.int64]] = {
        index: np.asarray(mechanism.release(exact[f"m{index}"].to_numpy(), source).value, dtype=np.int64)
        for index, mechanism in enumerate(priced.mechanisms)
        if not isinstance(mechanism, BinMechanism) and not isinstance(priced.measures[index].value, BinCounts)
    }
    shown = np.ones(exact.num_rows, dtype=bool)
    if priced.threshold is not None:
        units, counted = exact["m0"].to_numpy(), priced.mechanisms[0]
        if isinstance(counted, BinMechanism):
            rule, found_state = "begin with the count of units", "they begin with a choice"
            _check.refuse_state("mechanisms", rule, found_state, "price the query anew")
        enough = units >= query.options.min_privacy_units
        shown = enough & priced.threshold.select(units, noisy[0], counted.distribution, source)
    selection = pa.array(np.flatnonzero(shown))
    columns = {f"k{i}": exact[f"k{i}"].take(selection) for i in range(len(query.keys))}
    columns |= {f"m{i}": pa.array(values[shown]) for i, values in noisy.items()}
    orders = _orders(priced)
    for index, (measure, mechanism) in enumerate(zip(priced.measures, priced.mechanisms, strict=True)):
        if not isinstance(measure.value, BinCounts):
            continue
        of_shown = exact[f"m{index}"].take(selection)
        if isinstance(mechanism, BinMechanism):
            around = None
            if isinstance(mechanism, BinnedQuantileInterval):
                around = _quantile_of_interval(priced, index, orders, columns)
            columns[f"m{index}"] = chosen_bins(of_shown, measure, mechanism, source, around)
            continue
        lists = noisy_quantiles(of_shown, measure, mechanism.distribution, orders[index], source)
        columns |= {f"{letter}{index}": each for letter, each in zip("mlu", lists, strict=True)}
    record = ReleaseRecord(
        table=pa.table(list(columns.values()), names=list(columns)),
        keys=tuple(named.name for named in query.keys),
        measures=public_measures(priced),
        columns=tuple(
            ReleasedColumn(
                *(r.name, r.kind, r.total, r.count, r.more),
                quantile_indices=tuple(orders[r.total].index(order) for order in r.quantiles),
                report=r.report,
            )
            for r in priced.estimators
        ),
        threshold=priced.threshold,
        output=query.output,
        order_by=query.order_by,
        limit=query.limit,
        epsilon=query.options.epsilon,
        delta=query.options.delta,
        loss=priced.loss,
        privacy_unit=privacy_unit,
        simulated=source.simulated,
        having=query.having,
        offset=query.offset,
        minimum_units=query.options.min_privacy_units,
        found=found,
        truncation=() if truncated is None else noisy_cuts(priced, truncated, source),
    )
    return with_computed(record, query.computed)


def noisy_cuts(priced: PricedQuery, exact: pa.Table, source: RandomSource) -> tuple[NoisyCut, ...]:
    """Release what the limits of a query cut off, and what they leave.

    Parameters
    ----------
    priced : PricedQuery
    exact : pyarrow.Table
        The engine's answer to the job of the truncation report.
    source : RandomSource

    Returns
    -------
    tuple of NoisyCut
        None where no report is asked for.
    """
    if priced.truncation is None:
        return ()
    found = []
    for index, each in enumerate(priced.truncation.cuts):
        counts = np.array([exact[f"m{2 * index + side}"][0].as_py() for side in (0, 1)], dtype=np.int64)
        cut, left = np.asarray(each.mechanism.release(counts, source).value, dtype=np.int64).tolist()
        position, scale = each.count.aggregate, scale_of(each.mechanism)
        name = None if position is None else priced.query.aggregates[position].name
        found.append(NoisyCut(each.count.kind, name, each.count.cap, each.steps, scale, cut, left))
    return tuple(found)


def _orders(priced: PricedQuery) -> dict[int, list[float]]:
    """Return for each measure of counts by bin the orders of the quantiles that are read off it."""
    found: dict[int, set[float]] = {}
    for estimator in priced.estimators:
        for index in (estimator.total, *estimator.more) if estimator.quantiles else ():
            found.setdefault(index, set()).update(estimator.quantiles)
    return {index: sorted(orders) for index, orders in sorted(found.items())}


def public_measures(priced: PricedQuery) -> tuple[NoisyMeasure, ...]:
    """Return what is public about the noise of each measure."""
    return tuple(
        NoisyMeasure(
            distribution=distribution_of(mechanism),
            scale=scale_of(mechanism),
            exponent=measure.exponent,
            lower=measure.lower,
            upper=measure.upper,
            center=center,
            limit=int(mechanism.limit) if isinstance(mechanism, TruncatedLaplace) else None,
            weight=mechanism.weight if isinstance(mechanism, TruncatedLaplace) else None,
            row_lower=row_lower,
            row_upper=row_upper,
            found=request.found,
        )
        for request, measure, mechanism in zip(
            priced.requests, priced.measures, priced.mechanisms, strict=True
        )
        for center, row_lower, row_upper in [request.published(measure)]
    )


def _quantile_of_interval(
    priced: PricedQuery, index: int, orders: dict[int, list[float]], columns: dict[str, pa.Array]
) -> NDArray[np.int64]:
    """Return the released quantiles, one of each group, that intervals of a measure of their own are for."""
    (estimator,) = {(e.total, e.quantiles) for e in priced.estimators if index in e.more}
    total, (order,) = estimator
    lists = columns[f"m{total}"]
    steps = lists.flatten().to_numpy().reshape(len(lists), -1)
    return np.asarray(steps[:, orders[total].index(order)], dtype=np.int64)


def chosen_bins(
    column: pa.ChunkedArray,
    measure: Measure,
    mechanism: BinMechanism,
    source: RandomSource,
    around: NDArray[np.int64] | None = None,
) -> pa.Array:
    """Release quantiles of groups, or intervals, by choice, in steps of the measure's grid.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        The exact counts by bin of the groups that are shown.
    measure : Measure
    mechanism : BinMechanism
        Charged for the measure.
    source : RandomSource
    around : int64 array, optional
        The released quantiles, in steps, that intervals are for.

    Returns
    -------
    pyarrow.Array
        A list of them for each group.
    """
    lower, bins = _bins(measure)
    rows = BinnedRows(bin_counts(column), bins, len(column))
    if around is None:
        return _lists(lower + mechanism.release(rows, source).value)
    centers = np.clip(around - lower, 0, bins - 1)
    return _lists(lower + mechanism.release(CenteredRows(rows, centers), source).value)


def _bins(measure: Measure) -> tuple[int, int]:
    """Return the first of the bins that a measure counts rows in, in steps, and how many there are."""
    if not isinstance(measure.value, BinCounts):
        _check.refuse("measure", "count rows by bin", measure, "price it as the bins of a quantile")
    lower, upper = measure.value.column.lower, measure.value.column.upper
    return lower, upper - lower + 1


def noisy_quantiles(
    column: pa.ChunkedArray,
    measure: Measure,
    noise: SymmetricDistribution,
    orders: Sequence[float],
    source: RandomSource,
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Release quantiles of groups, and their intervals, in steps of the measure's grid.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        The exact counts by bin of the groups that are shown.
    measure : Measure
    noise : DiscreteLaplaceDistribution or DiscreteGaussianDistribution
        Of the noise of each node: that of the mechanism that is charged for the measure.
    orders : sequence of float
        Rising, from 0 to 1.
    source : RandomSource

    Returns
    -------
    tuple of pyarrow.Array
        One list for each group: the quantiles; the lower ends of their intervals, level by level for each of
        them; the upper ends.
    """
    lower, bins = _bins(measure)
    if not isinstance(noise, DiscreteLaplaceDistribution | DiscreteGaussianDistribution):
        _check.refuse("noise", "be discrete Laplace or Gaussian", noise, "use noise of one of the two")
    found = estimate_quantiles(
        TreeShape.of(bins),
        noise,
        bin_counts(column),
        np.asarray(orders, dtype=np.float64),
        source,
        groups=len(column),
    )
    numbers = (found.leaves, found.lower, found.upper)
    quantiles, low, high = (_lists(lower + each) for each in numbers)
    return quantiles, low, high


def _lists(rows: NDArray[np.int64]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), math.prod(rows.shape[1:]))
