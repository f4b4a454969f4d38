"""The largest gain of a lie, against loops in plain Python."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.games import Commitment, ExponentialChoice, Game, SocialChoice, regret
from sfumato.games.incentives import largest_gain
from sfumato.games.incentives.gain_search import _moves, climb
from sfumato.games.incentives.gains import Gains
from sfumato.numerics import RandomSource
from sfumato.numerics.interval import Interval
from sfumato.privacy import Neighboring, PrivacyLoss, PureDP

RNG = np.random.default_rng(11)


def brute(mechanism: SocialChoice, game: Game) -> float:
    """Return the largest gain over everything, with the lottery's imposed actions."""
    best = -math.inf
    lottery = mechanism.commitment or Commitment(0.0, np.zeros(len(game.alternatives)))
    kinds = range(len(game.types))
    for profile in product(kinds, repeat=game.agents):
        for agent, report in product(range(game.agents), kinds):
            lie = (*profile[:agent], report, *profile[agent + 1 :])
            if lie == profile:
                continue
            at = 0 if game.anonymous else agent
            free = game.free_utilities.reshape(-1, len(kinds), len(game.alternatives))[at]
            held = game.imposed_utilities.reshape(-1, len(kinds), len(kinds), len(game.alternatives))[at]
            kind = profile[agent]
            values = []
            for reported in (profile, lie):
                drawn = mechanism.distributions(np.array([reported]))[0]
                told = reported[agent]
                values.append(
                    (1 - lottery.probability) * (drawn @ free[kind])
                    + lottery.probability * (lottery.distribution @ held[kind, told])
                )
            best = max(best, values[1] - values[0])
    return best


@pytest.mark.parametrize("anonymous", [True, False])
def test_the_gain_is_that_of_brute_force(anonymous: bool) -> None:
    table = RNG.random((3, 4)) if anonymous else RNG.random((4, 3, 4))
    game = Game(types=range(3), alternatives=range(4), utilities=table, agents=4, anonymous=anonymous)
    choice = ExponentialChoice(game=game, epsilon=2)
    found = regret(choice, game)
    assert found.exact
    assert found.gain.lower == pytest.approx(brute(choice, game), abs=1e-9)
    assert found.gain.upper - found.gain.lower < 1e-9
    assert found.profiles == (10 if anonymous else 27)
    witness = found.witness
    reports = [*witness.others]
    truth, lie = (
        float(choice.probabilities([*reports[: witness.agent], told, *reports[witness.agent :]]) @ row)
        for told, row in (
            (kind, game.free_utilities[witness.type if anonymous else (witness.agent, witness.type)])
            for kind in (witness.type, witness.report)
        )
    )
    assert (truth, lie) == pytest.approx((witness.truth_utility, witness.lie_utility))
    assert lie - truth == pytest.approx(found.gain.lower, abs=1e-9)
    assert found.gain.lower < witness.lie_utility - witness.truth_utility < found.gain.upper


def test_screening_in_single_precision_finds_what_enumeration_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    table = RNG.random((6, 5)) * 3 - 1
    game = Game(types=range(6), alternatives=range(5), utilities=table, agents=7, utility_range=(-1, 2))
    choice = ExponentialChoice(game=game, epsilon=3)
    plain = regret(choice, game)
    monkeypatch.setattr(largest_gain, "_ENUMERATED", 0)
    quick = regret(choice, game)
    assert quick.exact
    assert quick.gain == pytest.approx(plain.gain, abs=1e-12)
    assert (quick.witness.type, quick.witness.report) == (plain.witness.type, plain.witness.report)
    assert sorted(quick.witness.others) == sorted(plain.witness.others)


@pytest.mark.parametrize("unit", [1e39, 1e200, 1e-60, 1e-300])
def test_screening_works_in_units_beyond_single_precision(
    monkeypatch: pytest.MonkeyPatch, unit: float
) -> None:
    table = np.random.default_rng(5).random((4, 5)) * unit
    game = Game(types=range(4), alternatives=range(5), utilities=table, agents=5, utility_range=(0, unit))
    choice = ExponentialChoice(game=game, epsilon=3)
    plain = regret(choice, game)
    monkeypatch.setattr(largest_gain, "_ENUMERATED", 0)
    # A search that finds little: whatever is larger must pass the screen.
    monkeypatch.setattr(
        largest_gain, "climb", lambda gains, *rest: (gains.largest(np.zeros((1, 4), np.int64)), 1)
    )
    quick = regret(choice, game)
    assert quick.exact
    assert quick.gain.lower / unit == pytest.approx(plain.gain.lower / unit, rel=1e-9)
    assert plain.gain.lower > 1.2 * Gains(choice, game, 0).largest(np.zeros((1, 4), np.int64)).gain


def test_a_search_finds_a_lie_that_gains_and_proves_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    table = RNG.random((4, 3))
    game = Game(types=range(4), alternatives=range(3), utilities=table, agents=6)
    choice = ExponentialChoice(game=game, epsilon=2)
    exact = regret(choice, game)
    monkeypatch.setattr(largest_gain, "_ENUMERATED", 0)
    monkeypatch.setattr(largest_gain, "_SCREENED", 0)
    found = regret(choice, game, searches=6)
    assert not found.exact
    assert "by search" in str(found)
    assert found.gain.upper == found.bound > exact.gain.upper
    assert 0.9 * exact.gain.lower <= found.gain.lower <= exact.gain.upper
    assert not found.dominant
    one, seen = climb(Gains(choice, game, 0), 1, 5)
    assert one.gain <= exact.gain.upper
    assert seen > 64
    assert seen % 64 == 1
    assert found.profiles > 6 * 64


def test_moves_change_somebodys_report() -> None:
    moved = _moves(np.zeros(5, np.int64), 10**6, 40, np.random.default_rng(1))
    assert moved.shape == (40, 5)
    assert (moved != 0).any(axis=1).all()
    assert 5 < (np.count_nonzero(moved, axis=1) == 1).sum() < 40


def test_what_cannot_be_screened_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(largest_gain, "_ENUMERATED", 0)
    table = RNG.random((2, 3, 3))
    general = Game(types=range(3), alternatives=range(3), utilities=table, agents=2, anonymous=False)
    found = regret(ExponentialChoice(game=general, epsilon=1), general)
    assert not found.exact
    assert found.gain.lower <= brute(ExponentialChoice(game=general, epsilon=1), general) + 1e-9
    # Of one other agent there are three reports: three by three types by three alternatives.
    for limit in (26, 27):
        monkeypatch.setattr(largest_gain, "_ENUMERATED", limit)
        assert regret(ExponentialChoice(game=general, epsilon=1), general).exact is (limit == 27)
    monkeypatch.setattr(largest_gain, "_ENUMERATED", 0)
    alike = Game(types=range(3), alternatives=range(3), utilities=table[0], agents=2)
    assert regret(ExponentialChoice(game=alike, epsilon=1), alike).exact
    assert not regret(ExponentialChoice(game=alike, epsilon=90), alike).exact  # beyond single precision


def test_utilities_that_are_not_those_of_the_mechanism_are_judged_too() -> None:
    table = RNG.random((3, 3))
    game = Game(types="abc", alternatives="xyz", utilities=table, agents=3)
    choice = ExponentialChoice(game=game, epsilon=1)
    envy = Game(types="abc", alternatives="xyz", utilities=1 - table, agents=3)
    assert regret(choice, envy).gain.lower == pytest.approx(brute(choice, envy), abs=1e-9)
    assert regret(choice, envy).gain.lower > regret(choice, game).gain.lower


def test_a_lie_of_less_than_nothing_is_dominated() -> None:
    game = Game(types="ab", alternatives="xy", utilities=[[1, 0], [0, 1]], agents=3)
    found = regret(ExponentialChoice(game=game, epsilon=1), game)
    assert found.dominant
    assert found.gain.upper < 0
    assert replace(found, gain=Interval(-1.0, 0.0, True)).dominant
    assert str(found) == f"No lie gains anything: {found.gain.upper:.6g} at most (exact)."
    tied = replace(found, gain=Interval(-1e-11, 1e-11, True))
    assert str(tied) == "No lie is known to gain anything: 1e-11 at most (exact)."
    searched = replace(found, gain=Interval(-0.5, 0.25, False), exact=False, bound=0.25)
    assert str(searched).startswith("No lie was found that gains anything (by search; no proof")
    assert str(searched).endswith("the theorem allows 0.25.")


def test_one_agent_alone() -> None:
    table = RNG.random((3, 2))
    game = Game(types="abc", alternatives="xy", utilities=table, agents=1)
    choice = ExponentialChoice(game=game, epsilon=1)
    assert regret(choice, game).gain.lower == pytest.approx(brute(choice, game), abs=1e-9)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dictator(SocialChoice):
    """The first agent's report is the alternative, with probability 0.9: somebody's own mechanism."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        return PureDP(2.2, neighboring=Neighboring.REPLACE_ONE)

    def distributions(self, profiles: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(profiles[:, :1] == np.arange(2), 0.9, 0.1)

    def draw(self, profile: NDArray[np.int64], source: RandomSource) -> tuple[int, bool]:
        return int(profile[0]), False


def test_a_mechanism_of_ones_own_is_not_taken_for_anonymous() -> None:
    game = Game(types=(0, 1), alternatives=(0, 1), utilities=[[0, 1], [1, 0]], agents=3)
    mechanism = Dictator(game=game)
    found = regret(mechanism, game)
    assert found.gain.lower == pytest.approx(0.8)
    assert found.gain.upper <= found.bound
    assert (found.witness.agent, found.profiles) == (0, 4)
    assert mechanism.commitment is None
    assert mechanism.log_factors is None
    one = Game(types=(0,), alternatives=(0, 1), utilities=[[0, 1]], agents=3)
    with pytest.raises(ParameterError, match="game must have two types or more"):
        regret(Dictator(game=one), one)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"types": "xyz"}, "game must have the mechanism's types"),
        ({"alternatives": "cab"}, "game must have the mechanism's alternatives"),
        ({"agents": 4}, "game must have the mechanism's agents"),
    ],
)
def test_another_game_is_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"types": "abc", "alternatives": "abc", "utilities": np.eye(3), "agents": 3}
    choice = ExponentialChoice(game=Game(**given), epsilon=1)
    with pytest.raises(ParameterError, match=message):
        regret(choice, Game(**(given | change)))
