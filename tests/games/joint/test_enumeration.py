"""Joint privacy of billboards by enumeration: all that the others receive, for every profile and lie."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import ExponentialChoice, Game
from sfumato.games.joint.billboard import Billboard
from sfumato.games.joint.enumeration import check_joint_privacy
from sfumato.games.joint.voting import PrivateDictator
from sfumato.mechanisms import Histogram, Laplace
from sfumato.privacy import Neighboring

PRICES = [(a / 4, b / 4, c / 4) for a in range(3) for b in range(3) for c in range(3)]
VALUES = {"a": (1.0, 0.5, 0.0), "b": (0.0, 1.0, 0.5), "c": (0.5, 0.0, 1.0)}


def crossing(signal: int, report: str) -> str:
    """Avoid the bridge if it is crowded, unless in a hurry."""
    return "bridge" if report == "early" or signal <= 1 else "ferry"


def favorite(signal: tuple[float, ...], report: str) -> int | None:
    """Return the good with the largest gain, or None."""
    gains = [value - price for value, price in zip(VALUES[report], signal, strict=True)]
    return max(range(3), key=gains.__getitem__) if max(gains) > 0 else None


def repeat(signal: Any, report: Any) -> Any:
    """Show the signal."""
    return signal


def counted(scale: float) -> Callable[[tuple[str, ...]], dict[int, float]]:
    """Return the exact distribution of how many are early, with Laplace noise, from 0 to 3."""

    def distribution(reports: tuple[str, ...]) -> dict[int, float]:
        q, exact = math.exp(-1 / scale), sum(report == "early" for report in reports)
        mass = {z: (1 - q) / (1 + q) * q ** abs(z - exact) for z in range(1, 3)}
        return mass | {0: q**exact / (1 + q), 3: q ** (3 - exact) / (1 + q)}

    return distribution


def crossing_board() -> Billboard:
    counts = Laplace.for_query(
        Histogram(categories=("early", "late")), epsilon=2.0, neighboring=Neighboring.REPLACE_ONE
    )
    return Billboard(signal=counts, respond=crossing, agents=3)


def test_a_congestion_game_of_three_players() -> None:
    check = check_joint_privacy(crossing_board(), ["early", "late"], counted(1), epsilon=1.0)
    assert check.delta == check.signal_delta == 0
    assert check.pairs == 8 * 3
    assert 0.5 < check.ratio <= 1 + 1e-12
    half = check_joint_privacy(crossing_board(), ["early", "late"], counted(1), epsilon=0.5)
    # By hand: others see whether at least two are announced to be early, of two or of one that are.
    q = math.exp(-1)
    assert half.delta == pytest.approx((1 - math.exp(0.5) * q) / (1 + q), rel=1e-9)
    assert half.delta <= half.signal_delta
    assert half.measured_epsilon == pytest.approx(1.0)
    place, reports, replaced = half.agent, half.reports, half.replaced
    assert [a != b for a, b in zip(reports, replaced, strict=True)] == [i == place for i in range(3)]


def test_a_leak_of_the_exact_count_is_found() -> None:
    def exact(reports: tuple[str, ...]) -> dict[int, float]:
        return {sum(report == "early" for report in reports): 1.0}

    check = check_joint_privacy(crossing_board(), ["early", "late"], exact, epsilon=1.0)
    assert check.delta == 1.0
    huge = check_joint_privacy(crossing_board(), ["early", "late"], exact, epsilon=1e5)
    assert huge.delta == 1.0
    assert check_joint_privacy(crossing_board(), ["early", "late"], counted(1), epsilon=1e5).delta == 0
    assert check.measured_epsilon == math.inf


def test_a_matching_of_four_agents_and_three_goods() -> None:
    # Scores add up to minus the dual objective, whose minimum are Walrasian prices.
    scores = [
        [
            -max(0.0, *(v - p for v, p in zip(VALUES[kind], prices, strict=True))) - sum(prices) / 4
            for prices in PRICES
        ]
        for kind in "abc"
    ]
    game = Game(types="abc", alternatives=PRICES, utilities=np.zeros((3, 27)), agents=4)
    choice = ExponentialChoice(game=game, epsilon=0.8, scores=scores)
    board = Billboard(signal=choice, respond=favorite, agents=4)
    check = check_joint_privacy(
        board,
        "abc",
        lambda reports: dict(zip(PRICES, choice.probabilities(reports), strict=True)),
        epsilon=0.8,
    )
    assert check.delta <= 1e-12
    assert 0.05 < check.ratio <= 1 + 1e-9
    assert check.pairs == 81 * 4 * 2
    release = board.release(list("abca"), rng=3)
    assert release.parts(list("abca")) == [
        release.part(place, kind) for place, kind in enumerate(list("abca"))
    ]
    assert release.value in PRICES
    assert board.privacy_loss == choice.privacy_loss


def test_too_large_a_game_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Billboard(signal=PrivateDictator(candidates=2, epsilon=1), respond=repeat, agents=40)
    with pytest.raises(ParameterError, match=r"types must be at least 2, with at most .* profiles"):
        check_joint_privacy(board, [(0, 1), (1, 0)], lambda reports: {0: 1.0}, epsilon=1.0)
    with pytest.raises(ParameterError, match="types must be at least 2"):
        check_joint_privacy(board, [(0, 1)], lambda reports: {0: 1.0}, epsilon=1.0)
    few = Billboard(signal=PrivateDictator(candidates=2, epsilon=1), respond=repeat, agents=2)
    monkeypatch.setattr("sfumato.games.joint.enumeration._MOST", 4)
    assert check_joint_privacy(few, [0, 1], lambda reports: {0: 1.0}, epsilon=1.0).measured_epsilon == 0
    with pytest.raises(ParameterError, match="types must give at most"):
        check_joint_privacy(few, [0, 1], lambda reports: {0: 0.5, 1: 0.5}, epsilon=1.0)
