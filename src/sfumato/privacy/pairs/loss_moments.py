"""Mean and variance of the loss of a pair, for limits and plots: estimates, not bounds."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sfumato import _check
from sfumato.privacy.pairs.derived import fine_cuts
from sfumato.privacy.pairs.pair import Pair

__all__ = ["loss_moments"]

_REACH: Final = 12.0
_BINS: Final = 3840


def loss_moments(pair: Pair, *, swapped: bool = False) -> tuple[float, float]:
    """Return about the mean and the variance of the loss under the first distribution of a pair.

    Parameters
    ----------
    pair : Pair
        Without a mass of infinite loss.
    swapped : bool
        The order.
    """
    distribution = pair.bins(fine_cuts(pair, _REACH, _BINS), swapped=swapped).merged()
    if distribution.infinite > 0:
        _check.refuse_state(
            "loss",
            "have no mass of infinite loss",
            f"it has a mass of {float(distribution.infinite)!r}",
            "leave out parts with a delta",
        )
    mass = np.exp(distribution.log_mass)
    total = float(mass.sum())
    mean = float(mass @ distribution.loss) / total
    variance = float(mass @ (distribution.loss - mean) ** 2) / total
    return (mean, variance) if math.isfinite(mean) else (math.inf, math.inf)
