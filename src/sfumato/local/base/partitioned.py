"""Protocols of several parts: the whole numbers of each, one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.sampled_part import OnePart, rows_of

__all__ = ["CountedPart", "OneCounted", "PartsCounted"]


class CountedPart(Protocol):
    """What one part's reports add up to."""

    @property
    def totals(self) -> int:
        """How many whole numbers."""

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Return what some records add to them."""


class PartsCounted(ABC):
    """Stores the totals of all parts, in their order."""

    __slots__ = ()

    @property
    @abstractmethod
    def counted(self) -> Sequence[CountedPart]:
        """The parts."""

    @property
    def _cuts(self) -> list[int]:
        return [0, *accumulate(part.totals for part in self.counted)]

    @property
    def totals(self) -> int:
        """Those of all parts."""
        return self._cuts[-1]

    def pieces(self, totals: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the totals of each part."""
        return [totals[start:stop] for start, stop in pairwise(self._cuts)]


class OneCounted(PartsCounted):
    """Stores the totals of all parts, and how many reports there are of each: a report is of one."""

    __slots__ = ()

    device: OnePart

    @property
    def totals(self) -> int:
        """Those of all parts, and how many reports there are of each."""
        return self._cuts[-1] + len(self.counted)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count with the parts that records are about."""
        which = self.device.named(records)
        totals, cuts = np.zeros(self.totals, np.int64), self._cuts
        for at, rows in rows_of(which, len(self.counted)):
            totals[cuts[at] : cuts[at + 1]] = self.counted[at].tally(self.device.cut(records[rows], at))
        totals[cuts[-1] :] = np.bincount(which, minlength=len(self.counted))
        return totals

    def reports_of_parts(self, totals: NDArray[np.int64]) -> list[int]:
        """Return how many reports there are of each part."""
        asked: list[int] = totals[self._cuts[-1] :].tolist()
        return asked
