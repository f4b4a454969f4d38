from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import PlaceMetric


def test_ways_in_a_road_network_are_the_shortest() -> None:
    rng = np.random.default_rng(1)
    edges = np.concatenate(
        [np.stack([np.arange(29), np.arange(1, 30)], axis=1), rng.integers(0, 30, (60, 2))]
    )
    edges = edges[edges[:, 0] != edges[:, 1]]
    lengths = rng.uniform(10, 100, len(edges))
    found = PlaceMetric.road_network(edges, lengths)
    expected = np.where(np.eye(30, dtype=bool), 0, np.inf)
    for (a, b), length in zip(edges.tolist(), lengths, strict=True):
        expected[a, b] = expected[b, a] = min(expected[a, b], length)
    for through in range(30):
        expected = np.minimum(expected, expected[:, through, None] + expected[None, through])
    np.testing.assert_allclose(found.distances, expected, rtol=1e-12)
    assert (found.name, found.unit) == ("road network", "m")


def test_one_way_streets_are_no_metric() -> None:
    ring = [[0, 1], [1, 2], [2, 0]]
    with pytest.raises(ParameterError, match="one-way streets are no metric"):
        PlaceMetric.road_network(ring, [1.0, 1.0, 1.0], two_way=False)
    both = PlaceMetric.road_network([*ring, [1, 0], [2, 1], [0, 2]], np.ones(6), two_way=False)
    assert both.distances[0, 2] == 1


def test_a_grid_is_row_by_row() -> None:
    cells = PlaceMetric.grid(2, 3, cell=10)
    assert cells.points is not None
    assert cells.points.tolist() == [[0, 0], [10, 0], [20, 0], [0, 10], [10, 10], [20, 10]]
    assert cells.distances[0, 5] == pytest.approx(np.hypot(20, 10))
    assert cells.nearest(np.array([[19, 2], [-50, 30], [9.0, 8.0]])).tolist() == [2, 3, 4]


def test_geodesic_distances_by_either_library() -> None:
    pytest.importorskip("geographiclib")
    places = PlaceMetric.geodesic([0, 0, 90, -17, -17], [0, 1, 0, 179.9, -179.9])
    # A degree of the equator, a quarter of a meridian.
    assert places.distances[0, 1] == pytest.approx(111319.4908, abs=1e-3)
    assert places.distances[0, 2] == pytest.approx(10001965.7293, abs=1e-3)
    assert 21_000 < places.distances[3, 4] < 21_400


def test_what_is_no_metric() -> None:
    for distances, words in (
        ([[0, 1], [2, 0]], "be symmetric"),
        ([[1, 1], [1, 0]], "zero on the diagonal"),
        ([[0, 0], [0, 0]], "zero on the diagonal"),
        ([[0, 1, 5], [1, 0, 1], [5, 1, 0]], "triangle inequality"),
        ([[0, -1], [-1, 0]], "non-negative and finite"),
        ([[0, np.inf], [np.inf, 0]], "non-negative and finite"),
        ([0, 1], "square matrix"),
        ("far", "be numbers"),
    ):
        with pytest.raises(ParameterError, match=words):
            PlaceMetric(distances)  # type: ignore[arg-type]
    for edges, lengths, words in (
        ([[0, 1], [2, 3]], [1.0, 1.0], "be ways between all nodes"),
        ([[0, 1]], [0.0], "positive and finite"),
        ([[0, -1]], [1.0], "one is negative"),
        ([[0.5, 1]], [1.0], "pairs of whole numbers"),
    ):
        with pytest.raises(ParameterError, match=words):
            PlaceMetric.road_network(edges, lengths)
    with pytest.raises(ParameterError, match="be between listed points"):
        PlaceMetric.road_network([[0, 2]], [1.0], points=[[0, 0], [1, 1]])
    with pytest.raises(ParameterError, match="these places have none"):
        PlaceMetric(np.array([[0.0, 1], [1, 0]])).nearest([[0, 0]])
    with pytest.raises(ParameterError, match="one row for each place"):
        PlaceMetric(np.array([[0.0, 1], [1, 0]]), points=np.zeros((3, 2)))
    for sizes in ((0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0)):
        with pytest.raises(ParameterError):
            PlaceMetric.grid(sizes[0], sizes[1], cell=sizes[2])
