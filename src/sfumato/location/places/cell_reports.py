"""The planar Laplace mechanism on places: each report is moved to the nearest one.

Its table of probabilities is that of the lattice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sfumato import _check
from sfumato.location.metrics.place_metric import PlaceMetric
from sfumato.location.places.place_mechanism import PlaceMechanism, whole_weights
from sfumato.location.planar.lattice_noise import probabilities
from sfumato.location.planar.planar_laplace import PlanarLaplace

__all__ = ["planar_laplace_on_places"]

_REACH = 240


def planar_laplace_on_places(metric: PlaceMetric, *, epsilon: float) -> PlaceMechanism:
    """Return the planar Laplace mechanism whose reports are moved to the nearest place.

    Parameters
    ----------
    metric : PlaceMetric
        Places with points in a plane.
    epsilon : float
        Per metre.

    Returns
    -------
    PlaceMechanism
        Its epsilon is what was verified over all pairs of places, at most a rounding above what was asked and
        usually less: places say less than points do.

    Raises
    ------
    ParameterError
        If the places have no points, or epsilon is out of range.

    Notes
    -----
    The table has the probabilities of the lattice within 30 / epsilon; beyond it there are 3e-12 of the
    reports, which are left out. Reports are drawn from the verified table.

    Examples
    --------
    >>> cells = PlaceMetric.grid(3, 3)
    >>> reports = planar_laplace_on_places(cells, epsilon=0.7)
    >>> reports.verified_epsilon < 0.7
    True
    """
    _check.instance("metric", metric, PlaceMetric, "pass PlaceMetric.grid(...) or another one")
    if metric.points is None:
        _check.refuse_state("metric", "have points", "it has none", "pass PlaceMetric.from_points(points)")
    mechanism = PlanarLaplace(epsilon=epsilon)
    quadrant = probabilities(_REACH + 2)
    noise = np.pad(quadrant, ((_REACH + 2, 0), (_REACH + 2, 0)), mode="reflect")
    axes = [np.unique(metric.points[:, side]) for side in (0, 1)]
    regular = metric.size == axes[0].size * axes[1].size
    table = np.zeros((metric.size, metric.size))
    tree = None if regular else cKDTree(metric.points)
    for place, point in enumerate(metric.points):
        nearest = np.rint(point / mechanism.step)
        lines = [(nearest[side] + np.arange(-_REACH - 1, _REACH + 2)) * mechanism.step for side in (0, 1)]
        lattice = _rounded(noise, point / mechanism.step - nearest)
        if regular:
            columns, rows = (_indicators(axis, line) for axis, line in zip(axes, lines, strict=True))
            joint = columns.T @ lattice @ rows
            column, row = (np.searchsorted(axes[side], metric.points[:, side]) for side in (0, 1))
            table[place] = joint[column, row]
        elif tree is not None:
            points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
            table[place] = np.bincount(tree.query(points)[1], lattice.ravel(), metric.size)
    return PlaceMechanism(metric, whole_weights(table))


def _rounded(noise: NDArray[Any], offset: NDArray[Any]) -> NDArray[Any]:
    """Return the noise's probabilities after rounding a position by the B-spline."""
    found = noise
    for side in (0, 1):
        t = offset[side]
        down, up = (0.5 - t) ** 2 / 2, (0.5 + t) ** 2 / 2
        found = np.moveaxis(found, side, 0)
        # Output z is reached from lattice points one below, at, and one above the nearest.
        found = down * found[2:] + (1 - down - up) * found[1:-1] + up * found[:-2]
        found = np.moveaxis(found, 0, side)
    return found


def _indicators(axis: NDArray[Any], line: NDArray[Any]) -> NDArray[Any]:
    owner = np.searchsorted((axis[1:] + axis[:-1]) / 2, line)
    return np.equal.outer(owner, np.arange(axis.size)).astype(float)
