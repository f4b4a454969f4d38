"""What every column of an answer is estimated from: the noisy integers of a record, and their intervals."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.queries.release.intervals import (
    ShownCounts,
    central_interval,
    shown_counts,
    thresholded_interval,
)
from sfumato.queries.release.record import NoisyMeasure, ReleasedColumn, ReleaseRecord

__all__ = ["EstimatedColumn"]

_Ends: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class EstimatedColumn(ABC):
    """A column of an answer, estimated from a record's noisy integers.

    Parameters
    ----------
    record : ReleaseRecord
    column : ReleasedColumn
    """

    record: ReleaseRecord
    column: ReleasedColumn

    @abstractmethod
    def values(self) -> NDArray[Any]:
        """Return the values, one for each group of the record."""

    @abstractmethod
    def interval(self, level: float) -> _Ends:
        """Return the ends of intervals around the values, with coverage at least ``level`` each."""

    @property
    def possible(self) -> tuple[float, float]:
        """What the exact value cannot leave and the noisy one may, by public parameters: 0 or infinity.

        Other ranges, such as a mean's bounds, hold for the values by themselves.
        """
        return -math.inf, math.inf

    @property
    def total(self) -> NoisyMeasure:
        """The first measure."""
        return self.record.measures[self.column.total]

    def noisy(self, index: int) -> NDArray[np.int64]:
        """Return the noisy integers of a measure."""
        noisy: NDArray[np.int64] = self.record.table[f"m{index}"].to_numpy()
        return noisy

    def ends(self, index: int, level: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return an interval of the exact value of a measure, given that its group is shown."""
        record, measure, noisy = self.record, self.record.measures[index], self.noisy(index)
        if index == 0 and record.threshold is not None:
            minimum = record.minimum_units
            return thresholded_interval(measure.noise, noisy, record.threshold, level, minimum=minimum)
        return central_interval(measure, noisy, level)

    def shown(self, index: int, level: float) -> ShownCounts | None:
        """Return what is known of a measure by being shown; None where no threshold was applied to it."""
        record = self.record
        if index or record.threshold is None:
            return None
        noise = record.measures[index].noise
        return shown_counts(noise, self.noisy(index), record.threshold, level, record.minimum_units)
