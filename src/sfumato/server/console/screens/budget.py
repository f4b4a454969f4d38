"""Budget: spent and left of the dataset, of each analyst and period, and until when it lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato.server.console.access.permissions import Action
from sfumato.server.console.forecasts import DAYS
from sfumato.server.console.pages.answer import Answer, Page
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS"]


def _show(console: Console, _: Visit) -> Answer:
    """Show all accounts, and how far the log has gone since a head of it was taken away."""
    ledger = console.ledger
    exported = console.heads.last()
    facts = {
        "accounts": console.forecasts.accounts(),
        "days": DAYS,
        "exported": exported,
        "charges_since": None if exported is None else ledger.head().charges - exported.head.charges,
        "unit": ledger.privacy_unit,
        "relation": ledger.neighboring,
    }
    return Page(template="budget.html", title="Budget", facts=facts)


SCREENS: Final = (Screen(path="/budget", action=Action.VIEW_BUDGET, show=_show),)
