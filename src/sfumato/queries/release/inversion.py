"""Where a test begins to reject: the search for an interval's end, for many groups at once.

>>> ends = first_rejected(lambda x, groups: np.exp(-x), np.array([0.05]), np.array([2.0]), np.array([9.0]))
>>> bool(2.9957 <= ends[0] <= 3.01)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["first_rejected"]

Floats: TypeAlias = NDArray[np.float64]
Groups: TypeAlias = NDArray[np.intp]

_TINY: Final = 1e-300
_FLAT: Final = 1e-9
_DEEP: Final = 10.0  # logarithms below the goal: what is further says nothing of where the end is
_TRIED: Final = 12
_NEAR: Final = 5e-4  # relatively


def first_rejected(
    p_value: Callable[[Floats, Groups], Floats], miss: Floats, guess: Floats, far: Floats
) -> Floats:
    """Return the smallest distance at which a p-value is at most ``miss``; ``far`` where none is nearer.

    What is returned was tried, and is a little beyond one that is not rejected: an interval that ends there
    holds all that is not. The p-value falls with the distance, from at most one at no distance.

    Parameters
    ----------
    p_value : callable
        For an array of distances, and the numbers of the groups that these are of: those not yet found.
    miss, guess, far : array
        The error probability, about how far the end is, and the farthest that it may be.
    """
    goal = np.log(miss)

    def excess(distance: Floats, groups: Groups) -> Floats:
        found = np.log(np.maximum(p_value(distance, groups), _TINY)) - goal[groups]
        return np.asarray(np.maximum(found, -_DEEP))

    low, high = np.zeros_like(guess), np.array(far)
    left, right = -goal, excess(far, np.arange(len(far)))
    nowhere = right > 0
    for step in range(_TRIED):
        groups = np.flatnonzero(~nowhere & (high - low > 2 * _NEAR * high))
        if not groups.size:
            break
        ends = low[groups], high[groups], left[groups], right[groups]
        tried = np.minimum(_between(step, *ends) if step else 1.5 * guess[groups], far[groups])
        found = excess(tried, groups)
        accepted = found > 0
        low[groups[accepted]], left[groups[accepted]] = tried[accepted], found[accepted]
        high[groups[~accepted]], right[groups[~accepted]] = tried[~accepted], found[~accepted]
    return np.where(nowhere, far, high)


def _between(step: int, low: Floats, high: Floats, left: Floats, right: Floats) -> Floats:
    """Return where to try next, between a distance that is not rejected and one that is."""
    if step < 4:
        # a guess may be far off: to either side in leaps, until both ends are near one another
        return np.where(low == 0, high * 0.4, np.where(high > 4 * low, low * 3, (low + high) / 2))
    if step % 3 == 0:
        return (low + high) / 2
    # where a straight line is zero, and a little to either side of it
    at = low + (high - low) * left / np.maximum(left - right, _FLAT)
    return np.clip(at * (1 + (_NEAR if step % 3 == 1 else -_NEAR)), low, high)
