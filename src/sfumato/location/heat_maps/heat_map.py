"""Heat maps: how many devices are at each place, estimated without bias from their reports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.location.places.place_mechanism import PlaceMechanism

__all__ = ["HeatMap", "heat_map"]

_CONDITION = 1e10


class HeatMap(NamedTuple):
    """Estimated numbers of devices.

    Attributes
    ----------
    counts : ndarray of shape (n,)
        By place; negative ones are possible, and bring no bias.
    standard_errors : ndarray of shape (n,)
        Of the counts, over the mechanism's randomness.

    Examples
    --------
    >>> HeatMap(np.array([3.0]), np.array([1.0])).counts
    array([3.])
    """

    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]


def heat_map(reports: ArrayLike, mechanism: PlaceMechanism) -> HeatMap:
    """Return unbiased estimates of how many devices are at each place.

    Parameters
    ----------
    reports : array_like of int, shape (n,)
        Indices of the reports of n devices, one each.
    mechanism : PlaceMechanism
        What drew each, before any remap: a remap that merges reports cannot be undone.

    Returns
    -------
    HeatMap

    Raises
    ------
    ParameterError
        If a report is no index, or the table cannot be inverted.

    Notes
    -----
    With the table P and its inverse A, ``A^T`` times the counts of reports is unbiased for the true counts,
    whatever they are. The variance of estimate j is the sum over reports of ``A_zj^2``, less the true
    count, in expectation; that with the estimate in its place is unbiased for the variance, and 0 is
    returned where it is negative.

    Examples
    --------
    >>> from sfumato.location import PlaceMetric, exponential_mechanism
    >>> mechanism = exponential_mechanism(PlaceMetric.grid(2, 2), epsilon=2.0)
    >>> found = heat_map(mechanism.release([0] * 900 + [3] * 100, rng=5), mechanism)
    >>> round(float(found.counts.sum()))
    1000
    """
    _check.instance("mechanism", mechanism, PlaceMechanism, "pass exponential_mechanism(...)")
    given = np.asarray(reports)
    table = mechanism.probabilities
    size = table.shape[1]
    if given.ndim != 1 or given.dtype.kind not in "iu" or not bool(((given >= 0) & (given < size)).all()):
        _check.refuse_type("reports", f"be indices below {size}", given, "pass what release returned")
    if table.shape[0] != size or not np.linalg.cond(table) < _CONDITION:
        remedy = "use the mechanism without remap, fewer places or a larger epsilon"
        _check.refuse_state("mechanism", "have a table that can be inverted", "this one's cannot", remedy)
    seen = np.bincount(given, minlength=size).astype(float)
    inverse = np.linalg.inv(table)
    counts = inverse.T @ seen
    variances = (inverse**2).T @ seen - counts
    return HeatMap(counts, np.sqrt(np.maximum(variances, 0)))
