"""Spanners: few edges whose shortest ways are nearly the distances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.location.metrics.place_metric import PlaceMetric

__all__ = ["Spanner", "greedy_spanner"]


class Spanner(NamedTuple):
    """Edges of a graph on the places, and how much longer its ways are than the distances.

    Attributes
    ----------
    edges : ndarray of int64, shape (m, 2)
        Pairs of places.
    lengths : ndarray of shape (m,)
        Their distances.
    stretch : float
        Largest ratio of the shortest way to the distance, rounded up.

    Examples
    --------
    >>> greedy_spanner(PlaceMetric.grid(2, 2), stretch=1.5).stretch < 1.415
    True
    """

    edges: NDArray[np.int64]
    lengths: NDArray[np.float64]
    stretch: float


def greedy_spanner(metric: PlaceMetric, *, stretch: float) -> Spanner:
    """Return the greedy spanner: edges from short to long, each where no way is short enough yet.

    Parameters
    ----------
    metric : PlaceMetric
        The places.
    stretch : float
        Largest ratio of a way to the distance that is accepted, at least 1.

    Returns
    -------
    Spanner
        Its ``stretch`` is the one that it reaches, at most what was asked.

    Raises
    ------
    ParameterError
        If the stretch is below 1.

    Notes
    -----
    What is epsilon / stretch private along the edges is epsilon private for all pairs (Bordenabe et al. 2014,
    proposition 4): so the stretch divides epsilon.

    References
    ----------
    Bordenabe, Chatzikokolakis, Palamidessi, Optimal geo-indistinguishable mechanisms for location privacy,
    CCS 2014.

    Examples
    --------
    >>> few = greedy_spanner(PlaceMetric.grid(5, 5), stretch=1.1)
    >>> len(few.edges) < 25 * 24 / 2, few.stretch <= 1.1
    (True, True)
    """
    if _check.finite("stretch", stretch, "pass a ratio such as 1.05") < 1:
        _check.refuse("stretch", "be at least 1", stretch, "pass a ratio such as 1.05; 1 is exact")
    distances = metric.distances
    first, second = np.triu_indices(metric.size, 1)
    order = np.argsort(distances[first, second], kind="stable")
    ways = np.where(np.eye(metric.size, dtype=bool), 0.0, np.inf)
    edges: list[tuple[int, int]] = []
    accepted = stretch * (1 + 1e-12)
    for i, j in zip(first[order].tolist(), second[order].tolist(), strict=True):
        length = distances[i, j]
        if ways[i, j] > accepted * length:
            edges.append((i, j))
            through = np.minimum(ways[:, i, None] + ways[None, j], ways[:, j, None] + ways[None, i]) + length
            np.minimum(ways, through, out=ways)
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    reached = float((ways[first, second] / distances[first, second]).max()) if first.size else 1.0
    return Spanner(pairs, distances[pairs[:, 0], pairs[:, 1]], max(reached, 1.0) * (1 + 1e-12))
