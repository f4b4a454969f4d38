"""No-regret play: the regret that is proved, and equilibria that improve with the number of agents."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.games.joint.congestion_game import CongestionGame
from sfumato.games.joint.no_regret import NoRegretPlay, _stationary

USES = np.array([[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]], [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]])


def played(
    agents: int, rounds: int, *, swap: bool, epsilon: float = 1.0
) -> tuple[NoRegretPlay, NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    game = CongestionGame(uses=USES, fixed=[0.0, 0.1, 0.2, 0.1], growth=[1.0, 0.8, 0.5, 1.0], agents=agents)
    types = np.random.default_rng(1).integers(0, 2, agents)
    play = NoRegretPlay(game=game, epsilon=epsilon, delta=1e-6, rounds=rounds, swap=swap, coins=3)
    release = play.release(types, rng=2)
    return play, types, release.value, release.parts(types)


def test_regret_falls_with_agents_and_rounds() -> None:
    for swap in (False, True):
        regrets = []
        for agents, rounds in ((100, 30), (1000, 100), (4000, 300)):
            play, types, _, actions = played(agents, rounds, swap=swap)
            regret = play.game.play_regret(types, actions)
            regrets.append(regret.mean_swap if swap else regret.mean_external)
        assert regrets[0] > regrets[1] > regrets[2]
        assert regrets[2] < 0.07


def test_expected_regret_at_announced_counts_is_as_proved() -> None:
    for swap in (False, True):
        play, _, signal, _ = played(500, 200, swap=swap)
        learners = play._players(np.arange(2), np.arange(2))
        strategies, costs = [], []
        for row in signal:
            strategies.append(learners.strategy.copy())
            costs.append(play.game.uses @ play.game.costs(row))
            learners.observe(np.arange(2), row)
        p, c = np.array(strategies), np.array(costs)
        own = np.einsum("tka,tka->k", p, c) / 200
        largest, actions = play.game.largest_cost, 3
        if swap:
            by_action = np.einsum("tka,tkb->kab", p, c) / 200
            regret = own - by_action.min(axis=2).sum(axis=1)
            bound = largest * np.sqrt(actions * np.log(actions) / 400)
        else:
            regret, bound = own - c.mean(axis=0).min(axis=1), largest * np.sqrt(np.log(actions) / 400)
        assert (regret <= bound + 1e-12).all()
        assert regret.max() > 0.05 * bound


def test_actions_are_drawn_by_the_announced_strategies() -> None:
    play, types, signal, actions = played(20_000, 40, swap=False)
    learners = play._players(np.arange(2), np.arange(2))
    for row in signal[:-1]:
        learners.observe(np.arange(2), row)
    for kind in (0, 1):
        share = np.bincount(actions[types == kind, -1], minlength=3) / np.count_nonzero(types == kind)
        # Ten thousand draws with a fixed seed: off by more than 0.04 with probability below 1e-12.
        assert np.abs(share - learners.strategy[kind]).max() < 0.04
    first = np.bincount(actions[:, 0], minlength=3) / 20_000
    assert np.abs(first - 1 / 3).max() < 0.02


def test_the_first_steps_by_hand() -> None:
    for swap in (False, True):
        play, _, signal, _ = played(100, 30, swap=swap)
        learners = play._players(np.arange(2), np.arange(2))
        learners.observe(np.arange(2), signal[0])
        costs = play.game.uses @ play.game.costs(signal[0])
        rate = np.sqrt(8 * np.log(3) * (3 if swap else 1) / 30) / play.game.largest_cost
        weights = np.exp(-rate * costs * (1 / 3 if swap else 1))
        assert learners.strategy == pytest.approx(weights / weights.sum(axis=1, keepdims=True))


def test_disjoint_actions_cost_what_is_priced() -> None:
    game = CongestionGame(uses=[[[1, 1, 0, 0], [0, 0, 1, 1]]], fixed=[0.0] * 4, growth=[1.0] * 4, agents=9)
    play = NoRegretPlay(game=game, epsilon=1.0, delta=1e-6, rounds=3)
    changed = game.loads([0], [1]) - game.loads([0], [0])
    assert play.counter.step_squared == play.counter.state_squared == np.square(changed).sum() == 4
    assert play.swap is False


def test_a_type_with_one_action_takes_it() -> None:
    game = CongestionGame(uses=[[[1]]], fixed=[0.0], growth=[0.0], agents=4)
    play = NoRegretPlay(game=game, epsilon=1.0, delta=1e-6, rounds=3)
    assert not play.release([0] * 4, rng=1).parts([0] * 4).any()


def test_stationary_distributions() -> None:
    rows = np.random.default_rng(4).dirichlet(np.ones(4), (5, 4))
    found = _stationary(rows)
    assert found.sum(axis=1) == pytest.approx(np.ones(5))
    assert (found > 0).all()
    assert np.einsum("ka,kab->kb", found, rows) == pytest.approx(found)


def test_weights_that_underflow_have_a_stationary_distribution() -> None:
    # Two states that are left once in 1e30 steps; the first one three times as rarely.
    slow = np.array([[[1.0, 1e-30], [3e-30, 1.0]]])
    assert _stationary(slow) == pytest.approx(np.array([[0.75, 0.25]]))
    stuck = _stationary(np.eye(6)[None])
    assert stuck == pytest.approx(np.full((1, 6), 1 / 6))
    chain = np.diag(np.full(5, 1.0), 1)[None] + np.diag([0.0] * 5 + [1.0])
    assert _stationary(chain)[0] == pytest.approx([0, 0, 0, 0, 0, 1.0])


def test_coins_are_public_and_fixed() -> None:
    play, types, signal, actions = played(300, 20, swap=False)
    again = NoRegretPlay(game=play.game, epsilon=1.0, delta=1e-6, rounds=20, coins=4)
    other = again._parts(signal, np.arange(300), types)
    assert (other != actions).mean() > 0.2
    assert np.array_equal(play._parts(signal, np.arange(300), types), actions)


def test_what_is_refused() -> None:
    game = CongestionGame(uses=USES, fixed=[0.0] * 4, growth=[1.0] * 4, agents=5)
    given: dict[str, Any] = {"game": game, "epsilon": 1.0, "delta": 1e-6}
    for change, message in (
        ({"game": None}, "game must be a CongestionGame"),
        ({"rounds": 0}, "rounds must be"),
        ({"swap": 1}, "swap must be True or False"),
        ({"coins": -1}, "coins must be"),
    ):
        with pytest.raises(ParameterError, match=message):
            NoRegretPlay(**given | change)
    play = NoRegretPlay(game=game, epsilon=1.0, delta=1e-6, rounds=3)
    for types in ([0] * 4, [0.0] * 5, [[0] * 5]):
        with pytest.raises(ParameterError, match="reports must be whole numbers"):
            play.release(types)
    for kind in (-1, 2):
        with pytest.raises(ParameterError, match="reports must be types of the game"):
            play.release([0, 0, 0, 0, kind])
