"""Metrics on finitely many places: cells of a grid, points of the ellipsoid, nodes of a road network."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from sfumato import _check
from sfumato.location.metrics.coordinates import as_points, distance_matrix
from sfumato.location.metrics.geodesic import geodesic_distances
from sfumato.location.metrics.projection import Projection

__all__ = ["PlaceMetric"]


@dataclass(frozen=True, slots=True, eq=False)
class PlaceMetric:
    """Distances between places, checked to be a metric.

    Parameters
    ----------
    distances : array_like, shape (n, n)
        Symmetric, zero on the diagonal and positive elsewhere, and no way round is shorter.
    name : str
        What the distances are, for guarantees.
    unit : str
        ``"m"``, or ``"1"`` for none.
    points : array_like of shape (n, 2) or None
        Where the places are in a plane, for pictures and for the nearest place.

    Raises
    ------
    ParameterError
        If the distances are no metric: an asymmetric network, such as one with one-way streets, is none.

    Examples
    --------
    >>> cells = PlaceMetric.grid(3, 3, cell=100.0)
    >>> cells.size, float(cells.distances[0, 8].round(1))
    (9, 282.8)
    """

    distances: NDArray[np.float64]
    name: str = "places"
    unit: str = "m"
    points: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        given = distance_matrix("distances", self.distances).copy()
        size = given.shape[0]
        apart = ~np.eye(size, dtype=bool)
        remedy = "pass distances by the shortest way, the same both ways"
        if not np.allclose(given, given.T, rtol=1e-12, atol=0):
            found = "one way is shorter than the way back; one-way streets are no metric"
            _check.refuse_state("distances", "be symmetric", found, remedy)
        if np.diagonal(given).any() or not (given[apart] > 0).all():
            _check.refuse_state(
                "distances", "be zero on the diagonal only", "two places are one, or a place is not", remedy
            )
        given = np.minimum(given, given.T)
        shortest = shortest_path(given, method="FW") if size > 1 else given
        if not (given <= shortest * (1 + 1e-9)).all():
            _check.refuse_state("distances", "keep the triangle inequality", "a way round is shorter", remedy)
        # What is a rounding too long is shortened: a guarantee for shorter distances is the stronger one.
        given = np.minimum(given, shortest)
        given.flags.writeable = False
        object.__setattr__(self, "distances", given)
        for name in ("name", "unit"):
            _check.instance(name, getattr(self, name), str, "pass a name, such as 'plane' and 'm'")
        if self.points is not None:
            points = as_points("points", self.points).copy()
            if points.shape[0] != size:
                _check.refuse_type(
                    "points", "have one row for each place", points, "pass one point per place"
                )
            points.flags.writeable = False
            object.__setattr__(self, "points", points)

    @property
    def size(self) -> int:
        """How many places there are."""
        return int(self.distances.shape[0])

    @property
    def digest(self) -> str:
        """A SHA-256 of the distances and points, in hexadecimal."""
        content = hashlib.sha256(self.distances.astype("<f8").tobytes())
        if self.points is not None:
            content.update(b"points" + self.points.astype("<f8").tobytes())
        return content.hexdigest()

    @classmethod
    def from_points(cls, points: ArrayLike) -> PlaceMetric:
        """Return the Euclidean metric of points in a plane.

        Parameters
        ----------
        points : array_like of shape (n, 2)
            Metres.

        Returns
        -------
        PlaceMetric

        Raises
        ------
        ParameterError
            If a point is missing, infinite, or there twice.
        """
        given = as_points("points", points)
        difference = given[:, None] - given[None]
        return cls(np.hypot(difference[..., 0], difference[..., 1]), "plane", "m", given)

    @classmethod
    def grid(cls, rows: int, columns: int, *, cell: float = 1.0) -> PlaceMetric:
        """Return the Euclidean metric between the centres of a grid's cells, row by row.

        Parameters
        ----------
        rows, columns : int
            How many.
        cell : float
            Width of a cell, in metres.

        Returns
        -------
        PlaceMetric

        Raises
        ------
        ParameterError
            If a number is not positive.
        """
        rows = _check.integer("rows", rows, minimum=1, remedy="pass how many rows of cells there are")
        columns = _check.integer("columns", columns, minimum=1, remedy="pass how many columns there are")
        cell = _check.positive("cell", cell, "pass the width of a cell in metres")
        up, right = np.divmod(np.arange(rows * columns), columns)
        return cls.from_points(np.stack([right, up], axis=1) * cell)

    @classmethod
    def geodesic(
        cls, latitude: ArrayLike, longitude: ArrayLike, *, projection: Projection | None = None
    ) -> PlaceMetric:
        """Return the geodesic metric of points on WGS 84; needs the extra ``location``.

        Parameters
        ----------
        latitude, longitude : array_like of shape (n,)
            Degrees.
        projection : Projection or None
            Where points are to be drawn.

        Returns
        -------
        PlaceMetric

        Raises
        ------
        ParameterError
            If a coordinate is missing or out of range, or a point is there twice.
        """
        points = None if projection is None else projection.to_plane(latitude, longitude)
        return cls(geodesic_distances(latitude, longitude), "geodesic", "m", points)

    @classmethod
    def road_network(
        cls,
        edges: ArrayLike,
        lengths: ArrayLike,
        *,
        points: ArrayLike | None = None,
        two_way: bool = True,
    ) -> PlaceMetric:
        """Return the lengths of shortest ways in a network.

        Parameters
        ----------
        edges : array_like of int, shape (m, 2)
            Pairs of nodes, numbered from 0.
        lengths : array_like of shape (m,)
            Metres.
        points : array_like of shape (n, 2) or None
            Where the nodes are.
        two_way : bool
            Whether each edge can be taken both ways. If not, both ways must be listed, with one length.

        Returns
        -------
        PlaceMetric

        Raises
        ------
        ParameterError
            If nodes are not connected, or a way back is longer.
        """
        pairs, weights = network_edges(edges, lengths)
        size = int(pairs.max()) + 1 if points is None else as_points("points", points).shape[0]
        if pairs.max() >= size:
            _check.refuse_state(
                "edges", "be between listed points", "one does not", "pass a point for each node"
            )
        ways = _ways(pairs, weights, size, two_way=two_way)
        if not np.isfinite(ways).all():
            found = "some cannot be reached from each other"
            _check.refuse_state(
                "edges", "be ways between all nodes", found, "pass the largest connected part"
            )
        return cls(ways, "road network", "m", None if points is None else as_points("points", points))

    def nearest(self, points: ArrayLike) -> NDArray[np.int64]:
        """Return for each point the index of the nearest place in the plane.

        Parameters
        ----------
        points : array_like of shape (n, 2)
            Metres.

        Returns
        -------
        ndarray of int64

        Raises
        ------
        ParameterError
            If the places have no points, or a point is missing.
        """
        if self.points is None:
            _check.refuse_state(
                "points", "be there", "these places have none", "pass points= with the metric"
            )
        given = as_points("points", points)
        found = np.empty(given.shape[0], np.int64)
        for start in range(0, given.shape[0], 4096):
            part = given[start : start + 4096]
            found[start : start + 4096] = (
                ((part[:, None] - self.points[None]) ** 2).sum(axis=2).argmin(axis=1)
            )
        return found


def network_edges(edges: ArrayLike, lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return checked pairs of nodes and lengths.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Pairs of nodes.
    lengths : array_like of shape (m,)
        Positive.

    Returns
    -------
    tuple of two ndarrays

    Raises
    ------
    ParameterError
        If they are none.
    """
    pairs, weights = np.asarray(edges), np.asarray(lengths, dtype=float)
    remedy = "pass pairs of nodes, numbered from 0, and a positive length for each"
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not pairs.size or pairs.dtype.kind not in "iu":
        _check.refuse_type("edges", "be pairs of whole numbers", pairs, remedy)
    if weights.shape != (pairs.shape[0],) or not bool(((weights > 0) & np.isfinite(weights)).all()):
        _check.refuse_state("lengths", "be positive and finite, one for each edge", "these are not", remedy)
    if pairs.min() < 0:
        _check.refuse_state("edges", "be pairs of nodes from 0", "one is negative", remedy)
    return pairs.astype(np.int64), weights


def _ways(pairs: NDArray[Any], weights: NDArray[Any], size: int, *, two_way: bool) -> NDArray[Any]:
    # Of parallel edges the shortest counts; a sparse matrix would add them.
    order = np.argsort(-weights)
    direct = np.full((size, size), np.inf)
    direct[pairs[order, 0], pairs[order, 1]] = weights[order]
    if two_way:
        direct = np.minimum(direct, direct.T)
    np.fill_diagonal(direct, np.inf)
    # Old versions of scipy take 32-bit indices only.
    row, column = np.argwhere(np.isfinite(direct)).T.astype(np.int32)
    graph = coo_array((direct[row, column], (row, column)), shape=(size, size)).tocsr()
    found: NDArray[Any] = shortest_path(graph, directed=True)
    return found
