"""No-regret dynamics: agents learn to play a congestion game from noisy counts of each round's users."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.joint.action_counter import ActionCounter
from sfumato.games.joint.congestion_game import CongestionGame
from sfumato.games.joint.turns import TurnDynamics

__all__ = ["NoRegretPlay"]

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]
_LEAST: Final = 1e-100  # of a probability


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoRegretPlay(TurnDynamics):
    r"""Actions of all agents in each round of a run in which everyone plays by multiplicative weights.

    A round that is drawn at random recommends to each agent its action in that round: an approximate
    correlated equilibrium, whose approximation `CongestionGame.play_regret` computes.

    Parameters
    ----------
    game : CongestionGame
        Public.
    epsilon, delta : float
        Of the whole run, jointly.
    rounds : int
        How many.
    swap : bool
        Whether agents avoid swap regret, for correlated equilibria, at the price of slower learning; else
        external regret, for coarse ones.
    coins : int
        The seed of the public coins by which actions are drawn; chosen without regard to reports.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    A report is a type. An agent's part is its actions in all rounds.

    Guarantee: (epsilon, delta)-joint differential privacy under replacing one report, by `TurnDynamics`, for
    every fixed value of the coins: in each round an agent is in at most a actions' resources, and between
    rounds it changes at most 2 a counts by 1, for the largest action a.

    *Regret.* In terms of the costs at the announced counts, with C the largest cost, A actions and T rounds,
    the expected external regret of an agent is at most :math:`C \sqrt{\ln(A) / 2T}` per round, for whatever
    the others do (Hedge, with the step :math:`\sqrt{8 \ln(A)/T} / C`). The swap regret is at most :math:`C
    \sqrt{A \ln(A) / 2 T}` for the algorithm of Blum and Mansour, with a step :math:`\sqrt A` times as long:
    copy b of Hedge has costs up to :math:`p_b C`, and the :math:`p_b^2` of a round add up to at most 1. At
    the true counts both grow by what the noise changes a cost; no bound on that is stated here, as
    `CongestionGame.play_regret` computes the regret of the actions themselves.

    References
    ----------
    Kearns, Pai, Roth, Ullman (2014), "Mechanism design in large games: incentives and privacy", no-regret
    algorithms on noisy losses; Blum, Mansour (2007), "From external to internal regret"; Cesa-Bianchi, Lugosi
    (2006), "Prediction, learning, and games", Theorem 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> game = CongestionGame(uses=[[[1, 0], [0, 1]]], fixed=[0.0, 0.5], growth=[1.0, 1.0], agents=5000)
    >>> play = NoRegretPlay(game=game, epsilon=1.0, delta=1e-6, rounds=50)
    >>> types = np.zeros(5000, int)
    >>> release = play.release(types, rng=1)
    >>> actions = release.parts(types)
    >>> actions.shape, game.play_regret(types, actions).mean_external < 0.1
    ((5000, 50), True)
    """

    game: CongestionGame
    epsilon: float
    delta: float
    rounds: int = 100
    swap: bool = False
    coins: int = 0
    blocks: int = field(init=False, default=1)
    agents: int = field(init=False)
    _counter: ActionCounter = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check.instance("game", self.game, CongestionGame, "pass CongestionGame(...)")
        object.__setattr__(self, "agents", self.game.agents)
        self._check_turns()
        _check.integer("coins", self.coins)
        if not isinstance(self.swap, bool):
            _check.refuse("swap", "be True or False", self.swap, "pass True for correlated equilibria")
        largest = self.game.largest_action
        counter = ActionCounter(
            steps=self.rounds,
            columns=self.game.uses.shape[2],
            turns=self.rounds,
            separation=1,
            step_squared=2 * largest,
            state_squared=2 * largest,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        object.__setattr__(self, "_counter", counter)

    @property
    def counter(self) -> ActionCounter:
        """What counts the users of each resource."""
        return self._counter

    def _checked(self, reports: Any, count: int) -> _Integers:
        types, kinds = np.asarray(reports), self.game.uses.shape[0]
        remedy = f"pass a type from 0 to {kinds - 1} for each agent"
        if types.shape != (count,) or types.dtype.kind not in "iu":
            _check.refuse_type("reports", "be whole numbers, one for each agent", types, remedy)
        if types.min() < 0 or types.max() >= kinds:
            _check.refuse_state("reports", "be types of the game", "one of them is none", remedy)
        return types.astype(np.int64)

    def _opening(self) -> _Floats:
        return np.zeros(self.game.uses.shape[2])

    def _players(self, agents: _Integers, reports: Any) -> _Learners:
        return _Learners(self, agents, reports)

    def _final(self, players: _Learners, signal: _Floats) -> _Integers:
        return np.stack(players.actions, axis=1)


class _Learners:
    """Agents of known types, and each type's weights on its actions."""

    def __init__(self, play: NoRegretPlay, agents: _Integers, types: _Integers) -> None:
        self.play, self.game, self.agents, self.types = play, play.game, agents, types
        kinds, listed = self.game.uses.shape[:2]
        copies = listed if play.swap else 1
        self.rate = math.sqrt(8 * copies * math.log(listed) / play.rounds)
        self.rate /= self.game.largest_cost or 1.0
        self.losses = np.zeros((kinds, listed, listed) if play.swap else (kinds, 1, listed))
        self.strategy = np.full((kinds, listed), 1 / listed)
        self.coins = np.random.default_rng(play.coins)
        self.actions: list[_Integers] = []

    def act(self, who: _Integers, before: _Floats) -> _Integers:
        """Draw everyone's action with the public coins."""
        coins = self.coins.random(self.play.agents)[self.agents]
        reached = np.cumsum(self.strategy, axis=1)[self.types, :-1]
        actions = np.count_nonzero(coins[:, None] >= reached, axis=1)
        change = self.game.loads(self.types, actions)
        if self.actions:
            change = change - self.game.loads(self.types, self.actions[-1])
        self.actions.append(actions)
        return change

    def observe(self, who: _Integers, after: _Floats) -> None:
        """Learn from what all actions of a type cost at the announced counts."""
        costs = self.game.uses @ self.game.costs(after)
        shares = self.strategy if self.play.swap else np.ones((len(costs), 1))
        self.losses += shares[:, :, None] * costs[:, None, :]
        weights = np.exp(-self.rate * (self.losses - self.losses.min(axis=2, keepdims=True)))
        rows = weights / weights.sum(axis=2, keepdims=True)
        self.strategy = _stationary(rows) if self.play.swap else rows[:, 0]


def _stationary(rows: _Floats) -> _Floats:
    """Return the stationary distribution of each stochastic matrix, (matrices, from, to).

    States are taken out one after the other, without a subtraction (Grassmann, Taksar, Heyman 1985): weights
    that underflow do not make it fail, as they would a linear system. Entries are at least 1e-100.
    """
    left = np.maximum(rows, _LEAST)
    for last in range(rows.shape[1] - 1, 0, -1):
        left[:, :last, last] /= left[:, last, :last].sum(axis=1, keepdims=True)
        left[:, :last, :last] += left[:, :last, last, None] * left[:, last, None, :last]
    found = np.ones(rows.shape[:2])
    for state in range(1, rows.shape[1]):
        found[:, state] = (found[:, :state] * left[:, :state, state]).sum(axis=1)
        found[:, : state + 1] /= found[:, : state + 1].sum(axis=1, keepdims=True)
    return found
