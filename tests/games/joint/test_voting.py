"""Private votes: exact distributions, privacy over all profiles, truthfulness of the dictator."""

import math
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games.joint.voting import PositionalVote, PrivateDictator, VotingRule, _uniform_below
from sfumato.numerics.randomness.source import SimulatedSource

ORDERS = list(permutations(range(3)))
RULES: tuple[Any, ...] = ("plurality", "veto", "borda", "harmonic")
BY_POINTS = [PositionalVote(candidates=3, rule=rule, epsilon=0.7) for rule in RULES]
VOTES: list[VotingRule] = [*BY_POINTS, PrivateDictator(candidates=3, epsilon=0.7)]


def test_privacy_over_all_profiles() -> None:
    for vote in VOTES:
        check_privacy(vote)


def check_privacy(vote: VotingRule) -> None:
    worst = 0.0
    for profile in product(ORDERS, repeat=2):
        here = np.log(vote.probabilities(profile))
        for lie in ORDERS:
            worst = max(worst, float((here - np.log(vote.probabilities((lie, profile[1])))).max()))
    assert 0.2 < worst <= 0.7 + 1e-9
    assert vote.privacy_loss.epsilon() == pytest.approx(0.7, rel=1e-8)


def test_points() -> None:
    points = {vote.rule: vote.points.tolist() for vote in BY_POINTS}
    assert points["plurality"] == [1, 0, 0]
    assert points["veto"] == [1, 1, 0]
    assert points["borda"] == [2, 1, 0]
    assert points["harmonic"] == [1 << 20, 1 << 19, (1 << 20) // 3]
    assert BY_POINTS[2].scores([[0, 1, 2], [2, 0, 1]]).tolist() == [3, 1, 2]


def test_a_winner_lacks_few_points() -> None:
    vote = PositionalVote(candidates=3, rule="plurality", epsilon=1.0)
    bound = vote.shortfall(0.05)
    far = [[0, 1, 2]] * int(bound + 2)
    assert vote.probabilities(far)[1:].sum() <= 0.05
    assert bound < 12


def test_the_dictators_distribution() -> None:
    vote = PrivateDictator(candidates=2, epsilon=1.0)
    added = vote.added
    assert isinstance(added, Fraction)
    assert added >= Fraction(1 / math.expm1(1.0)) * (1 - Fraction(1, 10**13))
    assert float(1 + 1 / added) <= math.e * (1 + 1e-15)
    assert float(added) < 1 / math.expm1(1.0) + 1e-11
    ballots = [[0, 1]] * 9 + [[1, 0]]
    assert vote.probabilities(ballots)[0] == pytest.approx(float((9 + added) / (10 + 2 * added)), rel=1e-15)
    drawn = [vote.release(ballots, rng=seed).value for seed in range(300)]
    # 300 draws at 0.858 with fixed seeds: beyond 0.73 or 0.95 with probability below 1e-6.
    assert 0.73 < drawn.count(0) / 300 < 0.95


def test_ballots_of_nobody_are_drawn_evenly() -> None:
    vote = PrivateDictator(candidates=3, epsilon=2.0**-10)
    drawn = [vote.release([[0, 1, 2]], rng=seed).value for seed in range(300)]
    # 300 draws with fixed seeds: fewer than 60 of one candidate with probability below 1e-6.
    assert set(drawn) == {0, 1, 2}
    assert min(map(drawn.count, range(3))) >= 60


def test_no_lie_pays_under_the_dictator() -> None:
    vote = PrivateDictator(candidates=3, epsilon=0.5)
    others = [(1, 2, 0), (2, 0, 1)]
    for order in ORDERS:
        utility = np.empty(3)
        utility[list(order)] = (1.0, 0.4, 0.0)
        truth = utility @ vote.probabilities([order, *others])
        assert all(utility @ vote.probabilities([lie, *others]) <= truth + 1e-15 for lie in ORDERS)


def test_uniform_integers_of_many_bits() -> None:
    source = SimulatedSource(1)
    bound = (1 << 70) + 5
    drawn = [_uniform_below(bound, source) for _ in range(200)]
    assert max(drawn) < bound
    assert max(drawn) > 0.97 * bound
    assert min(drawn) < 0.03 * bound
    assert {_uniform_below(1, source)} == {0}
    assert {_uniform_below(3, source) for _ in range(60)} == {0, 1, 2}


def test_what_is_refused() -> None:
    wrong: Any
    for wrong in ("Borda", 3):
        with pytest.raises(ParameterError, match="rule must be plurality, veto, borda or harmonic"):
            PositionalVote(candidates=3, rule=wrong, epsilon=1.0)
    for candidates in (1, 1001):
        with pytest.raises(ParameterError, match="candidates must"):
            PositionalVote(candidates=candidates, rule="borda", epsilon=1.0)
        with pytest.raises(ParameterError, match="candidates must"):
            PrivateDictator(candidates=candidates, epsilon=1.0)
    for epsilon in (32, 2.0**-20):
        assert PrivateDictator(candidates=3, epsilon=epsilon).added > 0
    for epsilon in (33, 2.0**-21):
        with pytest.raises(ParameterError, match="epsilon must be from"):
            PrivateDictator(candidates=3, epsilon=epsilon)
    for epsilon in (0, -1.0, math.inf):
        with pytest.raises(ParameterError, match="epsilon must be positive"):
            PositionalVote(candidates=3, rule="borda", epsilon=epsilon)
