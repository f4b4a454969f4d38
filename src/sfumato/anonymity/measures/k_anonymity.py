"""k-anonymity and (alpha, k)-anonymity."""

from __future__ import annotations

import numpy as np

from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts
from sfumato.anonymity.table.grouping import EquivalenceClasses

__all__ = ["alpha_anonymity", "k_anonymity"]


def k_anonymity(classes: EquivalenceClasses) -> int:
    """Return the number of rows of the smallest class.

    Parameters
    ----------
    classes : EquivalenceClasses
        Of rows that agree in all quasi-identifiers.

    Returns
    -------
    int
        The largest k for which the table is k-anonymous.

    References
    ----------
    L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002, definition 3.
    """
    return int(classes.sizes.min())


def alpha_anonymity(counts: SensitiveCounts) -> float:
    """Return the largest relative frequency of a sensitive value in a class.

    Parameters
    ----------
    counts : SensitiveCounts

    Returns
    -------
    float
        The smallest alpha for which the table is (alpha, k)-anonymous with its k, for each sensitive value.

    References
    ----------
    R. Wong, J. Li, A. Fu, K. Wang, "(alpha, k)-anonymity: an enhanced k-anonymity model for
    privacy-preserving data publishing", KDD 2006, definitions 2 and 3.
    """
    return float(np.max(counts.frequencies))
