"""One message each: the loosest report that still keeps the target, and the error of the best mean."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sfumato import local
from sfumato.errors import ParameterError
from sfumato.local.shuffle import loosest, single_message_mean
from sfumato.privacy import Shuffled
from tests.cases import cases


def hybrid(epsilon: float) -> local.HybridMean:
    """A protocol whose shuffled loss, that of the clones, is known quickly."""
    return local.HybridMean(epsilon=epsilon, bounds=(0.0, 1.0), steps=16)


@pytest.mark.parametrize(
    ("epsilon", "delta", "clients"), [(1.0, 1e-6, 2000), (0.2, 1e-5, 300), (3.0, 1e-3, 1)]
)
@pytest.mark.parametrize("guess", [None, 0.01, 20.0])
def test_the_loosest_report_keeps_the_target_and_hardly_more(
    epsilon: float, delta: float, clients: int, guess: float | None
) -> None:
    made = loosest(hybrid, epsilon=epsilon, delta=delta, clients=clients, guess=guess)
    assert Shuffled(made.privacy_loss, clients=clients).delta(epsilon) <= delta
    assert Shuffled(hybrid(made.epsilon + 0.02).privacy_loss, clients=clients).delta(epsilon) > delta
    assert made.epsilon >= epsilon - 0.02


@pytest.mark.exhaustive
def test_a_mean_strays_by_the_sixth_root_of_the_clients() -> None:
    strays = []
    for clients in (4000, 32_000):
        made = single_message_mean(epsilon=1.0, delta=1e-4, clients=clients, bounds=(0.0, 1.0))
        assert made.shuffled_loss(clients).delta(1.0) <= 1e-4
        strays.append(clients * math.sqrt(made.variance(clients)))
        for steps in (made.steps // 2, 2 * made.steps):
            other = local.StochasticRoundingMean(epsilon=made.epsilon, bounds=(0.0, 1.0), steps=steps)
            assert other.variance(clients) > made.variance(clients)
    # Eight times as many clients: the sixth root of eight is 1.41.
    assert strays[1] / strays[0] == pytest.approx(math.sqrt(2), abs=0.05)


@cases(
    "wrong",
    [
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"clients": 0},
        {"clients": 2.5},
        {"epsilon": 1e-5, "clients": 2},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        loosest(hybrid, **{"epsilon": 1.0, "delta": 1e-6, "clients": 10, **wrong})
