"""What the reports to one question about strings say of any code, once somebody asks for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency import count_mean_sketch as sketches
from sfumato.local.device.frequency import hadamard, local_hashing
from sfumato.local.frequency.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
from sfumato.local.frequency.hadamard import OneBitHadamard
from sfumato.local.frequency.local_hashing import OptimalLocalHashing
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.walsh_hadamard import walsh
from sfumato.numerics import _kernels
from sfumato.privacy.loss import PrivacyLoss

__all__ = [
    "Answers",
    "HashedAnswers",
    "NumberedAnswers",
    "SimulatedAnswers",
    "SketchedAnswers",
    "Stored",
    "answers_of",
]

Stored = NDArray[Any]
"""What is stored of the reports to a question: whole numbers that add up, or the records themselves."""

_CELLS: Final = 1 << 22


class Answers(ABC):
    """The server half of what a question is answered by."""

    __slots__ = ()

    @property
    @abstractmethod
    def support(self) -> Support:
        """How likely reports support codes."""

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """Of one report."""

    @property
    @abstractmethod
    def totals(self) -> int:
        """How many whole numbers are stored, if any."""

    @abstractmethod
    def tally(self, records: Records) -> NDArray[np.int64]:
        """Return what some records add to them."""

    @abstractmethod
    def supports(self, stored: Stored, reports: int, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many of the reports support each code."""

    @property
    def cells(self) -> int:
        """How many positions all hash functions have together, where these are fixed; else 0."""
        return 0

    def collisions(self, codes: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how much of each other code's share a code's estimate has in it, beyond what is expected.

        Parameters
        ----------
        codes, others : int64 array

        Returns
        -------
        float64 array, shape (codes, others)
            0 for a code and itself.
        """
        return np.zeros((len(codes), len(others)))

    def added(
        self, codes: NDArray[np.int64], others: NDArray[np.int64], shares: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what other codes with such shares add to estimates: the sums of `collisions`."""
        return np.zeros(len(codes))


class OracleAnswers(Answers):
    """Answers by an oracle that one report goes through."""

    __slots__ = ()

    oracle: OptimalLocalHashing | OneBitHadamard | CountMeanSketch | HadamardCountMeanSketch

    @property
    def support(self) -> Support:
        """That of the oracle."""
        return self.oracle.support

    @property
    def loss(self) -> PrivacyLoss:
        """That of the oracle."""
        return self.oracle.privacy_loss


@final
@dataclass(frozen=True, slots=True)
class HashedAnswers(OracleAnswers):
    """Answers by local hashing: the records are stored, and asked about each code."""

    oracle: OptimalLocalHashing

    @property
    def totals(self) -> int:
        """None."""
        return 0

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Return nothing."""
        return np.zeros(0, np.int64)

    def supports(self, stored: Stored, reports: int, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many records support each code."""
        return self.oracle.supports(stored, codes)


@final
@dataclass(frozen=True, slots=True)
class NumberedAnswers(OracleAnswers):
    """Answers by Hadamard response: counts of reports, of which a transform gives all codes at once."""

    oracle: OneBitHadamard

    @property
    def totals(self) -> int:
        """One for each report there is."""
        return self.oracle.totals

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count the reports."""
        return self.oracle.tally(records)

    def supports(self, stored: Stored, reports: int, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many reports support each code."""
        return np.asarray(self.oracle.supports(stored)[codes])


@final
@dataclass(frozen=True, slots=True)
class SketchedAnswers(OracleAnswers):
    """Answers by a sketch: its rows, which any code may be looked up in."""

    oracle: CountMeanSketch | HadamardCountMeanSketch

    @property
    def totals(self) -> int:
        """One for each position of each hash function."""
        return self.oracle.hashes * self.oracle.size

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Add up the rows: counts of bits, or signs of transformed positions."""
        size, device = self.oracle.size, self.oracle.device
        if isinstance(device, sketches.HadamardCountMeanSketchRandomizer):
            functions, entries, negative = device.opened(records)
            cells = functions * size + entries
            found = np.bincount(cells, minlength=self.totals)
            return np.asarray(found - 2 * np.bincount(cells[negative == 1], minlength=self.totals))
        rows, functions = device.opened(records)
        order = np.argsort(functions, kind="stable")
        rows, counts = np.ascontiguousarray(rows[order]), np.zeros((self.oracle.hashes, size), np.int64)
        ends = np.searchsorted(functions[order], np.arange(self.oracle.hashes + 1))
        for function in np.unique(functions).tolist():
            part = rows[ends[function] : ends[function + 1]]
            _kernels.count_bits(part, part.shape[1], counts[function])
        return counts.ravel()

    def supports(self, stored: Stored, reports: int, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many reports support each code: those that have its position's bit, or sign."""
        hashes, device = self.oracle.hashes, self.oracle.device
        rows, signed = (
            stored.reshape(hashes, -1),
            isinstance(device, sketches.HadamardCountMeanSketchRandomizer),
        )
        if signed:
            rows = walsh(rows.copy())
        found = self._looked_up(rows, codes)
        return (reports + found) // 2 if signed else found

    def _looked_up(self, rows: NDArray[Any], codes: NDArray[np.int64]) -> NDArray[Any]:
        """Return for each code the sum over the functions of what a row for each has in its position."""
        found, functions = np.zeros(len(codes), rows.dtype), np.arange(len(rows))[:, None]
        step = max(1, _CELLS // len(rows))
        for start in range(0, len(codes), step):
            indices = self.oracle.device.indices(functions, codes[None, start : start + step])
            found[start : start + step] = np.take_along_axis(rows, indices, axis=1).sum(axis=0)
        return found

    @property
    def cells(self) -> int:
        """Those of the sketch."""
        return self.totals

    def collisions(self, codes: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return in which share of the functions two codes have one position, less the expected share."""
        functions, alike = np.arange(self.oracle.hashes)[:, None], 1 / self.oracle.size
        here, there = (self.oracle.device.indices(functions, part[None, :]) for part in (codes, others))
        found = np.array([(here == column[:, None]).mean(axis=0) for column in there.T])
        found = (found.reshape(len(others), len(codes)).T - alike) / (1 - alike)
        return np.where(codes[:, None] == others, 0.0, found)

    def added(
        self, codes: NDArray[np.int64], others: NDArray[np.int64], shares: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what other codes with such shares add to estimates, in memory of the codes alone."""
        functions, alike = np.arange(self.oracle.hashes)[:, None], 1 / self.oracle.size
        held = np.zeros((self.oracle.hashes, self.oracle.size))
        np.add.at(held, (functions, self.oracle.device.indices(functions, others[None, :])), shares)
        met = self._looked_up(held, codes) / self.oracle.hashes
        each, where = np.unique(others, return_inverse=True)
        own, at = np.append(np.bincount(where, shares), 0.0), np.searchsorted(each, codes)
        at = np.where(np.append(each, -1)[at] == codes, at, len(each))
        return np.asarray((met - alike * shares.sum()) / (1 - alike) - own[at])


@final
@dataclass(frozen=True, slots=True, eq=False)
class SimulatedAnswers(Answers):
    """Answers drawn when somebody asks, each from its own distribution, as if so many people had reported.

    Parameters
    ----------
    like : Answers
        Whose distribution; hash functions are taken as drawn anew for each report.
    codes, people : int64 array
        Different codes, rising, and how many people have each.
    generator : numpy Generator
    """

    like: Answers
    codes: NDArray[np.int64]
    people: NDArray[np.int64]
    generator: np.random.Generator

    @property
    def support(self) -> Support:
        """That of the answers that are simulated."""
        return self.like.support

    @property
    def loss(self) -> PrivacyLoss:
        """That of the answers that are simulated."""
        return self.like.loss

    @property
    def totals(self) -> int:
        """None."""
        return 0

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Return nothing."""
        return np.zeros(0, np.int64)

    def supports(self, stored: Stored, reports: int, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw how many reports support each code."""
        found = np.zeros(len(codes), np.int64)
        if len(self.codes):
            indices = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
            found = np.where(self.codes[indices] == codes, self.people[indices], 0)
        hits = self.generator.binomial(found, float(self.support.true))
        return np.asarray(hits + self.generator.binomial(reports - found, float(self.support.other)))


def answers_of(device: CategoricalRandomizer) -> Answers:
    """Return the server half of a client half."""
    if isinstance(device, local_hashing.OptimalLocalHashingRandomizer):
        return HashedAnswers(OptimalLocalHashing(epsilon=device.epsilon, domain=device.domain))
    if isinstance(device, hadamard.OneBitHadamardRandomizer):
        return NumberedAnswers(OneBitHadamard(epsilon=device.epsilon, domain=device.domain))
    if not isinstance(device, sketches.SketchRandomizer):
        _check.refuse_type("device", "be one that strings are reported by", device, "use another one")
    signed = isinstance(device, sketches.HadamardCountMeanSketchRandomizer)
    kind = HadamardCountMeanSketch if signed else CountMeanSketch
    shape = {"size": device.size, "hashes": device.hashes, "key": device.key}
    return SketchedAnswers(kind(epsilon=device.epsilon, domain=device.domain, **shape))
