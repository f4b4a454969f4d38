"""Scores: functions of an outcome whose thresholds are the events that an audit tries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from sfumato.audit import logistic
from sfumato.audit.outcomes import Encoder, Outcomes

__all__ = ["Score", "learned_scores"]

_BINS, _BINS_OF_MANY = 256, 48
_ATOMS = 4096
_FEW = 10  # an outcome seen less often has no weight of its own
_COLUMNS = 32
_SHOWN = 6  # outcomes are listed up to so many, and named up to so many times that
_ROWS = 20_000  # for the regression


class Score(Protocol):
    """A number for each outcome; an event is a score of at least, or of at most, a threshold."""

    @property
    def family(self) -> str:
        """The kind of event."""

    @property
    def name(self) -> str:
        """What is compared with the threshold."""

    def __call__(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the scores; NaN is in no event."""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column itself: its events are tails."""

    name: str
    index: int
    family: str = "tail"

    def __call__(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the column."""
        return outcomes.columns[:, self.index]


@final
@dataclass(frozen=True, slots=True)
class Summary:
    """A number made of all columns, such as their sum; columns without a number are left out."""

    name: str
    family: str = "tail"

    def __call__(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the numbers."""
        columns = outcomes.columns
        given = ~np.isnan(columns)
        some = given.any(axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            if self.name == "sum":
                values = np.where(given, columns, 0.0).sum(axis=1)
            elif self.name in {"largest", "place of the largest"}:
                filled = np.where(given, columns, -np.inf)
                values = filled.max(axis=1) if self.name == "largest" else filled.argmax(axis=1)
            elif self.name in {"smallest", "place of the smallest"}:
                filled = np.where(given, columns, np.inf)
                values = filled.min(axis=1) if self.name == "smallest" else filled.argmin(axis=1)
            else:
                values = np.where(given, columns**2, 0.0).sum(axis=1)
        return np.asarray(np.where(some, values, np.nan), dtype=np.float64)


_SUMMARIES = ("sum", "sum of squares", "largest", "smallest", "place of the largest", "place of the smallest")


@final
@dataclass(frozen=True, slots=True)
class Atom:
    """Whether it is one certain outcome."""

    name: str
    key: np.uint64
    family: str = "atom"

    def __call__(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return 1 for that outcome, else 0."""
        return np.asarray(outcomes.keys == self.key, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True)
class Missing:
    """Whether a column holds no number."""

    name: str
    index: int
    family: str = "atom"

    def __call__(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return 1 where there is none, else 0."""
        return np.isnan(outcomes.columns[:, self.index]).astype(np.float64)


@final
@dataclass(frozen=True, slots=True)
class Counted:
    """The log of the ratio in which an outcome was counted; outcomes that were rare share one."""

    keys: NDArray[np.uint64]
    ratios: NDArray[np.float64]
    rare: float
    shown: tuple[str, ...]
    name: str = "log-odds of the outcome"
    family: str = "posterior"

    def __call__(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the log of each outcome's ratio."""
        place = np.minimum(np.searchsorted(self.keys, outcomes.keys), len(self.keys) - 1)
        return np.where(self.keys[place] == outcomes.keys, self.ratios[place], self.rare)

    def members(self, threshold: float, *, above: bool) -> tuple[bool, tuple[str, ...]] | None:
        """Return whether the event is named by what it lacks, and those outcomes; None if they are many."""
        sign = 1 if above else -1
        inside = sign * self.ratios >= sign * threshold
        rest = bool(sign * self.rare >= sign * threshold)
        listed = np.flatnonzero(inside != rest)
        if len(listed) > _SHOWN or listed.max(initial=-1) >= len(self.shown):
            return None
        return rest, tuple(self.shown[k] for k in listed)


@final
@dataclass(frozen=True, slots=True)
class Binned:
    """The sum over some columns of the log of the ratio in which their bins were counted."""

    name: str
    indices: tuple[int, ...]
    edges: tuple[NDArray[np.float64], ...]
    tables: tuple[NDArray[np.float64], ...]
    family: str = "posterior"

    def __call__(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the sums."""
        total = np.zeros(len(outcomes))
        for index, edges, table in zip(self.indices, self.edges, self.tables, strict=True):
            total += table[_bins(outcomes.columns[:, index], edges)]
        return total


@final
@dataclass(frozen=True, slots=True)
class Linear:
    """A logistic regression on columns, distances from their middle, squares, and what is missing."""

    weights: NDArray[np.float64]
    middle: NDArray[np.float64]
    spread: NDArray[np.float64]
    name: str = "log-odds by regression"
    family: str = "posterior"

    def __call__(self, outcomes: Outcomes) -> NDArray[np.float64]:
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
            scaled = np.clip((column - self.middle[j]) / self.spread[j], -8.0, 8.0)
        scaled[missing] = 0.0
        yield scaled
        yield np.abs(scaled)
        yield scaled**2 / 8
        yield missing.astype(np.float64)


def learned_scores(encoder: Encoder, first: Outcomes, second: Outcomes) -> Iterator[Score]:
    """Yield the scores that a sample of each input suggests."""
    width = first.columns.shape[1]
    most = _BINS if width == 1 else _BINS_OF_MANY
    bins = [_binned(encoder.names[j], j, first, second, most) for j in range(width)]
    telling = sorted(range(width), key=lambda j: -_distance(bins[j], first, second))[:_COLUMNS]
    yield from _atoms(encoder, first, second)
    for j in telling:
        if not encoder.names[j].startswith("label"):
            yield Column(encoder.names[j], j)
            if np.isnan(first.columns[:, j]).any() or np.isnan(second.columns[:, j]).any():
                yield Missing(f"no {encoder.names[j]}", j)
        yield bins[j]
    if width > 1:
        yield from (Summary(name) for name in _SUMMARIES)
        yield Binned(
            "log-odds of all columns",
            tuple(range(width)),
            tuple(score.edges[0] for score in bins),
            tuple(score.tables[0] for score in bins),
        )
        yield _regressed(first, second)


def _bins(column: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    # searchsorted puts NaN behind every edge, with what is above the last; it gets a bin of its own.
    return np.where(np.isnan(column), len(edges) + 1, np.searchsorted(edges, column, side="right"))


def _binned(name: str, index: int, first: Outcomes, second: Outcomes, most: int) -> Binned:
    both = np.concatenate([first.columns[:, index], second.columns[:, index]])
    values = np.sort(both[~np.isnan(both)])
    edges = np.unique(values)
    if len(edges) > _BINS:
        # Even shares, and ever smaller ones at both ends.
        ends = np.geomspace(1e-4, 1 / most, 8)
        levels = np.concatenate([ends, np.linspace(0, 1, most), 1 - ends])
        edges = np.unique(values[(levels * (len(values) - 1)).astype(np.intp)])
    counts = [
        np.bincount(_bins(outcomes.columns[:, index], edges), minlength=len(edges) + 2)
        for outcomes in (first, second)
    ]
    return Binned(f"log-odds of {name}", (index,), (edges,), (_log_ratio(*counts),))


def _log_ratio(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.log((first + 0.5) / (second + 0.5))


def _distance(score: Binned, first: Outcomes, second: Outcomes) -> float:
    return float(score(first).mean() - score(second).mean())


def _atoms(encoder: Encoder, first: Outcomes, second: Outcomes) -> Iterator[Score]:
    """Yield the value counts as a posterior, and the single outcomes that differ most."""
    keys, places, counts = np.unique(
        np.concatenate([first.keys, second.keys]), return_index=True, return_counts=True
    )
    often = np.sort(np.argsort(-counts, kind="stable")[:_ATOMS])
    often = often[counts[often] >= _FEW]
    if not often.size:
        return
    keys, places = keys[often], places[often]
    seen = [_counts(outcomes.keys, keys) for outcomes in (first, second)]
    ratios = _log_ratio(*seen)
    rare = [len(outcomes) - int(count.sum()) for outcomes, count in zip((first, second), seen, strict=True)]
    shown = tuple(encoder.shown(int(place)) for place in places[: 8 * _SHOWN])
    yield Counted(keys, ratios, float(_log_ratio(np.array(rare[0]), np.array(rare[1]))), shown)
    # Standard errors of the log-ratio are forgiven, so that a rare outcome must differ more to be tried.
    sure = np.abs(ratios) - 3 * np.sqrt(1 / (seen[0] + 0.5) + 1 / (seen[1] + 0.5))
    for k in np.argsort(-sure)[:_SHOWN]:
        yield Atom(f"output == {encoder.shown(int(places[k]))}", keys[k])


def _counts(keys: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.intp]:
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.bincount(place[known[place] == keys], minlength=len(known))


def _regressed(first: Outcomes, second: Outcomes) -> Linear:
    columns = np.concatenate([first.columns[:_ROWS, :_COLUMNS], second.columns[:_ROWS, :_COLUMNS]])
    finite = np.where(np.isfinite(columns), columns, np.nan)
    given = ~np.isnan(finite)
    count = np.maximum(given.sum(axis=0), 1)
    middle = np.where(given, finite, 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(given, (finite - middle) ** 2, 0.0).sum(axis=0) / count)
    spread = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    blank = Linear(np.zeros(0), middle, spread)
    features = zip(*(blank.features(columns[:, j], j) for j in range(len(middle))), strict=True)
    design = np.column_stack([column for kind in features for column in kind])
    weights = logistic.fit(design, np.arange(len(columns)) >= min(_ROWS, len(first)))
    return Linear(weights, middle, spread)
