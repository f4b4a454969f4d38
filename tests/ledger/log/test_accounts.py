"""Budgets of analysts within the dataset's: both are enforced, in one transaction, on each store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import (
    BudgetExceeded,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerUnavailable,
    ParameterError,
)
from sfumato.ledger import AnalystAccount, Budget, Ledger, LedgerView
from sfumato.privacy import ApproximateDP, Gaussian, PrivacyLoss, PureDP, analytic_gaussian_stddev
from tests.ledger.tampering import rewrite

Open = Callable[..., Ledger]
At = Callable[[str], Any]
PURE = Budget.pure


@pytest.fixture
def ledger(open_anywhere: Open) -> Ledger:
    """A budget of 1, of which ada may spend a half and bob three quarters."""
    ledger = open_anywhere(budget=PURE(epsilon=1.0))
    ledger.grant("ada", PURE(epsilon=0.5))
    ledger.grant("bob", PURE(epsilon=0.75))
    return ledger


def test_a_charge_is_added_to_both_accounts(ledger: Ledger) -> None:
    ada = LedgerView(ledger, "ada")
    receipt = ada.charge(PureDP(0.25), delta=0.0, description="hers")
    assert receipt.analyst == "ada"
    assert "charged to the dataset and to analyst 'ada', who is assumed not to collude" in str(receipt)
    assert ada.remaining().epsilon == 0.25
    assert ledger.remaining().epsilon == 0.75
    assert LedgerView(ledger, "bob").remaining().epsilon == 0.75
    assert ledger.verify().sound


def test_an_analyst_is_refused_beyond_their_own_budget(ledger: Ledger) -> None:
    ada = LedgerView(ledger, "ada")
    ada.charge(PureDP(0.25), delta=0.0)
    remedy = r"the budget of 0\.5-DP of analyst 'ada', .* with 0\.25-DP left; .* at most 0\.25$"
    with pytest.raises(BudgetExceeded, match=remedy) as told:
        ada.charge(PureDP(0.5), delta=0.0)
    assert told.value.remaining.epsilon == 0.25
    assert not ada.would_accept(PureDP(0.5), delta=0.0)
    ledger.charge(PureDP(0.5), delta=0.0)
    ada.charge(PureDP(0.25), delta=0.0)
    assert ledger.remaining().epsilon == 0.0


def test_an_analyst_is_refused_beyond_the_datasets_budget(ledger: Ledger) -> None:
    ada, bob = LedgerView(ledger, "ada"), LedgerView(ledger, "bob")
    bob.charge(PureDP(0.75), delta=0.0)
    with pytest.raises(BudgetExceeded, match=r"the budget of 1-DP, got .* with 0\.25-DP left"):
        ada.charge(PureDP(0.5), delta=0.0)
    left = ada.remaining()
    assert left.epsilon == 0.5
    assert left.answerable_epsilon == 0.25
    assert ada.would_accept(PureDP(0.25), delta=0.0)
    ada.charge(PureDP(0.25), delta=0.0)
    assert ada.remaining().answerable_epsilon == 0.0


def test_both_budgets_count_by_each_of_their_filters(open_anywhere: Open) -> None:
    """Ada's epsilon is used up and her rho accepts; the dataset's rho is used up and its epsilon accepts."""
    ledger = open_anywhere(budget=Budget.approximate(epsilon=4.0, delta=1e-6))
    ledger.grant("ada", Budget.approximate(epsilon=0.5, delta=1e-6))
    ada = LedgerView(ledger, "ada")
    small = Gaussian(analytic_gaussian_stddev(sensitivity=1.0, epsilon=0.03, delta=1e-9))
    for _ in range(40):
        ada.charge(small, delta=1e-9)
    assert sum(entry.epsilon for entry in ada.entries()) > 0.5
    ledger.charge(PureDP(1.0), delta=1e-9)
    left = ada.remaining(1e-9)
    assert "epsilon is used up, rho still accepts" in left.amounts
    assert "rho is used up, epsilon still accepts" in ledger.remaining(1e-9).amounts
    offered = left.answerable_epsilon
    assert offered is not None
    assert offered > 0
    answer = Gaussian(analytic_gaussian_stddev(sensitivity=1.0, epsilon=offered * 0.99, delta=1e-9))
    assert ada.would_accept(answer, delta=1e-9)
    assert ledger.verify().sound


def test_a_refused_question_is_offered_an_epsilon_that_fits_both(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=Budget.approximate(epsilon=2.0, delta=1e-6))
    ledger.grant("ada", Budget.approximate(epsilon=1.0, delta=1e-6))
    ada = LedgerView(ledger, "ada")
    ledger.charge(ApproximateDP(1.6, 1e-9), delta=1e-9)

    def loss_at(epsilon: float) -> PrivacyLoss:
        return Gaussian(analytic_gaussian_stddev(sensitivity=1.0, epsilon=epsilon, delta=1e-9))

    with pytest.raises(BudgetExceeded) as told:
        ada.charge(loss_at(0.9), delta=1e-9, loss_at=loss_at)
    offered = told.value.remaining.answerable_epsilon
    assert offered is not None
    assert offered > 0.3
    ada.charge(loss_at(offered), delta=1e-9)


def test_an_analyst_sees_their_own_charges(ledger: Ledger) -> None:
    ada, bob = LedgerView(ledger, "ada"), LedgerView(ledger, "bob")
    ada.charge(PureDP(0.125), delta=0.0, description="hers")
    bob.charge(PureDP(0.125), delta=0.0, description="his")
    ledger.charge(PureDP(0.125), delta=0.0, description="the curator's")
    assert [entry.description for entry in ada.entries()] == ["hers"]
    assert [entry.analyst for entry in ledger.entries()] == ["ada", "bob", ""]
    assert [entry.description for entry in LedgerView(ledger).entries()] == ["hers", "his", "the curator's"]
    for hidden in ("head", "verify", "grant", "accounts", "export"):
        assert not hasattr(ada, hidden)
    assert ledger.accounts() == (
        AnalystAccount(analyst="ada", budget=PURE(epsilon=0.5), charges=1, periods=()),
        AnalystAccount(analyst="bob", budget=PURE(epsilon=0.75), charges=1, periods=()),
    )


def test_an_answer_is_found_again_by_the_same_analyst_only(ledger: Ledger) -> None:
    ada, bob = LedgerView(ledger, "ada"), LedgerView(ledger, "bob")
    receipt = ada.charge(PureDP(0.125), delta=0.0, request="q")
    with pytest.raises(LedgerMismatch, match="one of analyst 'bob'"):
        bob.commit(receipt, b"answer")
    ada.commit(receipt, b"answer")
    assert ada.find("q") == b"answer"
    assert bob.find("q") is None
    assert ledger.find("q") is None


def test_who_has_no_account_is_refused_and_nothing_is_charged(ledger: Ledger) -> None:
    with pytest.raises(LedgerMismatch, match="got another, 'eve'; nothing was charged; let the curator"):
        LedgerView(ledger, "eve")
    with pytest.raises(LedgerMismatch, match="'eve'"):
        ledger.charge(PureDP(0.125), delta=0.0, analyst="eve")
    ada = LedgerView(ledger, "ada")
    ledger.grant("ada", None)
    with pytest.raises(LedgerMismatch, match="account was closed"):
        ada.charge(PureDP(0.125), delta=0.0)
    assert ledger.entries() == ()
    ledger.grant("ada", PURE(epsilon=0.25))
    ada.charge(PureDP(0.25), delta=0.0)


def test_a_changed_budget_keeps_what_was_spent(ledger: Ledger) -> None:
    ada = LedgerView(ledger, "ada")
    ada.charge(PureDP(0.5), delta=0.0)
    ledger.grant("ada", PURE(epsilon=0.25))
    assert ada.remaining().epsilon == 0.0
    ledger.grant("ada", PURE(epsilon=0.75))
    assert ada.remaining().epsilon == 0.25
    assert ada.budget == PURE(epsilon=0.75)
    assert ledger.verify().sound, "what was within the budget of its time stays so"


@pytest.mark.parametrize(
    "budget", [Budget.zcdp(rho=0.1), Budget.approximate(epsilon=0.5, delta=1e-9), "half", 0.5]
)
def test_an_account_of_another_kind_is_refused(open_ledger: Open, budget: Any) -> None:
    with pytest.raises(ParameterError, match="budget must be"):
        open_ledger().grant("ada", budget)


def test_the_orders_of_an_account_are_the_datasets(open_ledger: Open) -> None:
    orders = [2.0, 4.0, 8.0, 64.0]
    ledger = open_ledger(budget=Budget.rdp(epsilon=2.0, delta=1e-6, orders=orders))
    with pytest.raises(ParameterError, match="same orders"):
        ledger.grant("ada", Budget.rdp(epsilon=1.0, delta=1e-6))
    kept = [float(member.name.split()[1]) for member in ledger.budget.filters.members]
    ledger.grant("ada", Budget.rdp(epsilon=1.8, delta=1e-6, orders=kept))
    assert LedgerView(ledger, "ada").would_accept(Gaussian(100.0), delta=0.0)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\0", "x" * 201, None, 5])
def test_a_name_is_a_name(open_ledger: Open, name: Any) -> None:
    with pytest.raises(ParameterError, match="analyst must be a printable name"):
        open_ledger().grant(name, PURE(epsilon=0.5))


def test_another_process_sees_the_account_and_its_charges(at: At, open_anywhere: Open) -> None:
    first, second = open_anywhere(at("l")), open_anywhere(at("l"))
    first.grant("ada", PURE(epsilon=0.5))
    for ledger in (second, first, second):
        LedgerView(ledger, "ada").charge(PureDP(0.125), delta=0.0)
    with Ledger.read(at("l")) as seen:
        assert seen.remaining(analyst="ada").epsilon == 0.125
        assert [account.charges for account in seen.accounts()] == [3]
        with pytest.raises(LedgerUnavailable, match=r"use Ledger\.open"):
            seen.grant("bob", PURE(epsilon=0.5))


def test_a_curator_without_the_data_grants_and_does_not_charge(at: At, open_anywhere: Open) -> None:
    open_anywhere(at("l")).charge(PureDP(0.5), delta=0.0)
    with Ledger.manage(at("l")) as ledger:
        ledger.grant("ada", PURE(epsilon=0.5))
        with pytest.raises(LedgerUnavailable, match=r"opened with its dataset .* use Ledger\.open"):
            ledger.charge(PureDP(0.25), delta=0.0)
    LedgerView(open_anywhere(at("l")), "ada").charge(PureDP(0.25), delta=0.0)


def test_threads_of_two_analysts_never_pass_either_budget(ledger: Ledger) -> None:
    won: dict[str, int] = {"ada": 0, "bob": 0}

    def ask(analyst: str) -> None:
        mine = LedgerView(ledger, analyst)
        for _ in range(40):
            try:
                mine.charge(PureDP(1 / 32), delta=0.0)
            except BudgetExceeded:
                continue
            won[analyst] += 1

    threads = [threading.Thread(target=ask, args=(name,)) for name in won]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won["ada"] <= 16
    assert won["bob"] <= 24
    assert sum(won.values()) == 32
    assert ledger.verify().sound


@pytest.mark.parametrize(
    "forged",
    [
        {"analyst": "eve"},
        {"analyst": "bob"},
        {"analyst": ""},
        {"period": "2026"},
        {"costs": [{"amount": 0.125, "delta": 0.0}]},
    ],
)
def test_forged_accounts_are_found(open_ledger: Open, tmp_path: Path, forged: dict[str, Any]) -> None:
    """Charges moved to another account, or made cheaper, no longer add up to what each may spend."""
    ledger = open_ledger(tmp_path / "l")
    ledger.grant("ada", PURE(epsilon=0.5))
    ledger.grant("bob", PURE(epsilon=0.25))
    LedgerView(ledger, "ada").charge(PureDP(0.5), delta=0.0)
    ledger.close()

    def change(position: int, content: dict[str, Any]) -> None:
        if position == 4:
            content.update(forged)

    rewrite(tmp_path / "l", change)
    with Ledger.read(tmp_path / "l") as seen:
        if forged == {"analyst": ""}:
            assert seen.accounts()[0].charges == 0, "the dataset's budget is the guarantee"
        else:
            with pytest.raises(LedgerCorrupt):
                seen.verify()
