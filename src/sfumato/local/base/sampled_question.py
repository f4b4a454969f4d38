"""The base of protocols that ask each respondent one question, drawn by chance: the server's half.

The client half draws a public question and answers it; see `sfumato.local.device.base.sampled_question`.
Here the reports to each question are counted by a part of their own, and the aggregator stores the whole
numbers of all parts, one after the other, and how many reports there are to each question.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.sampled_question import SampledQuestionRandomizer, rows_of

__all__ = ["CountedPart", "SampledQuestionProtocol", "SeveralParts"]


class CountedPart(Protocol):
    """What one part's reports add up to."""

    @property
    def totals(self) -> int:
        """How many whole numbers."""

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Return what some records add to them."""

    def simulate_counts(self, true_counts: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw them, given how many respondents are in each category."""


class SeveralParts(ABC):
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


class SampledQuestionProtocol(SeveralParts):
    """A protocol whose reports answer one question each."""

    __slots__ = ()

    device: SampledQuestionRandomizer

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

    def _asked(
        self, people: NDArray[np.int64], generator: np.random.Generator
    ) -> Iterable[NDArray[np.int64]]:
        """Draw how many respondents of each kind are asked each question, question by question."""
        chances = [float(chance) for chance in self.device.chances]
        return np.asarray(generator.multinomial(people, chances).T)

    def _simulated(
        self, codes: NDArray[np.int64], people: NDArray[np.int64], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw totals, given the codes of kinds of respondents, and how many are of each kind."""
        found, asked = [], []
        for at, own in enumerate(self._asked(people, generator)):
            counts = np.zeros(len(self.device.parts[at].domain), np.int64)
            np.add.at(counts, self.device.answers(codes, at), own)
            found.append(self.counted[at].simulate_counts(counts, generator))
            asked.append(int(own.sum()))
        return np.concatenate([*found, np.array(asked, np.int64)])
