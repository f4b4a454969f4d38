"""What is left of a budget, and the error that says so."""

from __future__ import annotations

from decimal import ROUND_DOWN, Context, Decimal

from sfumato.errors import BudgetExceeded
from sfumato.ledger.filters import Spent
from sfumato.ledger.identity import Identity
from sfumato.privacy.guarantee import Guarantee

__all__ = ["refusal", "remaining_of"]


def remaining_of(identity: Identity, totals: tuple[Spent, ...], delta: float) -> Guarantee:
    """Return what the filters have left, and the largest epsilon still answered at ``delta``."""
    filters = identity.budget.filters
    return Guarantee(
        neighboring=identity.neighboring,
        answerable_epsilon=filters.largest_epsilon(totals, delta, identity.neighboring),
        answerable_delta=delta,
        **filters.in_units(filters.left(totals), up=False),
    )


def refusal(
    identity: Identity, totals: tuple[Spent, ...], cost: tuple[Spent, ...], delta: float
) -> BudgetExceeded:
    """Return the error for a charge that does not fit."""
    budget = identity.budget
    remaining = remaining_of(identity, totals, delta)
    requested = Guarantee(neighboring=identity.neighboring, **budget.filters.in_units(cost, up=True))
    return BudgetExceeded(
        f"charge must fit into the budget of {budget}, got {requested}, with {remaining.amounts} left; "
        f"nothing was charged; {_remedy(remaining)}",
        remaining=remaining,
        requested=requested,
    )


def _remedy(remaining: Guarantee) -> str:
    if not remaining.answerable_epsilon:
        return "no answer at this delta fits any more, and a budget is not renewed"
    # Rounded down: a number that is shown must be accepted when it is typed.
    epsilon = Context(prec=6, rounding=ROUND_DOWN).create_decimal(Decimal(remaining.answerable_epsilon))
    at = f" at delta {remaining.answerable_delta!r}" if remaining.answerable_delta else ""
    return f"ask for an epsilon of at most {float(epsilon)!r}{at}"
