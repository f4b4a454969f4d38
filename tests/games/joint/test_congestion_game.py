"""Congestion games with listed actions against plain loops."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.games.joint.congestion_game import CongestionGame

USES = np.array([[[1, 0, 0], [0, 1, 1]], [[1, 1, 0], [0, 0, 1]]])
GAME = CongestionGame(uses=USES, fixed=[0.1, 0.0, 0.2], growth=[1.0, 0.5, 2.0], agents=6, power=2.0)
TYPES = np.array([0, 0, 1, 1, 0, 1])


def cost(kinds: NDArray[np.int64], actions: NDArray[np.int64], agent: int) -> float:
    users = sum(USES[kind, action] for kind, action in zip(kinds, actions, strict=True))
    each = np.array([0.1, 0.0, 0.2]) + np.array([1.0, 0.5, 2.0]) * (users / 6) ** 2
    return float(each @ USES[kinds[agent], actions[agent]])


def test_regret_against_loops() -> None:
    rng = np.random.default_rng(1)
    played = rng.integers(0, 2, (6, 5))
    external, swap, paid = [], [], []
    for agent in range(6):
        costs = np.zeros((2, 5))
        for step in range(5):
            for action in range(2):
                changed = played[:, step].copy()
                changed[agent] = action
                costs[action, step] = cost(TYPES, changed, agent)
        own = costs[played[agent], np.arange(5)]
        paid.append(own.mean())
        external.append(own.mean() - costs.mean(axis=1).min())
        swap.append(
            sum(
                (own[at] - costs[:, at].sum(axis=1).min() / max(1, at.sum())).sum()
                for at in (played[agent] == 0, played[agent] == 1)
            )
            / 5
        )
    found = GAME.play_regret(TYPES, played)
    assert found.external == pytest.approx(max(external))
    assert found.mean_external == pytest.approx(np.mean(external))
    assert found.swap == pytest.approx(max(swap))
    assert found.mean_swap == pytest.approx(np.mean(swap))
    assert found.cost == pytest.approx(np.mean(paid))
    assert found.swap >= found.external


def test_costs_and_loads() -> None:
    assert GAME.largest_action == 2
    assert GAME.largest_cost == pytest.approx(2.7)
    assert GAME.loads(TYPES, [0, 1, 0, 1, 1, 0]).tolist() == [3, 4, 3]
    assert GAME.costs([-1, 3, 60]).tolist() == [0.1, 0.125, 2.2]
    table = GAME.deviations(np.array([3, 4, 3]))
    assert table.shape == (2, 2, 2)
    assert table[0, 0, 0] == pytest.approx(0.1 + 0.25)
    assert table[0, 0, 1] == pytest.approx(0.5 * 25 / 36 + 0.2 + 2 * 16 / 36)


def test_what_is_no_play_is_refused() -> None:
    for actions in (np.zeros((6, 0), int), np.zeros(6, int), np.zeros((5, 2), int)):
        with pytest.raises(ParameterError, match="types and actions must be whole numbers, for each agent"):
            GAME.play_regret(TYPES, actions)


def test_what_is_refused() -> None:
    given: dict[str, Any] = {"uses": USES, "fixed": [0.0] * 3, "growth": [1.0] * 3, "agents": 6}
    for change, message in (
        ({"uses": USES[0]}, "uses must say which resources"),
        ({"uses": USES * 2}, "uses must say which resources"),
        ({"uses": np.zeros((0, 2, 3))}, "uses must say which resources"),
        ({"uses": USES * [1, 0, 1]}, None),
        ({"uses": USES * [1, 0, 0]}, "uses must name a resource"),
        ({"fixed": [0.0] * 2}, "fixed must be non-negative"),
        ({"growth": [1.0, -1.0, 0.0]}, "growth must be non-negative"),
        ({"growth": [1.0, np.inf, 0.0]}, "growth must be non-negative"),
        ({"fixed": [1e308] * 3, "growth": [1e308] * 3}, "fixed and growth must add up to finite costs"),
        ({"agents": 0}, "agents must be"),
        ({"power": 0.9}, "power must be from 1 to 16"),
        ({"power": 16.5}, "power must be from 1 to 16"),
    ):
        if message is None:
            CongestionGame(**given | change)
        else:
            with pytest.raises(ParameterError, match=message):
                CongestionGame(**given | change)
