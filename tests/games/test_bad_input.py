"""Bad input to the room: one clear error of the house, or a documented answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import (
    CongestionGame,
    DigitalGoods,
    ExponentialChoice,
    Game,
    Mediator,
    PrivateAllocation,
    Valuation,
    optimal_welfare,
    regret,
    welfare_ceiling,
)

GIVEN: dict[str, Any] = {"types": (0, 1), "alternatives": (0, 1), "utilities": [[0, 1], [1, 0]], "agents": 3}
GAME = Game(**GIVEN)
CHOICE = ExponentialChoice(game=GAME, epsilon=1)
MARKET = PrivateAllocation(agents=200, supply=(200, 200), epsilon=50.0, delta=1e-3, rounds=3, blocks=20)
ROADS = CongestionGame(uses=[[[1, 0], [0, 1]]], fixed=[0.0, 0.0], growth=[1.0, 1.0], agents=2)
GOODS = [Valuation.additive([0.5, 0.5])]

CASES: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: Game(**GIVEN | {"utilities": [[0, 2], [1, 0]]}), "utilities must lie from 0.0 to 1.0"),
    (lambda: Game(**GIVEN | {"utilities": [[0, math.nan], [1, 0]]}), "utilities must lie from 0.0 to 1.0"),
    (lambda: Game(**GIVEN | {"utilities": [["a", "b"], [1, 0]]}), "utilities must be real numbers"),
    (lambda: Game(**GIVEN | {"utilities": [[0, 1], [1]]}), "utilities must be an array"),
    (lambda: Game(**GIVEN | {"utilities": lambda t, s: np.zeros((3, 3))}), r"utilities must have the shape"),
    (lambda: Game(**GIVEN | {"utilities": lambda t, s: "x"}), "utilities must be real numbers"),
    (lambda: Game(**GIVEN | {"types": ()}), "types must be distinct, at least one, but there is none"),
    (lambda: Game(**GIVEN | {"types": (1, True)}), "types must be distinct"),
    (lambda: Game(**GIVEN | {"types": (math.nan, 1.0)}), "types must be distinct, at least one"),
    (lambda: Game(**GIVEN | {"types": ({}, 1)}), "types must be hashable"),
    (lambda: Game(**GIVEN | {"alternatives": []}), "alternatives must be distinct, at least one"),
    (lambda: Game(**GIVEN | {"agents": 0}), "agents must be an integer of at least 1"),
    (lambda: CHOICE.release(None), "reports must be a sequence"),
    (lambda: CHOICE.release([0, 1]), "reports must be one for each agent"),
    (lambda: CHOICE.release([0, 1, math.nan]), "reports must be types of the game"),
    (lambda: ExponentialChoice(game=Game(**GIVEN | {"utilities": np.ones((2, 2))}), epsilon=1),
     "scores must depend on the report"),
    (lambda: Mediator(MARKET, rounds=1, absent=(0.0,)), "reports must be numbers, one of each agent"),
    (lambda: Mediator(MARKET, rounds=1, absent=(0.0, 0.0)).advise({0: [0.5]}), "reports must be an array"),
    (lambda: MARKET.guarantee([]), r"signal must have the shape \(80, 3\), but it is \(0,\)"),
    (lambda: MARKET.prices([[0.0] * 3]), r"signal must have the shape \(80, 3\)"),
    (lambda: MARKET.supply_condition(0.3).met("x"), "signal must be real numbers"),
    (lambda: ROADS.play_regret([], np.zeros((0, 3), int)), "types and actions must be whole numbers"),
    (lambda: ROADS.play_regret([0, 0], np.zeros((2, 0), int)), "types and actions must be whole numbers"),
    (lambda: ROADS.play_regret([0, 0], [[0], [0], [0]]), "types and actions must be whole numbers"),
    (lambda: ROADS.play_regret([0, 0], [[0.0], [1.0]]), "types and actions must be whole numbers"),
    (lambda: ROADS.play_regret([0, 1], [[0], [0]]), "types and actions must be those of the game"),
    (lambda: ROADS.play_regret([0, 0], [[0], [2]]), "types and actions must be those of the game"),
    (lambda: ROADS.play_regret([0, 0], [[0], [-1]]), "types and actions must be those of the game"),
    (lambda: optimal_welfare(np.zeros((0, 2)), (1, 1)), "values must have a row for each agent, of 2 goods"),
    (lambda: optimal_welfare([1.0, 2.0], (1, 1)), "values must have a row for each agent, of 2 goods"),
    (lambda: welfare_ceiling([[1.0, 0.5]], (1,), [0.0]), "values must have a row for each agent, of 1 goods"),
    (lambda: optimal_welfare(np.zeros(0, int), (1, 1), valuations=GOODS), "reports must be whole numbers"),
    (lambda: Valuation(values=[]), "values must have a length of 2 to a power"),
    (lambda: Valuation(values=["a", "b"]), "values must be real numbers"),
    (lambda: Valuation.additive([]), "goods must be an integer of at least 1"),
    (lambda: Valuation.additive(["a"]), "values must be real numbers"),  # type: ignore[list-item]
)  # fmt: skip


def test_one_clear_error() -> None:
    failed = []
    for at, (call, message) in enumerate(CASES):
        try:
            with pytest.raises(ParameterError, match=message):
                call()
        except BaseException as error:
            failed.append((at, message, repr(error)))
    assert not failed


def test_agents_that_vanish_between_rounds_count_with_the_public_report() -> None:
    mediator = Mediator(MARKET, rounds=3, absent=(0.0, 0.0), rng=1)
    everyone = dict.fromkeys(range(200), (0.9, 0.3))
    there = mediator.advise(everyone)
    assert sum(part.any() for part in there.recommendations.values()) > 50
    gone = mediator.advise({7: (0.9, 0.3)})
    assert gone.recommendations.keys() == {7}
    # The part of an agent that is absent is that of the public report: it holds nothing.
    absent = np.zeros((200, 2))
    absent[7] = (0.9, 0.3)
    parts = gone.release.parts(absent)
    assert parts[7].tolist() == gone.recommendations[7].tolist()
    assert not np.delete(parts, 7, axis=0).any()
    assert len(mediator.advise(everyone).recommendations) == 200


def test_ties_have_one_documented_answer() -> None:
    table = np.array([[[1, 1], [1, 1]], [[1, 0], [0, 0]]])
    tied = Game(**GIVEN | {"utilities": table, "actions": ("a", "b")})
    assert tied.best_actions.tolist() == [[0, 0], [0, 0]]
    equal = DigitalGoods(upper=1, epsilon=1)
    assert equal.optimum([0.5] * 9)[:2] == (0.5, 9)
    single = Valuation.additive([0.5, 0.5], capacity=1)
    assert [single.demand(prices) for prices in ([0.25, 0.25], [0.5, 0.5], [0.5, 0.25])] == [(0,), (), (1,)]


def test_the_smallest_and_the_largest_numbers() -> None:
    tiny = Game(**GIVEN | {"utilities": [[0, 5e-324], [0, 0]]})
    found = regret(ExponentialChoice(game=tiny, epsilon=1), tiny)
    assert abs(found.gain.upper) < 1e-9
    for epsilon in (5e-324, 1e300):
        choice = ExponentialChoice(game=GAME, epsilon=epsilon)
        assert choice.release([0, 1, 1], rng=1).value in (0, 1)
        assert regret(choice, GAME).gain.upper < 1e-9
    empty = DigitalGoods(upper=1, epsilon=1)
    for bids in ([], [math.nan], [-1.0], [5e-324]):
        assert 0 < empty.release(bids, rng=1).value <= 1
        assert empty.expected_revenue(bids) == 0
