"""A question that did not fit, and the largest epsilon at which it would: its loss is priced again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from typing import TypeAlias

from sfumato.errors import ParameterError, QueryError
from sfumato.ledger.budget.combined_filters import Filters
from sfumato.ledger.budget.spent import Spent
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["LossAt", "RefusedQuestion", "round_down"]

LossAt: TypeAlias = Callable[[float], PrivacyLoss]
"""The loss of one question, asked at another epsilon; raises where it cannot be asked so."""

_PROBES = 4
_AIM = 1 - 2.0**-12  # of what is left, so that the last digits of a guess do not decide
_NEAR = 1 - 2.0**-9  # of what is left: worth no further probe
_POWERS = {"zcdp": 2.0, "gdp": 2.0, "rdp": 2.0}
"""How a filter's price grows with epsilon, about; the others' grow as epsilon does."""


def round_down(number: float, digits: int = 6) -> float:
    """Return a number rounded down to so many decimal digits, for people to type.

    >>> round_down(0.123456789), round_down(2.0)
    (0.123456, 2.0)
    """
    return float(Context(prec=digits, rounding=ROUND_DOWN).create_decimal(Decimal(repr(number))))


@dataclass(frozen=True, slots=True)
class RefusedQuestion:
    """A question that did not fit.

    Parameters
    ----------
    loss_at : callable
        Its loss at another epsilon.
    epsilon, delta : float
        The guarantee that it was asked at.
    cost : tuple of Spent
        What that would have cost, in each filter.
    """

    loss_at: LossAt
    epsilon: float
    delta: float
    cost: tuple[Spent, ...]

    def largest_epsilon(self, filters: Filters, totals: tuple[Spent, ...]) -> float:
        """Return the largest epsilon found at which the question fits, in six digits; 0 if none was.

        Every epsilon that is returned was priced by the question's own loss and fits as it is.
        """
        best = 0.0
        for index in range(len(filters.members)):
            best = self._within(index, filters, totals, best)
        return best

    def smaller_delta(self, filters: Filters, totals: tuple[Spent, ...]) -> float | None:
        """Return a delta, in three digits, at which the masses would fit; None if no delta helps."""
        pairs = list(zip(filters.left(totals), self.cost, strict=True))
        if not self.delta or not any(left.amount > 0 for left, _ in pairs):
            return None
        if any(
            0 < cost.amount < math.inf and cost.delta <= left.delta for left, cost in pairs if left.amount
        ):
            return None
        limits = [(left.delta, cost.delta) for left, cost in pairs if left.amount and cost.delta]
        largest = max(
            (mass if asked == self.delta else self.delta * (mass / asked) for mass, asked in limits),
            default=0.0,
        )
        return round_down(largest, 3) if largest else 0.0

    def _within(self, index: int, filters: Filters, totals: tuple[Spent, ...], best: float) -> float:
        """Search below one filter's limit: a power law through the last two prices says where to look."""
        member, (left, mass) = filters.members[index], filters.left(totals)[index]
        power, epsilon, cost = _POWERS.get(member.kind, 1.0), self.epsilon, self.cost[index]
        if left <= 0 or cost.delta > mass or not self.epsilon < math.inf:
            return best
        for probe in range(_PROBES):
            if not 0 < cost.amount < math.inf:
                break
            aim = left * (_AIM ** (4**probe) if probe else 1.0)
            guess = epsilon * (aim / cost.amount) ** (1 / power)
            # A filter of epsilons needs no guess: a question's loss is within the epsilon it is asked at.
            tried = round_down(left if power == 1 and not probe else guess)
            price = self.price(tried, filters) if best < tried < self.epsilon else None
            if price is None:
                break
            if filters.hold(filters.after(totals, price)):
                best = tried
            power = _power(power, (epsilon, cost.amount), (tried, price[index].amount))
            epsilon, cost = tried, price[index]
            if best == tried and cost.amount >= left * _NEAR:
                break
        return best

    def price(self, epsilon: float, filters: Filters) -> tuple[Spent, ...] | None:
        """Return what the question costs at another epsilon; None where it cannot be asked so."""
        try:
            return filters.price(self.loss_at(epsilon), self.delta)
        except (ParameterError, QueryError):
            return None


def _power(before: float, first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return the exponent of the power law through two prices, limited to what is plausible."""
    (near, at_near), (far, at_far) = first, second
    if near == far or not (0 < at_near < math.inf and 0 < at_far < math.inf):
        return before
    return min(max(math.log(at_near / at_far) / math.log(near / far), 0.5), 4.0)
