"""All multisets of others' reports of an anonymous exponential mechanism, screened in single precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato.games.incentives.gains import Found, Gains
from sfumato.games.incentives.profiles import count_tables

__all__ = ["MOST_REACH", "reach", "screened"]

_Single = NDArray[np.float32]
_BLOCK: Final = 512
_UNIT: Final = 2.0**-24
MOST_REACH: Final = 60.0
"""With more, single precision may take a weight for 0 that a report makes large."""


class _Half(NamedTuple):
    """Counts of half of the types, and the logs of the weights that they give to the alternatives."""

    counts: NDArray[np.int64]
    logs: NDArray[np.float64]


def reach(logs: NDArray[np.float64]) -> float:
    """Return by how much one report changes the log odds of two alternatives at most, on its own."""
    return float((logs.max(axis=1) - logs.min(axis=1)).max())


def screened(gains: Gains, start: Found) -> Found:
    """Return the lie that gains most over all multisets of others' reports.

    Parameters
    ----------
    gains : Gains
        Of a mechanism that has `log_factors`.
    start : Found
        A lie that is known; the better it is, the fewer are computed twice.

    Returns
    -------
    Found
    """
    screen = _Screen(gains)
    best = start
    for first, second in _halves(gains):
        # The longer half is the inner one: blocks are full.
        inner, outer = (first, second) if len(first.logs) >= len(second.logs) else (second, first)
        turned = inner is first
        for row in range(len(outer.logs)):
            for at in range(0, len(inner.logs), _BLOCK):
                logs = inner.logs[at : at + _BLOCK] + outer.logs[row]
                close = screen.close(logs, best.gain)
                if close.size:
                    parts = [inner.counts[at + close], np.repeat(outer.counts[row][None], close.size, 0)]
                    counts = np.concatenate(parts if turned else parts[::-1], axis=1)
                    best = max(best, gains.largest(_reports(counts)), key=lambda found: found.gain)
    return best


def _halves(gains: Gains) -> Iterator[tuple[_Half, _Half]]:
    logs: Any = gains.mechanism.log_factors
    others, kinds = gains.game.agents - 1, len(gains.game.types)
    middle = kinds // 2
    first, second = count_tables(others, middle), count_tables(others, kinds - middle)
    for total in range(others + 1):
        low, high = first[total], second[others - total]
        yield _Half(low, low @ logs[:middle]), _Half(high, high @ logs[middle:])


def _reports(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return multisets as reports in order."""
    size, kinds = int(counts[0].sum()), counts.shape[1]
    return np.repeat(np.tile(np.arange(kinds), len(counts)), counts.ravel()).reshape(-1, size)


@final
class _Screen:
    """Gains in single precision, as parts of the utility range.

    Notes
    -----
    Weights are at most 1, the largest is 1 before the own report's factor, which is scaled to at most 1 as
    well. A weight is off by some units of 2^-24 (an exponential, two roundings), a sum over S alternatives by
    S more, and so is an expected utility, of the length of the range. The exponent of a weight is off by as
    many units as it is long, which counts for no more than the reach of a report, as what is far below every
    other weight hardly counts; `tolerance` is four times all that.
    """

    def __init__(self, gains: Gains) -> None:
        logs: Any = gains.mechanism.log_factors
        kinds, alternatives = logs.shape
        self._length = gains.game.range_length
        self._factors: _Single = np.exp(logs - logs.max(axis=1, keepdims=True)).astype(np.float32)
        self._utilities: _Single = ((gains.utilities - gains.low) / self._length * gains.weight).astype(
            np.float32
        )
        imposed = (gains.imposed - np.diagonal(gains.imposed)[:, None]).T / self._length  # (report, type)
        self._imposed: _Single | None = imposed.astype(np.float32)[..., None] if imposed.any() else None
        self._own = np.arange(kinds)
        units = 2 * alternatives + 16 + 2 * reach(logs)
        self.tolerance: Final = 4 * units * _UNIT + gains.slack / self._length

    def close(self, logs: NDArray[np.float64], best: float) -> NDArray[np.int64]:
        """Return the rows of which some lie may gain more than the best one known."""
        weights = np.exp((logs - logs.max(axis=1, keepdims=True)).astype(np.float32)).T
        drawn = weights * self._factors[:, :, None]  # (report, alternative, row)
        drawn *= (np.float32(1) / (self._factors @ weights))[:, None, :]
        table = self._utilities @ drawn  # (report, type, row): the rows are what is next to one another
        truth = table[self._own, self._own].copy()
        if self._imposed is not None:
            table += self._imposed
        table[self._own, self._own] = -np.inf
        gain = (table.max(axis=0) - truth).max(axis=0)
        return np.flatnonzero(gain > best / self._length - self.tolerance)
