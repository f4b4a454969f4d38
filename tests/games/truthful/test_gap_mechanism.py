"""Exactly truthful mechanisms: dominance by enumeration, the least lottery, the rate in n."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import (
    Game,
    GapMechanism,
    facility_location,
    price_list,
    price_scores,
    regret,
    tree_distances,
)
from sfumato.games.incentives import largest_gain
from sfumato.games.truthful import gap_parameters
from sfumato.games.truthful.gap_parameters import lie_losses, separating_lottery
from tests.chance import accepts_only, frequencies, rate

LINE = np.arange(4.0)
SALE = price_list((1, 2, 3, 4), (0.5, 1.5, 2.5, 3.5), agents=5)


def line(agents: int) -> Game:
    return facility_location(LINE, np.abs(LINE[:, None] - LINE), agents=agents)


def least_by_loops(mechanism: GapMechanism) -> float:
    """Return the least probability of the lottery, over all profiles and lies, in plain Python."""
    game, kinds, worst = mechanism.game, range(len(mechanism.game.types)), 0.0
    for others in product(kinds, repeat=game.agents - 1):
        rows = [mechanism.distributions(np.array([[report, *others]]))[0] for report in kinds]
        for kind, report in product(kinds, repeat=2):
            gain = (rows[report] - rows[kind]) @ game.free_utilities[kind]
            if kind != report and gain > 0:
                loss = sum(
                    weight * (game.utilities[kind, s, game.best_actions[kind, s]]
                              - game.utilities[kind, s, game.best_actions[report, s]])
                    for s, weight in enumerate(mechanism.distribution)
                )  # fmt: skip
                worst = max(worst, gain / (gain + loss))
    return worst


def test_the_theorems_lottery_makes_truth_dominant_and_the_least_one_is_smaller() -> None:
    mechanism = GapMechanism.calibrated(SALE, epsilon=0.3, scores=price_scores(SALE))
    found = mechanism.probabilities_of_truth()
    assert found.least == pytest.approx(least_by_loops(mechanism), abs=1e-6)
    assert found.least is not None
    assert 0.1 < found.least < found.sufficient < found.paper
    assert float(mechanism.probability) == pytest.approx(found.sufficient, abs=1e-11)
    assert regret(mechanism, SALE).dominant


def test_the_least_lottery_is_that_of_each_agents_own_gains_and_losses() -> None:
    # The first agent gains most by lies under the choice, the second loses least under the lottery.
    table = np.random.default_rng(1).random((2, 3, 4, 2))
    table[1] *= 0.02
    game = Game(types="abc", alternatives=range(4), actions="xy", utilities=table, agents=2, anonymous=False)
    scores = np.random.default_rng(5).random((3, 4))
    mechanism = GapMechanism(game=game, epsilon=2, probability=0.5, scores=scores)
    worst, mixed = 0.0, 0.0
    for agent in range(2):
        free, imposed = game.free_utilities[agent], game.imposed_utilities[agent]
        for other, kind, report in product(range(3), repeat=3):
            drawn = [
                mechanism.distributions(np.array([[own, other] if agent == 0 else [other, own]]))[0]
                for own in (kind, report)
            ]
            gain = float((drawn[1] - drawn[0]) @ free[kind])
            loss = float((free[kind] - imposed[kind, report]) @ mechanism.distribution)
            if kind != report and gain > 0:
                worst = max(worst, gain / (gain + loss))
                mixed = max(mixed, gain / (gain + mechanism.lie_losses[kind, report]))
    assert mechanism.probabilities_of_truth().least == pytest.approx(worst, abs=1e-6)
    assert worst < 0.31 * mixed
    least = GapMechanism.calibrated(game, epsilon=2, scores=scores, least=True)
    assert regret(least, game).dominant


def test_a_lottery_for_all_agents_may_not_exist() -> None:
    # Each agent's lies lose at an alternative of its own.
    table = np.zeros((2, 2, 2, 2))
    for agent in range(2):
        table[agent, 0, agent] = (1.0, 0.0)
        table[agent, 1, agent] = (0.0, 1.0)
    game = Game(types="ab", alternatives="xy", actions="st", utilities=table, agents=2, anonymous=False)
    scores = [[1.0, 0.0], [0.0, 1.0]]
    mechanism = GapMechanism(game=game, epsilon=0.5, probability=0.5, scores=scores)
    assert separating_lottery(game).gap == 0
    found = mechanism.probabilities_of_truth()
    assert found.paper == 1 > found.sufficient
    assert mechanism.lie_losses.tolist() == [[0.0, 0.5], [0.5, 0.0]]


def test_a_lie_pays_below_the_least_lottery_and_none_at_it() -> None:
    scores = price_scores(SALE)
    mechanism = GapMechanism.calibrated(SALE, epsilon=0.3, scores=scores, least=True)
    assert regret(mechanism, SALE).dominant
    below = GapMechanism(
        game=SALE, epsilon=0.3, probability=float(mechanism.probability) * 0.999, scores=scores
    )
    found = regret(below, SALE)
    assert not found.dominant
    assert found.gain.lower > 0


def test_screening_sees_what_is_imposed(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = GapMechanism(game=SALE, epsilon=2, probability=0.2, scores=price_scores(SALE))
    plain = regret(mechanism, SALE)
    monkeypatch.setattr(largest_gain, "_ENUMERATED", 0)
    assert regret(mechanism, SALE).gain == pytest.approx(plain.gain, abs=1e-12)


def test_a_game_with_other_best_actions_is_refused() -> None:
    mechanism = GapMechanism.calibrated(SALE, epsilon=0.5)
    shy = Game(
        types=SALE.types,
        alternatives=SALE.alternatives,
        actions=SALE.actions,
        utilities=-SALE.utilities,
        agents=5,
        utility_range=(-4, 4),
    )
    with pytest.raises(ParameterError, match="game must have the best actions that are imposed"):
        regret(mechanism, shy)


@pytest.mark.parametrize(
    "distances",
    [
        np.abs(LINE[:, None] - LINE),
        tree_distances(LINE, [(0.0, 1.0, 1.0), (1.0, 2.0, 2.0), (1.0, 3.0, 0.5)]),
        1 - np.eye(4),
    ],
    ids=["line", "tree", "uniform"],
)
def test_facility_location_is_truthful_on_lines_trees_and_metrics(distances: Any) -> None:
    game = facility_location(LINE, distances, agents=5)
    mechanism = GapMechanism.calibrated(game, epsilon=0.5)
    found = regret(mechanism, game)
    assert found.dominant
    assert found.gain.upper < -1e-3
    losses = mechanism.lie_losses
    assert losses[~np.eye(4, dtype=bool)].min() > 0.05
    even = np.full(len(game.alternatives), 1 / len(game.alternatives))
    assert losses[~np.eye(4, dtype=bool)].min() >= lie_losses(game, even)[0][~np.eye(4, dtype=bool)].min()


def test_the_gap_to_the_optimum_vanishes_like_one_over_the_square_root_of_n() -> None:
    bounds, gaps = [], []
    for agents in (100, 1_000, 10_000, 100_000):
        mechanism = GapMechanism.calibrated(line(agents))
        reports = np.repeat(LINE, agents // 4)
        gap, bound = mechanism.expected_shortfall(reports), mechanism.shortfall_bound
        assert 0 < gap <= bound
        bounds.append(bound * agents**0.5)
        gaps.append(gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < gaps[0] / 20
    assert max(bounds) < 6
    assert bounds[-1] < 1.2 * bounds[-2]


def test_the_bound_is_the_formula_of_the_notes() -> None:
    mechanism = GapMechanism(game=line(40), epsilon=0.8, probability=0.25)
    width = float(mechanism.choice.range * mechanism.choice.step)
    short = width * np.log(6) / 0.8 / 40
    worst = float((mechanism.scores.max(axis=1) - mechanism.scores.min(axis=1)).max())
    assert mechanism.shortfall_bound == pytest.approx(0.75 * short + 0.25 * worst, rel=1e-8)
    assert mechanism.shortfall_bound > 0.75 * short + 0.25 * worst
    certain = GapMechanism(game=line(40), epsilon=0.8, probability=1)
    assert worst < certain.shortfall_bound == pytest.approx(worst, rel=1e-15)
    assert "_weights" not in repr(mechanism)
    assert "choice" not in repr(mechanism)


def test_the_shortfall_is_that_of_the_distribution() -> None:
    mechanism = GapMechanism(game=line(6), epsilon=1, probability=0.25)
    reports = [0.0, 0.0, 3.0, 3.0, 3.0, 2.0]
    totals = sum(mechanism.game.free_utilities[mechanism.game.position(report)] for report in reports)
    expected = mechanism.probabilities(reports) @ (np.max(totals) - totals) / 6
    assert mechanism.expected_shortfall(reports) == pytest.approx(expected, rel=1e-7)


def test_the_coin_and_the_choice_are_of_range_epsilon() -> None:
    mechanism = GapMechanism(game=line(3), epsilon=0.7, probability=0.25)
    rows = {p: mechanism.distributions(np.array([p]))[0] for p in product(range(4), repeat=3)}
    widest = 0.0
    for profile, row in rows.items():
        for report in range(4):
            losses = np.append(np.log(row / rows[(report, *profile[1:])]), 0.0)  # 0: the lottery's outputs
            widest = max(widest, losses.max() - losses.min())
    assert 0.65 < widest <= 0.7 + 1e-12
    assert mechanism.privacy_loss.epsilon() == 0.7


def test_the_lottery_imposes_what_reports_ask_for() -> None:
    mechanism = GapMechanism(game=line(3), epsilon=0.5, probability=1)
    outcome = mechanism.release([0.0, 3.0, 1.0], rng=3)
    assert outcome.imposed
    first, second = outcome.value
    assert outcome.action(first) == 0
    assert outcome.action(second) == 1
    drawn = [mechanism.release([0.0, 3.0, 1.0], rng=seed).index for seed in range(600)]
    chosen = GapMechanism(game=line(3), epsilon=0.5, probability=0).probabilities([0.0, 3.0, 1.0])
    accepts_only(
        frequencies(Counter(drawn)),
        dict(enumerate(mechanism.distribution)),
        the_choice=dict(enumerate(chosen)),
    )
    free = GapMechanism(game=line(3), epsilon=0.5, probability=0)
    assert not any(free.release([0.0, 3.0, 1.0], rng=seed).imposed for seed in range(50))
    half = GapMechanism(game=line(3), epsilon=0.5, probability=0.5)
    imposed = sum(half.release([0.0, 3.0, 1.0], rng=seed).imposed for seed in range(600))
    accepts_only(rate(imposed, 600), 0.5, a_third=1 / 3, two_thirds=2 / 3)


@pytest.mark.parametrize("weight", [1e-30, 1e308])
def test_weights_of_any_size_are_probabilities(weight: float) -> None:
    given = np.array([weight, 0, 0, weight / 2, weight / 4, weight / 4])
    mechanism = GapMechanism(game=line(3), epsilon=1, probability=2.0**-41, distribution=given)
    assert mechanism.distribution.tolist() == [0.5, 0, 0, 0.25, 0.125, 0.125]
    assert mechanism.probability == Fraction(1, 1 << 40)  # rounded up
    assert mechanism.release([0.0, 1.0, 2.0], rng=1).index < 6


def test_the_papers_lottery_separates_all_types() -> None:
    game = line(4)
    lottery = separating_lottery(game)
    losses = (game.free_utilities[:, None, :] - game.imposed_utilities)[:, :, lottery.weights > 0]
    assert lottery.gap == losses.max(axis=2)[~np.eye(4, dtype=bool)].min() > 0
    small = GapMechanism(game=game, epsilon=0.01, probability=0.5).probabilities_of_truth()
    assert small.paper == pytest.approx(2 * 0.01 * lottery.weights.sum() / lottery.gap)
    assert small.sufficient < small.paper < 1
    assert GapMechanism(game=game, epsilon=3, probability=0.5).probabilities_of_truth().paper == 1


def test_too_many_profiles_leave_the_least_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gap_parameters, "_MOST", 10)
    mechanism = GapMechanism(game=line(4), epsilon=1, probability=0.5)
    assert mechanism.probabilities_of_truth().least is None
    with pytest.raises(ParameterError, match="game must be small enough to enumerate"):
        GapMechanism.calibrated(line(4), epsilon=1, least=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probability": 1.5}, "probability must be from 0 to 1"),
        ({"distribution": [1, 2]}, "distribution must be weights of alternatives"),
        ({"distribution": [-1, 2, 0, 0, 0, 0]}, "distribution must be weights of alternatives"),
        ({"distribution": [0, 0, 0, 0, 0, 0]}, "distribution must be weights of alternatives"),
        ({"distribution": [np.inf, 0, 0, 0, 0, 0]}, "distribution must be finite"),
        (
            {"game": facility_location(LINE, 1 - np.eye(4), agents=3, facilities=1)},
            "game must have types that actions tell apart, but some lie loses nothing anywhere",
        ),
        (
            {"game": price_list((1, 2), (1, 2), agents=3)},
            "game must have types that actions tell apart",
        ),
        (
            {"game": price_list((1, 2), (1, 2), agents=3), "distribution": [1, 1]},
            "game must have types that actions tell apart",
        ),
        (
            {"game": Game(types="a", alternatives="xy", utilities=[[0, 1]], agents=2)},
            "scores must depend on the report",
        ),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"game": line(3), "epsilon": 1, "probability": 0.5} | change
    with pytest.raises(ParameterError, match=message):
        GapMechanism(**given)
