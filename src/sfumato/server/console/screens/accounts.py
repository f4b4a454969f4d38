"""Accounts: the curator's grants and the requests for them, and each analyst's own account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato import _check
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Page, Redirect
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.screens.budget_form import read_budget
from sfumato.server.console.services.own_account import own_account
from sfumato.server.console.services.stated_budget import budget_fields

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS"]


def _grants(console: Console, _: Visit) -> Answer:
    """Show accounts and open requests, with a form for each."""
    ledger = console.ledger
    accounts = [
        {
            "account": account,
            "left": None if account.budget is None else ledger.remaining(analyst=account.analyst),
        }
        for account in ledger.accounts()
    ]
    facts = {
        "budget": ledger.budget,
        "renewal": ledger.renewal,
        "accounts": accounts,
        "requests": ledger.members.budget_requests(),
        "fields": budget_fields(ledger.budget),
    }
    return Page(template="grants.html", title="Grants and requests", facts=facts)


def _grant(console: Console, visit: Visit) -> Answer:
    """Open or change an account."""
    analyst = visit.line("analyst", "name who asks")
    budget = read_budget(visit, console.ledger.budget)
    console.ledger.grant(analyst, budget, by=visit.identity.name, reason=visit.text("reason"))
    return Redirect(path="/grants")


def _close(console: Console, visit: Visit) -> Answer:
    """Close an account; what was spent stays spent."""
    analyst = visit.line("analyst", "name whose account it is")
    console.ledger.grant(analyst, None, by=visit.identity.name, reason=visit.text("reason"))
    return Redirect(path="/grants")


def _decide(console: Console, visit: Visit) -> Answer:
    """Grant what was asked for, or decline it with a reason."""
    analyst, reason = visit.line("analyst", "name who asked"), visit.text("reason")
    members = console.ledger.members
    if visit.text("decision") == "decline":
        reason = visit.line("reason", "say why")
        members.decline_budget(analyst, reason=reason, by=visit.identity.name)
        return Redirect(path="/grants")
    wish = next((wish for wish in members.budget_requests() if wish.analyst == analyst), None)
    if wish is None:
        found = "there is none any more"
        _check.refuse_state("analyst", "have an open request", found, "look at the requests again")
    if visit.text("budget") != str(wish.budget):
        found = f"it is one for {wish.budget} now"
        _check.refuse_state("the request", "be the one that was shown", found, "look at it again")
    console.ledger.grant(analyst, wish.budget, by=visit.identity.name, reason=reason or wish.purpose)
    return Redirect(path="/grants")


def _account(console: Console, visit: Visit) -> Answer:
    """Show an analyst's own account, and a form to ask for another budget."""
    ledger = console.ledger
    facts = {
        **own_account(console, visit.identity.name)._asdict(),
        "fields": budget_fields(ledger.budget),
        "unit": ledger.privacy_unit,
    }
    return Page(template="account.html", title="My budget", facts=facts)


def _ask_for(console: Console, visit: Visit) -> Answer:
    """Ask the curator for a budget, for a purpose."""
    budget = read_budget(visit, console.ledger.budget)
    purpose = visit.line("purpose", "say what for")
    console.ledger.members.request_budget(visit.identity.name, budget, purpose=purpose)
    return Redirect(path="/account")


SCREENS: Final = (
    Screen(path="/grants", action=Action.VIEW_GRANTS, show=_grants),
    Screen(path="/grants/grant", action=Action.GRANT, show=_grant, method="POST", again=_grants),
    Screen(path="/grants/close", action=Action.GRANT, show=_close, method="POST", again=_grants),
    Screen(path="/grants/decide", action=Action.GRANT, show=_decide, method="POST", again=_grants),
    Screen(path="/account", action=Action.VIEW_OWN, show=_account),
    Screen(
        path="/account/request", action=Action.REQUEST_BUDGET, show=_ask_for, method="POST", again=_account
    ),
)
