"""The cells of released answers: each count and sum of a row by a number, and what is public of its noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.queries.plan.query import ADDITIVE
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.release.intervals import thresholded_interval
from sfumato.queries.release.record import NoisyMeasure, ReleaseRecord
from sfumato.queries.release.table import TableRelease

__all__ = ["CellMeasure", "cell_columns", "measures_and_rows", "numbered_cells"]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_ROWS: Final = 32  # bits of a cell's number that say its row; those above say its measure


@dataclass(frozen=True, slots=True)
class CellMeasure:
    """A measure of an answer, of which every row has a cell.

    Parameters
    ----------
    record : ReleaseRecord
        Of the answer.
    measure : NoisyMeasure
    noisy : array
        The released integers, by row.
    thresholded : bool
        Whether groups are shown by them.
    """

    record: ReleaseRecord
    measure: NoisyMeasure
    noisy: Integers
    thresholded: bool

    @property
    def step(self) -> float:
        """The distance of two values that a cell may have."""
        return float(2.0**self.measure.exponent)

    def far(self, rows: Integers, spare: float, miss: float) -> tuple[Floats, Floats]:
        """Return by how much some cells may be too large and too small, beyond what their noise says.

        That is nothing for a cell whose group is shown but for a probability of at most ``spare``; groups
        that may have fewer units are in their own intervals, each with a probability of 1 - ``miss``.

        Notes
        -----
        Guarantee: given that a group is shown, its lower bound at ``spare`` is above its count with at most
        this probability. Where the count is at least the threshold and a quantile of the noise at ``spare``,
        the group is shown with a probability of at least 1 - ``spare``; else, but for the first probability,
        the interval at ``miss`` counts, which is for a group given that it is shown.
        """
        threshold = self.record.threshold
        if not self.thresholded or threshold is None:
            return np.zeros(rows.size), np.zeros(rows.size)
        noise, noisy, minimum = self.measure.noise, self.noisy[rows], self.record.minimum_units
        sure = threshold.units + noise.quantile_above(spare)
        low, _ = thresholded_interval(noise, noisy, threshold, 1 - 2 * spare, minimum=minimum)
        near = low < sure
        ends = thresholded_interval(noise, noisy, threshold, 1 - miss, minimum=minimum)
        above, below = (np.maximum(0, far) * self.step for far in (noisy - ends[0], ends[1] - noisy))
        return np.where(near, above, 0.0), np.where(near, below, 0.0)


def cell_columns(priced: PricedQuery) -> dict[str, str]:
    """Return the columns of an answer that are cells, with names for columns of their numbers.

    Parameters
    ----------
    priced : PricedQuery
    """
    output = set(priced.query.output)
    return {
        each.name: f"{each.name}/cells"
        for each in priced.estimators
        if each.kind in ADDITIVE and each.name in output and not each.report
    }


def numbered_cells(
    releases: Sequence[TableRelease], tables: Sequence[pa.Table], names: Sequence[dict[str, str]]
) -> tuple[list[pa.Table], list[CellMeasure]]:
    """Return answers with columns of lists of one cell each, and the measures that their numbers count.

    Parameters
    ----------
    releases : sequence of TableRelease
    tables : sequence of pyarrow.Table
        The rows that each shows.
    names : sequence of dict
        For each answer, what `cell_columns` returned.
    """
    measures: list[CellMeasure] = []
    made = []
    for release, plain, cells in zip(releases, tables, names, strict=True):
        table, record, places = plain, release.record, dict[int, int]()
        for column in record.columns:
            if column.name not in cells:
                continue
            if column.total not in places:
                measure = record.measures[column.total]
                values = table[column.name].to_numpy().astype(np.float64)
                noisy = np.rint(values / 2.0**measure.exponent).astype(np.int64)
                places[column.total] = len(measures)
                shown = column.total == 0 and record.threshold is not None
                measures.append(CellMeasure(record, measure, noisy, shown))
            numbers = (places[column.total] << _ROWS) + np.arange(table.num_rows)
            offsets = pa.array(np.arange(table.num_rows + 1, dtype=np.int32))
            lists = pa.ListArray.from_arrays(offsets, pa.array(numbers))
            table = table.append_column(cells[column.name], lists)
        made.append(table)
    return made, measures


def measures_and_rows(cells: Integers) -> tuple[Integers, Integers]:
    """Return which measure and which row each number of a cell says."""
    return cells >> _ROWS, cells & ((1 << _ROWS) - 1)
