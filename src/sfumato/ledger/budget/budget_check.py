"""The budget check: what a charge costs, whether every budget that it falls on has room, and what is left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from sfumato import _check
from sfumato.errors import BudgetExceeded, NeighboringMismatch
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.filters import own_epsilon
from sfumato.ledger.budget.largest_epsilon import largest_epsilon
from sfumato.ledger.budget.refused_question import RefusedQuestion, round_down
from sfumato.ledger.budget.spent import Spent
from sfumato.ledger.failures import NOTHING_CHARGED
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = [
    "Balance",
    "HasBudget",
    "Price",
    "budget_exceeded",
    "check_loss",
    "fits_all",
    "price_of",
    "remaining_of",
]


_DIGITS: Final = 6
_ALL_DIGITS: Final = 17


class HasBudget(Protocol):
    """What has a budget: a ledger's identity, or a filter in memory."""

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""

    @property
    def neighboring(self) -> Neighboring:
        """The relation of all charges."""


class Price(NamedTuple):
    """The charge's own (epsilon, delta), and what it adds to each filter."""

    epsilon: float
    delta: float
    cost: tuple[Spent, ...]


class Balance(NamedTuple):
    """One budget with what was spent of it; ``whose`` continues the words "the budget of ..."."""

    budget: Budget
    totals: tuple[Spent, ...]
    whose: str = ""

    def fits(self, cost: tuple[Spent, ...]) -> bool:
        """Whether one more charge fits."""
        filters = self.budget.filters
        return filters.hold(filters.after(self.totals, cost))


def price_of(owner: HasBudget, loss: PrivacyLoss, delta: float) -> Price:
    """Return what a charge costs.

    Parameters
    ----------
    owner : HasBudget
        What has the budget and the neighboring relation.
    loss : PrivacyLoss
        What will be run.
    delta : float
        Where the charge's own guarantee is read.

    Raises
    ------
    ParameterError
        If the delta is none, or one at which an (epsilon, delta) budget's basic filter would be used up.
    NeighboringMismatch
        If the loss is about another relation.
    """
    delta = _check.probability("delta", delta)
    check_loss(loss, owner.neighboring, "ledger")
    filters = owner.budget.filters
    price = Price(own_epsilon(loss, delta), delta, filters.price(loss, delta))
    if owner.budget.kind == "approximate" and math.isinf(price.epsilon) and filters.hold(price.cost):
        # Accepted by the zCDP filter, it would use up the other one for ever.
        remedy = "pass the delta of the query's own guarantee"
        _check.refuse("delta", "be one at which the loss has a finite epsilon", delta, remedy)
    return price


def check_loss(loss: PrivacyLoss, relation: Neighboring, whose: str) -> None:
    """Refuse what is no loss, or is about another relation; that of doing nothing holds under every one."""
    _check.instance("loss", loss, PrivacyLoss, "pass a mechanism's privacy_loss")
    if loss.neighboring not in (None, relation):
        raise NeighboringMismatch(
            f"loss must be about the {whose}'s relation, {relation}, got {loss.neighboring}; "
            f"state the mechanism under the {whose}'s relation"
        )


def fits_all(balances: Sequence[Balance], cost: tuple[Spent, ...]) -> bool:
    """Whether one more charge fits into every budget."""
    return all(balance.fits(cost) for balance in balances)


def remaining_of(
    neighboring: Neighboring,
    balances: Sequence[Balance],
    delta: float,
    question: RefusedQuestion | None = None,
    *,
    shown: int = -1,
) -> Guarantee:
    """Return what one of several budgets has left, and the largest epsilon that all of them still accept.

    The epsilon is that at ``delta`` of one more count, or of one ``question`` where that is known. The
    budgets count in the same units.
    """
    budget, totals, _ = balances[shown]
    return Guarantee(
        neighboring=neighboring,
        answerable_epsilon=_largest_epsilon(neighboring, balances, delta, question),
        answerable_delta=delta,
        **budget.filters.in_units(budget.filters.left(totals), up=False),
    )


def budget_exceeded(
    neighboring: Neighboring,
    balances: Sequence[Balance],
    cost: tuple[Spent, ...],
    delta: float,
    question: RefusedQuestion | None = None,
) -> BudgetExceeded:
    """Return the error for a charge that does not fit, about the first of the budgets that refuses it."""
    index = next(n for n, balance in enumerate(balances) if not balance.fits(cost))
    budget, totals, whose = balances[index]
    remaining = remaining_of(neighboring, balances, delta, question, shown=index)
    requested = Guarantee(neighboring=neighboring, **budget.filters.in_units(cost, up=True))
    smaller = None if question is None else question.smaller_delta(budget.filters, totals)
    digits = _telling_digits(requested, remaining)
    asked = f"{requested.in_words(digits)}, {neighboring}"
    return BudgetExceeded(
        f"charge must fit into the budget of {budget}{whose}, got {asked}, "
        f"with {remaining.in_words(digits)} left; {NOTHING_CHARGED}; {_remedy(remaining, smaller)}",
        remaining=remaining,
        requested=requested,
    )


def _telling_digits(requested: Guarantee, remaining: Guarantee) -> int:
    """Return how many digits show that a number is too large: six, or as many as it takes."""
    pairs = [
        (getattr(requested, name) or 0.0, getattr(remaining, name) or 0.0)
        for name in ("epsilon", "rho", "mu", "delta")
    ]
    for digits in range(_DIGITS, _ALL_DIGITS):
        if all(f"{asked:.{digits}g}" != f"{left:.{digits}g}" for asked, left in pairs if asked > left):
            return digits
    return _ALL_DIGITS


def _largest_epsilon(
    neighboring: Neighboring, balances: Sequence[Balance], delta: float, question: RefusedQuestion | None
) -> float:
    filters = balances[0].budget.filters
    if question is not None:
        refusing = [each for each in balances if not each.fits(question.cost)]
        smallest = min(question.largest_epsilon(each.budget.filters, each.totals) for each in refusing)
        # Each may accept it by another of its filters: what is suggested must fit into all at once.
        if not smallest or len(balances) == 1:
            return smallest
        price = question.price(smallest, filters)
        return smallest if price is not None and fits_all(balances, price) else 0.0
    if len(balances) == 1:
        return filters.largest_epsilon(balances[0].totals, delta, neighboring)

    def loss_fits(loss: PrivacyLoss) -> bool:
        return fits_all(balances, filters.price(loss, delta))

    # What fits by its epsilon alone fits exactly; the search ends a little below.
    exact = min(each.budget.filters.epsilon_left(each.totals, delta) for each in balances)
    return max(exact, largest_epsilon(loss_fits, delta, neighboring))


def _remedy(remaining: Guarantee, smaller_delta: float | None) -> str:
    at = f" at delta {remaining.answerable_delta!r}" if remaining.answerable_delta else ""
    if remaining.answerable_epsilon:
        # Rounded down: a number that is shown must be accepted when it is round_down.
        return f"ask for an epsilon of at most {round_down(remaining.answerable_epsilon)!r}{at}"
    if smaller_delta is None:
        return "no answer at this delta fits any more, and what was spent is not given back"
    if smaller_delta:
        return f"no answer to this question{at} fits; ask for a delta of at most {smaller_delta!r}"
    return f"no answer to this question{at} fits; ask for a delta of 0, with public groups"
