"""What charges would cost an account, before any of them is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sfumato.errors import BudgetExceeded
from sfumato.ledger.budget.budget_check import Balance
from sfumato.ledger.budget.spent import Spent
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Quote", "quoted"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What charges would cost, in the units of the account's own filters; made by `LedgerView.quote`.

    Attributes
    ----------
    cost : Guarantee or None
        What they add, rounded up; None where nothing would be charged.
    before, after : Guarantee
        What the account has left without and with them, rounded down; the same where they do not fit.
    refused : BudgetExceeded or None
        The error with which they would be refused.
    """

    cost: Guarantee | None
    before: Guarantee
    after: Guarantee
    refused: BudgetExceeded | None


def quoted(
    neighboring: Neighboring,
    balance: Balance,
    costs: Sequence[tuple[Spent, ...]],
    refused: BudgetExceeded | None,
) -> Quote:
    """Return what new charges would leave of a budget.

    Parameters
    ----------
    neighboring : Neighboring
    balance : Balance
        The account's own.
    costs : sequence of tuple of Spent
        Of those that would be made.
    refused : BudgetExceeded or None
    """
    filters = balance.budget.filters
    together, totals = filters.nothing, balance.totals
    for each in costs:
        together, totals = filters.after(together, each), filters.after(totals, each)

    def left(spent: tuple[Spent, ...]) -> Guarantee:
        return Guarantee(neighboring=neighboring, **filters.in_units(filters.left(spent), up=False))

    cost = Guarantee(neighboring=neighboring, **filters.in_units(together, up=True)) if costs else None
    before = left(balance.totals)
    return Quote(cost=cost, before=before, after=before if refused else left(totals), refused=refused)
