from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.pufferfish import MarkovChain, MarkovChainClass, MarkovChainInterval

CHAIN = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])


def test_two_states_in_closed_form() -> None:
    # Two states are reversible: P P* = P^2, whose second eigenvalue is (1 - p - q)^2 = 0.25.
    found = MarkovChainClass.covering(CHAIN)
    assert found.eigengap == pytest.approx(0.75, rel=1e-10)
    assert found.eigengap <= 0.75
    assert found.pi_min == pytest.approx(0.2, rel=1e-8)
    assert found.pi_min < 0.2


def test_the_deviation_holds_for_chains_that_are_not_reversible() -> None:
    generator = np.random.default_rng(5)
    chains = [MarkovChain(transition=generator.dirichlet(np.ones(4), 4) * 0.5 + 0.125) for _ in range(5)]
    cover = MarkovChainClass.covering(*chains)
    for chain in chains:
        power = np.eye(4)
        for steps in range(1, 9):
            power = power @ chain.transition
            assert np.abs(power / chain.stationary - 1).max() <= cover.deviation(steps)
    assert cover.pi_min <= min(chain.stationary.min() for chain in chains)
    assert MarkovChainClass.covering(CHAIN, *chains).eigengap <= cover.eigengap


def test_chains_without_a_gap_and_empty_classes_are_refused() -> None:
    with pytest.raises(ParameterError, match="the class is empty"):
        MarkovChainClass.covering()
    with pytest.raises(ParameterError, match="have an eigengap"):
        MarkovChainClass.covering(MarkovChain(transition=[[0, 1], [1, 0]]))
    for bad in (
        {"pi_min": 0.0, "eigengap": 0.5},
        {"pi_min": 0.2, "eigengap": 0},
        {"pi_min": 0.2, "eigengap": 3},
    ):
        with pytest.raises(ParameterError):
            MarkovChainClass(**bad)
    assert MarkovChainClass(pi_min=0.2, eigengap=2).eigengap == 2


def test_products_of_chains_within_the_interval_stay_within_the_distance() -> None:
    lower = np.array([[0.2, 0.3, 0.1], [0.25, 0.25, 0.1], [0.1, 0.2, 0.3]])
    between = MarkovChainInterval(lower=lower, upper=lower + 0.4)
    generator = np.random.default_rng(2)
    worst = 0.0
    for _ in range(200):
        product = np.eye(3)
        for steps in range(1, 5):
            extra = generator.dirichlet(np.full(3, 0.1), 3)
            room = np.minimum(extra * (1 - lower.sum(axis=1))[:, None], 0.4)
            row = lower + room
            row[:, 0] += 1 - row.sum(axis=1)  # what the cap left; stays below the upper bound here
            if bool(np.any(row[:, 0] > lower[:, 0] + 0.4)):
                continue
            product = product @ row
            logs = np.log(product)
            gaps = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
            distance = float((gaps + gaps.T).max())
            assert distance <= between.distance(steps) + 1e-12
            worst = max(worst, distance / between.distance(steps))
    assert worst > 0.5


def test_two_states_of_the_paper_in_closed_form() -> None:
    # p, q in [alpha, 1 - alpha]: D = 2 log((1 - alpha) / alpha).
    alpha = 0.3
    both = {"lower": np.full((2, 2), alpha), "upper": np.full((2, 2), 1 - alpha)}
    between = MarkovChainInterval(**both)
    assert between.diameter == pytest.approx(2 * math.log(0.7 / 0.3), rel=1e-11)
    assert between.contraction == pytest.approx(math.tanh(between.diameter / 4), rel=1e-11)
    assert between == MarkovChainInterval(**both)
    assert len({between, MarkovChainInterval(**both)}) == 1
    assert between != MarkovChainInterval(lower=both["lower"], upper=both["upper"] + 0.1)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([[0.6, 0.6], [0.2, 0.2]], [[0.9, 0.9], [0.9, 0.9]], "no row of sum one fits"),
        ([[0.1, 0.1], [0.2, 0.2]], [[0.4, 0.4], [0.9, 0.9]], "no row of sum one fits"),
        ([[0.0, 0.1], [0.2, 0.2]], [[0.9, 0.9], [0.9, 0.9]], "lower must be positive"),
        ([[0.5, 0.1], [0.2, 0.2]], [[0.4, 0.9], [0.9, 0.9]], "at most upper"),
        ([[0.5, 0.1]], [[0.4, 0.9]], "square"),
    ],
)
def test_an_interval_without_chains_is_refused(lower: object, upper: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        MarkovChainInterval(lower=lower, upper=upper)
