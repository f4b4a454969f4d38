"""delta-disclosure privacy."""

from __future__ import annotations

import math

import numpy as np

from sfumato.anonymity.measures.l_diversity import distinct_values
from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts

__all__ = ["delta_disclosure"]


def delta_disclosure(counts: SensitiveCounts, *, present_only: bool = False) -> float:
    """Return the largest |ln(q / p)| of a value's frequency q in a class and p in the table.

    Parameters
    ----------
    counts : SensitiveCounts
    present_only : bool
        Whether values that a class lacks are passed over, as some implementations do. By the definition they
        are not, and each makes the result infinite: a class that lacks a value rules it out for its members.

    Returns
    -------
    float
        delta-disclosure privacy holds for every delta above it.

    References
    ----------
    J. Brickell, V. Shmatikov, "The cost of privacy: destruction of data-mining utility in anonymized data
    publishing", KDD 2008, definition 2.
    """
    occurring = int(np.count_nonzero(counts.totals))
    if not present_only and np.any(distinct_values(counts) < occurring):
        return math.inf
    return float(np.max(np.abs(np.log(counts.frequencies / counts.baseline))))
