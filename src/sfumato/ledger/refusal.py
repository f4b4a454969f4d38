"""What is left of a budget, and the error that says so."""

from __future__ import annotations

from typing import Protocol

from sfumato.errors import BudgetExceeded
from sfumato.ledger.budget import Budget
from sfumato.ledger.failures import NOTHING_CHARGED
from sfumato.ledger.filters import Spent
from sfumato.ledger.offer import Question, typed
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Watched", "refusal", "remaining_of"]


class Watched(Protocol):
    """What has a budget: a ledger's identity, or a filter in memory."""

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""

    @property
    def neighboring(self) -> Neighboring:
        """The relation of all charges."""


def remaining_of(
    identity: Watched, totals: tuple[Spent, ...], delta: float, question: Question | None = None
) -> Guarantee:
    """Return what the filters have left, and the largest epsilon still answered at ``delta``.

    That of one more count, or of one ``question`` where that is known.
    """
    filters = identity.budget.filters
    answerable = (
        filters.largest_epsilon(totals, delta, identity.neighboring)
        if question is None
        else question.largest_epsilon(filters, totals)
    )
    return Guarantee(
        neighboring=identity.neighboring,
        answerable_epsilon=answerable,
        answerable_delta=delta,
        **filters.in_units(filters.left(totals), up=False),
    )


def refusal(
    identity: Watched,
    totals: tuple[Spent, ...],
    cost: tuple[Spent, ...],
    delta: float,
    question: Question | None = None,
) -> BudgetExceeded:
    """Return the error for a charge that does not fit."""
    budget = identity.budget
    remaining = remaining_of(identity, totals, delta, question)
    requested = Guarantee(neighboring=identity.neighboring, **budget.filters.in_units(cost, up=True))
    smaller = None if question is None else question.smaller_delta(budget.filters, totals)
    return BudgetExceeded(
        f"charge must fit into the budget of {budget}, got {requested}, with {remaining.amounts} left; "
        f"{NOTHING_CHARGED}; {_remedy(remaining, smaller)}",
        remaining=remaining,
        requested=requested,
    )


def _remedy(remaining: Guarantee, smaller_delta: float | None) -> str:
    at = f" at delta {remaining.answerable_delta!r}" if remaining.answerable_delta else ""
    if remaining.answerable_epsilon:
        # Rounded down: a number that is shown must be accepted when it is typed.
        return f"ask for an epsilon of at most {typed(remaining.answerable_epsilon)!r}{at}"
    if smaller_delta is None:
        return "no answer at this delta fits any more, and a budget is not renewed"
    if smaller_delta:
        return f"no answer to this question{at} fits; ask for a delta of at most {smaller_delta!r}"
    return f"no answer to this question{at} fits; ask for a delta of 0, with public groups"
