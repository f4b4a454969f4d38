"""An analyst's account, and what is public of the dataset."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from sfumato.ledger import Budget
from sfumato.privacy.guarantee import Guarantee
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.api.operation import JSON, Call, Operation, Outcome
from sfumato.server.console.api.schemas import AMOUNT, TEXT, obj, reference
from sfumato.server.console.services.asking_of import asking_of
from sfumato.server.console.services.own_account import own_account
from sfumato.server.console.services.stated_budget import stated_budget

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["OPERATIONS"]

_NAMES: Final = ("epsilon", "delta", "rho", "mu")
_AMOUNTS: Final = (*_NAMES, "answerable_epsilon", "answerable_delta")


def _account(console: Console, call: Call) -> Outcome:
    ledger = console.ledger
    found = own_account(console, call.name, period=call.query.get("period", ""))
    wish = found.wish
    asked = None if wish is None else {"budget": _budget_json(wish.budget), "purpose": wish.purpose}
    document = {
        "analyst": call.name,
        "unit": ledger.privacy_unit,
        "neighboring": str(ledger.neighboring),
        "renewal": "" if ledger.renewal is None else str(ledger.renewal),
        "budget": None if found.budget is None else _budget_json(found.budget),
        "left": None if found.left is None else _left(found.left),
        "request": asked,
    }
    return Outcome(content=document)


def _budget_json(budget: Budget) -> dict[str, Any]:
    return {"kind": budget.kind, **{name: getattr(budget, name) for name in _NAMES}}


def _left(guarantee: Guarantee) -> dict[str, Any]:
    stated = asdict(guarantee)
    amounts = {name: stated[name] for name in _AMOUNTS if stated[name] is not None}
    return {"amounts": amounts, "words": guarantee.amounts}


def _request(console: Console, call: Call) -> Outcome:
    budget = stated_budget({name: call.body.get(name) for name in _NAMES}, console.ledger.budget)
    console.ledger.members.request_budget(call.name, budget, purpose=call.body["purpose"])
    return _account(console, Call(identity=call.identity))


def _dataset(console: Console, _: Call) -> Outcome:
    return Outcome(content={"title": console.settings.title, **asking_of(console).facts().to_json()})


OPERATIONS: Final = (
    Operation(
        name="showAccount",
        method="GET",
        path="/account",
        action=Action.VIEW_OWN,
        summary="Say what one may spend, what is left, and what one asked for.",
        run=_account,
        query={"period": TEXT},
        answers={200: {JSON: reference("Account")}},
    ),
    Operation(
        name="requestBudget",
        method="POST",
        path="/account/requests",
        action=Action.REQUEST_BUDGET,
        summary="Ask the curator for a budget of the kind that the dataset's has, for a purpose.",
        run=_request,
        body=obj({"purpose": TEXT}, dict.fromkeys(_NAMES, AMOUNT)),
        answers={200: {JSON: reference("Account")}},
        problems=(409,),
    ),
    Operation(
        name="showDataset",
        method="GET",
        path="/dataset",
        action=Action.VIEW_SCHEMA,
        summary="Return tables, columns, who is protected and what was declared; no row is read.",
        run=_dataset,
        answers={200: {JSON: reference("Dataset")}},
        needs_data=True,
    ),
)
