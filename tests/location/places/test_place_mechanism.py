from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import (
    PlaceMechanism,
    PlaceMetric,
    exponential_mechanism,
    optimal_mechanism,
    planar_laplace_on_places,
)
from tests.chance import accepts_only, frequencies

CELLS = PlaceMetric.grid(3, 3, cell=100)


def _largest(mechanism: PlaceMechanism) -> float:
    table = mechanism.probabilities
    used = table[:, table.any(axis=0)]
    size = mechanism.metric.size
    return max(
        float(np.abs(np.log(used[x] / used[y])).max() / mechanism.metric.distances[x, y])
        for x in range(size)
        for y in range(x)
    )


def test_every_mechanism_keeps_its_epsilon_for_all_pairs() -> None:
    epsilon = 0.01
    made = [
        exponential_mechanism(CELLS, epsilon=epsilon),
        planar_laplace_on_places(CELLS, epsilon=epsilon),
        optimal_mechanism(CELLS, epsilon=epsilon).mechanism,
        optimal_mechanism(CELLS, epsilon=epsilon, stretch=1.2).mechanism,
    ]
    for mechanism in [*made, *(one.remap() for one in made)]:
        assert _largest(mechanism) <= mechanism.verified_epsilon * (1 + 1e-12)
        assert mechanism.verified_epsilon <= epsilon
        assert (mechanism.weights.sum(axis=1) == 2**62).all()
        assert mechanism.guarantee.epsilon <= epsilon
    # The exponential mechanism uses its epsilon up, where one half of it would be wasted.
    assert made[0].verified_epsilon > 0.999 * epsilon


def test_reports_follow_the_row_of_the_true_place() -> None:
    mechanism = exponential_mechanism(CELLS, epsilon=0.02)
    drawn = mechanism.release(np.tile([0, 4, 0], 20_000), rng=8)
    counts = dict(enumerate(np.bincount(drawn[1::3], minlength=9).tolist()))
    table = mechanism.probabilities
    accepts_only(frequencies(counts), dict(enumerate(table[4])), of_another_place=dict(enumerate(table[0])))
    corner = dict(enumerate(np.bincount(drawn[0::3], minlength=9).tolist()))
    accepts_only(frequencies(corner), dict(enumerate(table[0])), of_another_place=dict(enumerate(table[1])))


def test_a_remap_is_the_best_function_of_the_report() -> None:
    prior = np.random.default_rng(3).dirichlet(np.ones(9))
    mechanism = exponential_mechanism(CELLS, epsilon=0.01)
    joint = prior[:, None] * mechanism.probabilities
    best = sum(min(float(joint[:, z] @ CELLS.distances[:, y]) for y in range(9)) for z in range(9))
    assert mechanism.remap(prior).expected_loss(prior) == pytest.approx(best, rel=1e-12)
    squares = CELLS.distances**2
    again = mechanism.remap(prior, squares)
    assert again.expected_loss(prior, squares) <= mechanism.remap(prior).expected_loss(prior, squares)


def test_a_claim_below_the_table_is_refused() -> None:
    mechanism = exponential_mechanism(CELLS, epsilon=0.01)
    with pytest.raises(ParameterError, match="epsilon must cover the table"):
        PlaceMechanism(CELLS, mechanism.weights, 0.009)
    certain = np.zeros((9, 9), np.int64)
    np.fill_diagonal(certain, 2**62)
    with pytest.raises(ParameterError, match="epsilon must cover the table"):
        PlaceMechanism(CELLS, certain, 100.0)
    with pytest.raises(ParameterError, match="finite, positive epsilon"):
        PlaceMechanism(CELLS, certain)
    with pytest.raises(ParameterError, match="add up to 2\\*\\*62"):
        PlaceMechanism(CELLS, mechanism.weights - 1)
    with pytest.raises(ParameterError, match="whole numbers"):
        PlaceMechanism(CELLS, mechanism.probabilities)  # type: ignore[arg-type]


def test_bad_places_priors_and_losses() -> None:
    mechanism = exponential_mechanism(CELLS, epsilon=0.01)
    for prior in (
        np.full(9, 0.1),
        [1.0],
        np.array([math.nan, *np.full(8, 0.125)]),
        np.array([-1.0, 2.0, *np.zeros(7)]),
    ):
        with pytest.raises(ParameterError, match="prior must"):
            mechanism.expected_loss(prior)
    for places in ([9], [-1], [0.5], [[0]]):
        with pytest.raises(ParameterError, match="places must be"):
            mechanism.release(places)
    with pytest.raises(ParameterError, match="loss must have the shape"):
        mechanism.expected_loss(None, np.ones((2, 2)))
    with pytest.raises(ParameterError, match="reports must be a place"):
        mechanism.post_process(np.full(9, 9))
    assert mechanism.post_process(lambda z: z).probabilities == pytest.approx(mechanism.probabilities)


def test_bad_mechanisms() -> None:
    with pytest.raises(ParameterError, match="every report possible"):
        exponential_mechanism(CELLS, epsilon=1.0)
    with pytest.raises(ParameterError, match="have two places"):
        exponential_mechanism(PlaceMetric.grid(1, 1), epsilon=1.0)
    with pytest.raises(ParameterError, match="have points"):
        planar_laplace_on_places(PlaceMetric(CELLS.distances), epsilon=0.1)


def test_rows_that_differ_by_less_than_a_logarithm_shows_differ() -> None:
    near = PlaceMetric(np.array([[0.0, 1e-18], [1e-18, 0.0]]))
    rows = np.array([[2**61, 2**61], [2**61 + 100, 2**61 - 100]])
    assert PlaceMechanism(near, rows).verified_epsilon >= math.log1p(100 / 2**61) / 1e-18
