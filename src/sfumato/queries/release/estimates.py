"""How the columns of an answer, and their intervals, are read off the noisy integers of its measures."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.mechanisms.statistics.tree_quantiles import LEVELS
from sfumato.queries.plan.query import MOMENT_KINDS, AggregateKind
from sfumato.queries.release.intervals import central_interval, mean_interval, thresholded_interval
from sfumato.queries.release.quantiles import quantile_ends
from sfumato.queries.release.record import ReleasedColumn, ReleaseRecord
from sfumato.queries.release.variance_estimates import MomentSum, moment_ends, moment_values

__all__ = ["as_arrow_array", "interval", "reports", "values"]

_Ends: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


def values(record: ReleaseRecord, column: ReleasedColumn) -> NDArray[Any]:
    """Return a column's values, one for each group of the record."""
    if column.kind in MOMENT_KINDS:
        counts = _noisy(record, column.count or 0).astype(np.float64)
        return _in_units(record, column, moment_values(column.kind, _sums(record, column, None), counts))
    total = record.measures[column.total]
    if column.places:
        return np.asarray(_quantiles(record, column, "m", 1)[..., 0])
    noisy = _noisy(record, column.total)
    if column.count is None:
        return _scaled(noisy, total.exponent, real=bool(total.found))
    counts = np.maximum(1, _noisy(record, column.count))
    return _scaled(np.clip(total.center + noisy / counts, total.lower, total.upper), total.exponent)


def interval(record: ReleaseRecord, column: ReleasedColumn, level: float) -> _Ends:
    """Return the ends of intervals around a column's values, with coverage at least ``level`` each.

    They are for the bounded answer. What is read off several noisy integers has intervals of these that hold
    all at once, by a union bound.
    """
    if column.kind in MOMENT_KINDS:
        each = 1 - (1 - level) / (2 + len(column.more))
        least, most = _ends(record, column.count or 0, each)
        counts = least.astype(np.float64), most.astype(np.float64)
        low, high = moment_ends(column.kind, _sums(record, column, each), counts)
        return _in_units(record, column, low), _in_units(record, column, high)
    total = record.measures[column.total]
    ends: _Ends
    if column.places:
        lower, upper = (_quantiles(record, column, letter, len(LEVELS)) for letter in "lu")
        step = 2.0**total.exponent
        bounds = float(total.row_lower or 0) * step, float(total.row_upper or 0) * step
        return quantile_ends(lower, upper, bounds, level)
    if column.count is not None:
        each = (1 + level) / 2
        ends = mean_interval(total, _ends(record, column.total, each), _ends(record, column.count, each))
    else:
        ends = _ends(record, column.total, level)
        if column.kind is not AggregateKind.SUM:
            ends = np.maximum(0, ends[0]), np.maximum(0, ends[1])  # a count is not negative
    low, high = (_scaled(end, total.exponent, real=bool(total.found)) for end in ends)
    return low, high


def reports(record: ReleaseRecord, column: ReleasedColumn, level: float) -> list[str]:
    """Return a column's values with their intervals as JSON, in the shape that ZetaSQL reports them.

    There is no report on bounding: counts of rows beyond the bounds would cost privacy of their own.
    """
    found = values(record, column), *interval(record, column, level)
    return [
        json.dumps(
            {
                "result": {
                    "value": value,
                    "noise_confidence_interval": {
                        "lower_bound": lower,
                        "upper_bound": upper,
                        "confidence_level": level,
                    },
                }
            }
        )
        for value, lower, upper in zip(*(as_arrow_array(each).to_pylist() for each in found), strict=True)
    ]


def as_arrow_array(column: NDArray[Any]) -> pa.Array:
    """Return a column as Arrow; what has no value, NaN here, is NULL."""
    return pa.array(column, from_pandas=True)


def _sums(record: ReleaseRecord, column: ReleasedColumn, level: float | None) -> list[MomentSum]:
    """Return the sums of products of a column: intervals of them, or without a level the noisy ones."""
    found = []
    for index in (column.total, *column.more):
        measure, noisy = record.measures[index], _noisy(record, index)
        low, high = (noisy, noisy) if level is None else central_interval(measure, noisy, level)
        terms = measure.row_lower or 0, measure.row_upper or 0
        found.append(MomentSum(low.astype(np.float64), high.astype(np.float64), measure.center, terms))
    return found


def _in_units(record: ReleaseRecord, column: ReleasedColumn, steps: NDArray[np.float64]) -> NDArray[Any]:
    if column.kind is AggregateKind.CORR:
        return steps
    root = 2 if column.kind in (AggregateKind.STDDEV_POP, AggregateKind.STDDEV_SAMP) else 1
    return steps * 2.0 ** (record.measures[column.total].exponent // root)


def _ends(record: ReleaseRecord, index: int, level: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an interval of the exact value of a measure, given that its group is shown."""
    measure, noisy = record.measures[index], _noisy(record, index)
    if index == 0 and record.threshold is not None:
        return thresholded_interval(measure.noise, noisy, record.threshold, level, least=record.least_units)
    return central_interval(measure, noisy, level)


def _quantiles(record: ReleaseRecord, column: ReleasedColumn, letter: str, each: int) -> NDArray[np.float64]:
    """Return a column's quantiles, or ends of intervals: group by group, a row of ``each`` for each of them.

    A single quantile has no axis of its own.
    """
    lists = record.table[f"{letter}{column.total}"].combine_chunks()
    many = lists.type.list_size // each
    steps = lists.flatten().to_numpy().reshape(len(lists), many, each)[:, column.places]
    chosen = steps[:, 0] if column.kind is AggregateKind.QUANTILE else steps
    exponent = record.measures[column.total].exponent
    return np.asarray(chosen, dtype=np.float64) * float(Fraction(2) ** exponent)


def _noisy(record: ReleaseRecord, index: int) -> NDArray[np.int64]:
    noisy: NDArray[np.int64] = record.table[f"m{index}"].to_numpy()
    return noisy


def _scaled(steps: NDArray[Any], exponent: int, *, real: bool = False) -> NDArray[Any]:
    """Return steps in the unit of the values: whole numbers where a step is one, unless ``real``."""
    if exponent == 0 and not real:
        return steps
    return np.asarray(steps, dtype=np.float64) * float(Fraction(2) ** exponent)
