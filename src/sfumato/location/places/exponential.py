"""The exponential mechanism on places: near ones are likely, by the metric alone."""

from __future__ import annotations

import numpy as np

from sfumato import _check
from sfumato.location.metrics.place_metric import PlaceMetric
from sfumato.location.places.place_mechanism import PlaceMechanism, largest_epsilon, whole_weights

__all__ = ["exponential_mechanism"]

_STEPS = 40


def exponential_mechanism(metric: PlaceMetric, *, epsilon: float) -> PlaceMechanism:
    """Return the mechanism that reports place z at place x with probability ``~ exp(-c d(x, z))``.

    Parameters
    ----------
    metric : PlaceMetric
        The places: cells, points, or the nodes of a road network.
    epsilon : float
        Per unit of the metric.

    Returns
    -------
    PlaceMechanism
        With the claim ``epsilon``, verified over all pairs.

    Raises
    ------
    ParameterError
        If epsilon is not positive, or so large that reports are certain.

    Notes
    -----
    Guarantee: with c = epsilon / 2 the normaliser, which depends on x, changes by a factor of at most
    ``exp(epsilon d / 2)``, as the weights do (McSherry and Talwar, FOCS 2007; on road networks Takagi, Cao,
    Asano, Yoshikawa 2019). c is the largest number, at most epsilon, for which the table itself passes the
    verification.

    Examples
    --------
    >>> road = PlaceMetric.road_network([[0, 1], [1, 2], [2, 3]], [100.0, 100.0, 100.0])
    >>> near = exponential_mechanism(road, epsilon=0.01)
    >>> near.verified_epsilon <= 0.01
    True
    """
    _check.instance("metric", metric, PlaceMetric, "pass PlaceMetric.grid(...) or another one")
    epsilon = _check.positive("epsilon", epsilon, "pass a number per metre, such as math.log(4) / 200")
    if metric.size < 2:
        _check.refuse_state("metric", "have two places", "it has one", "pass more places")
    if epsilon * float(metric.distances.max()) > 40:
        _check.refuse(
            "epsilon", "keep every report possible", epsilon, "pass less than 40 over the largest distance"
        )
    low, high = 0.5 * (1 - 1e-9), 1.0
    best = whole_weights(np.exp(-low * epsilon * metric.distances))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        table = whole_weights(np.exp(-middle * epsilon * metric.distances))
        if largest_epsilon(table, metric.distances) <= epsilon:
            low, best = middle, table
        else:
            high = middle
        if high - low < 1e-4:
            break
    return PlaceMechanism(metric, best, epsilon)
