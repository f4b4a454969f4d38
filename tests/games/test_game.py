"""Games: shapes, callables, actions, and one clear error for what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import Game

GOOD: dict[str, Any] = {
    "types": "ab",
    "alternatives": (0, 1, 2),
    "utilities": [[0, 0.5, 1], [1, 0.5, 0]],
    "agents": 3,
}


def test_a_callable_sees_labels_that_are_numbers_and_positions_of_others() -> None:
    game = Game(
        types=(1.0, 3.0),
        alternatives=("x", "y", "z"),
        actions=(0, 10),
        agents=2,
        anonymous=False,
        utility_range=(0, 100),
        utilities=lambda agent, kind, alternative, action: 20 * agent + kind + alternative + action,
    )
    assert game.utilities.shape == (2, 2, 3, 2)
    assert game.utilities[1, 1, 2, 1] == 20 + 3 + 2 + 10
    assert game.range_length == 100


def test_the_best_action_is_the_types_own_and_the_first_of_equals() -> None:
    table = np.array([[[0.2, 0.9], [0.4, 0.4]], [[0.8, 0.1], [0.3, 0.6]]])
    game = Game(types="ab", alternatives="xy", actions=("buy", "not"), utilities=table, agents=2)
    assert game.best_actions.tolist() == [[1, 0], [0, 1]]
    assert game.free_utilities.tolist() == [[0.9, 0.4], [0.8, 0.6]]
    for kind in range(2):
        for report in range(2):
            for alternative in range(2):
                taken = game.best_actions[report, alternative]
                assert game.imposed_utilities[kind, report, alternative] == table[kind, alternative, taken]


def test_what_is_no_table_of_numbers_is_refused() -> None:
    for table in ([[1], [1, 0]], [["a", 1], [1, 0]]):
        with pytest.raises(ParameterError, match=r"utilities must be (an array|real numbers)"):
            Game(types="ab", alternatives=(0, 1), utilities=table, agents=3)
    with pytest.raises(ParameterError, match="reports must be a sequence"):
        Game(**GOOD).positions(5)


def test_imposed_utilities_of_a_game_that_is_not_anonymous() -> None:
    table = np.random.default_rng(1).random((3, 4, 5, 2))
    game = Game(
        types=range(4), alternatives=range(5), actions="xy", utilities=table, agents=3, anonymous=False
    )
    found = game.imposed_utilities
    assert found.shape == (3, 4, 4, 5)
    assert found[2, 1, 3, 4] == table[2, 1, 4, game.best_actions[2, 3, 4]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"types": ()}, "types must be distinct, at least one, but there is none"),
        ({"types": "aa"}, "one of them is there twice"),
        ({"types": {"a", "b"}}, "types must be a sequence"),
        ({"agents": 0}, "agents must be an integer of at least 1"),
        ({"utilities": [[0, 1], [1, 0]]}, r"utilities must have the shape \(2, 3\)"),
        ({"utilities": [[0, 1, 2], [1, 0, 0]]}, r"utilities must lie from 0.0 to 1.0, but some do not"),
        ({"utilities": [[0, -0.1, 1], [1, 0, 0]]}, "but some do not"),
        ({"utilities": [[0, np.nan, 1], [1, 0, 0]]}, "but some do not"),
        ({"utility_range": (1, 1)}, "utility_range must end above where it begins"),
        ({"utility_range": 3}, "utility_range must be two numbers"),
        ({"anonymous": 1}, "anonymous must be True or False"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Game(**(GOOD | change))


def test_reports_are_refused_without_showing_them() -> None:
    game = Game(**GOOD)
    assert game.positions("aba").tolist() == [0, 1, 0]
    assert game.position("b") == 1
    for reports in ("ab", "abab", ["a", "secret", "b"], ["a", ["b"], "b"]):
        with pytest.raises(ParameterError, match="reports must") as refused:
            game.positions(reports)
        assert "secret" not in str(refused.value)
    with pytest.raises(ParameterError, match="report must be a type"):
        game.position("c")
