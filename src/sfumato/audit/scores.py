"""Scores of outputs, whose thresholds define the events that an audit tries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.outcome_encoding import EncodedOutcomes

__all__ = [
    "MAX_LISTED",
    "SUMMARIES",
    "BinnedRatioScore",
    "ColumnScore",
    "FrequencyRatioScore",
    "LikelihoodRatioScore",
    "LogisticScore",
    "MissingScore",
    "OutcomeScore",
    "Score",
    "SummaryScore",
    "bin_indices",
]

MAX_LISTED = 6
"""Outcomes of an event are listed up to so many."""


_STEEP = 5.0


class Score(Protocol):
    """A number for each outcome; an event is a score of at least, or of at most, a threshold."""

    @property
    def family(self) -> str:
        """The kind of event."""

    @property
    def name(self) -> str:
        """What is compared with the threshold."""

    def __call__(self, outcomes: EncodedOutcomes) -> NDArray[np.float64]:
        """Return the scores; NaN is in no event."""


@final
@dataclass(frozen=True, slots=True)
class ColumnScore:
    """A column itself: its events are tails."""

    name: str
    index: int
    family: str = "tail"

    def __call__(self, outcomes: EncodedOutcomes) -> NDArray[np.float64]:
        """Return the column."""
        return outcomes.columns[:, self.index]


@final
@dataclass(frozen=True, slots=True)
class SummaryScore:
    """A number made of all columns, such as their sum; columns without a number are left out."""

    name: str
    family: str = "tail"

    def __call__(self, outcomes: EncodedOutcomes) -> NDArray[np.float64]:
        """Return the numbers."""
        columns = outcomes.columns
        given = ~np.isnan(columns)
        some = given.any(axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            if self.name == "sum":
                values = np.where(given, columns, 0.0).sum(axis=1)
            elif self.name in {"largest", "index of the largest"}:
                filled = np.where(given, columns, -np.inf)
                values = filled.max(axis=1) if self.name == "largest" else filled.argmax(axis=1)
            elif self.name in {"smallest", "index of the smallest"}:
                filled = np.where(given, columns, np.inf)
                values = filled.min(axis=1) if self.name == "smallest" else filled.argmin(axis=1)
            else:
                values = np.where(given, columns**2, 0.0).sum(axis=1)
        return np.asarray(np.where(some, values, np.nan), dtype=np.float64)


SUMMARIES = ("sum", "sum of squares", "largest", "smallest", "index of the largest", "index of the smallest")


@final
@dataclass(frozen=True, slots=True)
class OutcomeScore:
    """Whether it is one certain outcome."""

    name: str
    key: np.uint64
    family: str = "atom"

    def __call__(self, outcomes: EncodedOutcomes) -> NDArray[np.float64]:
        """Return 1 for that outcome, else 0."""
        return np.asarray(outcomes.keys == self.key, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True)
class MissingScore:
    """Whether a column holds no number."""

    name: str
    index: int
    family: str = "atom"

    def __call__(self, outcomes: EncodedOutcomes) -> NDArray[np.float64]:
        """Return 1 where there is none, else 0."""
        return np.isnan(outcomes.columns[:, self.index]).astype(np.float64)


@final
@dataclass(frozen=True, slots=True)
class FrequencyRatioScore:
    """The log of the ratio in which an outcome was counted; outcomes that were rare share one."""

    keys: NDArray[np.uint64]
    ratios: NDArray[np.float64]
    rare: float
    shown: tuple[str, ...]
    name: str = "log-odds of the outcome"
    family: str = "posterior"

    def __call__(self, outcomes: EncodedOutcomes) -> NDArray[np.float64]:
        """Return the log of each outcome's ratio."""
        index = np.minimum(np.searchsorted(self.keys, outcomes.keys), len(self.keys) - 1)
        return np.where(self.keys[index] == outcomes.keys, self.ratios[index], self.rare)

    def members(self, threshold: float, *, above: bool) -> tuple[bool, tuple[str, ...]] | None:
        """Return whether the event is named by what it lacks, and those outcomes; None if they are many."""
        sign = 1 if above else -1
        inside = sign * self.ratios >= sign * threshold
        rest = bool(sign * self.rare >= sign * threshold)
        listed = np.flatnonzero(inside != rest)
        if len(listed) > MAX_LISTED or listed.max(initial=-1) >= len(self.shown):
            return None
        return rest, tuple(self.shown[k] for k in listed)


@final
@dataclass(frozen=True, slots=True)
class LikelihoodRatioScore:
    """The log-likelihood ratio of a known family."""

    name: str = "log-likelihood ratio"
    family: str = "posterior"

    def __call__(self, outcomes: EncodedOutcomes) -> NDArray[np.float64]:
        """Return the ratios."""
        return np.full(len(outcomes), np.nan) if outcomes.ratios is None else outcomes.ratios


@final
@dataclass(frozen=True, slots=True)
class BinnedRatioScore:
    """The sum over some columns of the log of the ratio in which their bins were counted."""

    name: str
    indices: tuple[int, ...]
    edges: tuple[NDArray[np.float64], ...]
    tables: tuple[NDArray[np.float64], ...]
    family: str = "posterior"

    def __call__(self, outcomes: EncodedOutcomes) -> NDArray[np.float64]:
        """Return the sums."""
        total = np.zeros(len(outcomes))
        for index, edges, table in zip(self.indices, self.edges, self.tables, strict=True):
            total += table[bin_indices(outcomes.columns[:, index], edges)]
        return total


@final
@dataclass(frozen=True, slots=True)
class LogisticScore:
    """A logistic regression on columns, sides of and distances from their middle, squares, and gaps."""

    weights: NDArray[np.float64]
    middle: NDArray[np.float64]
    stddev: NDArray[np.float64]
    name: str = "log-odds by regression"
    family: str = "posterior"

    def __call__(self, outcomes: EncodedOutcomes) -> NDArray[np.float64]:
        """Return the weighted sums."""
        total = np.zeros(len(outcomes))
        for j, weights in enumerate(self.weights.reshape(-1, len(self.middle)).T):
            for feature, weight in zip(self.features(outcomes.columns[:, j], j), weights, strict=True):
                total += weight * feature
        return total

    def features(self, column: NDArray[np.float64], j: int) -> Iterator[NDArray[np.float64]]:
        """Yield the features of one column."""
        missing = np.isnan(column)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.clip((column - self.middle[j]) / self.stddev[j], -8.0, 8.0)
        scaled[missing] = 0.0
        yield scaled
        yield np.tanh(_STEEP * scaled)  # noise with a sharp peak tells by the side, not by the distance
        yield np.abs(scaled)
        yield scaled**2 / 8
        yield missing.astype(np.float64)


def bin_indices(column: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the bin of each value: below the first edge, between edges, above the last, NaN."""
    # searchsorted puts NaN behind every edge, with what is above the last; it gets a bin of its own.
    return np.where(np.isnan(column), len(edges) + 1, np.searchsorted(edges, column, side="right"))
