"""What is left of one or more budgets, and the error that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sfumato.errors import BudgetExceeded
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.filters import Spent
from sfumato.ledger.budget.largest_epsilon import largest_epsilon
from sfumato.ledger.budget.refused_question import Question, typed
from sfumato.ledger.failures import NOTHING_CHARGED
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Holding", "Watched", "all_hold", "refusal", "remaining_of"]


class Watched(Protocol):
    """What has a budget: a ledger's identity, or a filter in memory."""

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""

    @property
    def neighboring(self) -> Neighboring:
        """The relation of all charges."""


class Holding(NamedTuple):
    """One budget with what was spent of it; ``whose`` continues the words "the budget of ..."."""

    budget: Budget
    totals: tuple[Spent, ...]
    whose: str = ""

    def holds_after(self, cost: tuple[Spent, ...]) -> bool:
        """Whether one more charge fits."""
        filters = self.budget.filters
        return filters.hold(filters.after(self.totals, cost))


def all_hold(holdings: Sequence[Holding], cost: tuple[Spent, ...]) -> bool:
    """Whether one more charge fits into every budget."""
    return all(holding.holds_after(cost) for holding in holdings)


def remaining_of(
    neighboring: Neighboring,
    holdings: Sequence[Holding],
    delta: float,
    question: Question | None = None,
    *,
    shown: int = -1,
) -> Guarantee:
    """Return what one of several budgets has left, and the largest epsilon that all still answer.

    At ``delta``, of one more count, or of one ``question`` where that is known. The budgets count in the same
    units.
    """
    budget, totals, _ = holdings[shown]
    return Guarantee(
        neighboring=neighboring,
        answerable_epsilon=_answerable(neighboring, holdings, delta, question),
        answerable_delta=delta,
        **budget.filters.in_units(budget.filters.left(totals), up=False),
    )


def refusal(
    neighboring: Neighboring,
    holdings: Sequence[Holding],
    cost: tuple[Spent, ...],
    delta: float,
    question: Question | None = None,
) -> BudgetExceeded:
    """Return the error for a charge that does not fit, about the first of the budgets that refuses it."""
    place = next(n for n, holding in enumerate(holdings) if not holding.holds_after(cost))
    budget, totals, whose = holdings[place]
    remaining = remaining_of(neighboring, holdings, delta, question, shown=place)
    requested = Guarantee(neighboring=neighboring, **budget.filters.in_units(cost, up=True))
    smaller = None if question is None else question.smaller_delta(budget.filters, totals)
    return BudgetExceeded(
        f"charge must fit into the budget of {budget}{whose}, got {requested}, "
        f"with {remaining.amounts} left; {NOTHING_CHARGED}; {_remedy(remaining, smaller)}",
        remaining=remaining,
        requested=requested,
    )


def _answerable(
    neighboring: Neighboring, holdings: Sequence[Holding], delta: float, question: Question | None
) -> float:
    filters = holdings[0].budget.filters
    if question is not None:
        refusing = [held for held in holdings if not held.holds_after(question.cost)]
        least = min(question.largest_epsilon(held.budget.filters, held.totals) for held in refusing)
        # Each may accept it by another of its filters: the offer must fit into all at once.
        if not least or len(holdings) == 1:
            return least
        price = question.price(least, filters)
        return least if price is not None and all_hold(holdings, price) else 0.0
    if len(holdings) == 1:
        return filters.largest_epsilon(holdings[0].totals, delta, neighboring)

    def fits(loss: PrivacyLoss) -> bool:
        return all_hold(holdings, filters.price(loss, delta))

    return largest_epsilon(fits, delta, neighboring)


def _remedy(remaining: Guarantee, smaller_delta: float | None) -> str:
    at = f" at delta {remaining.answerable_delta!r}" if remaining.answerable_delta else ""
    if remaining.answerable_epsilon:
        # Rounded down: a number that is shown must be accepted when it is typed.
        return f"ask for an epsilon of at most {typed(remaining.answerable_epsilon)!r}{at}"
    if smaller_delta is None:
        return "no answer at this delta fits any more, and what was spent is not given back"
    if smaller_delta:
        return f"no answer to this question{at} fits; ask for a delta of at most {smaller_delta!r}"
    return f"no answer to this question{at} fits; ask for a delta of 0, with public groups"
