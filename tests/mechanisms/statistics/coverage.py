"""Checks that intervals cover: at least as often as they say, and not if they were that much narrower."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tests.chance import at_least

__all__ = ["covers"]


def covers(
    truth: float, released: Sequence[tuple[float, float, float]], level: float
) -> Callable[[float], None]:
    """Return a check of a width: that intervals cover with a level, their ends so many times as far away.

    Parameters
    ----------
    truth
        What the intervals should hold.
    released
        Of each run, the value and both ends of the interval around it.
    level
        How often they should, at least.
    """
    value, lower, upper = np.asarray(released, float).T

    def check(width: float) -> None:
        held: npt.NDArray[np.bool_] = (value - width * (value - lower) <= truth) & (
            truth <= value + width * (upper - value)
        )
        at_least(int(held.sum()), len(held))(level)

    return check
