"""A charge that was made beforehand pays for its own question, in every term, and for one draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from sfumato.errors import LedgerMismatch, ParameterError
from sfumato.ledger import Budget, Ledger, LedgerView
from sfumato.ledger.paid_charges import PaidCharges
from sfumato.privacy import Laplace, PureDP

Open: TypeAlias = Callable[..., Ledger]
QUESTION: dict[str, Any] = {"loss": PureDP(0.25), "delta": 0.0, "request": "q", "draws": True}


def paying(ledger: Ledger, receipt: Any, analyst: str = "ada") -> LedgerView:
    return LedgerView(ledger, analyst, paid=PaidCharges({"q": receipt}))


def test_a_receipt_pays_for_the_very_charge_and_one_draw(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=Budget.pure(epsilon=8.0))
    for name in ("ada", "bob"):
        ledger.grant(name, Budget.pure(epsilon=4.0))
    (receipt,) = LedgerView(ledger, "ada").charge_all([QUESTION])
    view = paying(ledger, receipt)
    assert view.charge_all([]) == ()
    assert view.charge_all([QUESTION]) == (receipt,)
    others: list[dict[str, Any]] = [{"loss": PureDP(0.5)}, {"loss": PureDP(0.125)}, {"loss": Laplace(4.0)}]
    others += [{"delta": 1e-9}, {"draws": False}]
    for other in others:
        with pytest.raises(LedgerMismatch, match="charges must be those that were made beforehand"):
            view.charge_all([QUESTION | other])
    with pytest.raises(LedgerMismatch, match="got another question"):
        view.charge_all([QUESTION, QUESTION | {"request": "p"}])
    for analyst in ("bob", ""):
        with pytest.raises(LedgerMismatch, match="other terms than charge 1"):
            paying(ledger, receipt, analyst).charge_all([QUESTION])
    for new in (
        lambda: view.charge(PureDP(0.25), delta=0.0),
        lambda: view.reserve(PureDP(1), steps=1, delta=0),
    ):
        with pytest.raises(LedgerMismatch, match="must charge nothing"):
            new()
    with pytest.raises(ParameterError, match=r"cost must be at most 0\.2 epsilon"):
        LedgerView(ledger, "ada").charge_all([QUESTION | {"request": "p"}], at_most={"epsilon": 0.2})
    assert LedgerView(ledger, "ada").charge_all([QUESTION], at_most={}) == (receipt,), "it was charged before"
    assert view.claim_draw(receipt, QUESTION) == receipt
    with pytest.raises(LedgerMismatch, match="charge 1 must have no noise drawn"):
        view.claim_draw(receipt, QUESTION)
    assert len(ledger.entries()) == 1


def test_a_receipt_pays_for_one_version_of_the_dataset(
    open_anywhere: Open, at: Callable[[str], Any], make_dataset: Callable[..., Any]
) -> None:
    ledger = open_anywhere(at("one"))
    (receipt,) = LedgerView(ledger).charge_all([QUESTION])
    assert paying(ledger, receipt, "").charge_all([QUESTION]) == (receipt,)
    again = open_anywhere(at("one"), dataset=make_dataset("b"), new_version=True)
    assert (ledger.version, again.version) == (1, 2)
    with pytest.raises(LedgerMismatch, match="version of the dataset"):
        paying(again, again.receipt(1), "").charge_all([QUESTION])
