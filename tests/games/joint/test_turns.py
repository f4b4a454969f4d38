"""Dynamics in turns: one agent's report moves the counted actions no more than is priced, on any path."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.games.joint.allocation import PrivateAllocation
from sfumato.games.joint.congestion_game import CongestionGame
from sfumato.games.joint.no_regret import NoRegretPlay
from sfumato.games.joint.roads import RoadNetwork
from sfumato.games.joint.routing import PrivateRouting
from sfumato.games.joint.school_choice import SchoolChoice
from sfumato.games.joint.turns import TurnDynamics
from sfumato.mechanisms.factorization.continual_sum import ContinualSum
from sfumato.privacy import Neighboring
from sfumato.privacy.loss import PrivacyLoss

_Case: TypeAlias = tuple[TurnDynamics, NDArray[Any], Callable[[], Any]]

RNG = np.random.default_rng(8)
USES = RNG.integers(0, 2, (2, 3, 5))
USES[:, :, 0] = 1
GRID = RoadNetwork(
    tails=[0, 1, 1, 2, 2, 3, 3, 0, 0, 2], heads=[1, 0, 2, 1, 3, 2, 0, 3, 2, 0], free_times=np.arange(1.0, 11),
    capacities=[3.0] * 10,
)  # fmt: skip


def market(capacity: int) -> _Case:
    mechanism = PrivateAllocation(
        agents=30,
        supply=(90, 90, 90),
        epsilon=60.0,
        delta=0.01,
        rounds=6,
        blocks=4,
        turns=3,
        capacity=capacity,
    )
    return mechanism, RNG.random((30, 3)), lambda: RNG.random(3)


def roads() -> _Case:
    mechanism = PrivateRouting(
        network=GRID, agents=30, epsilon=4.0, delta=1e-3, blocks=5, turns=2, tolerance=0
    )
    return mechanism, RNG.integers(0, 4, (30, 2)), lambda: RNG.integers(0, 4, 2)


def play(swap: bool) -> _Case:
    game = CongestionGame(uses=USES, fixed=np.ones(5), growth=np.ones(5), agents=30)
    mechanism = NoRegretPlay(game=game, epsilon=4.0, delta=1e-3, rounds=12, swap=swap)
    return mechanism, RNG.integers(0, 2, 30), lambda: RNG.integers(0, 2)


def schools() -> _Case:
    orders = np.array([RNG.permutation(30) for _ in range(4)])
    mechanism = SchoolChoice(priorities=orders, seats=(25,) * 4, batch=3, epsilon=60.0, delta=0.01, choices=3)
    return mechanism, np.array([RNG.permutation(4)[:3] for _ in range(30)]), lambda: RNG.permutation(4)[:3]


CASES = [market(1), market(2), roads(), play(False), play(True), schools()]


def replayed(mechanism: TurnDynamics, reports: NDArray[Any], path: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the actions that are counted in each step, where the announced sums are given."""
    everyone = np.arange(mechanism.agents)
    players = mechanism._players(everyone, mechanism._checked(reports, mechanism.agents))
    return recorded(mechanism, players, everyone, path)


def recorded(
    mechanism: TurnDynamics, players: Any, agents: NDArray[np.int64], path: Iterable[NDArray[np.float64]]
) -> NDArray[np.int64]:
    changes, rows = [], iter(path)

    def send(change: NDArray[np.int64]) -> NDArray[np.float64]:
        changes.append(change)
        return next(rows)

    mechanism.play(players, agents, send)
    return np.array(changes)


def test_a_replaced_report_moves_the_measurements_no_more_than_is_priced() -> None:
    for case in CASES:
        check_measurements(*case)


def check_measurements(mechanism: TurnDynamics, reports: NDArray[Any], other: Callable[[], Any]) -> None:
    counter = mechanism.counter
    continual, reached = counter.continual, 0.0
    for _ in range(12):
        steps = RNG.normal(0, 3, (counter.steps, counter.columns))
        path = np.cumsum(steps, axis=0) * RNG.choice((0.3, 1.0, 5.0))
        agent = int(RNG.integers(mechanism.agents))
        replaced = reports.copy()
        replaced[agent] = other()
        moved = replayed(mechanism, replaced, path) - replayed(mechanism, reports, path)
        acts = np.flatnonzero(moved.any(axis=1))
        assert len(set(acts % mechanism.blocks)) <= 1
        states = np.square(np.cumsum(moved, axis=0)).sum(axis=1)
        assert states.max() <= counter.state_squared
        bound = counter._mechanism
        squares = states.sum()
        if isinstance(bound, ContinualSum):
            measured = bound._integers.measure(moved.astype(np.int64))
            squares = float((np.square(measured.astype(float))).sum())
            assert squares <= bound.l2_squared
            reached = max(reached, squares / bound.l2_squared)
        else:
            assert squares <= counter.steps * counter.state_squared
            reached = max(reached, squares / (counter.steps * counter.state_squared))
    assert continual == isinstance(counter._mechanism, ContinualSum)
    assert reached > 0


def test_one_agent_acts_no_more_than_is_priced() -> None:
    for case in CASES:
        check_acts(*case)


def check_acts(mechanism: TurnDynamics, reports: NDArray[Any], other: Callable[[], Any]) -> None:
    counter, most = mechanism.counter, 0
    for _ in range(8):
        path = np.cumsum(RNG.normal(0, 6, (counter.steps, counter.columns)), axis=0)
        agent = int(RNG.integers(mechanism.agents))
        players = mechanism._players(np.array([agent]), mechanism._checked(reports[agent : agent + 1], 1))
        changes = recorded(mechanism, players, np.array([agent]), path)
        acts = np.flatnonzero(np.any(changes, axis=1))
        assert len(acts) <= counter.turns
        assert not len(acts) or np.square(changes).sum(axis=1).max() <= counter.step_squared
        assert len(acts) < 2 or np.diff(acts).min() >= min(counter.separation, counter.steps)
        most = max(most, len(acts))
    assert most > 0


def test_parts_are_what_was_played() -> None:
    for case in CASES:
        check_parts(*case)


def check_parts(mechanism: TurnDynamics, reports: NDArray[Any], other: Callable[[], Any]) -> None:
    release = mechanism.release(reports, rng=3)
    parts = release.parts(reports)
    for agent in (0, 13, 29):
        assert np.array_equal(release.part(agent, reports[agent]), parts[agent])
    assert release.value.shape == (mechanism.counter.steps, mechanism.counter.columns)
    assert release.loss == mechanism.privacy_loss == mechanism.counter.privacy_loss
    counted = replayed(mechanism, reports, release.value).sum(axis=0)
    noise = np.abs(release.value[-1] - counted).max()
    assert noise <= mechanism.counter.error(1e-9)
    if isinstance(mechanism, PrivateRouting):
        assert np.array_equal(counted, mechanism.network.loads(parts))
    if isinstance(mechanism, NoRegretPlay):
        assert np.array_equal(counted, mechanism.game.loads(reports, parts[:, -1]))
    if isinstance(mechanism, SchoolChoice):
        assert np.array_equal(counted, np.bincount(parts[parts >= 0], minlength=4))


def test_a_ledger_reads_the_guarantee_at_delta() -> None:
    class Book:
        seen: Any = None

        def charge(self, loss: PrivacyLoss, **given: Any) -> Any:
            self.seen = loss, given

    mechanism, reports, _ = CASES[2]
    book = Book()
    release = mechanism.release(reports, rng=1, ledger=book, description="roads")
    given = {"delta": mechanism.delta, "description": "roads", "simulated": True}
    assert book.seen == (mechanism.privacy_loss, given)
    assert release.neighboring is mechanism.neighboring is Neighboring.REPLACE_ONE


def test_blocks_are_even_and_may_not_outnumber_agents() -> None:
    routing = PrivateRouting(network=GRID, agents=7, epsilon=1.0, delta=1e-3, blocks=3)
    sizes = []

    class Spy:
        def act(self, who: NDArray[np.int64], before: NDArray[np.float64]) -> NDArray[np.int64]:
            sizes.append(len(who))
            return np.zeros(10, np.int64)

        def observe(self, who: NDArray[np.int64], after: NDArray[np.float64]) -> None:
            assert sizes[-1] == len(who)

    shown = routing.play(Spy(), np.arange(7), lambda change: np.zeros(10))
    assert sizes == [3, 2, 2] * 4
    assert shown.shape == (12, 10)
    assert routing.block_size == 3
    assert PrivateRouting(network=GRID, agents=7, epsilon=1.0, delta=1e-3, blocks=7).block_size == 1
    with pytest.raises(ParameterError, match="blocks must be at most 7, got 8"):
        PrivateRouting(network=GRID, agents=7, epsilon=1.0, delta=1e-3, blocks=8)
    for name in ("agents", "rounds", "blocks"):
        given: dict[str, Any] = {"agents": 7, "rounds": 2, "blocks": 3, name: 0}
        with pytest.raises(ParameterError, match=f"{name} must be an integer of at least 1"):
            PrivateRouting(network=GRID, epsilon=1.0, delta=1e-3, **given)
