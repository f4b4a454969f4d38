"""Budgets of every kind are stated in a form as the dataset's budget has its fields."""

from __future__ import annotations

import pytest

from sfumato.errors import ParameterError
from sfumato.ledger import Budget
from sfumato.server.console.access.identity import PUBLIC
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.screens.budget_form import read_budget
from sfumato.server.console.services.stated_budget import budget_fields
from tests.cases import cases

BUDGETS = (
    Budget.pure(epsilon=0.5),
    Budget.approximate(epsilon=0.5, delta=1e-7),
    Budget.zcdp(rho=0.25, delta=1e-9),
    Budget.zcdp(rho=0.25),
    Budget.gaussian(mu=1.5, delta=1e-9),
    Budget.rdp(epsilon=2.0, delta=1e-6),
)


@cases("budget", BUDGETS, ids=str)
def test_what_is_stated_is_what_is_read(budget: Budget) -> None:
    form = {field.name: repr(getattr(budget, field.name)) for field in budget_fields(budget)}
    if budget.delta == 0:
        form["delta"] = " "
    assert read_budget(Visit(identity=PUBLIC, form=form), budget) == budget
    for field in budget_fields(budget):
        if field.name != "delta" or budget.kind in {"approximate", "rdp"}:
            with pytest.raises(ParameterError, match=f"{field.name} must be filled in"):
                read_budget(Visit(identity=PUBLIC, form={**form, field.name: ""}), budget)
