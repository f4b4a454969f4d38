"""Elastic metrics: distances that are short where places are crowded, and long where they are empty."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from sfumato import _check
from sfumato.location.metrics.coordinates import as_prior
from sfumato.location.metrics.place_metric import PlaceMetric
from sfumato.location.metrics.spanner import greedy_spanner

__all__ = ["elastic_metric"]

_STRETCH = 1.1


def elastic_metric(
    metric: PlaceMetric, *, mass: ArrayLike, required: float, level: float = 1.0
) -> PlaceMetric:
    """Return the metric in which enough mass is near every place.

    Parameters
    ----------
    metric : PlaceMetric
        The places in metres.
    mass : array_like of shape (n,)
        Public share of each place, such as of people or shops; the shares add up to 1.
    required : float
        Share of the mass that a place is to be hidden in, in (0, 1].
    level : float
        Length of the way, in the new metric, from a place to where that share is reached, about.

    Returns
    -------
    PlaceMetric
        Without unit: use it with ``epsilon=1``.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    A mechanism for this metric, such as `exponential_mechanism`, is geo-indistinguishable for it: it says
    less of places in empty country, where many metres hold few people. An edge of a spanner of the places
    is as long as its metres times the mean of ``level / radius`` at its ends, radius being that within
    which the share is reached; distances are shortest ways, and so a metric. The mass is public: one
    computed from the protected positions would itself show them.

    References
    ----------
    Chatzikokolakis, Palamidessi, Stronati, Constructing elastic distinguishability metrics for location
    privacy, PETS 2015: the notion, and a slower construction from the same requirement.

    Examples
    --------
    >>> cells = PlaceMetric.grid(1, 4, cell=100.0)
    >>> elastic = elastic_metric(cells, mass=[0.7, 0.1, 0.1, 0.1], required=0.3)
    >>> bool(elastic.distances[0, 1] > elastic.distances[2, 3]), elastic.unit
    (True, '1')
    """
    _check.instance("metric", metric, PlaceMetric, "pass PlaceMetric.grid(...) or another one")
    level = _check.positive("level", level, "pass a log-ratio, such as math.log(4)")
    share = _check.positive("required", required, "pass a share of the mass, such as 0.01")
    if share > 1:
        _check.refuse("required", "be at most 1", required, "pass a share of the mass, such as 0.01")
    if metric.size < 2:
        _check.refuse_state("metric", "have two places", "it has one", "pass more places")
    shares = as_prior(mass, metric.size)
    order = np.argsort(metric.distances, axis=1, kind="stable")
    reached = np.cumsum(shares[order], axis=1) >= share - 1e-12
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), metric.size - 1)
    # A place that has the share itself is hidden within its nearest neighbour's distance.
    rows = np.arange(metric.size)
    radius = metric.distances[rows, order[rows, np.maximum(first, 1)]]
    few = greedy_spanner(metric, stretch=_STRETCH)
    scale = level / radius
    lengths = few.lengths * (scale[few.edges[:, 0]] + scale[few.edges[:, 1]]) / 2
    graph = coo_array((lengths, few.edges.T.astype(np.int32)), shape=(metric.size, metric.size)).tocsr()
    return PlaceMetric(shortest_path(graph, directed=False), "elastic", "1", metric.points)
