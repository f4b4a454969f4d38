"""An analyst's own account: what it may spend, what is left, and the budget that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sfumato.errors import LedgerMismatch
from sfumato.ledger import Budget
from sfumato.ledger.log.member_events import BudgetRequested
from sfumato.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["OwnAccount", "own_account"]


class OwnAccount(NamedTuple):
    """An account; without a budget it was never opened, or is closed."""

    budget: Budget | None
    left: Guarantee | None
    wish: BudgetRequested | None


def own_account(console: Console, name: str, *, period: str = "") -> OwnAccount:
    """Return an analyst's account as it is now.

    Parameters
    ----------
    console : Console
    name : str
    period : str
        Which period's budget is meant, where it renews; today's by default.
    """
    ledger = console.ledger
    try:
        budget = ledger.budget_of(name)
    except LedgerMismatch:
        budget = None
    wish = next((wish for wish in ledger.members.budget_requests() if wish.analyst == name), None)
    left = None if budget is None else ledger.remaining(analyst=name, period=period)
    return OwnAccount(budget, left, wish)
