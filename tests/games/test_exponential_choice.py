"""The exponential mechanism over a game's alternatives: its distribution, its price, its charge."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.errors import BudgetExceeded, ParameterError
from sfumato.games import ExponentialChoice, Game, Outcome
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring
from tests.chance import accepts_only, pearson

RNG = np.random.default_rng(3)
TABLE = RNG.random((4, 5))
GAME = Game(types=range(4), alternatives="abcde", utilities=TABLE, agents=3)


def test_probabilities_are_those_of_the_formula() -> None:
    choice = ExponentialChoice(game=GAME, epsilon=1.5)
    apart = TABLE[:, None] - TABLE[None]
    wide = (apart.max(axis=2) - apart.min(axis=2)).max()
    weights = np.exp(1.5 / wide * (TABLE[1] + TABLE[1] + TABLE[3]))
    assert choice.probabilities([1, 3, 1]) == pytest.approx(weights / weights.sum(), rel=1e-7)
    assert 1 << 29 <= np.abs(choice.steps).max() <= 1 << 30
    with pytest.raises(ParameterError, match="scores must be real numbers"):
        ExponentialChoice(game=GAME, epsilon=1, scores="ab")


@pytest.mark.parametrize("anonymous", [True, False])
def test_the_range_is_exact_by_enumeration(anonymous: bool) -> None:
    table = TABLE if anonymous else RNG.random((3, 4, 5))
    game = Game(types=range(4), alternatives=range(5), utilities=table, agents=3, anonymous=anonymous)
    choice = ExponentialChoice(game=game, epsilon=Fraction(3, 2))
    rows = {profile: choice.probabilities(profile) for profile in product(range(4), repeat=3)}
    widest = 0.0
    for profile, row in rows.items():
        for agent, report in product(range(3), range(4)):
            lie = (*profile[:agent], report, *profile[agent + 1 :])
            losses = np.log(row / rows[lie])
            widest = max(widest, losses.max() - losses.min())
            assert np.abs(losses).max() <= 1.5 + 1e-12
    assert widest == pytest.approx(1.5, rel=1e-9)
    assert choice.privacy_loss.epsilon() == 1.5
    assert choice.neighboring is Neighboring.REPLACE_ONE
    assert choice.anonymous is anonymous


def test_no_more_is_drawn_than_the_decimal_that_is_charged() -> None:
    # The float 0.1 is above a tenth, and a ledger of pure epsilon charges a tenth.
    loss = ExponentialChoice(game=GAME, epsilon=0.1).privacy_loss
    assert loss.exact_pure() == (Fraction(1, 10), 0)
    choice = ExponentialChoice(game=GAME, epsilon=0.1)
    assert choice.rate * choice.range == Fraction(1, 10)


def test_draws_follow_the_distribution() -> None:
    choice = ExponentialChoice(game=GAME, epsilon=3)
    expected = choice.probabilities([0, 1, 2])
    drawn = [choice.release([0, 1, 2], rng=seed).index for seed in range(2000)]
    half = ExponentialChoice(game=GAME, epsilon=1.5).probabilities([0, 1, 2])
    accepts_only(
        pearson(Counter(drawn)),
        dict(enumerate(expected)),
        half_the_epsilon=dict(enumerate(half)),
        even=dict.fromkeys(range(5), 0.2),
    )


def test_a_ledger_is_charged_before_anything_is_drawn() -> None:
    choice = ExponentialChoice(game=GAME, epsilon=0.75)
    with Ledger.open(
        None,
        budget=Budget.pure(epsilon=1.0),
        privacy_unit="agent",
        neighboring=Neighboring.REPLACE_ONE,
        dataset=Dataset(schema="reports(x BIGINT)", fingerprint=lambda key: "0" * 64),
    ) as ledger:
        outcome = choice.release([0, 1, 2], ledger=ledger, description="where to meet")
        assert isinstance(outcome, Outcome)
        assert outcome.receipt is not None
        assert outcome.value == GAME.alternatives[outcome.index]
        (entry,) = ledger.entries()
        assert (entry.loss, entry.description) == (choice.privacy_loss, "where to meet")
        with pytest.raises(BudgetExceeded):
            choice.release([0, 1, 2], ledger=ledger)


def test_an_outcome_tells_the_action_of_a_report() -> None:
    table = np.array([[[0.2, 0.9], [0.4, 0.4]], [[0.8, 0.1], [0.3, 0.6]]])
    game = Game(types="ab", alternatives="xy", actions=("buy", "not"), utilities=table, agents=1)
    outcome = ExponentialChoice(game=game, epsilon=1).release("a", rng=1)
    assert [outcome.action(kind) for kind in "ab"] == [
        game.actions[game.best_actions[kind, outcome.index]]  # type: ignore[index]
        for kind in (0, 1)
    ]
    for agent in (-1, 1):
        with pytest.raises(ParameterError, match="agent must be"):
            outcome.action("a", agent=agent)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros((4, 5)), "scores must depend on the report"),
        (np.ones((4, 4)), r"scores must have the shape \(4, 5\)"),
        (np.full((4, 5), np.inf), "scores must be finite"),
    ],
)
def test_scores_that_do_not_fit_are_refused(scores: np.ndarray, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ExponentialChoice(game=GAME, epsilon=1, scores=scores)
