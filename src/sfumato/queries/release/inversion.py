"""Where a test begins to reject: the search for an interval's end, for many groups at once.

>>> ends = first_rejected(lambda x: np.exp(-x), np.array([0.05]), np.array([2.0]), np.array([9.0]))
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

_TINY: Final = 1e-300
_FLAT: Final = 1e-9
_DEEP: Final = 10.0  # logarithms below the goal: what is further says nothing of where the end is
_TRIED: Final = 12
_NEAR: Final = 5e-4  # relatively


def first_rejected(p_value: Callable[[Floats], Floats], miss: Floats, guess: Floats, far: Floats) -> Floats:
    """Return the smallest distance at which a p-value is at most ``miss``; ``far`` where none is nearer.

    What is returned was tried, and is a little beyond one that is not rejected: an interval that ends there
    holds all that is not. The p-value falls with the distance, from at most one at no distance.

    Parameters
    ----------
    p_value : callable
        For an array of distances.
    miss, guess, far : array
        The error probability, about how far the end is, and the farthest that it may be.
    """
    goal = np.log(miss)

    def excess(distance: Floats) -> Floats:
        return np.asarray(np.maximum(np.log(np.maximum(p_value(distance), _TINY)) - goal, -_DEEP))

    low, high = np.zeros_like(guess), far
    left, right = -goal, excess(far)
    nowhere = right > 0
    for step in range(_TRIED):
        if step == 0:
            tried = np.minimum(guess * 1.5, far)
        elif step < 4:
            # a guess may be far off: to either side in leaps, until both ends are near one another
            tried = np.where(low == 0, high * 0.4, np.where(high > 4 * low, low * 3, (low + high) / 2))
            tried = np.minimum(tried, far)
        elif step % 3 == 0:
            tried = (low + high) / 2
        else:
            # where a straight line is zero, and a little to either side of it
            at = low + (high - low) * left / np.maximum(left - right, _FLAT)
            tried = np.clip(at * (1 + (_NEAR if step % 3 == 1 else -_NEAR)), low, high)
        near = nowhere | (high - low <= 2 * _NEAR * high)
        if near.all():
            break
        tried = np.where(near, high, tried)  # what is found stays, whatever other groups need
        found = excess(tried)
        accepted = (found > 0) & ~near
        low, left = np.where(accepted, tried, low), np.where(accepted, found, left)
        high, right = np.where(accepted, high, tried), np.where(accepted, right, found)
    return np.where(nowhere, far, high)
