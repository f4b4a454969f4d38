from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import PlaceMetric, optimal_mechanism, planar_laplace_on_places

EPSILON = math.log(2)


def test_both_solvers_reach_the_same_loss_within_its_bound() -> None:
    places = PlaceMetric.grid(3, 4)
    prior = np.random.default_rng(6).dirichlet(np.ones(12))
    for stretch in (1.0, 1.3):
        found = [
            optimal_mechanism(places, epsilon=EPSILON, prior=prior, stretch=stretch, solver=solver)
            for solver in ("interior-point", "highs")
        ]
        for one in found:
            assert one.lower_bound <= one.expected_loss <= one.lower_bound * (1 + 3e-5)
            assert one.mechanism.verified_epsilon <= EPSILON
        assert found[0].expected_loss == pytest.approx(found[1].expected_loss, rel=3e-5)


def test_seven_by_seven_cells_and_what_each_mechanism_loses() -> None:
    places = PlaceMetric.grid(7, 7)
    prior = np.random.default_rng(0).dirichlet(np.ones(49))
    best = optimal_mechanism(places, epsilon=EPSILON, prior=prior)
    assert best.stretch < 1 + 1e-11
    clipped = planar_laplace_on_places(places, epsilon=EPSILON)
    remapped = clipped.remap(prior)
    losses = [clipped.expected_loss(prior), remapped.expected_loss(prior), best.expected_loss]
    np.testing.assert_allclose(losses, [2.0631, 1.7869, 1.6414], atol=3e-4)
    assert best.lower_bound > best.expected_loss * (1 - 5e-5)


def test_a_spanner_costs_loss_and_never_privacy() -> None:
    places = PlaceMetric.grid(4, 4)
    losses = [optimal_mechanism(places, epsilon=EPSILON, stretch=s) for s in (1.0, 1.1, 1.5)]
    assert all(one.mechanism.verified_epsilon <= EPSILON for one in losses)
    assert losses[0].expected_loss < losses[1].expected_loss < losses[2].expected_loss


def test_what_is_refused() -> None:
    places = PlaceMetric.grid(2, 2)
    for given, words in (
        ({"epsilon": 100.0}, "below 40"),
        ({"epsilon": 1.0, "solver": "gurobi"}, "solver must be"),
        ({"epsilon": 1.0, "prior": [1.0, 1.0, 1.0, 1.0]}, "prior must be probabilities"),
        ({"epsilon": 1.0, "loss": np.ones((3, 3))}, "loss must have one row"),
        ({"epsilon": 1.0, "stretch": 0.5}, "stretch must be"),
    ):
        with pytest.raises(ParameterError, match=words):
            optimal_mechanism(places, **given)
    with pytest.raises(ParameterError, match="have 2 to 400 places"):
        optimal_mechanism(PlaceMetric.grid(1, 1), epsilon=1.0)
