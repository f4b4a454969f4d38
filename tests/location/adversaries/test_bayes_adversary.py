from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import PlaceMetric, bayes_adversary, compare_mechanisms, exponential_mechanism

CELLS = PlaceMetric.grid(2, 3)
PRIOR = np.array([0.3, 0.1, 0.2, 0.1, 0.2, 0.1])
MECHANISM = exponential_mechanism(CELLS, epsilon=0.8)


def test_the_adversary_is_the_best_of_all_functions() -> None:
    found = bayes_adversary(MECHANISM, PRIOR)
    error = success = 0.0
    for z in range(6):
        joint = [PRIOR[x] * MECHANISM.probabilities[x, z] for x in range(6)]
        costs = [sum(joint[x] * CELLS.distances[x, y] for x in range(6)) for y in range(6)]
        assert costs[found.estimates[z]] == min(costs)
        error += min(costs)
        success += max(joint)
    assert found.error == pytest.approx(error, rel=1e-12)
    assert found.success == pytest.approx(success, rel=1e-12)
    assert found.prior_error == pytest.approx(min((PRIOR[:, None] * CELLS.distances).sum(axis=0)))


def test_after_a_remap_users_lose_what_the_adversary_does() -> None:
    drawn, remapped = compare_mechanisms({"drawn": MECHANISM, "remapped": MECHANISM.remap(PRIOR)}, PRIOR)
    assert (drawn.name, remapped.name) == ("drawn", "remapped")
    assert remapped.quality_loss == pytest.approx(drawn.adversarial_error)
    assert remapped.adversarial_error == pytest.approx(drawn.adversarial_error)
    assert drawn.quality_loss > remapped.quality_loss
    assert drawn.epsilon == 0.8
    assert drawn.success >= remapped.success


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="prior must"):
        bayes_adversary(MECHANISM, np.full(6, 0.2))
    with pytest.raises(ParameterError, match="one row and column"):
        bayes_adversary(MECHANISM, PRIOR, np.ones((2, 2)))
