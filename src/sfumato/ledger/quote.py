"""What charges would cost an account, before any of them is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from sfumato import _check
from sfumato.errors import BudgetExceeded
from sfumato.ledger.budget.budget_check import Balance
from sfumato.ledger.budget.spent import Spent
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Quote", "quoted", "require_at_most"]


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


def require_at_most(cost: Mapping[str, float], at_most: Mapping[str, float]) -> None:
    """Refuse a cost that is more than was said before, in any unit.

    Parameters
    ----------
    cost, at_most : mapping of str to float
        In the units of a `Guarantee`; one that is left out is 0.

    Raises
    ------
    ParameterError
    """
    for unit, number in cost.items():
        shown = _check.non_negative(f"at_most of {unit}", at_most.get(unit, 0.0))
        if number > shown:
            remedy = "look at the new price, and ask again"
            _check.refuse_state("cost", f"be at most {shown!r} {unit}", f"it is {number!r} by now", remedy)
