"""Draws under the null hypothesis, and where a statistic stands among them."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["exceeded_by", "null_draws", "rank_among"]

_FEWEST: Final = 19


def null_draws(
    draws: int, rng: int | np.random.Generator | None, *, minimum: int = _FEWEST
) -> tuple[int, np.random.Generator]:
    """Return how many draws are made, and from what, or refuse either; they need no secrecy.

    The minimum is the fewest of which the smallest p-value is 0.05.
    """
    number = _check.integer(
        "draws", draws, minimum=minimum, remedy="pass more; fewer can refuse nothing at 0.05"
    )
    if rng is not None and not isinstance(rng, np.random.Generator):
        _check.integer("rng", rng)
    return number, np.random.default_rng(rng)


def exceeded_by(drawn: NDArray[np.float64], share: float) -> Any:
    """Return of draws along the first axis a value that at most that share exceed, one more draw counted."""
    number = len(drawn)
    place = min(number, math.ceil((1 - share) * (number + 1))) - 1
    return np.sort(drawn, axis=0)[place]


def rank_among(value: float, drawn: NDArray[np.float64]) -> float:
    """Return the share of a value and draws that are at least the value.

    Where the value is exchangeable with the draws it is at most x with probability at most x.
    """
    return float((1 + int((drawn >= value).sum())) / (1 + drawn.size))
