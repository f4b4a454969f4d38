"""The mediator: what it charges, how absence counts, and what lies gain, exactly."""

import copy
import math
import pickle
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from sfumato.errors import BudgetExceeded, ParameterError
from sfumato.games.joint.billboard import Billboard
from sfumato.games.joint.mediator import Mediator
from sfumato.games.joint.voting import PrivateDictator
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring


def respond(signal: Any, report: Any) -> bool:
    return bool(signal == report[0])


VOTE = PrivateDictator(candidates=2, epsilon=0.5)
BOARD = Billboard(signal=VOTE, respond=respond, agents=3)
BALLOTS = ((0, 1), (1, 0))


def ledger(epsilon: float) -> Ledger:
    return Ledger.open(
        None,
        budget=Budget.pure(epsilon=epsilon),
        privacy_unit="agent",
        neighboring=Neighboring.REPLACE_ONE,
        dataset=Dataset(schema="reports", fingerprint=lambda key: "0" * 64),
    )


def test_each_round_is_charged_before_it_is_played() -> None:
    with ledger(1.2) as book:
        mediator = Mediator(BOARD, rounds=3, absent=(0, 1), ledger=book, description="ferry")
        for number in (1, 2):
            advice = mediator.advise({0: (0, 1), 1: (1, 0), 2: (1, 0)})
            assert advice.round == number == len(list(book.entries()))
            assert advice.release.receipt is not None
            assert advice.recommendations == {
                place: advice.release.part(place, ballot)
                for place, ballot in enumerate(((0, 1), (1, 0), (1, 0)))
            }
        with pytest.raises(BudgetExceeded):
            mediator.advise({0: (0, 1)})
        assert mediator.played == 2
        assert repr(mediator) == "Mediator(1 of 3 rounds left)"
        assert [entry.description for entry in book.entries()] == ["ferry"] * 2
        assert mediator.spent == VOTE.privacy_loss * 2
        assert mediator.privacy_loss == VOTE.privacy_loss * 3


def test_who_is_absent_counts_with_the_public_report() -> None:
    for present in ({}, {1: (0, 1)}):
        mediator = Mediator(BOARD, rounds=1, absent=(0, 1), rng=5)
        full = Mediator(BOARD, rounds=1, absent=(1, 0), rng=5)
        advice = mediator.advise(present)
        assert advice.release.value == full.advise(dict.fromkeys(range(3), (0, 1))).release.value
        assert advice.recommendations.keys() == present.keys()


def test_the_bound_falls_round_by_round_and_holds_exactly() -> None:
    # Two rounds; an agent with ballot (0, 1) gets 1 in each round that 0 wins. It may lie in either.
    mediator = Mediator(BOARD, rounds=2, absent=(0, 1), rng=1)
    moved = math.tanh(0.25)
    assert mediator.incentive_bound() == pytest.approx(2 * moved, rel=1e-9)
    others = [(1, 0), (1, 0)]
    wins = {own: VOTE.probabilities([own, *others])[0] for own in BALLOTS}
    values = {lies: sum(wins[own] for own in lies) for lies in product(BALLOTS, repeat=2)}
    best = max(values.values()) - values[BALLOTS[1], BALLOTS[1]]
    assert 0 < best <= mediator.incentive_bound()
    before = mediator.incentive_bound()
    advice = mediator.advise({})
    assert advice.incentive == before > mediator.incentive_bound() == pytest.approx(moved, rel=1e-9)
    mediator.advise({})
    assert mediator.incentive_bound() == 0.0
    with pytest.raises(ParameterError, match="advise must be called for a round that is left"):
        mediator.advise({})


def test_the_bound_counts_the_advantage_and_the_range() -> None:
    wide = Mediator(BOARD, rounds=2, absent=(0, 1), utility_range=10.0, advantage=0.5)
    assert wide.incentive_bound() == pytest.approx(2 * (0.5 + 10 * math.tanh(0.25)))
    most = Mediator(BOARD, rounds=3, absent=(0, 1), advantage=7.0)
    assert most.incentive_bound() == pytest.approx(3.0)
    assert most.incentive_bound() >= 3.0


def test_copies_have_no_rounds_of_their_own() -> None:
    mediator = Mediator(BOARD, rounds=1, absent=(0, 1), rng=1)
    assert copy.copy(mediator) is copy.deepcopy(mediator) is mediator
    with pytest.raises(ParameterError, match="mediator must be in one process, but it is sent to another"):
        pickle.dumps(mediator)
    mediator._process += 1
    with pytest.raises(ParameterError, match="mediator must be in one process, but this is a forked one"):
        mediator.advise({})
    assert mediator.played == 0


def test_the_bound_is_rounded_up() -> None:
    moved = Fraction((VOTE.privacy_loss * 1).delta(0.0))
    for scale in range(1, 200):
        wide = Mediator(BOARD, rounds=1, absent=(0, 1), utility_range=scale / 7, advantage=scale / 70)
        assert Fraction(wide.incentive_bound()) >= Fraction(scale / 70) + Fraction(scale / 7) * moved


def test_what_is_refused() -> None:
    mediator = Mediator(BOARD, rounds=1, absent=(0, 1))
    reports: Any
    for reports, message in (
        ([(0, 1)] * 3, "reports must be a mapping"),
        ({3: (0, 1)}, "agent must be less than 3, got 3"),
        ({-1: (0, 1)}, "agent must be an integer of at least 0"),
        ({0: (0, 0)}, "ballots must be orders of all candidates"),
    ):
        with pytest.raises(ParameterError, match=message):
            mediator.advise(reports)
    assert mediator.played == 0
    given: dict[str, Any] = {"rounds": 1, "absent": (0, 1)}
    for name, value in (("rounds", 0), ("utility_range", 0.0), ("advantage", -1.0), ("ledger", "book")):
        with pytest.raises(ParameterError, match=f"{name} must be"):
            Mediator(BOARD, **given | {name: value})
    with pytest.raises(ParameterError, match="mechanism must be a JointMechanism"):
        Mediator(VOTE, rounds=1, absent=(0, 1))  # type: ignore[arg-type]
