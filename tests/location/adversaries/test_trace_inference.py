from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import PlaceMetric, exponential_mechanism, infer_home_and_work, match_trace

ROAD = PlaceMetric.road_network([[0, 1], [1, 2], [2, 3], [1, 4]], [1.0, 1.0, 1.0, 1.0])
MECHANISM = exponential_mechanism(ROAD, epsilon=1.0)


def test_home_and_work_are_found_from_many_reports() -> None:
    hours = np.tile([21.0, 23.5, 5.9, 9.0, 16.9, 12.0, 8.0, 17.0, 20.9, 6.0], 100)
    places = np.tile([0, 0, 0, 3, 3, 3, 4, 4, 4, 4], 100)
    found = infer_home_and_work(MECHANISM.release(places, rng=2), hours, MECHANISM)
    assert found[:2] == (0, 3)
    assert min(found[2:]) > 0.99
    assert infer_home_and_work([1], [12.0], MECHANISM)[:3:2] == (-1, 0.0)


def test_the_belief_is_the_posterior() -> None:
    prior = np.array([0.5, 0.1, 0.1, 0.1, 0.2])
    found = infer_home_and_work([1, 4], [0.0, 24.0], MECHANISM, prior)
    table = MECHANISM.probabilities
    belief = prior * table[:, 1] * table[:, 4]
    assert found.home == belief.argmax()
    assert found.home_probability == pytest.approx(belief.max() / belief.sum())


def test_the_way_is_the_most_probable_of_all() -> None:
    reports, prior = [0, 4, 2, 3], np.array([0.3, 0.2, 0.2, 0.2, 0.1])
    moves = np.exp(-ROAD.distances / 0.7)
    moves /= moves.sum(axis=1, keepdims=True)
    table = MECHANISM.probabilities

    def probability(way: tuple[int, ...]) -> float:
        value = float(prior[way[0]] * table[way[0], reports[0]])
        for a, b, report in zip(way[:-1], way[1:], reports[1:], strict=True):
            value *= float(moves[a, b] * table[b, report])
        return value

    best = max(itertools.product(range(5), repeat=4), key=probability)
    assert tuple(match_trace(reports, MECHANISM, step=0.7, prior=prior)) == best
    assert match_trace(np.zeros(0, int), MECHANISM, step=1.0).size == 0


def test_what_is_refused() -> None:
    for reports in ([5], [-1], [0.5]):
        with pytest.raises(ParameterError, match="reports must be indices below 5"):
            match_trace(reports, MECHANISM, step=1.0)
    with pytest.raises(ParameterError, match="step must be positive"):
        match_trace([0], MECHANISM, step=0.0)
    for hours in ([25.0], [-1.0], [1.0, 2.0], [np.nan]):
        with pytest.raises(ParameterError, match="hours must be from 0 to 24"):
            infer_home_and_work([0], hours, MECHANISM)
