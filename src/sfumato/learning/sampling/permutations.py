"""Uniform orders and subsets, exactly, and the batches of units that were thrown into steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["Allocated", "LastValue", "permutation", "subset", "subsets"]

Indices = NDArray[np.int64]
T = TypeVar("T")

_SPARE = 64
_CELLS = 1 << 24


class LastValue(Generic[T]):
    """The last of several values that are dear to compute, such as the order of an epoch."""

    __slots__ = ("_entry",)

    def __init__(self) -> None:
        self._entry: tuple[Hashable, T] | None = None

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key; made anew unless it was the last one asked for."""
        entry = self._entry
        if entry is None or entry[0] != key:
            entry = self._entry = (key, make())
        return entry[1]


def permutation(count: int, source: RandomSource) -> Indices:
    """Return the numbers below ``count`` in a uniformly random order.

    Notes
    -----
    They are sorted by independent words of 64 bits. Given that no two are equal, all orders are equally
    likely; otherwise all are drawn again.
    """
    while True:
        words = source.words(count)
        order = np.argsort(words)
        words = words[order]
        if not (words[1:] == words[:-1]).any():
            return order.astype(np.int64)


def subset(count: int, size: int, source: RandomSource) -> Indices:
    """Return ``size`` of the numbers below ``count``, sorted; all sets are equally likely.

    Notes
    -----
    The first ``size`` different values of a sequence of independent uniform ones: a permutation of the values
    permutes the sets and leaves the distribution of the sequence as it is.
    """
    if 2 * size > count:
        inside = np.ones(count, bool)
        inside[subset(count, count - size, source)] = False
        return np.flatnonzero(inside).astype(np.int64)
    drawn = np.empty(0, np.int64)
    indices = np.empty(0, np.intp)
    while indices.size < size:
        more = uniform_integers(count, size + size // 4 + _SPARE, source)
        drawn = np.concatenate([drawn, more])
        indices = np.sort(np.unique(drawn, return_index=True)[1])
    return np.sort(drawn[indices[:size]])


def subsets(units: int, count: int, size: int, source: RandomSource) -> NDArray[np.int32]:
    """Return for each unit ``size`` different numbers below ``count``, shape (size, units).

    Notes
    -----
    For j from ``count - size`` on, a uniform one of 0 to j joins the set, or j itself if it is there already:
    all sets of that size are equally likely (Floyd; Bentley and Floyd 1987, "A sample of brilliance").
    """
    if 2 * size > count:
        return _complements(units, count, size, source)
    chosen = np.empty((size, units), np.int32)
    for i, last in enumerate(range(count - size, count)):
        drawn = uniform_integers(last + 1, units, source).astype(np.int32)
        taken = (chosen[:i] == drawn).any(axis=0)
        chosen[i] = np.where(taken, last, drawn)
    return chosen


def _complements(units: int, count: int, size: int, source: RandomSource) -> NDArray[np.int32]:
    chosen = np.empty((size, units), np.int32)
    max_units = max(1, _CELLS // count)
    for start in range(0, units, max_units):
        stop = min(start + max_units, units)
        inside = np.ones((stop - start, count), bool)
        out = subsets(stop - start, count, count - size, source) if size < count else np.empty((0, 0), int)
        for row in out:
            inside[np.arange(stop - start), row] = False
        chosen[:, start:stop] = np.nonzero(inside)[1].reshape(-1, size).T
    return chosen


class Allocated(NamedTuple):
    """Units sorted by the step that they were thrown into.

    Attributes
    ----------
    units : ndarray of int64
        All units of step 0, then those of step 1, and so on.
    starts : ndarray of int64
        Where each step's begin, and the end.
    """

    units: Indices
    starts: Indices

    @classmethod
    def of(cls, indices: NDArray[np.integer], count: int) -> Allocated:
        """Return the batches of ``count`` steps, of the step of each unit in the last axis of ``indices``."""
        flat = indices.reshape(-1)
        order = np.argsort(flat, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=count))])
        return cls(order % indices.shape[-1], starts)

    def batch(self, step: int) -> Indices:
        """Return the units of a step, sorted.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        return np.sort(self.units[self.starts[step] : self.starts[step + 1]])
