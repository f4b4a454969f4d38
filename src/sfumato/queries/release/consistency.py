"""Hierarchies: tables of the same sums at several levels, made to add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.queries.plan.query import ADDITIVE
from sfumato.queries.release.table import TableRelease

__all__ = ["consistent"]

Floats = NDArray[np.float64]


def consistent(levels: Sequence[TableRelease], column: str) -> tuple[pa.Table, ...]:
    r"""Make released tables of one sum at several levels agree: every group is the sum of its parts.

    Parameters
    ----------
    levels : sequence of TableRelease
        From the coarsest to the finest, each with public groups; the keys of one are among the keys of the
        next. The first may have no keys: the total.
    column : str
        A COUNT or SUM that all of them have.

    Returns
    -------
    tuple of pyarrow.Table
        For each level the keys, the column, and ``<column>_stddev``, the standard deviation of its noise.

    Raises
    ------
    ParameterError
        If a level does not refine the one before, groups are not public, or the column is no sum.

    Notes
    -----
    Guarantee: post-processing of what was released; it costs no privacy. The result is the weighted least
    squares estimate: of all values that add up, those with the least :math:`\sum (x_v - \tilde x_v)^2 /
    \sigma_v^2`. On a tree it takes one pass up, in which a group's own number and the sum of its parts are
    averaged by their precision, and one down, in which the rest is split over the parts in proportion to
    their variance. Every number has at most the variance that it had. Numbers may be negative, as they were.

    Levels add up where each unit is in one group of the finest level, as people are in one county. Where a
    unit is in several, or loses some of its groups to a bound, the exact answers of the levels differ
    themselves, and making them agree moves them by as much.

    References
    ----------
    Hay, Rastogi, Miklau, Suciu (2010), "Boosting the accuracy of differentially private histograms through
    consistency", for equal variances.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(90), "sex": ["f", "m", "m"] * 30})
    >>> with sf.connect(people, privacy_unit="person", epsilon=2, rng=7) as session:
    ...     total = session.table().agg(n=sf.count()).release(epsilon=1, delta=0)
    ...     by_sex = session.table().group_by("sex", public_groups={"sex": ["f", "m"]}).agg(n=sf.count())
    ...     parts = by_sex.release(epsilon=1, delta=0, max_groups_contributed=1)
    >>> top, bottom = consistent([total, parts], "n")
    >>> top["n"][0].as_py() == sum(bottom["n"].to_pylist())
    True
    """
    given: object = levels
    if not isinstance(given, (list, tuple)) or len(given) < 2:
        _check.refuse("levels", "be two releases or more", levels, "pass them from coarse to fine")
    found = [_level(release, column) for release in levels]
    parents = [_parents(above, below) for above, below in pairwise(found)]
    values, variances = _up(found, parents)
    values, variances = _down(values, variances, parents)
    return tuple(
        pa.table(
            [*level.keys.columns, pa.array(value), pa.array(np.sqrt(variance))],
            names=[*level.keys.column_names, column, f"{column}_stddev"],
        )
        for level, value, variance in zip(found, values, variances, strict=True)
    )


@final
@dataclass(frozen=True, slots=True)
class _Level:
    keys: pa.Table
    groups: list[tuple[Any, ...]]
    values: Floats
    variance: float


def _level(release: TableRelease, column: str) -> _Level:
    if not isinstance(release, TableRelease):
        _check.refuse_type("levels", "be releases", release, "pass what session.sql returned")
    record = release.record
    if record.threshold is not None:
        remedy = "list them: groups below a threshold are missing from the sums"
        _check.refuse("levels", "have public groups", record.keys, remedy)
    read = next((found for found in record.columns if found.name == column), None)
    if read is None or read.kind not in ADDITIVE:
        names = ", ".join(found.name for found in record.columns if found.kind in ADDITIVE)
        remedy = f"name one of {names}" if names else "ask each level for COUNT or SUM"
        _check.refuse("column", "be a COUNT or SUM of every level", column, remedy)
    measure = record.measures[read.total]
    step = 2.0**measure.exponent
    keys = pa.table([record.table[f"k{index}"] for index in range(len(record.keys))], names=list(record.keys))
    columns = [keys[name].to_pylist() for name in keys.column_names]
    return _Level(
        keys=keys,
        groups=list(zip(*columns, strict=True)) if columns else [()],
        values=record.table[f"m{read.total}"].to_numpy() * step,
        variance=(float(measure.noise.stddev) * step) ** 2,
    )


def _parents(above: _Level, below: _Level) -> NDArray[np.intp]:
    """Return for each group of a level the index of the group above that it is a part of."""
    names = below.keys.column_names
    missing = [name for name in above.keys.column_names if name not in names]
    if missing or len(names) == above.keys.num_columns:
        finer, coarser = (", ".join(level.keys.column_names) or "nothing" for level in (below, above))
        found = f"groups by {finer} come after groups by {coarser}"
        _check.refuse_state("levels", "each refine the one before", found, "pass them from coarse to fine")
    shared = [names.index(name) for name in above.keys.column_names]
    indices = {group: index for index, group in enumerate(above.groups)}
    parents = [indices.get(tuple(group[index] for index in shared), -1) for group in below.groups]
    if -1 in parents or len(set(parents)) < len(above.groups):
        found = f"{len(above.groups)} and {len(below.groups)} groups do not match"
        remedy = "give every group its parts, and every part its group"
        _check.refuse_state("levels", "list the same groups", found, remedy)
    return np.asarray(parents, dtype=np.intp)


def _up(levels: list[_Level], parents: list[NDArray[np.intp]]) -> tuple[list[Floats], list[Floats]]:
    """Average each group's number with the sum of its parts, from the finest level up."""
    values, variances = [levels[-1].values], [np.full(len(levels[-1].values), levels[-1].variance)]
    for level, parent in zip(reversed(levels[:-1]), reversed(parents), strict=True):
        size = len(level.values)
        sums = np.bincount(parent, values[0], minlength=size)
        summed = np.bincount(parent, variances[0], minlength=size)
        total = summed + level.variance
        # Without any noise on either side there is nothing to weigh.
        weight = np.divide(summed, total, out=np.full(size, 0.5), where=total > 0)
        values.insert(0, weight * level.values + (1 - weight) * sums)
        variances.insert(0, weight * level.variance)
    return values, variances


def _down(
    values: list[Floats], variances: list[Floats], parents: list[NDArray[np.intp]]
) -> tuple[list[Floats], list[Floats]]:
    """Spread what a group's number is off the sum of its parts over them, from the coarsest level down."""
    final_values, final_variances = [values[0]], [variances[0]]
    for index, parent in enumerate(parents):
        mine, variance = values[index + 1], variances[index + 1]
        size = len(values[index])
        sums = np.bincount(parent, mine, minlength=size)
        total = np.bincount(parent, variance, minlength=size)
        equal = 1 / np.bincount(parent, minlength=size)[parent]
        share = np.divide(variance, total[parent], out=equal, where=total[parent] > 0)
        final_values.append(mine + share * (final_values[-1] - sums)[parent])
        final_variances.append(np.maximum(0.0, variance - share**2 * (total - final_variances[-1])[parent]))
    return final_values, final_variances
