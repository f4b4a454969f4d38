"""beta-likeness: how much more frequent a sensitive value may be in a class than in the table.

References
----------
J. Cao, P. Karras, "Publishing microdata with a robust privacy guarantee", PVLDB 5(11), 2012,
definitions 2 and 3.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts

__all__ = ["basic_beta", "enhanced_beta"]


def basic_beta(counts: SensitiveCounts) -> float:
    """Return the largest relative gain (q - p) / p of a value's frequency q in a class over p in the table.

    Parameters
    ----------
    counts : SensitiveCounts

    Returns
    -------
    float
        The smallest beta for which basic beta-likeness holds.
    """
    return float(np.max(_gains(counts), initial=0.0))


def enhanced_beta(counts: SensitiveCounts) -> float:
    """Return the smallest beta for which every gain is at most beta and at most -ln(p).

    Parameters
    ----------
    counts : SensitiveCounts

    Returns
    -------
    float
        Infinite where some gain is above -ln(p): then enhanced beta-likeness holds for no beta.
    """
    gains = _gains(counts)
    limits = np.where(gains > 0, -np.log(counts.baseline), math.inf)
    return basic_beta(counts) if np.all(gains <= limits) else math.inf


def _gains(counts: SensitiveCounts) -> NDArray[np.float64]:
    return counts.frequencies / counts.baseline - 1
