"""A search for a lie that gains much, in games with too many reports to enumerate."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.games.incentives.gains import Found, Gains

__all__ = ["climb"]

_STEPS: Final = 200
_TRIED: Final = 64
_MOST: Final = 1 << 22


def climb(gains: Gains, searches: int, seed: int) -> tuple[Found, int]:
    """Return the best lie found by searches that change one other agent's report at a time.

    Parameters
    ----------
    gains : Gains
    searches : int
        From starts of their own: all others alike, or drawn at random.
    seed : int
        Of the starts.

    Returns
    -------
    Found
    int
        How many reports of the others were examined.
    """
    rng = np.random.default_rng(seed)
    others, kinds = gains.game.agents - 1, len(gains.game.types)
    entries = kinds * max(gains.game.agents, len(gains.game.alternatives))
    tried = max(1, min(_TRIED, _MOST // entries))
    best, seen = gains.largest(np.zeros((1, others), np.int64)), 1
    for start in range(searches if others else 0):
        few = rng.integers(kinds, size=1 + start % 3)
        here = gains.largest(few[rng.integers(few.size, size=(1, others))])
        for _ in range(_STEPS):
            rows = _moves(np.array(here.others, np.int64), kinds, tried, rng)
            step = gains.largest(rows)
            seen += len(rows)
            if step.gain <= here.gain:
                break
            here = step
        best = max(best, here, key=lambda found: found.gain)
    return best, seen


def _moves(others: NDArray[np.int64], kinds: int, tried: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return profiles that differ in some reports: one, or a random share of them."""
    rows = np.repeat(others[None], tried, axis=0)
    changed = rng.random(rows.shape) < np.array([0.0, 0.05, 0.3])[rng.integers(3, size=(tried, 1))]
    changed[np.arange(tried), rng.integers(others.size, size=tried)] = True
    return np.where(changed, rng.integers(kinds, size=(tried, 1)), rows)
