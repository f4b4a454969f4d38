"""The tables of single columns, which every generator measures first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from sfumato.synthetic.generators.cell_groups import CellGroups, merged_below
from sfumato.synthetic.generators.model_base import ModelBase
from sfumato.synthetic.generators.private_table import PrivateTable
from sfumato.synthetic.generators.table_shift import TableShift
from sfumato.synthetic.graphical_model.calibration import Array
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.marginals.workload import Clique

__all__ = [
    "MEAN_ABSOLUTE",
    "column_noise",
    "grouped_tables",
    "measured_columns",
    "regrouped",
    "shares_by_size",
]

MEAN_ABSOLUTE: Final = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal variable."""


def shares_by_size(sizes: Sequence[int]) -> list[Fraction]:
    r"""Return which part of a budget each of several tables gets: in proportion to size^(2/3).

    Parameters
    ----------
    sizes : sequence of int
        Cells of each table.

    Returns
    -------
    list of Fraction
        Their sum is at most 1.

    Notes
    -----
    The L1 error of n cells is in proportion to :math:`n\sigma`, and :math:`\sum n_i\sigma_i` is least under
    :math:`\sum \sigma_i^{-2} = c` for :math:`\sigma_i \sim n_i^{-1/3}`.

    Examples
    --------
    >>> [float(part) for part in shares_by_size([1, 8])]
    [0.2, 0.8]
    """
    parts = [Fraction(round(size ** (2 / 3) * (1 << 20)), 1 << 20) for size in sizes]
    return [part / sum(parts) for part in parts]


def column_noise(sizes: Sequence[int], rho: Fraction, shift: TableShift) -> list[Fraction]:
    """Return the noise of each column's table for a budget of all of them.

    Parameters
    ----------
    sizes : sequence of int
    rho : Fraction
    shift : TableShift

    Returns
    -------
    list of Fraction
    """
    return [shift.noise(rho * part) for part in shares_by_size(sizes)]


def measured_columns(
    table: PrivateTable, noise: Sequence[Fraction], base: ModelBase | None = None
) -> Measurements:
    """Measure each column's table.

    Parameters
    ----------
    table : PrivateTable
    noise : sequence of Fraction
    base : ModelBase, optional
        Public: what a model of the tables is relative to.

    Returns
    -------
    Measurements
        The number of rows is the mean of the tables' sums, by inverse variance.
    """
    tables: dict[Clique, NoisyTable] = {}
    for column, sigma in enumerate(noise):
        counts = np.asarray(table.measure((column,), sigma), np.float64)
        tables[(column,)] = NoisyTable(counts, float(sigma) ** 2)
    measured = Measurements(table.groups.sizes, tables, row_count(list(tables.values())))
    return measured if base is None else base.chosen(measured)


def row_count(tables: Sequence[NoisyTable]) -> float:
    """Return the mean of several tables' sums, by inverse variance.

    Parameters
    ----------
    tables : sequence of NoisyTable

    Returns
    -------
    float

    Examples
    --------
    >>> row_count([NoisyTable(np.array([1.0, 2.0]), 1.0), NoisyTable(np.array([6.0]), 2.0)])
    4.5
    """
    weights = [1 / float(np.sum(each.variances)) for each in tables]
    sums = [float(each.counts.sum()) for each in tables]
    return math.fsum(w * s for w, s in zip(weights, sums, strict=True)) / math.fsum(weights)


def grouped_tables(measured: Measurements, threshold: float) -> tuple[CellGroups, Measurements]:
    """Merge the cells whose released count is below so many standard deviations.

    Parameters
    ----------
    measured : Measurements
        Of single columns.
    threshold : float

    Returns
    -------
    tuple of CellGroups and Measurements
        The measurements are of groups; the noise of merged cells adds up. Cells that the base measure tells
        apart are not merged, so that each cell of a group is as possible as the others.
    """
    tables = [measured.tables[(column,)] for column in range(len(measured.sizes))]
    base = measured.base
    classes = [None] * len(tables) if base is None else base.classes()
    pairs = zip(tables, classes, strict=True)
    groups = CellGroups([merged_below(each.counts, threshold * _deviation(each), of) for each, of in pairs])
    merged: dict[Clique, NoisyTable] = {
        (column,): NoisyTable(
            groups.merged(each.counts, (column,)), groups.merged(np.asarray(each.variances), (column,))
        )
        for column, each in enumerate(tables)
    }
    grouped = None if base is None else base.grouped(groups.groups)
    return groups, Measurements(groups.sizes, merged, measured.total, grouped, measured.trust)


def regrouped(
    columns: Measurements, groups: CellGroups, tables: Mapping[Clique, NoisyTable], threshold: float
) -> tuple[CellGroups, Measurements]:
    """Merge rare cells again for other classes of cells: where a prior that separated them is dropped.

    Parameters
    ----------
    columns : Measurements
        Of single columns, of cells, with the base measure that is to be.
    groups : CellGroups
        Which the tables are of; those of `grouped_tables` for a base measure that tells more cells apart.
    tables : mapping of tuple of int to NoisyTable
    threshold : float

    Returns
    -------
    tuple of CellGroups and Measurements
        Of all tables.
    """
    wider, merged = grouped_tables(columns, threshold)
    between = CellGroups(
        [
            new[np.unique(old, return_index=True)[1]]
            for old, new in zip(groups.groups, wider.groups, strict=True)
        ]
    )
    found = {
        clique: NoisyTable(
            between.merged(each.counts, clique), between.merged(np.asarray(each.variances), clique)
        )
        for clique, each in tables.items()
    }
    return wider, replace(merged, tables=found)


def _deviation(table: NoisyTable) -> float:
    variances: Array = np.asarray(table.variances)
    return math.sqrt(float(variances.flat[0]))
