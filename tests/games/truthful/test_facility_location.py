"""Games of facilities and of price lists: their utilities, and metrics that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import facility_location, price_list, price_scores, tree_distances


def test_an_agent_uses_the_nearest_facility() -> None:
    points = np.array([0.0, 2.0, 5.0, 9.0])
    game = facility_location(points, np.abs(points[:, None] - points), agents=3, facilities=3)
    assert len(game.alternatives) == 4
    for at, sites in enumerate(game.alternatives):
        for kind, home in enumerate(points):
            nearest = min(abs(home - site) for site in sites)
            assert game.free_utilities[kind, at] == pytest.approx(1 - nearest / 9)
            assert abs(home - sites[game.best_actions[kind, at]]) == nearest


def test_distances_in_a_tree_are_along_its_edges() -> None:
    found = tree_distances("abcd", [("d", "b", 5), ("a", "b", 1), ("c", "b", 2)])
    assert found.tolist() == [[0, 1, 3, 6], [1, 0, 2, 5], [3, 2, 0, 7], [6, 5, 7, 0]]
    for edges in ([("a", "b", 1)], [("a", "b", 1), ("a", "b", 2), ("c", "d", 1)]):
        with pytest.raises(ParameterError, match="edges must be those of a tree"):
            tree_distances("abcd", edges)
    with pytest.raises(ParameterError, match="edges must be between the points"):
        tree_distances("ab", [("a", "z", 1)])


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        ([[0, 1], [1, 0]], r"distances must have the shape \(3, 3\)"),
        ([[0, 1, 2], [1, 0, 1], [1, 1, 0]], "distances must be symmetric"),
        ([[0, 1, 0], [1, 0, 1], [0, 1, 0]], "distances must be symmetric, 0 on the diagonal and positive"),
        ([[1, 1, 1], [1, 0, 1], [1, 1, 0]], "0 on the diagonal"),
        ([[0, 1, 2.1], [1, 0, 1], [2.1, 1, 0]], "distances must be a metric, but the triangle inequality"),
    ],
)
def test_what_is_no_metric_is_refused(distances: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        facility_location("abc", distances, agents=2)


def test_the_number_of_facilities_is_checked() -> None:
    with pytest.raises(ParameterError, match="facilities must leave from 1 to 65,536 alternatives"):
        facility_location("ab", 1 - np.eye(2), agents=2, facilities=3)
    with pytest.raises(ParameterError, match="points must be two or more"):
        facility_location("a", [[0]], agents=2, facilities=1)


def test_who_buys_at_a_price_pays_it() -> None:
    game = price_list((1, 2), (0.5, 2, 3), agents=2)
    assert game.utilities[:, :, 0].tolist() == [[0.5, -1, -2], [1.5, 0, -1]]
    assert game.utility_range == (-2.0, 1.5)
    assert price_scores(game).tolist() == [[0.5, 0, 0], [0.5, 2, 0]]
    with pytest.raises(ParameterError, match="game must be a price list"):
        price_scores(facility_location("ab", 1 - np.eye(2), agents=2))
