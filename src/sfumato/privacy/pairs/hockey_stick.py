"""Hockey-stick divergences of a single run of a pair, summed directly over its bins."""

from __future__ import annotations

import math

import numpy as np

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss

__all__ = ["log_profile"]


def log_profile(distribution: DiscreteLoss, epsilon: float) -> float:
    """Return an upper bound on the log of ``E(1 - exp(epsilon - loss))_+``, given a distribution from above.

    Parameters
    ----------
    distribution : Atoms
        Of which no composition has smaller divergences than that of the pair: `Bins.split`.
    epsilon : float
        Any real number.
    """
    gap = distribution.loss - epsilon + 2 * UNIT * (np.abs(distribution.loss) + abs(epsilon))
    counted = (gap > 0) & np.isfinite(distribution.log_mass)
    logs = distribution.log_mass[counted] + np.log(-np.expm1(-gap[counted]))
    if distribution.infinite > 0:
        logs = np.append(logs, math.log(distribution.infinite))
    if not len(logs):
        return -math.inf
    top = float(logs.max())
    total = top + math.log(float(np.exp(logs - top).sum()))
    return min(0.0, total + UNIT * (len(logs) + 64 + 8 * abs(top)))
