"""Draws under the null hypothesis, and where a statistic stands among them."""

from __future__ import annotations

import math
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.release import LatticeRelease

__all__ = ["Alternative", "as_side", "drawn_noise", "exceeded_by", "null_draws", "rank_among", "rank_on_side"]

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]

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


def as_side(alternative: object) -> int:
    """Return 1 for "greater", -1 for "less" and 0 for "two-sided", or refuse what is none of them."""
    side = {"two-sided": 0, "greater": 1, "less": -1}.get(str(alternative))
    if side is None:
        rule = "be 'two-sided', 'greater' or 'less'"
        _check.refuse("alternative", rule, alternative, "pass 'two-sided' if unsure")
    return side


def rank_on_side(value: float, drawn: NDArray[np.float64], side: int) -> float:
    """Return the share of a value and draws that are at least as far out, on one side or on either."""
    return rank_among(side * value, side * drawn) if side else rank_among(abs(value), np.abs(drawn))


def drawn_noise(
    release: LatticeRelease, shape: int | tuple[int, ...], generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return noise as that of a release, in the unit of its answers."""
    return np.asarray(release.distribution.sample(shape, generator)) * float(release.step)
