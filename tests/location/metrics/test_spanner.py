from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from sfumato.errors import ParameterError
from sfumato.location import PlaceMetric, greedy_spanner


def test_the_stretch_is_what_the_graph_has() -> None:
    places = PlaceMetric.from_points(np.random.default_rng(2).uniform(size=(40, 2)))
    sizes = []
    for asked in (1.0, 1.05, 1.5):
        few = greedy_spanner(places, stretch=asked)
        graph = coo_array((few.lengths, few.edges.T.astype(np.int32)), shape=(40, 40)).tocsr()
        ways = shortest_path(graph, directed=False)
        apart = ~np.eye(40, dtype=bool)
        assert (ways[apart] / places.distances[apart]).max() == pytest.approx(few.stretch, rel=1e-11)
        assert few.stretch <= asked * (1 + 1e-11)
        sizes.append(len(few.edges))
    assert sizes[0] > 1.5 * sizes[1] > 2 * sizes[2]


def test_a_stretch_below_one_is_refused() -> None:
    with pytest.raises(ParameterError, match="stretch must be at least 1"):
        greedy_spanner(PlaceMetric.grid(2, 2), stretch=0.9)
