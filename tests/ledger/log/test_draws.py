"""Of each charge noise is drawn once, whoever races for it; what is not the same is charged anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from sfumato.errors import BudgetExceeded, LedgerCorrupt
from sfumato.ledger import Budget, Ledger, LedgerView
from sfumato.privacy import Laplace, PureDP
from tests.ledger.tampering import execute

Open: TypeAlias = Callable[..., Ledger]
QUESTION: dict[str, Any] = {"loss": PureDP(0.25), "delta": 0.0, "request": "q", "draws": True}


@pytest.fixture
def open_ledger(open_anywhere: Open) -> Open:
    return open_anywhere


def charged(view: LedgerView, **other: Any) -> int:
    (receipt,) = view.charge_all([QUESTION | other])
    return receipt.sequence


def test_one_of_several_draws_and_the_others_are_charged_anew(open_ledger: Open) -> None:
    ledger = open_ledger(budget=Budget.pure(epsilon=0.75))
    views = [LedgerView(ledger) for _ in range(3)]
    receipts = [view.charge_all([QUESTION])[0] for view in views]
    assert len({receipt.digest for receipt in receipts}) == 1
    drawn = [view.claim_draw(each, QUESTION) for view, each in zip(views, receipts, strict=True)]
    assert [receipt.sequence for receipt in drawn] == [1, 2, 3]
    for view, receipt in zip(views, drawn, strict=True):
        view.commit(receipt, b"answer %d" % receipt.sequence)
    (late,) = views[0].charge_all([QUESTION]) if ledger.remaining().epsilon else (None,)
    assert late is None
    with pytest.raises(BudgetExceeded):
        views[0].claim_draw(receipts[0], QUESTION)
    assert ledger.verify().sound
    assert len(ledger.entries()) == 3


def test_only_the_same_request_at_the_same_cost_goes_on_under_a_charge(open_ledger: Open) -> None:
    ledger = open_ledger(budget=Budget.pure(epsilon=8.0))
    ledger.grant("ada", Budget.pure(epsilon=4.0))
    own, ada = LedgerView(ledger), LedgerView(ledger, "ada")
    assert charged(own) == charged(own) == 1
    others: list[dict[str, Any]] = [{"request": "p"}, {"loss": PureDP(0.5)}, {"loss": Laplace(4.0)}]
    others += [{"delta": 1e-9}, {"draws": False}]
    for number, other in enumerate(others, 2):
        assert charged(own, **other) == number
    assert charged(own, draws=False) == 7
    assert charged(own, request="") == 8
    assert charged(own, request="") == 9
    assert charged(ada) == charged(ada) == 10
    assert charged(own) == 1
    (receipt,) = own.charge_all([QUESTION])
    own.claim_draw(receipt, QUESTION)
    assert charged(own) == 11
    assert [event.committed for event in ledger.entries()] == [False] * 11
    assert ledger.verify().sound


def test_a_charge_that_was_paid_fits_into_a_budget_that_is_used_up(open_ledger: Open) -> None:
    ledger = open_ledger(budget=Budget.pure(epsilon=0.5))
    view = LedgerView(ledger)
    both = [QUESTION, QUESTION | {"request": "p"}]
    assert [receipt.sequence for receipt in view.charge_all(both)] == [1, 2]
    assert [receipt.sequence for receipt in view.charge_all(both)] == [1, 2]
    assert view.charge_all([both[1]])[0].sequence == 2
    with pytest.raises(BudgetExceeded):
        view.charge_all([both[0], QUESTION | {"request": "another"}])


def test_how_a_draw_is_written_and_what_is_none(opener: Open, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = opener(path)
    view = LedgerView(ledger)
    (receipt,) = view.charge_all([QUESTION])
    view.claim_draw(receipt, QUESTION)
    (row,) = execute(path, "SELECT kind, charge, body FROM event ORDER BY position DESC LIMIT 1")
    assert row[:2] == ("draw", 1)
    assert sorted(json.loads(row[2])) == ["accounts", "charges", "dataset_versions", "time", "totals"]
    ((body,),) = execute(path, "SELECT body FROM event WHERE kind = 'charge'")
    assert json.loads(body)["draws"] is True
    assert ledger.verify().sound
    (second,) = view.charge_all([QUESTION | {"request": "p"}])
    view.commit(second, b"before it was drawn")
    with pytest.raises(LedgerCorrupt, match="commit what was drawn"):
        ledger.verify()
